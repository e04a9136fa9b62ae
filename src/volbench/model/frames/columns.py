"""The contract with analysts: every column of every frame, with type, unit and meaning.

The reference page docs/reference/frames.md is written from these tables and a test holds the two
together. NaN (or a missing value) always means "unknown", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from volbench.model.campaign.planned_run import Campaign, Run

DAMAGED = "damaged"
"""Status of a run that finished and whose result can no longer be read."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: with its unit in it.
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
    """Return the columns of a frame that another frame has too, in the order of the names."""
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
"""Percentile columns of the summary, by the name that stands in the column."""

IDENTITY: tuple[Column, ...] = (
    _text("campaign", "Name of the campaign."),
    _text("run", "Id of the run, also the name of its folder."),
    _text("host", "Host it ran on; `local` is the controller itself."),
    _text("profile", "Name of the profile."),
    _text("job", "Name of the job in the profile."),
    _text("group", "Name of fio's job section; equal to `job` for single-section jobs."),
    _text("role", "Role of the volume, such as `data`."),
    _text("volume", "Target of the volume: device, file, directory or NBD URI."),
    _whole("repeat", "", "Repeat, counted from 1."),
    _text("phase", "`precondition`, `warmup` or `measured`."),
)
"""Columns that say which section of which run a row is of; every frame of runs begins with them."""


def run_identity(campaign: Campaign, run: Run, group: str | None) -> dict[str, object]:
    """Return the values of `IDENTITY` for one section of a run.

    Args:
        campaign: that the run belongs to.
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
            ("min", "least"),
            ("max", "greatest"),
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
    _text("direction", "`read`, `write`, `trim` or `sync` (latency of fsync and its kin)."),
    _text("rw", "Access pattern as fio names it, such as `randwrite`."),
    _whole("rwmixread", "%", "Share of reads asked for in a mixed pattern; missing in others."),
    Column("direct", "bool", "", "Whether the page cache was bypassed (O_DIRECT)."),
    _whole("block_bytes", "bytes", "Block size of this direction; missing when it varies."),
    _whole("iodepth", "", "I/Os kept in flight, as asked for, by each job."),
    _whole("numjobs", "", "Jobs in parallel (`numjobs`)."),
    _text("ioengine", "I/O engine of fio."),
    _whole("size_bytes", "bytes", "Size asked for, per job; missing for a whole device."),
    _whole("volume_bytes", "bytes", "Capacity of the volume; missing unless it is a device."),
    _real("runtime_s", "s", "Runtime of this direction, as fio measured it."),
    _whole("io_bytes", "bytes", "Bytes transferred."),
    _whole("total_ios", "", "I/Os completed."),
    _real("iops", "1/s", "total_ios / runtime_s, as fio prints it."),
    _real("iops_min", "1/s", "Least window of fio's; windows without completions are not in it."),
    _real("iops_max", "1/s", "Greatest window of fio's."),
    _real("iops_stddev", "1/s", "Standard deviation over fio's windows."),
    _real("bw_bytes_per_s", "bytes/s", "io_bytes / runtime_s."),
    *_latency_columns(),
    _real("cpu_usr", "%", "CPU time in user space, per job."),
    _real("cpu_sys", "%", "CPU time in the kernel, per job."),
    _whole("error", "", "errno of the first error; 0 for none."),
    _text(
        "status",
        "State of the run: `finished`, `failed` or `interrupted`; `damaged` when it finished, and"
        " its result can no longer be read.",
    ),
    _text("damage", "Files of the run that can't be read, and why; missing for none."),
    _text("started_utc", "When the process was started, ISO 8601 with Z."),
    _text("fio_version", "Version of the tool, such as `fio-3.33`."),
    _real("limit_iops", "1/s", "Declared limit of the volume."),
    _real("limit_bw_bytes_per_s", "bytes/s", "Declared limit of the volume."),
    _text("note", "The job's remark."),
    _whole(
        "bad_log_rows", "", "Lines of fio's logs that the series leaves out; missing without logs."
    ),
    _real("start_offset_s", "s", "How much later than the first of its step it was to start."),
    _real(
        "start_late_s",
        "s",
        "How much later than at its own instant it started; missing where a run started alone.",
    ),
    _real(
        "step_start_s",
        "s",
        "When it passed the start of its step, since 1970 by the controller's clock; missing where"
        " a run started alone.",
    ),
    _real(
        "clock_offset_s",
        "s",
        "What its host's clock was ahead of the controller's; 0 where it can't be told from none.",
    ),
    _real("clock_bound_s", "s", "How far that may be wrong."),
    _whole("client", "", "Which of several clients on its host it was, from 1; missing for one."),
)

LABEL_PREFIX = "label_"
"""Beginning of the columns that hold labels of hosts."""


def label_column(name: str) -> Column:
    """Return the column of a label; the summary has one for each label of the campaign's hosts."""
    meaning = f"Label `{name}` of the host, as the inventory told it; missing where it has none."
    return _text(f"{LABEL_PREFIX}{name}", meaning)


