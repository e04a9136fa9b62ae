"""Charts from the classes that fio reports without json+: I/Os in flight, and latencies."""

from __future__ import annotations

import pytest

from tests.present.frames_by_kind import filled_queues
from tests.present.frames_for_plots import bins, classes, frames, result
from tests.present.plots.plot_parts import all_marks, column
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.marks import Bars, Texts


def test_a_bar_shows_how_full_the_queue_was() -> None:
    """Its parts are shares of the I/Os, one after the other up to all of them."""
    plot = build_plot("inflight", filled_queues())
    rows = numbers(plot).set_index("job")
    assert rows.loc["full", "in_flight_16"] == pytest.approx(0.999)
    assert rows.loc["half", "in_flight_8"] == pytest.approx(0.499)
    assert rows.loc["empty", "in_flight_16"] == 0
    ends: dict[str, float] = {}
    for mark in all_marks(plot.panels[0], Bars):
        for row in mark.data.to_dict("records"):
            assert row["_base"] == pytest.approx(ends.get(row["job"], 0.0))
            ends[row["job"]] = row["_base"] + row[mark.value]
    assert ends == pytest.approx({"full": 1.0, "half": 1.0, "empty": 1.0})
    [depths] = all_marks(plot.panels[0], Texts)
    assert column(depths, "_text") == ["iodepth 16"] * 3
    assert (
        "at most 100 % of the I/Os were submitted below the queue depth (empty" in plot.description
    )


def test_counts_above_all_ios_are_shares_again() -> None:
    """With syncs fio reports 188 %: the parts are shares of what it counted."""
    row = result("sync", iodepth=1, total_ios=10)
    given = frames([row], shares=classes(row, "iodepth", {1: 188.0}))
    [bar] = all_marks(build_plot("inflight", given).panels[0], Bars)
    assert column(bar, "in_flight_1") == [1.0]


def test_a_histogram_needs_no_json_plus() -> None:
    """Without bins it has fio's classes; repeats are added up by their I/Os."""
    first = result("job", total_ios=1000)
    again = result("job", repeat=2, total_ios=3000) | {"run": "again"}
    shares = [
        *classes(first, "clat", {0.0001: 100.0, 0.00025: 0.0}),
        *classes(again, "clat", {0.0001: 0.0, 0.00025: 100.0, 0.0005: 0.0}),
    ]
    plot = build_plot("histogram", frames([first, again], shares=shares))
    rows = numbers(plot)
    assert list(rows["low_s"]) == [0.0001, 0.00025]
    assert list(rows["high_s"]) == [0.00025, 0.0005]
    assert list(rows["share"]) == [0.25, 0.75]
    assert any("json+" in text for text in plot.caption)
    exact = frames([first], histogram=bins(first, {0.0002: 1000}), shares=shares)
    assert not any("json+" in text for text in build_plot("histogram", exact).caption)


def test_directions_that_fio_counts_together_share_a_panel() -> None:
    """The classes of a mixed job are those of reads and writes together."""
    rows = [result("mixed", direction=name, total_ios=500) for name in ("read", "write")]
    given = frames(rows, shares=classes(rows[0], "clat", {0.0: 50.0, 2e-6: 50.0}))
    plot = build_plot("histogram", given)
    assert [panel.title for panel in plot.panels] == ["mixed, all"]
    rows_drawn = numbers(plot)
    assert rows_drawn["count"].sum() == 1000
    assert list(rows_drawn["low_s"]) == [1e-6, 2e-6]


def test_dd_has_no_chart_of_queues() -> None:
    """What reports no classes has no chart of them."""
    with pytest.raises(InputError, match="no run of fio reported them"):
        build_plot("inflight", frames([result("job")]))
