from __future__ import annotations

import pytest

from tests.present.figure_texts import texts_outside
from tests.present.frames_by_kind import in_campaign, ladder, repeats, together, two_sets
from tests.present.frames_for_plots import frames, result, sweep
from tests.present.plots.plot_parts import all_marks, column, the_mark, written
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import FORMATS, numbers
from volbench.present.plots.marks import (
    Bars,
    Bars3D,
    Lines,
    Points,
    ReferenceLine,
    Table,
    Texts,
    Whiskers,
    series_of,
)
from volbench.present.renderers.matplotlib import draw


def test_sweep_has_a_line_per_pattern() -> None:
    """IOPS and p99 stand over the queue depth with a tick at each value."""
    plot = build_plot("sweep", frames(sweep(depths=(1, 4, 16))))
    iops, latency = plot.panels
    lines = dict(series_of(the_mark(iops, Lines)))
    assert list(lines) == ["randread", "randwrite"]
    assert lines["randread"]["iodepth"].tolist() == [1, 4, 16]
    assert lines["randread"]["iops"].tolist() == [100.0, 400.0, 1600.0]
    assert lines["randread"]["lat_p99_s"].tolist() == pytest.approx([0.06, 0.015, 0.00375])
    assert iops.x.ticks == (1, 4, 16)
    assert iops.x.scale == "log2"
    assert iops.y.limits is not None
    assert iops.y.limits[0] == 0
    assert latency.y.label == "p99 of total latency"
    assert (iops.x.label, latency.x.label) == ("", "Queue depth of each job")
    assert [(entry.label, entry.marker) for entry in plot.series] == [
        ("randread", "circle"),
        ("randwrite", "square"),
    ]


def test_sweep_over_blocks_shows_bandwidth() -> None:
    """Over the block size there is a panel of bandwidth, and ticks read as sizes."""
    plot = build_plot("sweep", frames(sweep(depths=(1,), blocks=(4096, 65536, 1 << 20))))
    assert [panel.y.label for panel in plot.panels][:2] == ["IOPS", "Bandwidth"]
    axis = plot.panels[-1].x
    assert [FORMATS[axis.format].write(tick) for tick in axis.ticks] == ["4k", "64k", "1m"]


def test_depth_bars_are_the_numbers() -> None:
    """At each queue depth a bar for each line is as high as the IOPS, and the table says so."""
    plot = build_plot("depth", ladder())
    iops, latency, below = plot.panels
    rows = numbers(plot)
    assert column(the_mark(iops, Bars), "iops") == rows["iops"].tolist()
    assert column(the_mark(latency, Bars), "lat_mean_s") == rows["lat_mean_s"].tolist()
    assert set(rows.loc[rows["iodepth"] == 4, "iops"]) == {400.0, 800.0, 1600.0}
    assert not written(iops), "eighteen bars have no room for their values"
    table = the_mark(below, Table)
    assert "queue depth 4" in table.heads
    assert {"1.6k ± 7", "100 ± 7"} <= {cell for row in table.rows for cell in row}
    assert latency.x.categories == ("1", "2", "4")


def test_few_bars_have_their_values_above_them() -> None:
    """They stand above the whiskers, as fio-plot has them."""
    rows = [row | {"iops_stddev": 10.0, "lat_stddev_s": 0.001} for row in sweep()]
    iops = build_plot("depth", frames(rows)).panels[0]
    texts = the_mark(iops, Texts)
    assert sorted(written(iops)) == sorted(2 * ["100", "400", "1.6k"])
    assert list(texts.data[texts.y]) == list(the_mark(iops, Bars).data["iops"] + 10)


def test_bars_of_a_group_do_not_overlap() -> None:
    """The bars at one value stand beside each other around its tick."""
    bars = the_mark(build_plot("numjobs", ladder()).panels[0], Bars)
    own = bars.data[bars.data["numjobs"] == 2].sort_values("_left")
    assert (own["_left"].to_numpy()[1:] > own["_right"].to_numpy()[:-1]).all()
    assert own["_left"].min() > 0.5
    assert own["_right"].max() < 1.5


