from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from tests.present.frames_for_figures import AKS, aks, bins, dd, frames, intervals, result, sweep
from volbench.present.figures import describe, draw_chart


def widths(axes: Axes) -> list[float]:
    """Return the lengths of the bars from the top."""
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert all(bar.get_x() == 0 for bar in bars)
    return [bar.get_width() for bar in bars]


def written(axes: Axes) -> list[str]:
    """Return the texts beside the bars and above them."""
    return [text.get_text() for text in axes.texts]


def dashed(axes: Axes) -> list[float]:
    """Return the places of limits on the axis of values."""
    upright = [line for line in axes.lines if str(line.get_label()).startswith("limit")]
    return [float(np.asarray(line.get_xdata())[0]) for line in upright]


def test_iops_bars_hold_the_numbers() -> None:
    """Nine bars from zero, each as long as its IOPS, with the limit named."""
    figure = draw_chart("iops", frames(aks()))
    axes = figure.axes[0]
    assert widths(axes) == [job[5] for job in AKS]
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] > 11500
    assert dashed(axes) == [1100.0]
    assert "limit: 1.1k" in written(axes)
    assert "11.5k" in written(axes)
    assert axes.get_xlabel() == "I/O operations per second"
    assert [t.get_text().split("\n")[0] for t in axes.get_yticklabels()] == [j[0] for j in AKS]


def test_what_a_job_did_stands_under_its_name() -> None:
    """The label tells pattern, block, depth and whether the page cache took part."""
    axes = draw_chart("iops", frames(aks())).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[2] == "test3\nwrite 4k"
    assert names[7] == "test8\nrandwrite 256k, depth 16, buffered"


def test_limits_of_roles_hold_for_their_rows() -> None:
    """Two roles with limits of their own have a line each, along their own bars only."""
    rows = aks()
    rows[0] |= {"role": "os", "limit_iops": 500.0}
    axes = draw_chart("iops", frames(rows)).axes[0]
    assert {"limit of os: 500", "limit of data: 1.1k"} <= set(written(axes))
    spans = {
        str(line.get_label()): list(np.asarray(line.get_ydata(), dtype=float))
        for line in axes.lines
        if str(line.get_label()).startswith("limit")
    }
    assert max(spans["limit of os: 500"]) < 0.5
    assert min(spans["limit of data: 1.1k"]) > 0.5


def test_names_of_limits_do_not_touch() -> None:
    """The names of limits that lie close together stand above each other."""
    rows = aks()
    for place, limit in enumerate((450.0, 500.0, 700.0)):
        rows[place] |= {"role": f"disk{place}", "limit_iops": limit}
    figure = draw_chart("iops", frames(rows))
    figure.draw_without_rendering()
    names = [t for t in figure.axes[0].texts if t.get_text().startswith("limit")]
    boxes = [Text.get_window_extent(text) for text in names]  # without the stem
    assert len(boxes) == 4
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])


def test_repeats_have_whiskers() -> None:
    """The bar is the median of the repeats; the whisker goes from least to greatest."""
    rows = [result("a", repeat=n, iops=iops) for n, iops in ((1, 90.0), (2, 300.0), (3, 100.0))]
    figure = draw_chart("iops", frames(rows))
    axes = figure.axes[0]
    assert widths(axes) == [100.0]
    segments = [c.get_segments() for c in axes.collections if hasattr(c, "get_segments")]
    assert [list(point) for point in segments[0][0]] == [[90.0, 0.0], [300.0, 0.0]]
    assert "whiskers: least to greatest" in figure.get_supxlabel().replace("\n", " ")


def test_single_runs_have_no_whiskers() -> None:
    """Without repeats there is no range and no word of it."""
    figure = draw_chart("iops", frames(aks()))
    assert not figure.axes[0].collections
    assert "whiskers" not in figure.get_supxlabel().replace("\n", " ")


def test_unknown_iops_are_said_not_drawn() -> None:
    """The row of dd has a text in place of a bar of zero."""
    axes = draw_chart("iops", frames([dd("copy"), result("honest")])).axes[0]
    assert widths(axes) == [1000.0]
    assert "not told by dd" in written(axes)


