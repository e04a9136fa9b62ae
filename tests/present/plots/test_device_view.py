"""The device's view: runs with known samples, and what stands on the panels."""

import numpy as np
import pandas as pd
import pytest

from tests.present.chart_rules import broken_rules
from tests.present.frames_for_plots import frames, intervals, result, samples
from tests.present.plots.plot_parts import all_marks, caption_of
from volbench.errors import InputError
from volbench.present.plots.chart import build_plot
from volbench.present.plots.charts.device_layout import QUANTITIES
from volbench.present.plots.colour_themes import theme_of
from volbench.present.plots.description import Panel, Plot
from volbench.present.plots.marks import Lines, ReferenceLine, Span, Texts, series_of

Frames = dict[str, pd.DataFrame]

NAMES = [quantity.name for quantity in QUANTITIES]


def watched(*, tail_s: int = 0, rate: float = 400.0, limit_iops: float | None = None) -> Frames:
    """Return a run of ten seconds with its series and samples, and seconds of write-back."""
    row = result("job", runtime_s=10.0, io_bytes=10 * rate * 4096, limit_iops=limit_iops)
    sampled = samples(row, [rate] * (10 + tail_s), ended_s=10)
    return frames([row], series=intervals(row, [rate] * 10), device=sampled)


def many(count: int) -> Frames:
    """Return runs of two seconds each."""
    rows = [result(f"job{n}", runtime_s=2.0, io_bytes=1e6) for n in range(count)]
    sampled = [sample for row in rows for sample in samples(row, [100.0, 100.0], ended_s=2)]
    return frames(rows, device=sampled)


def panel_of(plot: Plot, name: str) -> Panel:
    """Return the first panel of a quantity."""
    return next(panel for panel in plot.panels if panel.y.label.removesuffix(" (log)") == name)


def points(panel: Panel, quantity: str, source: str = "device") -> pd.DataFrame:
    """Return the points of the lines of one column from one source."""
    rows = pd.concat([mark.data for mark in all_marks(panel, Lines)], ignore_index=True)
    return rows[(rows["quantity"] == quantity) & (rows["source"] == source)]


def values(panel: Panel, quantity: str, source: str = "device") -> list[float]:
    """Return the values of a line."""
    found: list[float] = points(panel, quantity, source)["value"].tolist()
    return found


def texts(panel: Panel) -> list[str]:
    """Return what is written into a panel."""
    return [str(text) for mark in all_marks(panel, Texts) for text in mark.data["_text"]]


def limits(panel: Panel) -> list[ReferenceLine]:
    """Return the lines of declared limits."""
    return [line for line in all_marks(panel, ReferenceLine) if line.axis == "y"]


def test_panels_match_the_published_article() -> None:
    """Eight quantities stand under each other, over one axis of time."""
    plot = build_plot("device", watched())
    assert [panel.y.label for panel in plot.panels] == NAMES
    assert "Queue depth" in NAMES
    assert plot.panels[-1].x.label == "Time since each run's I/O began"
    assert plot.shared_x


def test_steps_hold_the_samples() -> None:
    """Each sample is a step over its own interval; zeros are zeros and gaps are gaps."""
    row = result("job", runtime_s=4.0, io_bytes=1e6)
    given = frames([row], device=samples(row, [100.0, 0.0, None, 200.0], ended_s=4))
    plot = build_plot("device", given)
    panel = panel_of(plot, "IOPS")
    assert points(panel, "write_iops")["_x"].tolist() == [0, 1, 2, 3, 4]
    rates = values(panel, "write_iops")
    assert rates[:3] == [100, 100, 0]
    assert np.isnan(rates[3])
    assert rates[4] == 200
    assert np.isnan(values(panel_of(plot, "Latency"), "write_lat_s")[2])
    active = panel_of(plot, "Active time").y.limits
    assert active is not None
    assert active[1] > 100