def test_deviation_never_reaches_below_zero() -> None:
    """A whisker ends at zero where the deviation is greater than the value."""
    rows = [
        result(f"d{n}", iodepth=n, iops=100.0 * n, iops_stddev=500.0, lat_stddev_s=0.5)
        for n in (1, 2, 4)
    ]
    whiskers = the_mark(build_plot("depth", frames(rows)).panels[0], Whiskers)
    assert min(map(float, whiskers.data[whiskers.low])) == 0
    assert column(whiskers, whiskers.high) == [600.0, 700.0, 900.0]


def test_sets_are_drawn_side_by_side() -> None:
    """Each job has a bar per set in that set's colour, with the min and max of its repeats."""
    plot = build_plot("sets", two_sets())
    assert [panel.title for panel in plot.panels] == [
        "IOPS",
        "Bandwidth",
        "Mean latency",
        "p99 latency",
    ]
    bars = the_mark(plot.panels[0], Bars)
    assert column(bars, bars.value) == [120.0, 240.0, 70.0, 140.0]
    assert column(bars, bars.at) == [0, 1, 3, 4]
    assert plot.panels[0].y.ticks == (0.5, 3.5)
    rows = numbers(plot)
    assert list(rows["iops_low"]) == [110.0, 220.0, 60.0, 120.0]
    assert {"lat_mean_s", "lat_mean_low_s", "lat_p99_high_s"} <= set(rows)
    assert [series.label for series in plot.series] == ["old", "new"]
    assert "Pooled: 3 repeats" in plot.caption


def test_rows_of_campaigns_are_not_mixed() -> None:
    """Three campaigns are three sets, also when one lacks a job."""
    third = in_campaign(repeats(factor=3), "third")
    third = {
        name: frame[frame["job"] == "small"] if "job" in frame else frame
        for name, frame in third.items()
    }
    rows = numbers(build_plot("sets", together(two_sets(), third)))
    assert rows.groupby("job", sort=False)["colour"].agg(list).to_dict() == {
        "small": ["old", "new", "third"],
        "large": ["old", "new"],
    }


def test_knee_is_where_power_has_its_maximum() -> None:
    """IOPS over mean latency decides; 1,2,4 with a latency that jumps at 4 has its knee at 2."""
    rows = [
        result(f"d{n}", iodepth=n, iops=iops, lat_mean_s=mean)
        for n, iops, mean in ((1, 500.0, 0.002), (2, 990.0, 0.0021), (4, 1000.0, 0.004))
    ]
    plot = build_plot("knee", frames(rows))
    table = numbers(plot)
    assert table.loc[table["knee"], "iodepth"].tolist() == [2]
    panel = plot.panels[0]
    assert column(the_mark(panel, Lines), "iops") == [500.0, 990.0, 1000.0]
    ring = the_mark(panel, Points)
    assert (column(ring, ring.x), column(ring, ring.y)) == ([990.0], [0.0021])
    assert ring.is_hollow
    assert column(the_mark(panel, Texts), "_text") == ["1", "2", "4"]


def test_ceiling_has_limits_and_points() -> None:
    """Points lie at IOPS and bandwidth, and each declared limit is a line at its value."""
    plot = build_plot("ceiling", ladder())
    [panel] = plot.panels
    assert (panel.x.scale, panel.y.scale) == ("log", "log")
    lines = all_marks(panel, ReferenceLine)
    assert [(line.axis, line.value) for line in lines] == [("x", 1600.0), ("y", 5e6)]
    assert {"limit: 1.6k", "limit: 5 MB/s"} <= set(written(panel))
    rows = numbers(plot)
    points = the_mark(panel, Points)
    assert column(points, points.x) == rows["iops"].tolist()
    assert column(points, points.y) == rows["bw_bytes_per_s"].tolist()
    assert len(rows) == 18


def test_long_names_leave_a_ceiling_its_width() -> None:
    """The names of the extreme results are cut, and the leftmost is inside the picture."""
    given = ladder()
    rows = given["summary"]
    rows["job"] += "-of-the-orders-database-on-the-second-node-of-three"
    rows["profile"] = [f"{'ab'[n % 2]}-profile-with-quite-a-long-name" for n in range(len(rows))]
    plot = build_plot("ceiling", given)
    assert max(map(len, written(plot.panels[0]))) < 40
    figure = draw(plot)
    assert texts_outside(figure) == []
    (axes,) = figure.axes
    assert axes.get_position().width > 0.6


