"""What one process measured, in base SI units, with no number changed on the way.

Every latency is seconds (fio's integer nanoseconds or microseconds divided once), every rate is per
second, every size is bytes. NaN never stands for zero: what the tool did not tell is None here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Direction(StrEnum):
    """What an I/O did."""

    READ = "read"
    WRITE = "write"
    TRIM = "trim"
    SYNC = "sync"
    MIXED = "mixed"


@dataclass(frozen=True)
class Latency:
    """A latency distribution.

    Attributes:
        count: samples; None before fio 3.18, which does not tell.
        min_s: exact.
        max_s: exact.
        mean_s: exact.
        stddev_s: exact.
        percentiles: percentile (0-100) to seconds, ascending; empty when fio gave none.
        bins: midpoint of fio's bin in integer nanoseconds to count; empty without json+.
    """

    count: int | None
    min_s: float
    max_s: float
    mean_s: float
    stddev_s: float
    percentiles: dict[float, float] = field(default_factory=dict)
    bins: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DirectionResult:
    """The reads, writes, trims or syncs of one fio job entry.

    Attributes:
        iops: total I/Os over runtime, as fio prints it; None for sync and for dd.
        bw_bytes_per_s: bytes over runtime.
        runtime_s: fio's runtime of this direction.
        iops_min: least of fio's windows that had completions (a stall never shows as 0).
        lat: total latency; clat: completion; slat: submission. None where fio gave none.
    """

    direction: Direction
    io_bytes: int
    total_ios: int | None
    runtime_s: float
    iops: float | None
    bw_bytes_per_s: float | None
    short_ios: int | None = None
    drop_ios: int | None = None
    iops_min: float | None = None
    iops_max: float | None = None
    iops_mean: float | None = None
    iops_stddev: float | None = None
    bw_min_bytes_per_s: float | None = None
    bw_max_bytes_per_s: float | None = None
    bw_mean_bytes_per_s: float | None = None
    bw_stddev_bytes_per_s: float | None = None
    lat: Latency | None = None
    clat: Latency | None = None
    slat: Latency | None = None


@dataclass(frozen=True)
class JobResult:
    """One entry of fio's ``jobs``: one of `numjobs`, or a group under group_reporting; or one dd.

    Attributes:
        name: fio's jobname.
        groupid: fio's reporting group.
        error: errno of the first error, 0 for none.
        total_errors: with continue_on_error; 0 otherwise.
        options: fio's ``job options`` (its own text), last value of a repeated key.
        members: how many entries were merged into this one.
        start_utc_s: seconds since the epoch when I/O began; None before fio 3.36.
        steadystate: fio's steady state block as it stands; None without one.
        hostname: of the client that it ran on; empty where fio ran here.
        port: of that client.
    """

    name: str
    groupid: int
    error: int
    directions: tuple[DirectionResult, ...]
    total_errors: int = 0
    options: dict[str, str] = field(default_factory=dict)
    members: int = 1
    elapsed_s: float | None = None
    job_runtime_s: float | None = None
    cpu_usr: float | None = None
    cpu_sys: float | None = None
    context_switches: int | None = None
    major_faults: int | None = None
    minor_faults: int | None = None
    iodepth_level: dict[str, float] = field(default_factory=dict)
    start_utc_s: float | None = None
    steadystate: dict[str, object] | None = None
    hostname: str = ""
    port: int | None = None

    def direction(self, name: Direction) -> DirectionResult | None:
        """Return the numbers of one direction, or None where it did nothing."""
        return next((d for d in self.directions if d.direction is name), None)


@dataclass(frozen=True)
class DiskUtil:
    """What the kernel counted for one block device during the run, as fio reports it."""

    name: str
    read_ios: int
    write_ios: int
    read_ticks_s: float
    write_ticks_s: float
    in_queue_s: float
    util_percent: float
    read_bytes: int | None = None
    write_bytes: int | None = None


@dataclass(frozen=True)
class RunOutput:
    """Everything one process reported.

    Attributes:
        tool_version: such as ``fio-3.33``.
        ended_utc_s: seconds since the epoch when the document was printed; None when unknown.
        jobs: in fio's order; what did nothing is listed with no directions.
        global_options: fio's merged ``global options``.
        client_options: host and port of a client to its global options; empty without clients.
        disputed: global options that clients differ in, so that it is unknown whose they are.
        disk_util: empty where fio matched no device.
        diagnostics: text that stood around the JSON, such as notes and errors.
        documents: how many JSON documents were found; the last one is the result.
    """

    tool_version: str
    jobs: tuple[JobResult, ...]
    ended_utc_s: float | None = None
    global_options: dict[str, str] = field(default_factory=dict)
    client_options: dict[tuple[str, int | None], dict[str, str]] = field(default_factory=dict)
    disputed: frozenset[str] = frozenset()
    disk_util: tuple[DiskUtil, ...] = ()
    diagnostics: str = ""
    documents: int = 1

    def shared_options(self, job: JobResult) -> dict[str, str]:
        """Return the global options that hold for an entry."""
        return self.client_options.get((job.hostname, job.port), self.global_options)


@dataclass(frozen=True)
class SeriesPoint:
    """One interval of a run's logs, all jobs of a section together.

    Attributes:
        t_s: end of the interval, since I/O began.
        utc_s: the same instant in seconds since the epoch; None when the logs hold no epoch.
        iops: mean over the interval, 0 when nothing completed; None without a log of it.
        bw_bytes_per_s: as `iops`.
        lat_mean_s: mean latency of the interval's I/Os; None for none.
        lat_p50_s: from histogram or per-I/O logs, as the other percentiles; None without.
        lat_max_s: None where the logs hold means or bins only.
    """

    direction: Direction
    t_s: float
    utc_s: float | None = None
    iops: float | None = None
    bw_bytes_per_s: float | None = None
    lat_mean_s: float | None = None
    lat_p50_s: float | None = None
    lat_p99_s: float | None = None
    lat_p999_s: float | None = None
    lat_max_s: float | None = None