SERIES: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("t_s", "s", "End of the interval, since the run's I/O began."),
    _text(
        "utc",
        "The same instant by the controller's clock, ISO 8601 with Z; missing when fio told no"
        " epoch.",
    ),
    _real("iops", "1/s", "Mean over the interval; 0 when nothing completed."),
    _real("bw_bytes_per_s", "bytes/s", "Mean over the interval; 0 when nothing completed."),
    _real("lat_mean_s", "s", "Mean total latency of the interval's I/Os; NaN for none."),
    _real(
        "lat_p50_s",
        "s",
        "Median, from logs of single I/Os or histograms, as the next two; NaN without.",
    ),
    _real("lat_p99_s", "s", "Percentile 99; NaN as the median."),
    _real("lat_p999_s", "s", "Percentile 99.9; NaN as the median."),
    _real("lat_max_s", "s", "Greatest; NaN where the logs hold means only."),
)

PERCENTILE_ROWS: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("percentile", "%", "From 0 to 100."),
    _real("value_s", "s", "Latency at that percentile, as fio prints it."),
)

HISTOGRAM: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _text("latency", "`lat`, `clat` or `slat`."),
    _real("bin_s", "s", "Midpoint of fio's bin."),
    _real("bin_low_s", "s", "Lower edge, inclusive."),
    _real("bin_high_s", "s", "Upper edge, exclusive."),
    _whole("count", "", "I/Os in the bin; bins of `numjobs` are added."),
)

DEVICE: tuple[Column, ...] = (
    *IDENTITY,
    _text("device", "Kernel name of the block device, such as `sdb`; missing without one (nbd)."),
    _text("level", "`volume`, or `backing` for the disk under a partition, loop, dm or md."),
    _real("t_s", "s", "End of the interval, since the run's I/O began; may be below 0."),
    _text("utc", "The same instant by the controller's clock, ISO 8601 with Z."),
    _real("interval_s", "s", "Length of the interval, as the host's clock measured it."),
    Column("after_fio", "bool", "", "Whether fio had ended: the write-back tail."),
    _real("read_iops", "1/s", "Reads the device completed."),
    _real("write_iops", "1/s", "Writes the device completed."),
    _real("read_bw_bytes_per_s", "bytes/s", "Bytes the device read."),
    _real("write_bw_bytes_per_s", "bytes/s", "Bytes the device wrote."),
    _real("read_lat_s", "s", "Mean time of a read in queue and device; NaN for none."),
    _real("write_lat_s", "s", "Mean time of a write in queue and device; NaN for none."),
    _real("read_request_bytes", "bytes", "Mean size of a read; NaN for none."),
    _real("write_request_bytes", "bytes", "Mean size of a write; NaN for none."),
    _real("queue_depth", "", "Mean number of requests in queue and device."),
    _real("active_percent", "%", "Share of the time with a request in flight, at most 100."),
    _whole("io_errors", "", "Requests that ended in an error; missing where nobody counts."),
    _real("cpu_busy_percent", "%", "CPU time that was neither idle nor iowait, of all CPUs."),
    _real("iowait_percent", "%", "CPU time idle while I/O was pending, of all CPUs."),
    _real("steal_percent", "%", "CPU time that the hypervisor gave to others, of all CPUs."),
    _real("dirty_bytes", "bytes", "Pages of the host waiting to be written, at the end."),
    _real("writeback_bytes", "bytes", "Pages of the host being written, at the end."),
    _real("io_pressure_some_percent", "%", "Time in which some task waited for I/O (PSI)."),
    _real("io_pressure_full_percent", "%", "Time in which all tasks waited for I/O (PSI)."),
    _real("swap_bytes_per_s", "bytes/s", "Bytes the host swapped in and out."),
)

