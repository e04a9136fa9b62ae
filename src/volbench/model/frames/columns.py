"""Building blocks of frames: the description of a column, and the columns that identify a row."""

from __future__ import annotations

from dataclasses import dataclass

MIXED = "mixed"  # Pattern of unlike jobs that fio merged
WATCHED = "watched"  # Pattern of a load that is not volbench's own
REPLAYED = "replayed"  # Pattern of a recorded one
DAMAGED = "damaged"  # Status of a finished run whose result is no longer readable
# In remarks on percentiles that were left out
SUBMISSION = "as completion is only"
# In a remark on lines of logs that belong to the ramp of fio 2
RAMP_LINES = "before their time restarts"
# Midpoints of the last bins of fio 3 and fio 2 (stat.h), which hold all longer latencies too
LAST_BINS_S = frozenset({17.11276032, 16.71168})
# Percentiles of the summary, by the name used in their columns
PERCENTILES: dict[str, float] = {
    "p50": 50.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
}
_LATENCIES = (
    ("lat", "Total latency, submission to completion (percentiles may be in `clat` alone)"),
    ("clat", "Completion latency"),
    ("slat", "Submission latency"),
)
CALIBRATION = "host_cpu_iops", "host_timer_iops", "host_wakeup_iops"  # Speeds of a host
LABEL_PREFIX = "label_"  # Prefix of the columns that contain labels of hosts
# Frames that are derived from others, which are read from raw files
DERIVED = ("verdicts", "findings", "aggregate")


@dataclass(frozen=True)
class Column:
    """A column of a frame."""

    name: str  # name, including the unit
    dtype: str  # ``string``, ``int`` (nullable), ``float``, ``bool`` (nullable) or ``time`` (UTC)
    unit: str  # such as ``s``, ``bytes/s``, ``1/s``; empty for text and flags
    meaning: str  # one sentence


def text(name: str, meaning: str) -> Column:
    """Return a column of texts."""
    return Column(name, "string", "", meaning)


def whole(name: str, unit: str, meaning: str) -> Column:
    """Return a column of whole numbers, of which some may be missing."""
    return Column(name, "int", unit, meaning)


def real(name: str, unit: str, meaning: str) -> Column:
    """Return a column of numbers; NaN is unknown."""
    return Column(name, "float", unit, meaning)


def same(columns: tuple[Column, ...], *names: str) -> tuple[Column, ...]:
    """Return the named columns of a frame, in the order of the names."""
    known = {column.name: column for column in columns}
    return tuple(known[name] for name in names)


# Columns that identify run and section; the first columns of every frame of runs
IDENTITY: tuple[Column, ...] = (
    text("campaign", "Name of the campaign."),
    text("run", "ID of the run, also the name of its folder."),
    text("host", "Host of the run; `local` is the controller itself."),
    text("profile", "Name of the profile."),
    text("job", "Name of the job in the profile."),
    text("group", "Name of fio's job section; equal to `job` for single-section jobs."),
    text("role", "Role of the volume, such as `data`."),
    text("volume", "Target of the volume: device, file, directory or NBD URI."),
    whole("repeat", "", "Repeat, counted from 1."),
    text("phase", "`precondition`, `warmup` or `measured`."),
)


PERCENTILE_ROWS: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write`, `trim` or `sync`."),
    text("latency", "`lat`, `clat` or `slat`."),
    real("percentile", "%", "From 0 to 100."),
    real("value_s", "s", "Latency at that percentile, as reported by fio."),
)

HISTOGRAM: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write`, `trim` or `sync`."),
    text("latency", "`lat`, `clat` or `slat`."),
    real("bin_s", "s", "Midpoint of fio's bin."),
    real("bin_low_s", "s", "Lower edge, inclusive."),
    real("bin_high_s", "s", "Upper edge, exclusive."),
    whole("count", "", "I/Os in the bin, summed over `numjobs`."),
)

# What fio reports without json+: a few wide classes, rounded to 0.01 %, without empty ones
SHARES: tuple[Column, ...] = (
    *IDENTITY,
    text("quantity", "`clat` (completion latency), or `iodepth` (I/Os in flight)."),
    real("low", "", "Lower end of the class, inclusive: s for `clat`, I/Os for `iodepth`."),
    real("high", "", "Upper end, exclusive; missing for the last class."),
    real("percent", "%", "Share of the I/Os of the section, all directions together."),
)

