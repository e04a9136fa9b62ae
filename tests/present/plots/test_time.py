import numpy as np
import pytest

from tests.present.frames_for_plots import frames, intervals, result
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.kinds import Options
from volbench.present.plots.marks import Lines, ReferenceLine, series_of
from volbench.present.renderers.matplotlib import draw


def test_series_draws_zeros_and_gaps() -> None:
    """A stalled second is a zero of IOPS and a gap of latency; the limit is drawn."""
    row = result("a", limit_iops=120.0)
    given = frames([row], series=intervals(row, [100.0, 0.0, 110.0]))
    plot = build_plot("series", given)
    assert plot.title == "IOPS and mean latency over time", "one size: bandwidth is the same curve"
    assert plot.answer.startswith("1 run of randwrite on /data, up to 3s"), "what was measured"
    iops, latency = plot.panels
    assert column(the_mark(iops, Lines), "iops") == [100.0, 0.0, 110.0]
    assert np.isnan(the_mark(latency, Lines).data["lat_mean_s"].iloc[1])
    assert the_mark(iops, ReferenceLine).value == 120.0
    assert iops.y.limits is not None
    assert iops.y.limits[0] == 0
    assert iops.y.limits[1] > 120
    assert (iops.y.label, latency.y.label) == ("IOPS", "Mean latency")
    assert iops.x.scale == "time"


def test_quantities_without_a_log_have_no_panel() -> None:
    """An import of a bandwidth log alone: the caption names what is not shown."""
    row = result("a")
    points = [
        {**point, "iops": None, "lat_mean_s": None} for point in intervals(row, [100.0, 110.0])
    ]
    plot = build_plot("series", frames([row], series=points))
    assert [panel.y.label for panel in plot.panels] == ["Bandwidth"]
    assert "Not logged, so not shown: IOPS, Mean latency" in caption_of(plot)


def test_a_distant_limit_does_not_flatten_the_series() -> None:
    """A limit far above the data is named beside the panel, not drawn."""
    row = result("a", limit_iops=1e6)
    panel = build_plot("series", frames([row], series=intervals(row, [100.0, 90.0]))).panels[0]
    line = the_mark(panel, ReferenceLine)
    assert line.is_beyond
    assert line.name == "limit: 1M"
    assert panel.y.limits is not None
    assert panel.y.limits[1] < 200


def test_series_has_a_row_per_job_and_a_line_per_run() -> None:
    """Repeats of a job share its panels; reads and writes are lines of their own."""
    mixed = [result("b", rw="randrw", direction=way) for way in ("read", "write")]
    rows = [result("a"), result("a", repeat=2), *mixed]
    given = [point for row in rows for point in intervals(row, [10.0, 20.0])]
    given[0] |= {"bw_bytes_per_s": 1e6}  # the sizes of I/Os differ
    plot = build_plot("series", frames(rows, series=given))
    assert [(panel.row, panel.column) for panel in plot.panels] == [
        (row, place) for row in range(2) for place in range(3)
    ]
    assert len({panel.x.limits for panel in plot.panels}) == 1
    assert plot.panels[0].y.limits == plot.panels[3].y.limits
    lines = [all_marks(panel, Lines)[0] for panel in plot.panels]
    keys = [[key for key, _ in series_of(mark)] for mark in lines[::3]]
    assert keys == [["write/0", "write/1"], ["read/0", "write/0"]]
    labels = {series.key: (series.label, series.dash) for series in plot.series}
    assert labels["write/1"] == ("write", "dashed")


def test_other_latencies_over_time_need_their_logs() -> None:
    """Percentiles are never averaged; that of submission takes the place of the total latency."""
    row = result("a")
    points = intervals(row, [100.0, 200.0])
    for options, name, label, lack in (
        (Options(statistic="p99"), "lat_p99_s", "p99 latency", "logs hold means only"),
        (Options(latency="slat"), "slat_mean_s", "Mean submission latency", "the runs have no"),
    ):
        with pytest.raises(InputError, match=f"no {label.lower()} over time: {lack}"):
            build_plot("series", frames([row], series=points), options=options)
        known = [point | {name: 0.5 / n} for n, point in enumerate(points, start=1)]
        panel = build_plot("series", frames([row], series=known), options=options).panels[1]
        assert panel.y.label == label
        assert column(the_mark(panel, Lines), name) == [0.5, 0.25]


def test_a_single_sample_is_a_dot_inside_the_panel() -> None:
    """A run of one second has one value; at the edge of the axis half of its dot would be cut."""
    row = result("a")
    plot = build_plot("series", frames([row], series=intervals(row, [100.0])))
    limits = plot.panels[0].x.limits
    assert limits is not None
    assert limits[1] > 1.1
    axes = draw(plot).axes[0]
    [line] = [own for own in axes.lines if np.size(own.get_xdata()) == 1]
    assert line.get_marker() == "o"
    assert line.get_markersize() >= 5


def test_what_is_compared_is_drawn_over_each_other() -> None:
    """Two volumes share the panels of a workload, each with its colour."""
    rows = [result("a", volume=f"/dev/{n}", run=n) for n in "xy"]
    given = [point for row in rows for point in intervals(row, [10.0, 20.0])]
    plot = build_plot("series", frames(rows, series=given))
    assert len(plot.panels) == 2
    assert [key for key, _ in series_of(the_mark(plot.panels[0], Lines))] == ["x/0", "y/0"]
    assert len({look.colour for look in plot.series}) == 2
