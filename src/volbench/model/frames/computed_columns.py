"""Columns of tables that are computed on request and never stored: USE and comparisons."""

from __future__ import annotations

from volbench.model.frames.columns import DEVICE
from volbench.model.frames.frame_column import IDENTITY, Column, same

# Utilization, saturation and errors of the device beside each run: `volbench show --use`
USE: tuple[Column, ...] = (
    *(column for column in IDENTITY if column.name != "group"),
    Column("label", "string", "", "Job, with the settings that distinguish it."),
    Column("direct", "bool", "", "Whether every section bypassed the page cache."),
    Column("device", "string", "", "Kernel name of the volume's device; missing without one."),
    Column("runtime_s", "float", "s", "Duration of the tool's I/O; NaN if not reported."),
    *same(DEVICE, "read_iops", "write_iops"),
    Column("limit_iops", "float", "1/s", "Declared limit."),
    Column("iops_percent", "float", "%", "IOPS of the device over the declared limit."),
    *same(DEVICE, "read_bw_bytes_per_s", "write_bw_bytes_per_s"),
    Column("limit_bw_bytes_per_s", "float", "bytes/s", "Declared limit."),
    Column("bw_percent", "float", "%", "Bandwidth of the device over the declared limit."),
    *same(
        DEVICE,
        "active_percent",
        "read_lat_s",
        "write_lat_s",
        "read_request_bytes",
        "write_request_bytes",
        "queue_depth",
        "iowait_percent",
        "steal_percent",
        "io_pressure_some_percent",
        "io_pressure_full_percent",
    ),
    Column(
        "dirty_growth_bytes", "float", "bytes", "Maximum dirty pages, minus those at the start."
    ),
    Column("dirty_peak_bytes", "float", "bytes", "Maximum dirty pages while the tool ran."),
    Column("tail_s", "float", "s", "Time until 98 % of the write-back tail was written."),
    Column("tail_bytes", "float", "bytes", "Bytes written by the device after the tool's end."),
    Column(
        "dirty_remaining_bytes",
        "float",
        "bytes",
        "Dirty bytes left in memory when the sampler ended.",
    ),
    Column("tool_bytes", "float", "bytes", "Bytes reported by the tool, reads and writes."),
    Column("device_bytes", "float", "bytes", "Bytes the device transferred until the tool ended."),
    Column("device_share_percent", "float", "%", "device_bytes relative to tool_bytes."),
    Column("io_errors", "int", "", "Failed requests of the device; missing if not counted."),
    Column("error", "int", "", "First errno of fio or dd; 0 for none."),
    Column("bottleneck", "string", "", "Bottleneck of the run, as in the verdicts."),
    Column(
        "bottleneck_level", "float", "", "Bottleneck level: 1/s for IOPS, bytes/s for bandwidth."
    ),
    Column("explanation", "string", "", "Evidence for and against the bottleneck."),
)

# One row per cell and metric: `volbench compare --format csv` and `volbench.compare`
COMPARISON: tuple[Column, ...] = (
    Column("job", "string", "", "Job, with the settings that distinguish it."),
    Column("direction", "string", "", "`read`, `write`, `trim` or `sync`."),
    Column("metric", "string", "", "Compared column of the summary."),
    Column("more_is_better", "bool", "", "Whether larger values of the metric are better."),
    Column("base", "string", "", "Name of the baseline."),
    Column("candidate", "string", "", "Name of the candidate."),
    Column("base_value", "float", "", "Median of the base's repeats, in the metric's unit."),
    Column("base_repeats", "int", "", "Repeats of the base."),
    Column("base_volumes", "int", "", "Volumes of these repeats."),
    Column("candidate_value", "float", "", "Median of the candidate's repeats."),
    Column("candidate_repeats", "int", "", "Repeats of the candidate."),
    Column("candidate_volumes", "int", "", "Volumes of these repeats."),
    Column("unit_compared", "string", "", "Independent unit: `volume` or `repeat`."),
    Column("ratio", "float", "", "Candidate over base: median over all pairs of units."),
    Column("ratio_low", "float", "", "Lower end of its interval."),
    Column("ratio_high", "float", "", "Upper end of its interval."),
    Column("confidence", "float", "", "Confidence of the interval, from 0 to 1."),
    Column("simultaneous_low", "float", "", "Lower end at the family-wise confidence."),
    Column("simultaneous_high", "float", "", "Upper end at the family-wise confidence."),
    Column("simultaneous_confidence", "float", "", "Confidence of that interval, from 0 to 1."),
    Column("p_value", "float", "", "p-value of no difference, two-sided, before Holm-Bonferroni."),
    Column("detectable_percent", "float", "%", "Minimum detectable difference."),
    Column("verdict", "string", "", "Outcome, such as `faster`, `slower` or `same`."),
    Column("words", "string", "", "The verdict with its numbers."),
    Column("regression", "string", "", "Outcome against the tolerance; missing without one."),
    Column("warnings", "string", "", "Findings on the compared runs, with their counts."),
)

# Every computed table by name, in the order of its columns
COMPUTED: dict[str, tuple[Column, ...]] = {"use": USE, "comparison": COMPARISON}