def test_a_ceiling_without_declared_limits_draws_no_limit() -> None:
    """The caption explains dashed lines where there are some."""
    given = ladder()
    assert "Dashed: declared limits" in build_plot("ceiling", given).caption
    given["summary"][["limit_iops", "limit_bw_bytes_per_s"]] = None
    plot = build_plot("ceiling", given)
    assert not [words for words in (*plot.caption, plot.title) if "limit" in words]


@pytest.mark.parametrize(("column", "kind"), [("lat", "total"), ("clat", "completion")])
def test_a_knee_says_which_latency_it_shows(column: str, kind: str) -> None:
    """Without percentiles of total latency, both panels are of completion latency."""
    given = ladder()
    rows = given["summary"]
    for statistic in ("mean", "p99"):
        values = rows[f"lat_{statistic}_s"]
        rows[f"clat_{statistic}_s"] = values
    if column == "clat":
        rows["lat_p99_s"] = None
    labels = [panel.y.label for panel in build_plot("knee", given).panels]
    assert [f"Mean {kind} latency" in labels[0], f"p99 of {kind} latency" in labels[1]] == [1, 1]


def test_results_of_unknown_pattern_have_a_marker() -> None:
    """An old fio does not report its options; its results are drawn beside the others."""
    given = ladder()
    given["summary"].loc[:5, "rw"] = None
    names = [series.label for series in build_plot("ceiling", given).series]
    assert "pattern unknown" in names
    assert "pattern randread" in names


def test_lines_of_equal_block_size_have_that_slope() -> None:
    """Bandwidth is IOPS times the block size along each sloping line."""
    lines = the_mark(build_plot("ceiling", ladder()).panels[0], Lines)
    for name, line in lines.data.groupby("_text"):
        sizes = {FORMATS["size"].write(y / x) for x, y in zip(line["_x"], line["_y"], strict=True)}
        assert sizes == {name}


def test_towers_are_the_cells_of_the_grid() -> None:
    """A tower stands at each pair of values, and four patterns at most are shown."""
    plot = build_plot("bars3d", ladder())
    towers = [the_mark(panel, Bars3D) for panel in plot.panels]
    assert len(towers) == 4
    assert sorted(map(float, towers[0].data["iops"])) == sorted(
        100.0 * depth * jobs for depth in (1, 2, 4) for jobs in (1, 2, 4)
    )
    assert len(numbers(plot)) == 18


def test_cpu_is_stacked_from_zero() -> None:
    """System time follows user time, both the medians of the repeats."""
    [panel] = build_plot("cpu", repeats()).panels
    user, system = all_marks(panel, Bars)
    assert (user.base, system.base) == ("", user.value)
    assert column(user, user.value) == [5.0, 5.0]
    assert column(system, system.value) == [9.0, 9.0]
    assert "14 %" in written(panel)
    whiskers = the_mark(panel, Whiskers)
    assert column(whiskers, whiskers.low) == [13.0, 13.0]
    assert column(whiskers, whiskers.high) == [15.0, 15.0]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("sweep", "nothing is swept"),
        ("heatmap", "no grid"),
        ("depth", "differ in queue depth alone"),
        ("numjobs", "differ in numjobs alone"),
        ("sets", "one set of results"),
        ("knee", "no curve"),
        ("bars3d", "no grid"),
        ("cpu", "no CPU time"),
    ],
)
def test_missing_data_is_explained(kind: str, reason: str) -> None:
    """A chart that has nothing to show says why, and how to get those that have."""
    with pytest.raises(InputError, match=reason) as caught:
        build_plot(kind, frames([result("alone")]))
    assert "plot all" in caught.value.hint


def test_dd_beside_fio_leaves_gaps() -> None:
    """A job without IOPS has no bar in that panel, and no zero."""
    given = two_sets()
    given["summary"].loc[given["summary"]["job"] == "large", "iops"] = None
    bars = the_mark(build_plot("sets", given).panels[0], Bars)
    assert bars.data[bars.value].dropna().tolist() == [120.0, 240.0]