# Latencies over time, from per-I/O and histogram logs; empty without these
LATENCY_MAP: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write` or `trim`."),
    real("from_s", "s", "Start of the interval, from the start of the run's I/O."),
    real("t_s", "s", "End of the interval."),
    real("bin_low_s", "s", "Minimum latency, inclusive."),
    real("bin_high_s", "s", "Maximum latency, exclusive; one bin spans eight of fio's."),
    whole("count", "", "I/Os completed in the interval, summed over `numjobs`."),
)


Row = dict[str, object]  # Column to value; None where it is unknown


SUMMARY: tuple[Column, ...] = (
    *IDENTITY,
    text("tool", "`fio`; `watch` for a watched load."),
    text("direction", "`read`, `write`, `trim` or `sync` (latency of fsync and similar)."),
    text(
        "sync_calls",
        "Calls of a row of syncs: `fsync`, `fdatasync`, `sync_file_range`, joined by `, `.",
    ),
    text(
        "rw",
        "fio's `rw`, such as `randwrite`; `mixed` for unlike jobs that fio merged, `watched` for"
        " a load that volbench only watched, `replayed` for a recorded one.",
    ),
    whole("rwmixread", "%", "Configured share of reads in a mixed pattern; missing in others."),
    Column("direct", "bool", "", "Whether the page cache was bypassed (O_DIRECT)."),
    whole("block_bytes", "bytes", "Block size of this direction; missing when it varies."),
    whole("block_min_bytes", "bytes", "Smallest block that the job's options allow."),
    whole("block_max_bytes", "bytes", "Largest block, likewise."),
    whole("iodepth", "", "Queue depth per job; 1 for synchronous engines."),
    whole("numjobs", "", "Jobs in parallel (`numjobs`)."),
    text("ioengine", "I/O engine of fio."),
    whole("size_bytes", "bytes", "Configured size per job; missing for a whole device."),
    whole("volume_bytes", "bytes", "Capacity of the volume; missing unless it is a device."),
    real("runtime_s", "s", "Runtime of this direction, as reported by fio."),
    whole("io_bytes", "bytes", "Bytes transferred."),
    whole("total_ios", "", "I/Os completed."),
    real(
        "iops",
        "1/s",
        "As reported by fio; if jobs ended at different times, the rate while all ran. Latencies"
        " are missing if that differs by more than 5 % from the rate of the whole run.",
    ),
    real("iops_overall", "1/s", "total_ios / runtime_s, to the end of the longest job."),
    real(
        "iops_min",
        "1/s",
        "Minimum over fio's windows with completions; of several jobs, over their summed series."
        " Missing if the windows do not cover the run.",
    ),
    real("iops_max", "1/s", "Maximum, likewise."),
    real(
        "iops_stddev", "1/s", "Standard deviation, likewise; missing for several jobs without logs."
    ),
    real("bw_bytes_per_s", "bytes/s", "Bandwidth, defined like `iops`."),
    real("bw_overall_bytes_per_s", "bytes/s", "io_bytes / runtime_s."),
    real("parallel_s", "s", "Time in which all jobs in parallel ran, at most runtime_s."),
    *(
        real(f"{prefix}_{name}_s", "s", f"{title}; percentiles within 0.8 % (fio's bins).")
        for prefix, title in _LATENCIES
        for name in ("mean", "stddev", "min", "max", *PERCENTILES)
    ),
    real("cpu_usr", "%", "CPU time in user space, per job."),
    real("cpu_sys", "%", "CPU time in the kernel, per job."),
    whole("error", "", "errno of the first error; 0 for none."),
    text(
        "status",
        "State of the run: `finished`, `failed` or `interrupted`; `damaged` when it finished but"
        " its result is no longer readable.",
    ),
    text("damage", "Unreadable files of the run, with the reason; missing for none."),
    Column("started_utc", "time", "", "Start of the process, UTC."),
    text("fio_version", "Version of the tool, such as `fio-3.33`."),
    real("limit_iops", "1/s", "Declared limit of the volume."),
    real("limit_bw_bytes_per_s", "bytes/s", "Declared limit of the volume."),
    text("note", "The job's remark."),
    whole(
        "bad_log_rows", "", "Invalid lines of fio's logs, not in the series; missing without logs."
    ),
    whole("empty_logs", "", "Logs without a line, other than slat; missing without logs."),
    real("log_share", "", "I/Os in the series as a share of total_ios."),
    text("impossible", "Numbers of fio that cannot be true and are left out here."),
    real("start_offset_s", "s", "Planned delay after the first start of its step."),
    real(
        "start_late_s",
        "s",
        "Delay after the planned start; missing for a run without other clients.",
    ),
    real(
        "step_start_s", "s", "Start of its step, in seconds since 1970 by the controller's clock."
    ),
    real("clock_offset_s", "s", "Offset of the host's clock from the controller's."),
    real("clock_bound_s", "s", "Maximum error of clock_offset_s."),
    real("clock_moved_s", "s", "Step of the host's clock since its survey."),
    whole("client", "", "Index among the clients on its host, from 1; missing for one."),
    text("import_folder", "Folder of an imported result, without labels and repeat numbers."),
    text("arm", "Variant of the job that the run belongs to; missing for jobs without variants."),
    whole("block", "", "Block of variants measured next to each other, from 1; missing without."),
    real(CALIBRATION[0], "1/s", "I/Os of fio's null engine on one CPU of the host: its speed."),
    real(CALIBRATION[1], "1/s", "The same, each timed: the speed of its clock as well."),
    real(CALIBRATION[2], "1/s", "The same, each after 200 us of sleep: how soon it wakes."),
)


def label_column(name: str) -> Column:
    """Return the column of a label; the summary has one per label of the campaign's hosts."""
    meaning = f"Label `{name}` of the host, from the inventory; missing if not set."
    return text(f"{LABEL_PREFIX}{name}", meaning)


SERIES: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write` or `trim`."),
    real(
        "t_s",
        "s",
        "End of the interval, from the start of the run's I/O. A last one that is not full is left "
        "out, rates of a first one are scaled; `log_share` says what the series has.",
    ),
    text(
        "utc",
        "The same instant by the controller's clock, ISO 8601 with Z; of imported logs within 2 s.",
    ),
    real("iops", "1/s", "Mean over the interval; 0 when nothing completed."),
    real("bw_bytes_per_s", "bytes/s", "Mean over the interval; 0 when nothing completed."),
    real("lat_mean_s", "s", "Mean total latency of the interval's I/Os; NaN for none."),
    real("lat_p50_s", "s", "Median, from per-I/O or histogram logs; NaN without these."),
    real("lat_p99_s", "s", "Percentile 99, from the same logs."),
    real("lat_p999_s", "s", "Percentile 99.9, from the same logs."),
    real("lat_max_s", "s", "Maximum; NaN where the logs contain means only."),
    real("clat_mean_s", "s", "Mean completion latency; NaN without a log of it."),
    real("slat_mean_s", "s", "Mean submission latency; NaN without a log of it."),
    whole(
        "jobs_running",
        "",
        "Jobs that ran through the whole interval; below the maximum, rates are too low.",
    ),
)

