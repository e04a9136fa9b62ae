"""Columns of all frames, with type, unit and meaning.

The reference page docs/reference/frames.md is generated from these tables; a test compares the
two. NaN (or a missing value) always means "unknown", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volbench.model.campaign.planned_run import Campaign, Run

DAMAGED = "damaged"
"""Status of a finished run whose result is no longer readable."""


@dataclass(frozen=True)
class Column:
    """A column of a frame.

    Attributes:
        name: name, including the unit.
        dtype: ``string``, ``int`` (nullable), ``float`` or ``bool`` (nullable).
        unit: such as ``s``, ``bytes/s``, ``1/s``; empty for text and flags.
        meaning: one sentence.
    """

    name: str
    dtype: str
    unit: str
    meaning: str


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", "", meaning)


def _whole(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "int", unit, meaning)


def _real(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "float", unit, meaning)


def same(columns: tuple[Column, ...], *names: str) -> tuple[Column, ...]:
    """Return the named columns of a frame, in the order of the names."""
    known = {column.name: column for column in columns}
    return tuple(known[name] for name in names)


PERCENTILES: dict[str, float] = {
    "p50": 50.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
}
"""Percentiles of the summary, by the name used in their columns."""

IDENTITY: tuple[Column, ...] = (
    _text("campaign", "Name of the campaign."),
    _text("run", "ID of the run, also the name of its folder."),
    _text("host", "Host of the run; `local` is the controller itself."),
    _text("profile", "Name of the profile."),
    _text("job", "Name of the job in the profile."),
    _text("group", "Name of fio's job section; equal to `job` for single-section jobs."),
    _text("role", "Role of the volume, such as `data`."),
    _text("volume", "Target of the volume: device, file, directory or NBD URI."),
    _whole("repeat", "", "Repeat, counted from 1."),
    _text("phase", "`precondition`, `warmup` or `measured`."),
)
"""Columns that identify run and section; the first columns of every frame of runs."""


def run_identity(campaign: Campaign, run: Run, group: str | None) -> dict[str, object]:
    """Return the values of `IDENTITY` for one section of a run.

    Args:
        campaign: the campaign of the run.
        run: the run.
        group: name of the section; None for the whole run.
    """
    return {
        "campaign": campaign.name,
        "run": run.id,
        "host": run.host,
        "profile": run.profile,
        "job": run.job,
        "group": group,
        "role": run.volume.role,
        "volume": run.volume.target,
        "repeat": run.repeat,
        "phase": run.phase.value,
    }


_LATENCIES = (
    ("lat", "Total latency, submission to completion"),
    ("clat", "Completion latency"),
    ("slat", "Submission latency"),
)


def _latency_columns() -> tuple[Column, ...]:
    columns = []
    for prefix, title in _LATENCIES:
        for statistic, word in (
            ("mean", "arithmetic mean"),
            ("stddev", "standard deviation"),
            ("min", "minimum"),
            ("max", "maximum"),
        ):
            columns.append(_real(f"{prefix}_{statistic}_s", "s", f"{title}: {word}, exact."))
        columns.extend(
            _real(
                f"{prefix}_{name}_s",
                "s",
                f"{title}: percentile {value:g}, to the resolution of fio's bins (0.8 %).",
            )
            for name, value in PERCENTILES.items()
        )
    return tuple(columns)


SUMMARY: tuple[Column, ...] = (
    *IDENTITY,
    _text("tool", "`fio` or `dd`."),
    _text("direction", "`read`, `write`, `trim` or `sync` (latency of fsync and similar)."),
    _text("rw", "Access pattern (fio's `rw`), such as `randwrite`."),
    _whole("rwmixread", "%", "Configured share of reads in a mixed pattern; missing in others."),
    Column("direct", "bool", "", "Whether the page cache was bypassed (O_DIRECT)."),
    _whole("block_bytes", "bytes", "Block size of this direction; missing when it varies."),
    _whole("iodepth", "", "Configured queue depth per job."),
    _whole("numjobs", "", "Jobs in parallel (`numjobs`)."),
    _text("ioengine", "I/O engine of fio."),
    _whole("size_bytes", "bytes", "Configured size per job; missing for a whole device."),
    _whole("volume_bytes", "bytes", "Capacity of the volume; missing unless it is a device."),
    _real("runtime_s", "s", "Runtime of this direction, as reported by fio."),
    _whole("io_bytes", "bytes", "Bytes transferred."),
    _whole("total_ios", "", "I/Os completed."),
    _real(
        "iops",
        "1/s",
        "Rate while all jobs in parallel ran; as reported by fio where they ended together.",
    ),
    _real("iops_overall", "1/s", "total_ios / runtime_s, to the end of the longest job."),
    _real("iops_min", "1/s", "Minimum over fio's windows that have completions."),
    _real("iops_max", "1/s", "Maximum over fio's windows."),
    _real("iops_stddev", "1/s", "Standard deviation over fio's windows."),
    _real("bw_bytes_per_s", "bytes/s", "As `iops`, of io_bytes."),
    _real("bw_overall_bytes_per_s", "bytes/s", "io_bytes / runtime_s."),
    _real("parallel_s", "s", "Time in which all jobs in parallel ran, at most runtime_s."),
    *_latency_columns(),
    _real("cpu_usr", "%", "CPU time in user space, per job."),
    _real("cpu_sys", "%", "CPU time in the kernel, per job."),
    _whole("error", "", "errno of the first error; 0 for none."),
    _text(
        "status",
        "State of the run: `finished`, `failed` or `interrupted`; `damaged` when it finished but"
        " its result is no longer readable.",
    ),
    _text("damage", "Unreadable files of the run, with the reason; missing for none."),
    _text("started_utc", "Start of the process, ISO 8601 with Z."),
    _text("fio_version", "Version of the tool, such as `fio-3.33`."),
    _real("limit_iops", "1/s", "Declared limit of the volume."),
    _real("limit_bw_bytes_per_s", "bytes/s", "Declared limit of the volume."),
    _text("note", "The job's remark."),
    _whole(
        "bad_log_rows", "", "Invalid lines of fio's logs, not in the series; missing without logs."
    ),
    _real("start_offset_s", "s", "Planned delay after the first start of its step."),
    _real(
        "start_late_s",
        "s",
        "Delay after the planned start; missing for a run without other clients.",
    ),
    _real(
        "step_start_s",
        "s",
        "Start of its step, in seconds since 1970 by the controller's clock; missing for a run"
        " without other clients.",
    ),
    _real(
        "clock_offset_s",
        "s",
        "Offset of the host's clock from the controller's; 0 if not distinguishable from none.",
    ),
    _real("clock_bound_s", "s", "Maximum error of clock_offset_s."),
    _whole("client", "", "Index among the clients on its host, from 1; missing for one."),
    _text("import_folder", "Folder of an imported result, without labels and repeat numbers."),
)

LABEL_PREFIX = "label_"
"""Prefix of the columns that contain labels of hosts."""


def label_column(name: str) -> Column:
    """Return the column of a label; the summary has one per label of the campaign's hosts."""
    meaning = f"Label `{name}` of the host, from the inventory; missing if not set."
    return _text(f"{LABEL_PREFIX}{name}", meaning)


