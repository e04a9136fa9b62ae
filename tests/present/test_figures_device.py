"""The device's view: Runs with known samples, and what stands on the panels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.present.frames_for_figures import Row, frames, intervals, result, samples
from volbench.errors import InputError
from volbench.present.figures import describe, draw_chart
from volbench.present.figures.device import ABREAST, MOST
from volbench.present.figures.devicepanels import PANELS

Frames = dict[str, pd.DataFrame]

NAMES = [panel.name for panel in PANELS]


def watched(*, tail_s: int = 0, rate: float = 400.0, limit_iops: float | None = None) -> Frames:
    """Return a Run of ten seconds with its series and samples, and seconds of write-back."""
    row = result("job", runtime_s=10.0, io_bytes=10 * rate * 4096, limit_iops=limit_iops)
    seen = samples(row, [rate] * (10 + tail_s), ended_s=10)
    return frames([row], series=intervals(row, [rate] * 10), device=seen)


def many(count: int) -> Frames:
    """Return Runs of two seconds each."""
    rows = [result(f"job{n}", runtime_s=2.0, io_bytes=1e6) for n in range(count)]
    seen = [told for row in rows for told in samples(row, [100.0, 100.0], ended_s=2)]
    return frames(rows, device=seen)


def panel(figure: Figure, name: str) -> Axes:
    """Return the first panel of a quantity."""
    return next(axes for axes in figure.axes if axes.get_ylabel().partition("\n")[0] == name)


def line(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    """Return a line's values."""
    found = next(one for one in axes.lines if one.get_label() == label)
    x, y = (np.asarray(values, dtype=float) for values in found.get_data())
    return list(x), list(y)


def words(axes: Axes) -> list[str]:
    """Return what is written into a panel."""
    return [text.get_text() for text in axes.texts]


def test_panels_are_those_of_the_article() -> None:
    """Eight quantities stand under each other, over one axis of time."""
    figure = draw_chart("device", watched())
    assert [axes.get_ylabel() for axes in figure.axes] == NAMES
    assert "Queue depth" in NAMES
    assert figure.axes[-1].get_xlabel() == "Time since each Run's I/O began"


def test_steps_hold_the_samples() -> None:
    """Each sample is a step over its own interval; zeros are zeros and gaps are gaps."""
    row = result("job", runtime_s=4.0, io_bytes=1e6)
    given = frames([row], device=samples(row, [100.0, 0.0, None, 200.0], ended_s=4))
    figure = draw_chart("device", given)
    x, y = line(panel(figure, "IOPS"), "write_iops")
    assert x == [0, 1, 2, 3, 4]
    assert y[:3] == [100, 100, 0]
    assert np.isnan(y[3])
    assert y[4] == 200
    _, latency = line(panel(figure, "Latency"), "write_lat_s")
    assert np.isnan(latency[2])
    assert panel(figure, "Active time").get_ylim()[1] > 100


def test_reads_and_writes_are_apart() -> None:
    """A Run that reads and writes has two lines; fio's view is both together."""
    rows = [
        result("mixed", direction=one, rw="randrw", runtime_s=2.0, io_bytes=1e6)
        for one in ("read", "write")
    ]
    seen = samples(rows[1], [100.0, 100.0], ended_s=2, read_iops=50.0)
    series = [told for row in rows for told in intervals(row, [60.0, 60.0])]
    axes = panel(draw_chart("device", frames(rows, series=series, device=seen)), "IOPS")
    assert line(axes, "read_iops")[1] == [50] * 3
    assert line(axes, "write_iops")[1] == [100] * 3
    assert line(axes, "iops")[1] == [120] * 3
    assert words(axes) == []


def test_a_run_that_only_writes_has_no_line_of_reads() -> None:
    """Zeros of the other direction would only hide the axis."""
    labels = [one.get_label() for one in panel(draw_chart("device", watched()), "IOPS").lines]
    assert "write_iops" in labels
    assert "read_iops" not in labels


def test_time_after_fio_is_shaded() -> None:
    """The grey part begins where fio ended and goes on to the last sample."""
    figure = draw_chart("device", watched(tail_s=5))
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "after fio ended" in legend
    spans = [patch.get_extents() for patch in panel(figure, "IOPS").patches]
    data = panel(figure, "IOPS").transData.inverted()
    edges = [data.transform(span.get_points())[:, 0] for span in spans]
    assert any(np.allclose(edge, [10, 15]) for edge in edges)
    quiet = draw_chart("device", watched())
    assert "after fio ended" not in [text.get_text() for text in quiet.legends[0].get_texts()]


def test_limits_are_lines_along_their_runs() -> None:
    """A near limit is drawn and named, a far one is only told, and none has no word."""
    near = panel(draw_chart("device", watched(limit_iops=500.0)), "IOPS")
    assert line(near, "limit") == ([0, 10], [500, 500])
    assert "limit\n500" in words(near)
    far = panel(draw_chart("device", watched(limit_iops=90000.0)), "IOPS")
    assert "limit" not in [one.get_label() for one in far.lines]
    assert "limit\n90k\n(above)" in words(far)
    assert words(panel(draw_chart("device", watched()), "IOPS")) == []


def test_towering_fio_is_told_not_drawn_to_scale() -> None:
    """A figure from memory does not flatten the device: it is written into the panel."""
    row = result("buffered", direct=False, runtime_s=3.0, io_bytes=3 * 4096 * 50000)
    given = frames(
        [row],
        series=intervals(row, [50000.0] * 3),
        device=samples(row, [250.0] * 9, ended_s=3),
    )
    axes = panel(draw_chart("device", given), "IOPS")
    assert axes.get_ylim()[1] < 500
    assert words(axes) == ["fio 50k"]