def test_bandwidth_is_in_si_units() -> None:
    """Bandwidth bars are bytes per second and read as MB/s of a million bytes."""
    rows = [result("a", bw_bytes_per_s=125e6, limit_bw_bytes_per_s=130e6), dd("copy")]
    axes = draw_chart("bandwidth", frames(rows)).axes[0]
    assert widths(axes) == [125e6, 1.9e9]
    assert {"125 MB/s", "1.9 GB/s"} <= set(written(axes))
    assert axes.xaxis.get_major_formatter()(5e8) == "500 MB/s"


def test_failed_runs_are_counted_in_the_note() -> None:
    """Failed Runs have no bar, and the note says how many."""
    rows = aks()
    rows[3]["status"] = rows[4]["status"] = "failed"
    rows[5]["status"] = "interrupted"
    figure = draw_chart("iops", frames(rows))
    assert len(widths(figure.axes[0])) == 6
    assert "2 Runs failed and are not shown" in figure.get_supxlabel().replace("\n", " ")
    assert "1 Run was interrupted and is not shown" in figure.get_supxlabel().replace("\n", " ")


def test_warmups_are_not_drawn() -> None:
    """Only the measured phase has bars."""
    axes = draw_chart("iops", frames([result("warm", phase="warmup"), result("a")])).axes[0]
    assert len(widths(axes)) == 1


def test_iops_are_described_with_their_extremes() -> None:
    """The sentence names the fastest, the slowest and the limit."""
    sentence = describe("iops", frames(aks()))
    for part in ("9 results", "test2", "11.5k", "test5", "398", "limit: 1.1k"):
        assert part in sentence


def test_latency_points_hold_the_numbers() -> None:
    """Each percentile is a series of points on a logarithmic axis that names its kind."""
    axes = draw_chart("latency", frames([result("a"), result("b", iops=500.0)])).axes[0]
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(np.asarray(lines["p99"].get_xdata())) == pytest.approx([0.006, 0.012])
    assert list(np.asarray(lines["greatest"].get_xdata())) == pytest.approx([0.04, 0.08])
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "Total latency (logarithmic)"
    assert axes.xaxis.get_major_formatter()(1e-3) == "1 ms"


def test_completion_latency_is_named() -> None:
    """Where fio told completion latency alone, the axis says so."""
    axes = draw_chart("latency", frames([result("a", lat_p99_s=None)])).axes[0]
    assert axes.get_xlabel() == "Completion latency (logarithmic)"
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(np.asarray(lines["p99"].get_xdata())) == pytest.approx([0.0054])


def test_distribution_is_of_the_bins() -> None:
    """The line shows which share was slower than each bin's upper edge."""
    row = result("a")
    given = frames([row], histogram=bins(row, {0.001: 90, 0.01: 9, 0.1: 1}))
    axes = draw_chart("distribution", given).axes[0]
    x, y = (np.asarray(values) for values in axes.lines[0].get_data())
    assert list(x) == [0.001, 0.001, 0.01, 0.1]
    assert list(y[:3]) == pytest.approx([1.0, 0.1, 0.01])
    assert y[3] < 0.01
    low, high = axes.get_ylim()
    assert low == 1.0
    assert high < 0.01
    assert axes.yaxis.get_major_formatter()(0.001) == "99.9 %"
    assert axes.get_xscale() == "log"


def test_many_distributions_have_several_panels() -> None:
    """No panel holds more lines than eyes can tell apart."""
    rows = [result(f"job{n}") for n in range(9)]
    given = frames(rows, histogram=[b for row in rows for b in bins(row, {0.001: 9, 0.01: 1})])
    assert [len(axes.lines) for axes in draw_chart("distribution", given).axes] == [6, 3]