VERDICTS: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _text("verdict", "`steady`, `drifting`, `stepped`, `noisy` or `too-short`, of the IOPS."),
    _real("from_s", "s", "Start of the window that was judged."),
    _real("to_s", "s", "End of the window that was judged."),
    _real("block_s", "s", "Length of the blocks whose medians were judged."),
    _whole("blocks", "", "Number of them."),
    _real("iops", "1/s", "Median of the window."),
    _real("spread_percent", "%", "Spread of the block medians: 1.4826 MAD over the median."),
    _real("drift_percent", "%", "Theil-Sen slope over the window, of the median."),
    _real("drift_bound_percent", "%", "Upper 95 % bound of its size; steady is at most 10."),
    _whole("changes", "", "Change points in the whole series."),
    _real("steady_from_s", "s", "Start of the steady stretch at the end; missing without one."),
    _real("steady_iops", "1/s", "Its median, without the burst, climb or dip before it."),
    Column("snia_steady", "bool", "", "SNIA PTS: 5 rounds, range and slope in bounds."),
    _whole("snia_round", "", "Round that ended the first window that passed; missing for none."),
    _real("snia_range_percent", "%", "Range of the last five rounds, of their mean; at most 20."),
    _real("snia_slope_percent", "%", "Slope over the last five rounds, of their mean; at most 10."),
    _text(
        "bottleneck", "`iops-limit`, `bandwidth-limit`, `latency`, `cache`, `cpu`, or `unknown` ..."
    ),
    _real("bottleneck_level", "", "The level it is bound at: 1/s for IOPS, bytes/s for bandwidth."),
    _text("explanation", "What happened and what speaks for and against it, in plain words."),
)

FINDINGS: tuple[Column, ...] = (
    *IDENTITY,
    _text("rule", "Id of the rule, such as `cold-blocks`."),
    _text("severity", "`note`, `warning` or `invalid`."),
    _text("direction", "`read`, `write` or `trim`; missing when it is about the whole run."),
    _real("from_s", "s", "Start of the time it is about; missing for the whole run."),
    _real("to_s", "s", "End of the time it is about; missing for the whole run."),
    _text("message", "What was seen, one sentence with its numbers."),
    _text("evidence", "The numbers as JSON: name to value, units in the names."),
    _text("why", "Why it matters."),
    _text("advice", "What to do."),
)

AGGREGATE: tuple[Column, ...] = (
    *same(IDENTITY, "campaign", "profile", "job", "group"),
    _whole("step", "", "Place in the plan of every client, from 1."),
    _whole("repeat", "", "Number of the repeat, from 1."),
    _text("direction", "`read`, `write`, `trim` or `sync`."),
    _whole("clients", "", "Clients that finished: all sums are over these."),
    _whole("clients_planned", "", "Clients that were asked to: more when some failed."),
    _real("overlap_s", "s", "Time in which all of them ran: rates are sums over this time only."),
    _real("start_skew_s", "s", "From the first client's first I/O interval to the last one's."),
    _real("start_skew_bound_s", "s", "How far that may be wrong: the clock offsets are bounded."),
    _real("end_skew_s", "s", "From the first client's end to the last one's."),
    _real("iops", "1/s", "Sum over the clients; NaN when they never ran at one time."),
    _real(
        "bw_bytes_per_s", "bytes/s", "Sum over the clients; NaN when they never ran at one time."
    ),
    _real("lat_mean_s", "s", "Mean total latency of all their I/Os, over the whole runs."),
    _real("lat_p50_s", "s", "Median, from the clients' bins added up; to fio's resolution."),
    _real("lat_p99_s", "s", "99th percentile, the same way."),
    _real("lat_p999_s", "s", "99.9th percentile, the same way."),
    _real("lat_max_s", "s", "Greatest of any client."),
)

LATENCY_MAP: tuple[Column, ...] = (
    *IDENTITY,
    _text("direction", "`read`, `write` or `trim`."),
    _real("from_s", "s", "Start of the stretch of time, since the run's I/O began."),
    _real("t_s", "s", "Its end."),
    _real("bin_low_s", "s", "Least latency, inclusive."),
    _real("bin_high_s", "s", "Greatest latency, exclusive: eight of fio's bins are one."),
    _whole("count", "", "I/Os that ended in the stretch, `numjobs` added."),
)
"""Latencies over time, from logs of single I/Os and of histograms; empty where there are none."""

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
"""Frames that are read from raw logs when they are asked for, and never kept."""

DERIVED = ("verdicts", "findings", "aggregate")
"""Frames that are judged from the others; the others are read from raw files."""


def described(name: str, *, frame_name: str = "") -> Column:
    """Return the description of a column, also of a label; a bare one for an unknown name.

    Args:
        name: of the column.
        frame_name: the frame it stands in; unknown frames know labels only.
    """
    for column in FRAMES.get(frame_name, ()):
        if column.name == name:
            return column
    if name.startswith(LABEL_PREFIX):
        return label_column(name.removeprefix(LABEL_PREFIX))
    return _text(name, "")
