"""What holds for every kind of chart that has a description."""

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from tests.present.chart_rules import broken_rules
from tests.present.figure_texts import texts_outside, texts_touching
from tests.present.frames_by_kind import FOR_KIND, Frames, in_rounds
from tests.present.frames_for_plots import aks, frames, result
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot, build_plots
from volbench.present.plots.colour_themes import THEMES
from volbench.present.plots.description import FORMATS, Plot, data_marks, numbers
from volbench.present.plots.kinds import KINDS, Choice, Options
from volbench.present.plots.marks import ReferenceLine, Span, series_of
from volbench.present.renderers.matplotlib import draw


@cache
def frames_of(kind: str) -> Frames:
    """Return frames that have something for a kind."""
    return FOR_KIND[kind]()


@cache
def plot_of(kind: str) -> Plot:
    """Return a plot of a kind."""
    return build_plot(kind, frames_of(kind), options=options_of(kind))


def options_of(kind: str) -> Options:
    """Return the options of a chart of a kind."""
    return in_rounds(frames_of(kind)) if kind == "rounds" else Options()


@pytest.fixture(name="kind", params=list(KINDS))
def _kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def roles_of(plot: Plot) -> set[str]:
    """Return every role of colour that a plot names."""
    roles = {series.key: series.colour for series in plot.series}
    keys = {key for mark in data_marks(plot) for key, _ in series_of(mark)}
    keys |= {
        mark.series
        for panel in plot.panels
        for mark in panel.marks
        if isinstance(mark, ReferenceLine | Span)
    }
    return {*roles.values(), *(roles.get(key, key) for key in keys)}


def test_panels_have_a_name_and_a_grid_cell(kind: str) -> None:
    """Every axis has a label or a neighbour with one, a known format, and a place in the grid."""
    plot = plot_of(kind)
    assert plot.name == kind
    assert KINDS[kind].title.lower() in plot.title.lower()
    assert any(panel.x.label for panel in plot.panels)
    for panel in plot.panels:
        assert panel.x.format in FORMATS
        assert panel.y.format in FORMATS
        assert panel.row < len(plot.heights)
        assert panel.column + panel.columns <= len(plot.widths)
        assert panel.marks


def test_every_theme_defines_every_colour(kind: str) -> None:
    """No mark names a colour that a theme does not have."""
    roles = roles_of(plot_of(kind))
    for theme in THEMES.values():
        assert roles <= set(theme.colours)


def test_numbers_have_rows_and_names(kind: str) -> None:
    """The table has rows, each once, and no column of the drawing alone."""
    rows = numbers(plot_of(kind))
    assert len(rows)
    assert all(isinstance(name, str) and not name.startswith("_") for name in rows)
    assert not rows.duplicated().any()


@pytest.mark.slow
def test_the_description_has_a_number(kind: str) -> None:
    """The description is one line with a number in it, and nothing unknown."""
    sentence = plot_of(kind).description
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert any(letter.isdigit() for letter in sentence)
    assert "nan" not in sentence


@pytest.mark.slow
def test_words_quote_no_number_that_a_finding_rejects(kind: str) -> None:
    """Copies of all runs, a thousand times as fast and invalid, change no sentence."""
    given = frames_of(kind)
    valid = plot_of(kind)
    false = {name: frame.copy() for name, frame in given.items()}
    for frame in false.values():
        if "run" in frame:
            frame["run"] = "false-" + frame["run"]
        for column in {"iops", "bw_bytes_per_s", "lat_p99_s"} & {*frame}:
            frame[column] *= 1000
    runs = false["summary"]["run"].unique()
    findings = pd.DataFrame(
        {"run": runs, "severity": "invalid", "direction": None, "rule": "cached", "message": ""}
    )
    both = {name: pd.concat([given[name], false[name]], ignore_index=True) for name in given}
    plot = build_plot(kind, {**both, "findings": findings}, options=options_of(kind))
    assert plot.description == valid.description
    assert [panel.heading for panel in plot.panels][:1] == [valid.panels[0].heading]
    assert any(text.startswith("Invalid results") for text in plot.caption)
    only = {**false, "findings": findings}
    if KINDS[kind].concludes:
        with pytest.raises(InputError, match="every result is invalid"):
            build_plot(kind, only, options=options_of(kind))
    else:
        assert "valid result to quote." in build_plot(kind, only).description


def test_every_kind_keeps_the_rules_of_charts(kind: str) -> None:
    """Scales, colours, texts and sizes."""
    assert broken_rules(plot_of(kind)) == []


@pytest.mark.slow
def test_every_kind_can_compare_campaigns(kind: str) -> None:
    """With colours for campaigns it keeps its numbers."""
    choice = Choice(by=("campaign",))
    plot = build_plot(kind, frames_of(kind), options=replace(options_of(kind), choice=choice))
    assert plot.panels
    assert len(numbers(plot))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "print"])
def test_pictures_are_complete(kind: str, theme: str) -> None:
    """Nothing is cut off, and panels end where the description says; dark differs in colours."""
    plot = plot_of(kind)
    figure = draw(plot, theme=theme)
    assert " ".join(figure.get_suptitle().split()) == plot.title
    assert len(figure.axes) >= len(plot.panels)
    assert texts_outside(figure) == []
    assert texts_touching(figure) == []


def test_an_upright_line_is_explained_where_one_is_drawn() -> None:
    """A rate that keeps the bound may not have been found."""
    missed = FOR_KIND["within"]()
    missed["summary"]["lat_p99_s"] = 1.0
    assert "Upright" not in " ".join(build_plot("within", missed).caption)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in KINDS if name != "warmup"])
def test_failed_runs_give_no_chart(kind: str) -> None:
    """Without a finished run every kind says that, with the number of those that failed."""
    given = frames([result("a", status="failed"), result("b", status="failed")])
    with pytest.raises(InputError, match="no measured run finished: 2 failed"):
        build_plot(kind, given)


@pytest.mark.slow
def test_frames_may_be_missing() -> None:
    """A summary alone is enough for the charts that need no more."""
    alone = {"summary": frames([result("a")])["summary"]}
    assert [plot.name for plot in build_plots(alone)] == ["iops-p99", "latency"]
    assert list(build_plots({})) == []
    assert list(build_plots(frames([result("a", status="failed")]))) == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("series", "no logs"),
        ("ecdf", "no histogram"),
        ("histogram", "no histogram"),
        ("latency-map", "no latencies over time"),
    ],
)
def test_missing_data_is_explained(kind: str, reason: str) -> None:
    """A chart that has nothing to show says why, and builds no other to name those that work."""
    given = frames(aks()[:2])
    with pytest.raises(InputError, match=reason) as caught:
        build_plot(kind, given)
    assert "plot all" in caught.value.hint
