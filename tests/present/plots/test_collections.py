"""Charts of many volumes, and names that are too long for them."""

import pandas as pd
import pytest

from tests.present.figure_texts import texts_outside
from tests.present.frames_by_kind import arms_in_blocks, in_campaign, ladder, nightly, together
from tests.present.plots.plot_parts import all_marks, caption_of
from volbench.present.plots.chart import build_plot
from volbench.present.plots.kinds import Choice, Options, View
from volbench.present.plots.labels import brief
from volbench.present.plots.marks import Lines, Points
from volbench.present.renderers.matplotlib import draw


@pytest.mark.slow
@pytest.mark.parametrize("view", ["lines", "bars", "grid"])
def test_long_volume_names_leave_room_for_the_data(view: View) -> None:
    """Titles and tables have the end of a name, in which volumes differ, and touch nothing."""
    folder = "/mnt/a-very-long-mount-point/of-a-customer/with/many/levels/of/folders"
    given = together(in_campaign(ladder(), "old"), in_campaign(ladder(), "new"))
    summary = given["summary"]
    ends = [f"/pvc-7d0c4e6a-{end}" for end in ("0", "1")]
    parts = [summary.assign(volume=f"/{n}{folder}{end}") for n, end in enumerate(ends)]
    for part, end in zip(parts, ends, strict=True):
        part["run"] += end
    options = Options(choice=Choice(view=view))
    given = {**given, "summary": pd.concat(parts, ignore_index=True)}
    plot = build_plot("iops", given, options=options)
    figure = draw(plot)
    assert texts_outside(figure) == []
    assert float(figure.get_size_inches()[0]) < 14


def test_long_names_keep_the_end_that_tells_them_apart() -> None:
    """A name that would no longer differ is cut less."""
    names = [f"/mnt/{'x' * 60}/pvc-{n}" for n in range(3)]
    assert [name[-5:] for name in brief(names)] == ["pvc-0", "pvc-1", "pvc-2"]
    assert {len(name) for name in brief(names)} == {34}
    middles = [f"{'a' * 30}{n}{'b' * 30}" for n in range(2)]
    assert len({*brief(middles)}) == 2
    assert brief(["short", "s"]) == ("short", "s")


def test_arms_in_blocks_are_lines() -> None:
    """What an arm is needs no panel: its options belong to it; blocks are counted, not doubled."""
    given = arms_in_blocks()
    summary = given["summary"]
    deeper = summary.assign(iodepth=summary["iodepth"].where(summary["arm"] == "a", 8))
    options = Options(choice=Choice(x="block", by=("arm",)))
    [panel] = build_plot("iops", given | {"summary": deeper}, options=options).panels
    assert (panel.x.scale, panel.x.ticks) == ("linear", (1, 2, 3, 4, 5, 6))
    [lines] = all_marks(panel, Lines)
    assert lines.data.groupby("_colour").size().to_dict() == {"a": 6, "b": 6}


def test_a_loss_looks_alike_in_all_trends_and_asked_rates_are_hollow() -> None:
    """Scales span one share of the values; a rate that fio kept is no result of its own."""
    given = nightly()
    plot = build_plot("trend", given)
    spans = [high / low for panel in plot.panels for low, high in [panel.y.limits or (1, 2)]]
    assert spans == pytest.approx([spans[0]] * len(spans))
    assert spans[0] < 2
    summary = given["summary"]
    asked = given | {"summary": summary.assign(rate_iops="2000")}
    hollow = [
        mark.is_hollow
        for panel in build_plot("trend", asked).panels
        for mark in all_marks(panel, Points)
        if mark.series == "value"
    ]
    assert all(hollow)
    assert "Hollow: as asked (rate_iops=2000)" in caption_of(build_plot("trend", asked))
    assert "the same share of each panel's values" in caption_of(plot)
    one = build_plot("trend", given | {"summary": summary.drop_duplicates("campaign").head(3)})
    assert [each.label for each in one.series if each.label] == ["median of a campaign", "level"]
    volumes = [summary.assign(volume=name) for name in ("/dev/sda", "/dev/sdb")]
    apart = build_plot("trend", given | {"summary": pd.concat(volumes, ignore_index=True)})
    assert {panel.title.split(", ")[-2] for panel in apart.panels} == {"/dev/sda", "/dev/sdb"}