def test_reads_and_writes_are_drawn_separately() -> None:
    """A run that reads and writes has two lines; fio's view is both together."""
    rows = [
        result("mixed", direction=direction, rw="randrw", runtime_s=2.0, io_bytes=1e6)
        for direction in ("read", "write")
    ]
    sampled = samples(rows[1], [100.0, 100.0], ended_s=2, read_iops=50.0)
    series = [point for row in rows for point in intervals(row, [60.0, 60.0])]
    panel = panel_of(build_plot("device", frames(rows, series=series, device=sampled)), "IOPS")
    assert values(panel, "read_iops") == [50] * 3
    assert values(panel, "write_iops") == [100] * 3
    assert values(panel, "iops", "fio") == [120] * 3
    assert texts(panel) == []
    only_writes = panel_of(build_plot("device", watched()), "IOPS")
    assert values(only_writes, "write_iops")
    assert not values(only_writes, "read_iops")


def test_time_after_fio_is_shaded() -> None:
    """The grey part begins where fio ended and goes on to the last sample."""
    plot = build_plot("device", watched(tail_s=5))
    [span] = all_marks(panel_of(plot, "IOPS"), Span)
    assert (span.low, span.high) == pytest.approx((10, 15))
    assert "after fio ended" in {series.label for series in plot.series}
    quiet = build_plot("device", watched())
    assert not all_marks(panel_of(quiet, "IOPS"), Span)
    assert "after fio ended" not in {series.label for series in quiet.series}


def test_limits_are_lines_along_their_runs() -> None:
    """A near limit is drawn and named, a far one is only named, and none has no text."""
    [near] = limits(panel_of(build_plot("device", watched(limit_iops=500.0)), "IOPS"))
    assert (near.extent, near.value, near.is_beyond) == ((0, 10), 500, False)
    assert near.name == "limit: 500"
    [far] = limits(panel_of(build_plot("device", watched(limit_iops=90000.0)), "IOPS"))
    assert (far.name, far.is_beyond) == ("limit: 90k", True)
    assert limits(panel_of(build_plot("device", watched()), "IOPS")) == []


def test_a_far_higher_fio_rate_is_written_not_drawn_to_scale() -> None:
    """A rate from memory does not flatten the device: it is written into the panel."""
    row = result("buffered", direct=False, runtime_s=3.0, io_bytes=3 * 4096 * 50000)
    sampled = samples(row, [250.0] * 9, ended_s=3)
    given = frames([row], series=intervals(row, [50000.0] * 3), device=sampled)
    panel = panel_of(build_plot("device", given), "IOPS")
    assert panel.y.limits is not None
    assert panel.y.limits[1] < 500
    assert texts(panel) == ["fio 50k"]


def test_a_run_too_short_for_a_series_shows_the_mean_of_fio() -> None:
    """A buffered run of half a second has no series; its bandwidth is written all the same."""
    row = result("short", direct=False, runtime_s=0.5, io_bytes=500_000_000)
    given = frames([row], device=samples(row, [10.0] * 9, ended_s=0.5))
    assert "fio 1 GB/s" in texts(panel_of(build_plot("device", given), "Bandwidth"))


def test_scales_turn_logarithmic_where_values_differ() -> None:
    """Depths 1 and 16, sizes 4k and 512k: small values stay visible, and the axis says it."""
    rows = [result(f"job{n}", runtime_s=3.0, io_bytes=1e6) for n in range(2)]
    large = {"queue_depth": 64.0, "write_request_bytes": 524288.0}
    sampled = samples(rows[0], [100.0] * 3, ended_s=3)
    sampled += samples(rows[1], [100.0] * 3, ended_s=3, **large)
    plot = build_plot("device", frames(rows, device=sampled))
    sizes, depths = panel_of(plot, "Request size").y, panel_of(plot, "Queue depth").y
    assert (sizes.scale, depths.scale) == ("log2", "symlog")
    assert sizes.label == "Request size (log)"
    assert sizes.limits is not None
    low, high = sizes.limits
    assert [tick for tick in sizes.ticks if low <= tick <= high] == [16384, 262144]
    assert panel_of(plot, "Latency").y.scale == "linear"


def test_the_backing_disk_is_drawn_where_it_differs() -> None:
    """A disk that does the same as the volume on it adds no line; a busier disk does."""
    row = result("job", runtime_s=3.0, io_bytes=1e6)
    own = samples(row, [100.0] * 3, ended_s=3)
    for factor, is_drawn in ((1.0, False), (3.0, True)):
        below = samples(row, [100.0 * factor] * 3, ended_s=3, level="backing", device="sdy")
        plot = build_plot("device", frames([row], device=[*own, *below]))
        assert ("backing disk" in {series.label for series in plot.series}) is is_drawn
        assert bool(values(panel_of(plot, "IOPS"), "iops", "backing")) is is_drawn