DEVICE: tuple[Column, ...] = (
    *IDENTITY,
    text("device", "Kernel name of the block device, such as `sdb`; missing without one (nbd)."),
    text("level", "`volume`, or `backing` for the disk under a partition, loop, dm or md."),
    real("t_s", "s", "End of the interval, from the start of the run's I/O; may be negative."),
    text("utc", "The same instant by the controller's clock, ISO 8601 with Z."),
    real("interval_s", "s", "Length of the interval, by the host's clock."),
    Column("after_fio", "bool", "", "Whether fio had ended (write-back tail)."),
    real("read_iops", "1/s", "Reads completed by the device."),
    real("write_iops", "1/s", "Writes completed by the device."),
    real("read_bw_bytes_per_s", "bytes/s", "Bytes read by the device."),
    real("write_bw_bytes_per_s", "bytes/s", "Bytes written by the device."),
    real("read_lat_s", "s", "Mean time of a read in queue and device (iostat: r_await)."),
    real("write_lat_s", "s", "Mean time of a write in queue and device (iostat: w_await)."),
    real("read_request_bytes", "bytes", "Mean size of a read; NaN for none."),
    real("write_request_bytes", "bytes", "Mean size of a write; NaN for none."),
    real("read_merges_per_s", "1/s", "Reads merged by the kernel in the queue (iostat: rrqm/s)."),
    real("write_merges_per_s", "1/s", "Writes merged by the kernel in the queue (iostat: wrqm/s)."),
    real("queue_depth", "", "Mean requests in queue and device (iostat: aqu-sz)."),
    real("active_percent", "%", "Time with a request in flight, at most 100 (iostat: %util)."),
    whole("io_errors", "", "Failed requests; missing if not counted."),
    real(
        "volume_iops_exceeded_percent",
        "%",
        "Time above the IOPS limit of the volume, as reported by an EBS device.",
    ),
    real("volume_bw_exceeded_percent", "%", "Time above the bandwidth limit of the volume."),
    real("instance_iops_exceeded_percent", "%", "Time above the IOPS limit of the instance."),
    real("instance_bw_exceeded_percent", "%", "Time above the bandwidth limit of the instance."),
    real(
        "ebs_read_p50_s",
        "s",
        "Median read latency reported by the EBS device: upper end of its bin; NaN if unknown.",
    ),
    real("ebs_read_p99_s", "s", "Percentile 99 of the read latency, likewise."),
    real("ebs_write_p50_s", "s", "Median write latency, likewise."),
    real("ebs_write_p99_s", "s", "Percentile 99 of the write latency, likewise."),
    real("cpu_busy_percent", "%", "CPU time neither idle nor iowait, of all CPUs."),
    real("iowait_percent", "%", "CPU time idle while I/O was pending, of all CPUs."),
    real("steal_percent", "%", "CPU time stolen by the hypervisor, of all CPUs."),
    real("dirty_bytes", "bytes", "Dirty page cache at the end of the interval."),
    real("writeback_bytes", "bytes", "Page cache under write-back at the end of the interval."),
    real("io_pressure_some_percent", "%", "Time with some task stalled on I/O (PSI)."),
    real("io_pressure_full_percent", "%", "Time with all tasks stalled on I/O (PSI)."),
    real("cpu_pressure_percent", "%", "Time with some task waiting for a CPU (PSI)."),
    real(
        "tool_cpu_percent",
        "%",
        "CPU time of all tasks of the run's fio, in percent of one CPU; NaN if unknown.",
    ),
    real("tool_wait_percent", "%", "Time that these tasks waited for a CPU (run-queue delay)."),
    real("cpu_throttled_percent", "%", "Periods in which a CPU limit (cgroup) throttled the run."),
    real("cpu_throttled_s", "s", "Time throttled by that limit, summed over CPUs."),
    real("swap_bytes_per_s", "bytes/s", "Bytes swapped in and out by the host."),
    real(
        "other_disks_iops",
        "1/s",
        "Reads and writes of the machine's other disks that share its limits; NaN if unknown.",
    ),
    real("other_disks_bw_bytes_per_s", "bytes/s", "Bytes that those disks read and wrote."),
)