SERIES: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("t_s", "s", "End of the interval, from the start of the run's I/O."),
    _text(
        "utc",
        "The same instant by the controller's clock, ISO 8601 with Z; missing if fio reports no"
        " epoch.",
    ),
    _real("iops", "1/s", "Mean over the interval; 0 when nothing completed."),
    _real("bw_bytes_per_s", "bytes/s", "Mean over the interval; 0 when nothing completed."),
    _real("lat_mean_s", "s", "Mean total latency of the interval's I/Os; NaN for none."),
    _real(
        "lat_p50_s",
        "s",
        "Median, from per-I/O or histogram logs, as the next two; NaN without these.",
    ),
    _real("lat_p99_s", "s", "Percentile 99; NaN as the median."),
    _real("lat_p999_s", "s", "Percentile 99.9; NaN as the median."),
    _real("lat_max_s", "s", "Maximum; NaN where the logs contain means only."),
    _whole(
        "jobs_running",
        "",
        "Jobs in parallel that ran through the interval; fewer than at most makes it no rate of"
        " the volume. Missing where unknown.",
    ),
)

PERCENTILE_ROWS: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("percentile", "%", "From 0 to 100."),
    _real("value_s", "s", "Latency at that percentile, as reported by fio."),
)

HISTOGRAM: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("bin_s", "s", "Midpoint of fio's bin."),
    _real("bin_low_s", "s", "Lower edge, inclusive."),
    _real("bin_high_s", "s", "Upper edge, exclusive."),
    _whole("count", "", "I/Os in the bin, summed over `numjobs`."),
)