def test_quantities_without_data_have_no_panel() -> None:
    """Without a block device there are fio's rates and the host's own numbers."""
    row = result("nbd", runtime_s=3.0, io_bytes=1e6)
    names = ("device", "read_iops", "read_bw_bytes_per_s", "write_lat_s", "write_request_bytes")
    blank = dict.fromkeys([*names, "queue_depth", "active_percent", "io_errors"])
    sampled = samples(row, [None] * 3, ended_s=3, **blank)
    plot = build_plot("device", frames([row], series=intervals(row, [50.0] * 3), device=sampled))
    labels = [panel.y.label for panel in plot.panels]
    assert labels == ["Bandwidth", "IOPS", "CPU", "Dirty pages"]
    assert values(panel_of(plot, "IOPS"), "iops", "fio") == [50] * 4
    assert values(panel_of(plot, "CPU"), "iowait_percent") == [2] * 4
    assert "No block device" in caption_of(plot)


def test_runs_are_drawn_one_after_another() -> None:
    """Names stand over bands in the order of the summary; a short run is wide enough to be seen."""
    rows = [
        result("long", runtime_s=300.0, io_bytes=1e6),
        result("short", runtime_s=3.0, io_bytes=1e6, iodepth=16),
    ]
    sampled = samples(rows[0], [100.0] * 300, ended_s=300)
    sampled += samples(rows[1], [100.0] * 3, ended_s=3)
    plot = build_plot("device", frames(rows, device=sampled))
    names = texts(plot.panels[0])
    assert names[:2] == ["long", "short"]
    below = [name.replace("\n", " ") for name in names[2:]]
    assert below == [f"randwrite 4k, queue depth {depth}" for depth in (1, 16)]
    written = points(panel_of(plot, "IOPS"), "write_iops")
    first, second = (run["_x"].to_numpy() for _, run in written.groupby("run", sort=False))
    assert first.max() < second.min()
    assert np.ptp(second) > 0.3 * np.ptp(first)


@pytest.mark.slow
def test_many_runs_keep_to_one_screen() -> None:
    """More runs than fit abreast are counted in the caption; none has two directions to choose."""
    plot = build_plot("device", given := many(10))
    assert len(plot.panels) == len(build_plot("device", many(9)).panels)
    assert "Showing 9 of 10 runs" in caption_of(plot)
    assert broken_rules(plot) == []
    both = [given["summary"].assign(direction=way) for way in ("read", "write")]
    mixed = pd.concat(both).sort_values("run", ignore_index=True)
    assert "direction" not in caption_of(build_plot("device", {**given, "summary": mixed}))


def test_the_tail_is_described() -> None:
    """The sentence has the extremes and the longest tail."""
    row = result("buffered", runtime_s=3.0, io_bytes=1e9)
    sampled = samples(row, [30000.0] * 23, ended_s=3)
    sentence = build_plot("device", frames([row], device=sampled)).description
    for words in ("1 run:", "30k IOPS", "up to 20s (buffered)"):
        assert words in sentence


def test_runs_without_device_samples_have_no_chart() -> None:
    """Samples of a warm-up alone, or from before the I/O, are nothing to draw."""
    row = result("job", runtime_s=3.0)
    warm = result("warm", phase="warmup")
    early = samples(row, [1.0], ended_s=3, t_s=-1.0)
    for device in (samples(warm, [1.0], ended_s=1), early):
        with pytest.raises(InputError, match="no run has samples"):
            build_plot("device", frames([row, warm], device=device))


def test_the_legend_explains_every_colour() -> None:
    """Active time and queue depth are one colour with a name; no two names share a colour."""
    plot = build_plot("device", watched())
    lines = [mark for panel in plot.panels for mark in all_marks(panel, Lines)]
    keys = {key for mark in lines for key, _ in series_of(mark)}
    names = {series.key: series.label for series in plot.series}
    assert all(names[key] for key in keys)
    looks = theme_of("light").colours
    colours = {series.label: looks[series.colour] for series in plot.series if series.key in keys}
    assert len({*colours.values()}) == len(colours) > 5