# Events on the time axis of runs
MARKS: tuple[Column, ...] = (
    *IDENTITY,
    real("t_s", "s", "Time since the start of the run's I/O; of a watch, since its first sample."),
    text("utc", "The same time by the controller's clock, ISO 8601 with Z."),
    text("text", "Text of `volbench watch --mark`."),
)

# Processes of watched hosts
PROCESSES: tuple[Column, ...] = (
    *same(IDENTITY, "campaign"),
    text("run", "ID of the run of the host's first disk, whose folder holds the log."),
    *same(IDENTITY, "host", "job"),
    real("t_s", "s", "End of the interval, from the first sample of the run."),
    text("utc", "The same time by the controller's clock, ISO 8601 with Z."),
    real("interval_s", "s", "Length of the interval."),
    whole("pid", "", "Process ID on the host."),
    text("process", "Name of the process, at most 15 bytes; missing if unknown."),
    whole(
        "read_bytes",
        "bytes",
        "Bytes that the process read from block devices in the interval, on all disks together.",
    ),
    whole(
        "write_bytes",
        "bytes",
        "The same for writes; through the page cache, when the process made the page dirty.",
    ),
    whole(
        "cancelled_write_bytes",
        "bytes",
        "Bytes counted as written that never will be: the file was truncated or deleted before.",
    ),
)