DEVICE: tuple[Column, ...] = (
    *IDENTITY,
    _text("device", "Kernel name of the block device, such as `sdb`; missing without one (nbd)."),
    _text("level", "`volume`, or `backing` for the disk under a partition, loop, dm or md."),
    _real("t_s", "s", "End of the interval, from the start of the run's I/O; may be negative."),
    _text("utc", "The same instant by the controller's clock, ISO 8601 with Z."),
    _real("interval_s", "s", "Length of the interval, by the host's clock."),
    Column("after_fio", "bool", "", "Whether fio had ended (write-back tail)."),
    _real("read_iops", "1/s", "Reads completed by the device."),
    _real("write_iops", "1/s", "Writes completed by the device."),
    _real("read_bw_bytes_per_s", "bytes/s", "Bytes read by the device."),
    _real("write_bw_bytes_per_s", "bytes/s", "Bytes written by the device."),
    _real("read_lat_s", "s", "Mean time of a read in queue and device; NaN for none."),
    _real("write_lat_s", "s", "Mean time of a write in queue and device; NaN for none."),
    _real("read_request_bytes", "bytes", "Mean size of a read; NaN for none."),
    _real("write_request_bytes", "bytes", "Mean size of a write; NaN for none."),
    _real("queue_depth", "", "Mean number of requests in queue and device."),
    _real("active_percent", "%", "Share of the time with a request in flight, at most 100."),
    _whole("io_errors", "", "Failed requests; missing if not counted."),
    _real("cpu_busy_percent", "%", "CPU time neither idle nor iowait, of all CPUs."),
    _real("iowait_percent", "%", "CPU time idle while I/O was pending, of all CPUs."),
    _real("steal_percent", "%", "CPU time stolen by the hypervisor, of all CPUs."),
    _real("dirty_bytes", "bytes", "Dirty page cache at the end of the interval."),
    _real("writeback_bytes", "bytes", "Page cache under write-back at the end of the interval."),
    _real("io_pressure_some_percent", "%", "Time with some task stalled on I/O (PSI)."),
    _real("io_pressure_full_percent", "%", "Time with all tasks stalled on I/O (PSI)."),
    _real("cpu_pressure_percent", "%", "Time with some task waiting for a CPU (PSI)."),
    _real(
        "tool_cpu_percent",
        "%",
        "CPU time of all tasks of the run's fio or dd, in percent of one CPU; NaN if unknown.",
    ),
    _real("tool_wait_percent", "%", "Time they waited for a CPU (run-queue delay), the same way."),
    _real("cpu_throttled_percent", "%", "Periods that a CPU limit (cgroup) throttled, if any."),
    _real("cpu_throttled_s", "s", "Time for which it did, added up over CPUs."),
    _real("swap_bytes_per_s", "bytes/s", "Bytes swapped in and out by the host."),
)

VERDICTS: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("disturbed_percent", "%", "Share of intervals that the host disturbed."),
    _text("verdict", "`steady`, `drifting`, `stepped`, `noisy` or `too-short`, of the IOPS."),
    _real("from_s", "s", "Start of the evaluated window."),
    _real("to_s", "s", "End of the evaluated window."),
    _real("block_s", "s", "Length of the blocks whose medians are evaluated."),
    _whole("blocks", "", "Number of blocks."),
    _real("iops", "1/s", "Median of the window."),
    _real("spread_percent", "%", "Spread of the block medians: 1.4826 MAD over the median."),
    _real("drift_percent", "%", "Theil-Sen slope over the window, relative to the median."),
    _real("drift_bound_percent", "%", "Upper 95 % bound of the drift's size; steady: at most 10."),
    _whole("changes", "", "Change points in the whole series."),
    _real("steady_from_s", "s", "Start of the steady stretch at the end; missing without one."),
    _real("steady_iops", "1/s", "Median of the steady stretch, without the transient before."),
    _real(
        "level_iops", "1/s", "Level at the end: upper edge of a limit, else middle of the noise."
    ),
    _real("level_low_iops", "1/s", "Lower end of its 95 % interval."),
    _real("level_high_iops", "1/s", "Upper end of its 95 % interval."),
    Column("snia_steady", "bool", "", "SNIA PTS: 5 rounds, range and slope in bounds."),
    _whole("snia_round", "", "Last round of the first window that passed; missing for none."),
    _real("snia_range_percent", "%", "Range of the last five rounds over their mean; at most 20."),
    _real("snia_slope_percent", "%", "Slope of the last five rounds over their mean; at most 10."),
    _text("bottleneck", "`iops-limit`, `bandwidth-limit`, `latency`, `cpu`, `unknown` ..."),
    _real("bottleneck_level", "", "Level of the bottleneck: 1/s for IOPS, bytes/s for bandwidth."),
    _text("causes", "Causes of the level and of changes, the bottleneck first; joined by `, `."),
    _text("explanation", "Verdict and bottleneck explained, with evidence for and against."),
)