def test_fio_of_a_run_too_short_for_a_series_is_its_mean() -> None:
    """A buffered Run of half a second has no series; its bandwidth is told all the same."""
    row = result("short", direct=False, runtime_s=0.5, io_bytes=500_000_000)
    given = frames([row], device=samples(row, [10.0] * 9, ended_s=0.5))
    assert "fio 1 GB/s" in words(panel(draw_chart("device", given), "Bandwidth"))


def test_scales_turn_logarithmic_where_values_differ() -> None:
    """Depths 1 and 16, sizes 4k and 512k: small values stay visible, and the axis says it."""
    rows = [result(f"job{n}", runtime_s=3.0, io_bytes=1e6) for n in range(2)]
    seen = samples(rows[0], [100.0] * 3, ended_s=3)
    seen += samples(rows[1], [100.0] * 3, ended_s=3, queue_depth=64.0, write_request_bytes=524288.0)
    figure = draw_chart("device", frames(rows, device=seen))
    sizes, depths = panel(figure, "Request size"), panel(figure, "Queue depth")
    assert (sizes.get_yscale(), depths.get_yscale()) == ("log", "symlog")
    assert sizes.get_ylabel() == "Request size\n(log scale)"
    low, high = sizes.get_ylim()
    shown = [tick for tick in sizes.get_yticks() if low <= tick <= high]
    assert [sizes.yaxis.get_major_formatter()(tick) for tick in shown] == ["16k", "256k"]
    assert panel(figure, "Latency").get_yscale() == "linear"


def test_the_backing_disk_is_drawn_where_it_differs() -> None:
    """A disk that does the same as the volume on it adds no line; a busier one does."""
    row = result("job", runtime_s=3.0, io_bytes=1e6)
    own = samples(row, [100.0] * 3, ended_s=3)
    for factor, is_drawn in ((1.0, False), (3.0, True)):
        below = samples(row, [100.0 * factor] * 3, ended_s=3, level="backing", device="sdy")
        figure = draw_chart("device", frames([row], device=[*own, *below]))
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("backing disk" in legend) is is_drawn


def test_what_the_host_did_not_tell_is_said() -> None:
    """Without a block device there are fio's rates and the host's own numbers."""
    row = result("nbd", runtime_s=3.0, io_bytes=1e6)
    blank = dict.fromkeys(
        [
            *("device", "read_iops", "read_bw_bytes_per_s", "write_lat_s", "write_request_bytes"),
            *("queue_depth", "active_percent", "io_errors"),
        ]
    )
    seen = samples(row, [None] * 3, ended_s=3, **blank)
    figure = draw_chart("device", frames([row], series=intervals(row, [50.0] * 3), device=seen))
    for name in ("Active time", "Latency", "Request size", "Queue depth"):
        assert words(panel(figure, name)) == ["not told"]
    assert line(panel(figure, "IOPS"), "iops")[1] == [50] * 4
    assert line(panel(figure, "CPU waiting"), "iowait_percent")[1] == [2] * 4
    assert "No block device" in figure.get_supxlabel().replace("\n", " ")


def test_runs_stand_after_one_another() -> None:
    """Names stand over bands in the order of the summary; a short Run is wide enough to be seen."""
    rows = [
        result("long", runtime_s=300.0, io_bytes=1e6),
        result("short", runtime_s=3.0, io_bytes=1e6, iodepth=16),
    ]
    seen = samples(rows[0], [100.0] * 300, ended_s=300)
    seen += samples(rows[1], [100.0] * 3, ended_s=3)
    figure = draw_chart("device", frames(rows, device=seen))
    assert words(figure.axes[0])[:4] == ["long", "randwrite 4k", "short", "randwrite 4k, depth 16"]
    lines = [one for one in panel(figure, "IOPS").lines if one.get_label() == "write_iops"]
    first, second = (np.asarray(one.get_xdata(), dtype=float) for one in lines)
    assert first.max() < second.min()
    assert np.ptp(second) > 0.3 * np.ptp(first)


def test_many_runs_take_further_blocks() -> None:
    """More Runs than fit abreast go below, and beyond the most the note counts them."""
    assert len(draw_chart("device", many(ABREAST)).axes) == len(PANELS)
    assert len(draw_chart("device", many(ABREAST + 1)).axes) == 2 * len(PANELS)
    figure = draw_chart("device", many(MOST + 2))
    assert len(figure.axes) == MOST // ABREAST * len(PANELS)
    assert "2 further Runs are not shown" in figure.get_supxlabel().replace("\n", " ")


def test_the_tail_is_described() -> None:
    """The sentence tells the extremes and the longest tail."""
    row = result("buffered", runtime_s=3.0, io_bytes=1e9)
    seen = samples(row, [30000.0] * 23, ended_s=3)
    sentence = describe("device", frames([row], device=seen))
    assert "1 Run:" in sentence
    assert "30k IOPS" in sentence
    assert "up to 20s (buffered)" in sentence


def test_runs_of_no_watched_device_have_no_chart() -> None:
    """Samples of a warm-up alone, or from before the I/O, are nothing to draw."""
    row: Row = result("job", runtime_s=3.0)
    warm = result("warm", phase="warmup")
    early = samples(row, [1.0], ended_s=3, t_s=-1.0)
    for device in (samples(warm, [1.0], ended_s=1), early):
        with pytest.raises(InputError, match="nobody sampled"):
            draw_chart("device", frames([row, warm], device=device))
