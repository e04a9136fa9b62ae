import pytest

from tests.present.frames_by_kind import ladder, rounds
from tests.present.frames_for_plots import frames, result, sweep
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark, written
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import FORMATS, numbers
from volbench.present.plots.marks import (
    Bars,
    Bars3D,
    Lines,
    Points,
    Table,
    Texts,
    Whiskers,
    series_of,
)


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
    looks = {entry.label: entry.marker for entry in plot.series}
    assert looks == {"randread": "circle", "randwrite": "square"}


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
    made = ladder()
    alone = {**made, "summary": made["summary"].query("iodepth == 4")}
    bars = the_mark(build_plot("depth", alone).panels[0], Bars)
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


def test_knee_is_where_power_has_its_maximum() -> None:
    """IOPS over mean latency decides; 1,2,4 with a latency that jumps at 4 has its knee at 2."""
    rows = [
        result(f"d{n}", iodepth=n, iops=iops, lat_mean_s=mean)
        for n, iops, mean in ((1, 500.0, 0.002), (2, 990.0, 0.0021), (4, 1000.0, 0.004))
    ]
    plot = build_plot("sweep", frames(rows))
    table = numbers(plot)
    assert table.loc[table["knee"], "iodepth"].tolist() == [2]
    ring = the_mark(plot.panels[0], Points)
    assert (column(ring, ring.x), column(ring, ring.y)) == ([2], [990.0])
    assert ring.is_hollow
    assert "Ringed: the knee" in caption_of(plot)
    two = build_plot("sweep", frames(rows[:2]))
    assert not all_marks(two.panels[0], Points), "two points have no knee"


def test_grids_over_the_mix_of_reads_and_writes() -> None:
    """A heat map has a grid of reads and one of writes, over mix and block size."""
    plot = build_plot("heatmap", rounds())
    reads = plot.panels[0]
    assert reads.x.label == "Reads in the mix, percent"
    assert (reads.x.categories, reads.y.categories) == (("65", "100"), ("4k", "64k"))
    titles = [panel.title for panel in plot.panels[::2]]
    assert titles == ["IOPS, randrw, read", "IOPS, randrw, write"]


def test_towers_are_the_cells_of_the_grid() -> None:
    """A tower stands at each pair of values, and four patterns at most are shown."""
    plot = build_plot("bars3d", ladder())
    towers = [the_mark(panel, Bars3D) for panel in plot.panels]
    assert len(towers) == 4
    rates = [100.0 * depth * jobs for depth in (1, 2, 4) for jobs in (1, 2, 4)]
    assert sorted(map(float, towers[0].data["iops"])) == sorted(rates)
    assert len(numbers(plot)) == 18


def test_missing_data_is_explained() -> None:
    """A chart that has nothing to show says why."""
    reasons = {"sweep": "nothing is swept", "heatmap": "no grid", "bars3d": "no grid"}
    reasons["depth"] = "differ in queue depth or numjobs alone"
    for kind, reason in reasons.items():
        with pytest.raises(InputError, match=reason):
            build_plot(kind, frames([result("alone")]))