def test_sweep_has_a_line_per_pattern() -> None:
    """IOPS and p99 stand over the depth with a tick at each value."""
    figure = draw_chart("sweep", frames(sweep(depths=(1, 4, 16))))
    iops, latency = figure.axes
    names = [str(line.get_label()) for line in iops.lines]
    assert names == ["randread", "randwrite"]
    assert list(np.asarray(iops.lines[0].get_xdata(), dtype=float)) == [1, 4, 16]
    assert list(np.asarray(iops.lines[0].get_ydata())) == [100.0, 400.0, 1600.0]
    assert list(np.asarray(latency.lines[0].get_ydata())) == pytest.approx([0.06, 0.015, 0.00375])
    assert list(iops.get_xticks()) == [1, 4, 16]
    assert iops.get_ylim()[0] == 0
    assert latency.get_ylabel() == "p99 of total latency"
    assert latency.get_xlabel() == "I/O depth of each clone"


def test_sweep_over_blocks_shows_bandwidth() -> None:
    """Over the block size there is a panel of bandwidth, and ticks read as sizes."""
    figure = draw_chart("sweep", frames(sweep(depths=(1,), blocks=(4096, 65536, 1 << 20))))
    assert [axes.get_ylabel() for axes in figure.axes][:2] == ["IOPS", "Bandwidth"]
    axes = figure.axes[-1]
    assert [axes.xaxis.get_major_formatter()(tick) for tick in axes.get_xticks()] == [
        "4k",
        "64k",
        "1m",
    ]


def test_heatmap_holds_the_values() -> None:
    """A grid per pattern and metric; what was not measured stays empty."""
    rows = [r for r in sweep(depths=(1, 4), blocks=(4096, 65536)) if r["job"] != "randread-4-65536"]
    figure = draw_chart("heatmap", frames(rows))
    assert len(figure.axes) == 4
    axes = figure.axes[0]
    array = axes.images[0].get_array()
    assert array is not None
    image: npt.NDArray[np.float64] = np.ma.filled(array, np.nan)
    assert list(image[0]) == [100.0, 400.0]
    assert image[1][0] == 100.0
    assert np.isnan(image[1][1])
    assert [t.get_text() for t in axes.texts] == ["100", "400", "100"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["4k", "64k"]
    assert axes.get_title(loc="left") == "IOPS, randread"


def test_series_draws_zeros_and_gaps() -> None:
    """A stalled second is a zero of IOPS and a gap of latency; the limit is drawn."""
    row = result("a", limit_iops=120.0)
    given = frames([row], series=intervals(row, [100.0, 0.0, 110.0]))
    iops, bandwidth, latency = draw_chart("series", given).axes
    assert list(np.asarray(iops.lines[0].get_ydata())) == [100.0, 0.0, 110.0]
    assert list(np.asarray(bandwidth.lines[0].get_ydata())) == [409600.0, 0.0, 450560.0]
    assert np.isnan(np.asarray(latency.lines[0].get_ydata())[1])
    assert list(np.asarray(iops.lines[1].get_ydata())) == [120.0, 120.0]
    assert iops.get_ylim()[0] == 0
    assert iops.get_ylim()[1] > 120
    assert (iops.get_ylabel(), latency.get_ylabel()) == ("IOPS", "Mean latency")


def test_a_distant_limit_does_not_flatten_the_series() -> None:
    """A limit far above the data is told beside the panel, not drawn."""
    row = result("a", limit_iops=1e6)
    axes = draw_chart("series", frames([row], series=intervals(row, [100.0, 90.0]))).axes[0]
    assert len(axes.lines) == 1
    assert axes.get_ylim()[1] < 200
    assert "limit\n1M\n(above)" in written(axes)


def test_series_has_a_row_per_job_and_a_line_per_run() -> None:
    """Repeats of a job share its panels; reads and writes are lines of their own."""
    rows = [
        result("a"),
        result("a", repeat=2),
        result("b", direction="read"),
        result("b", direction="write"),
    ]
    told = [point for row in rows for point in intervals(row, [10.0, 20.0])]
    figure = draw_chart("series", frames(rows, series=told))
    assert [len(axes.lines) for axes in figure.axes] == [2] * 6
    assert [str(line.get_label()) for line in figure.axes[3].lines] == ["read", "write"]
