import math

import pandas as pd
import pytest

from tests.present.frames_for_plots import AKS, aks, frames, only_bandwidth, result, sweep
from tests.present.plots.plot_parts import all_marks, caption_of, column, the_mark, written
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import FORMATS, numbers
from volbench.present.plots.marks import Bars, Cells, Points, ReferenceLine, Whiskers


def test_iops_bars_hold_the_numbers() -> None:
    """Nine bars from zero, each as long as its IOPS, with the limit and the extremes named."""
    plot = build_plot("iops", frames(aks()))
    [panel] = plot.panels
    bars = the_mark(panel, Bars)
    assert column(bars, bars.value) == [job[5] for job in AKS]
    assert not bars.base
    low, high = panel.x.limits or (1, 0)
    assert (low, high > 11500) == (0, True)
    assert [line.value for line in all_marks(panel, ReferenceLine)] == [1100.0]
    assert {"limit: 1.1k", "11.5k"} <= set(written(panel))
    assert panel.x.label == "I/O operations per second"
    names = panel.y.categories
    assert [name.split("\n")[0] for name in names] == [job[0] for job in AKS]
    assert names[2] == "test3\nwrite 4k"
    assert names[7] == "test8\nrandwrite 256k, queue depth 16, buffered"
    for part in ("9 results", "test2", "11.5k", "test5", "398", "limit: 1.1k"):
        assert part in plot.description


def test_limits_of_roles_hold_for_their_rows() -> None:
    """Two roles with limits of their own have a line each, along their own bars only."""
    rows = aks()
    rows[0] |= {"role": "os", "limit_iops": 500.0}
    lines = all_marks(build_plot("iops", frames(rows)).panels[0], ReferenceLine)
    extents = {line.name: line.extent for line in lines}
    assert set(extents) == {"limit of os: 500", "limit of data: 1.1k"}
    assert max(extents["limit of os: 500"] or (9,)) < 0.5
    assert min(extents["limit of data: 1.1k"] or (0,)) > 0.5


def test_single_runs_have_no_whiskers() -> None:
    """Without repeats there is no range and no word of it."""
    plot = build_plot("iops", frames(aks()))
    whiskers = the_mark(plot.panels[0], Whiskers)
    assert whiskers.data[whiskers.high].isna().all()
    assert "whiskers" not in caption_of(plot)
    repeats = build_plot("iops", frames([result("a", repeat=n) for n in (1, 2)]))
    assert "whiskers: min to max" in caption_of(repeats)


def test_unknown_iops_are_noted_not_drawn() -> None:
    """A result without IOPS has a text in place of a bar of zero."""
    [panel] = build_plot("iops", frames([only_bandwidth("copy"), result("honest")])).panels
    missing, known = column(the_mark(panel, Bars), "iops")
    assert math.isnan(float(str(missing)))
    assert known == 1000.0
    assert "not reported by fio" in written(panel)


def test_bandwidth_is_in_si_units() -> None:
    """Bandwidth bars are bytes per second and read as MB/s of a million bytes."""
    rows = [result("a", bw_bytes_per_s=125e6, limit_bw_bytes_per_s=130e6), only_bandwidth("copy")]
    [panel] = build_plot("bandwidth", frames(rows)).panels
    assert column(the_mark(panel, Bars), "bw_bytes_per_s") == [125e6, 1.9e9]
    assert {"125 MB/s", "1.9 GB/s"} <= set(written(panel))
    assert panel.x.unit == "B/s"
    assert FORMATS[panel.x.format].write(5e8) == "500 MB/s"


def test_failed_runs_are_counted_in_the_caption() -> None:
    """Failed runs and warm-ups have no bar, and the caption says how many failed."""
    rows = [*aks(), result("warm", phase="warmup")]
    rows[3]["status"] = rows[4]["status"] = "failed"
    rows[5]["status"] = "interrupted"
    plot = build_plot("iops", frames(rows))
    assert len(numbers(plot)) == 6
    assert "2 runs failed and are not shown" in plot.caption
    assert "1 run was interrupted and not shown" in plot.caption