FINDINGS: tuple[Column, ...] = (
    *IDENTITY,
    _text("rule", "ID of the rule, such as `cold-blocks`."),
    _text("severity", "`note`, `warning` or `invalid`."),
    _text("direction", "`read`, `write` or `trim`; missing for the whole run."),
    _real("from_s", "s", "Start of the affected interval; missing for the whole run."),
    _real("to_s", "s", "End of the affected interval; missing for the whole run."),
    _text("message", "Observation, one sentence with its numbers."),
    _text("evidence", "The numbers as JSON: name to value, units in the names."),
    _text("why", "Significance."),
    _text("advice", "Recommended next step."),
)

AGGREGATE: tuple[Column, ...] = (
    *same(IDENTITY, "campaign", "profile", "job", "group"),
    _whole("step", "", "Position in the plan of every client, from 1."),
    _whole("repeat", "", "Number of the repeat, from 1."),
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _whole("clients", "", "Clients that finished; all sums are over these."),
    _whole("clients_planned", "", "Clients planned; more than `clients` when some failed."),
    _real("overlap_s", "s", "Time during which all clients ran; rates cover this time only."),
    _real("start_skew_s", "s", "From the first client's first I/O interval to the last one's."),
    _real("start_skew_bound_s", "s", "Maximum error of start_skew_s: clock offsets, whole ms."),
    _real("end_skew_s", "s", "From the first client's end to the last one's."),
    _real("iops", "1/s", "Sum over the clients; NaN if they never ran at the same time."),
    _real(
        "bw_bytes_per_s", "bytes/s", "Sum over the clients; NaN if they never ran at the same time."
    ),
    _real("lat_mean_s", "s", "Mean total latency of all I/Os, over the whole runs."),
    _real("lat_p50_s", "s", "Median, from the clients' summed bins; to fio's resolution."),
    _real("lat_p99_s", "s", "99th percentile, the same way."),
    _real("lat_p999_s", "s", "99.9th percentile, the same way."),
    _real("lat_max_s", "s", "Maximum over the clients."),
)

LATENCY_MAP: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("from_s", "s", "Start of the interval, from the start of the run's I/O."),
    _real("t_s", "s", "End of the interval."),
    _real("bin_low_s", "s", "Minimum latency, inclusive."),
    _real("bin_high_s", "s", "Maximum latency, exclusive; one bin spans eight of fio's."),
    _whole("count", "", "I/Os completed in the interval, summed over `numjobs`."),
)
"""Latencies over time, from per-I/O and histogram logs; empty without these."""

FRAMES: dict[str, tuple[Column, ...]] = {
    "summary": SUMMARY,
    "series": SERIES,
    "device": DEVICE,
    "percentiles": PERCENTILE_ROWS,
    "histogram": HISTOGRAM,
    "verdicts": VERDICTS,
    "findings": FINDINGS,
    "aggregate": AGGREGATE,
}
"""Every frame by name, in the order of its columns."""

ON_DEMAND: dict[str, tuple[Column, ...]] = {"latency_map": LATENCY_MAP}
"""Frames that are read from raw logs on request and never cached."""

DERIVED = ("verdicts", "findings", "aggregate")
"""Frames that are derived from others, which are read from raw files."""


def described(name: str, *, frame_name: str = "") -> Column:
    """Return the description of a column or label; an empty one for an unknown name.

    Args:
        name: name of the column.
        frame_name: frame of the column; in unknown frames only labels are found.
    """
    for column in FRAMES.get(frame_name, ()):
        if column.name == name:
            return column
    if name.startswith(LABEL_PREFIX):
        return label_column(name.removeprefix(LABEL_PREFIX))
    return _text(name, "")
