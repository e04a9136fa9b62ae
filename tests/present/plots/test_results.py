import pandas as pd
import pytest

from tests.present.frames_for_plots import aks, frames, result
from tests.present.plots.plot_parts import all_marks, caption_of, column
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers
from volbench.present.plots.marks import Points


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
    assert set(numbers(plot)["name"]) == {"a", "b"}
    plot = build_plot("iops", {**frames(rows[:1]), "findings": pd.DataFrame(found)})
    assert "Invalid results (see volbench check): 1 of 1 run (cached)" in plot.caption
    assert not any("nvalid" in text for text in build_plot("iops", frames(rows)).caption)


def test_latency_points_hold_the_numbers() -> None:
    """Each percentile is a series of points on a logarithmic axis that names its kind."""
    [panel] = build_plot("latency", frames([result("a"), result("b", iops=500.0)])).panels
    points = {mark.marker_of: column(mark, mark.x) for mark in all_marks(panel, Points)}
    assert points["_p99"] == pytest.approx([0.006, 0.012])
    assert points["_max"] == pytest.approx([0.04, 0.08])
    assert (panel.x.scale, panel.x.label) == ("log", "Total latency (logarithmic)")


def test_latency_points_of_too_few_samples_are_hollow() -> None:
    """Of 300 I/Os fewer than ten are above p99 and p99.9, as the caption says."""
    plot = build_plot("latency", frames([result("a", total_ios=300), result("b")]))
    points = all_marks(plot.panels[0], Points)
    assert {mark.marker_of for mark in points if mark.is_hollow} == {"_p99", "_p999"}
    assert "Hollow: fewer than 10 I/Os above the percentile" in plot.caption


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


def test_the_answer_of_buffered_writes_is_their_sync() -> None:
    """The page cache takes them at once: their own p99 is not that of the volume."""
    row = result("wal", rw="write", direct=False, direction="write")
    sync = {**row, "direction": "sync", "iops": None, "lat_p99_s": 0.004, "sync_calls": "fsync"}
    assert build_plot("iops", frames([row, sync])).answer.endswith("fsync p99 4 ms.")