def test_invalid_results_have_no_bar_and_are_counted_in_the_caption() -> None:
    """The caption names their job; all of them are drawn where no other is left."""
    rows = [result("cached"), result("a"), result("b")]
    found = [
        {"run": row["run"], "severity": severity}
        for row, severity in zip(rows, ("invalid", "warning", "note"), strict=True)
    ]
    plot = build_plot("iops", {**frames(rows), "findings": pd.DataFrame(found)})
    assert "Invalid results, not shown (see volbench check): 1 of 3 runs (cached)" in plot.caption
    assert set(numbers(plot)["job"]) == {"a", "b"}
    plot = build_plot("iops", {**frames(rows[:1]), "findings": pd.DataFrame(found)})
    assert "Invalid results (see volbench check): 1 of 1 run (cached)" in plot.caption
    assert not any("nvalid" in text for text in build_plot("iops", frames(rows)).caption)


def test_latency_points_hold_the_numbers() -> None:
    """Each percentile is a series of points on a logarithmic axis that names its kind."""
    [panel] = build_plot("latency", frames([result("a"), result("b", iops=500.0)])).panels
    points = {mark.marker_of: column(mark, mark.x) for mark in all_marks(panel, Points)}
    assert points["_p99"] == pytest.approx([0.006, 0.012])
    assert points["_max"] == pytest.approx([0.04, 0.08])
    assert panel.x.scale == "log"
    assert panel.x.unit == "s"
    assert panel.x.label == "Total latency (logarithmic)"
    assert FORMATS[panel.x.format].write(1e-3) == "1 ms"


def test_completion_latency_is_named() -> None:
    """Where fio reported completion latency alone, the axis says so."""
    [panel] = build_plot("latency", frames([result("a", lat_p99_s=None)])).panels
    assert panel.x.label == "Completion latency (logarithmic)"
    [p99] = [mark for mark in all_marks(panel, Points) if mark.marker_of == "_p99"]
    assert column(p99, p99.x) == pytest.approx([0.0054])


def test_percentiles_of_total_latency_are_drawn_beside_those_of_completion() -> None:
    """A job with lat_percentiles alone has points too; one with other percentiles has its max."""
    no_completion, no_total = (
        {f"{kind}_{name}_s": None for name in ("p50", "p90", "p99", "p999")}
        for kind in ("clat", "lat")
    )
    rows = [result("plain") | no_total, result("total") | no_completion]
    rows += [result("bare") | no_total | no_completion]
    plot = build_plot("latency", frames(rows))
    drawn = numbers(plot).set_index("job")["p99_s"]
    assert drawn["total"] == pytest.approx(0.006)
    assert drawn["plain"] == pytest.approx(0.9 * 0.006)
    assert "total: total latency, as fio reported no other percentiles" in caption_of(plot)
    assert "bare: max only, as fio reported none of these percentiles" in caption_of(plot)


def test_heatmap_cells_hold_the_values() -> None:
    """A grid per pattern and metric; what was not measured stays empty."""
    rows = [r for r in sweep(depths=(1, 4), blocks=(4096, 65536)) if r["job"] != "randread-4-65536"]
    plot = build_plot("heatmap", frames(rows))
    assert len(plot.panels) == 4
    panel = plot.panels[0]
    cells = the_mark(panel, Cells)
    places = zip(column(cells, cells.x), column(cells, cells.y), column(cells, cells.value))  # noqa: B905 - columns of one frame
    assert list(places) == [(0, 0, 100.0), (0, 1, 100.0), (1, 0, 400.0)]
    assert column(cells, cells.text) == ["100", "100", "400"]
    assert panel.x.categories == ("1", "4")
    assert panel.y.categories == ("4k", "64k")
    assert panel.title == "IOPS, randread"


def test_bars_are_in_numeric_order() -> None:
    """Runs come in a random order; 4 stands before 16, and other names stay where they were."""
    rows = [result(job) for job in ("qd16-x2", "other", "qd4-x2", "qd4-x1")]
    names = build_plot("iops", frames(rows)).panels[0].y.categories
    assert [name.split("\n")[0] for name in names] == ["qd4-x1", "qd4-x2", "qd16-x2", "other"]


def test_latencies_have_the_colour_of_their_direction() -> None:
    """Reads are blue and writes orange here as well; the percentiles differ in their shape."""
    rows = [result("a", direction="read"), result("b", direction="write")]
    plot = build_plot("latency", frames(rows))
    [panel] = plot.panels
    assert {mark.by for mark in all_marks(panel, Points)} == {"_series"}
    assert {series.key for series in plot.series} >= {"read", "write", "p99"}