VERDICTS: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write` or `trim`."),
    real("disturbed_percent", "%", "Share of intervals that the host disturbed."),
    text("verdict", "`steady`, `drifting`, `stepped`, `noisy` or `too-short`, of the IOPS."),
    real("from_s", "s", "Start of the evaluated window."),
    real("to_s", "s", "End of the evaluated window."),
    real("block_s", "s", "Length of the blocks whose medians are evaluated."),
    whole("blocks", "", "Number of blocks."),
    real("iops", "1/s", "Median of the window."),
    real("spread_percent", "%", "Spread of the block medians: 1.4826 MAD over the median."),
    real("drift_percent", "%", "Theil-Sen slope over the window, relative to the median."),
    real(
        "drift_bound_percent", "%", "Upper 95 % bound of the absolute drift; at most 10 if steady."
    ),
    whole("changes", "", "Change points in the whole series."),
    real("steady_from_s", "s", "Start of the steady stretch at the end; missing without one."),
    real("steady_iops", "1/s", "Median of the steady stretch, without the transient before."),
    real("level_iops", "1/s", "Level at the end: upper edge under a limit, otherwise middle."),
    real("level_low_iops", "1/s", "Lower end of its 95 % interval."),
    real("level_high_iops", "1/s", "Upper end of its 95 % interval."),
    text("bottleneck", "`iops-limit`, `bandwidth-limit`, `latency`, `cpu`, `unknown` ..."),
    text(
        "limited_by",
        "Where the bottleneck is: `volume`, `machine` (a declared limit of its type), `host`, or"
        " `none` where nothing is saturated; missing where it is unknown.",
    ),
    real("bottleneck_level", "", "Level of the bottleneck: 1/s for IOPS, bytes/s for bandwidth."),
    text("causes", "Causes of the level and of changes, the bottleneck first; joined by `, `."),
    text("explanation", "Verdict and bottleneck explained, with evidence for and against."),
)

FINDINGS: tuple[Column, ...] = (
    *IDENTITY,
    text("rule", "ID of the rule, such as `cold-blocks`."),
    text("severity", "`note`, `warning` or `invalid`."),
    text("direction", "`read`, `write` or `trim`; missing for the whole run."),
    real("from_s", "s", "Start of the affected interval; missing for the whole run."),
    real("to_s", "s", "End of the affected interval; missing for the whole run."),
    text("message", "Observation, one sentence with its numbers."),
    text("evidence", "The numbers as JSON: name to value, units in the names."),
    text("why", "Why it matters."),
    text("advice", "Recommended next step."),
)

AGGREGATE: tuple[Column, ...] = (
    *same(IDENTITY, "campaign", "profile", "job", "group"),
    whole("step", "", "Number of the step in the plan, from 1; the same for every client."),
    whole("repeat", "", "Number of the repeat, from 1."),
    text("direction", "`read`, `write`, `trim` or `sync`."),
    whole("clients", "", "Clients that finished; all sums are over these."),
    whole("clients_planned", "", "Clients planned; more than `clients` when some failed."),
    real("overlap_s", "s", "Time during which all clients ran; rates cover this time only."),
    real("start_skew_s", "s", "Time from the first client's first interval to the last client's."),
    real("start_skew_bound_s", "s", "Maximum error of start_skew_s: clock offsets, whole ms."),
    real("end_skew_s", "s", "Time from the first client's end to the last client's."),
    real(
        "iops",
        "1/s",
        "Sum over the clients; NaN if they never ran at the same time, or a result is invalid.",
    ),
    real("bw_bytes_per_s", "bytes/s", "Sum over the clients; NaN like `iops`."),
    text("no_total", "Why there are no sums: the client, and what to do."),
    real(
        "fairness",
        "",
        "Jain's index of the clients' IOPS: 1 if all are equal, 1/n if one of n has everything.",
    ),
    real("lat_mean_s", "s", "Mean total latency of all I/Os, over the whole runs."),
    real("lat_p50_s", "s", "Median, from the clients' summed bins; to fio's resolution."),
    real("lat_p99_s", "s", "99th percentile, from the same bins."),
    real("lat_p999_s", "s", "99.9th percentile, from the same bins."),
    real("lat_max_s", "s", "Maximum over the clients."),
)

# Every frame by name, in the order of its columns
FRAMES: dict[str, tuple[Column, ...]] = {
    "summary": SUMMARY,
    "series": SERIES,
    "device": DEVICE,
    "marks": MARKS,
    "processes": PROCESSES,
    "percentiles": PERCENTILE_ROWS,
    "histogram": HISTOGRAM,
    "shares": SHARES,
    "verdicts": VERDICTS,
    "findings": FINDINGS,
    "aggregate": AGGREGATE,
}

# Frames that are read from raw logs on request and never cached
ON_DEMAND: dict[str, tuple[Column, ...]] = {"latency_map": LATENCY_MAP}


def described(name: str, *, frame_name: str = "") -> Column:
    """Return the description of a column or label; an empty one for an unknown name.

    Args:
        frame_name: frame of the column; in unknown frames only labels are found.
    """
    for column in FRAMES.get(frame_name, ()):
        if column.name == name:
            return column
    if name.startswith(LABEL_PREFIX):
        return label_column(name.removeprefix(LABEL_PREFIX))
    return text(name, "")
