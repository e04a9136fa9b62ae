"""Measurements of one process in base SI units, otherwise unmodified.

Latencies are in seconds (fio's integer nanoseconds or microseconds, divided once), rates per
second, sizes in bytes. Values that the tool does not report are None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

SUM_OF_CLIENTS = "All clients"  # fio's name of the entry with the sums over all others


class Direction(StrEnum):
    """Direction of an I/O."""

    READ = "read"
    WRITE = "write"
    TRIM = "trim"
    SYNC = "sync"
    MIXED = "mixed"
    OTHER = "other"  # sections of fio's JSON that volbench does not know, such as ``finish``


@dataclass(frozen=True)
class Latency:
    """A latency distribution."""

    count: int | None  # number of samples; None before fio 3.18, which does not report it
    min_s: float  # exact
    max_s: float  # exact
    mean_s: float  # exact
    stddev_s: float  # exact
    # percentile (0-100) to seconds, ascending; empty when fio reports none
    percentiles: dict[float, float] = field(default_factory=dict)
    # midpoint of fio's bin in integer nanoseconds to count; empty without json+
    bins: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DirectionResult:
    """The reads, writes, trims or syncs of one fio job entry."""

    direction: Direction
    io_bytes: int
    total_ios: int | None
    runtime_s: float  # fio's runtime of this direction
    iops: float | None  # total I/Os over runtime, as fio prints it; None for sync
    bw_bytes_per_s: float | None  # bytes over runtime
    # of several jobs: the sum of their own rates, and the runtime of the shortest
    iops_parallel: float | None = None
    bw_parallel_bytes_per_s: float | None = None
    parallel_s: float | None = None
    # minimum over fio's windows with completions (a stall never shows as 0)
    iops_min: float | None = None
    iops_max: float | None = None
    iops_stddev: float | None = None
    # total latency; clat: completion; slat: submission. None where fio reports none.
    lat: Latency | None = None
    clat: Latency | None = None
    slat: Latency | None = None


def without_sum(directions: Iterable[DirectionResult]) -> tuple[DirectionResult, ...]:
    """Return directions without their sum, which ``unified_rw_reporting=both`` adds to them."""
    every = tuple(directions)
    if not any(each.direction in {Direction.READ, Direction.WRITE} for each in every):
        return every
    return tuple(each for each in every if each.direction is not Direction.MIXED)


@dataclass(frozen=True)
class JobResult:
    """One entry of fio's ``jobs``: one of `numjobs`, or a group under group_reporting."""

    name: str  # fio's jobname
    groupid: int  # fio's reporting group
    error: int  # errno of the first error, 0 for none
    directions: tuple[DirectionResult, ...]
    total_errors: int = 0  # with continue_on_error; 0 otherwise
    # fio's ``job options`` (its own text), last value of a repeated key
    options: dict[str, str] = field(default_factory=dict)
    members: int = 1  # number of entries merged into this one
    # jobs whose runtimes fio added up in it; None before fio 3.8, which does not report that sum
    jobs_in_it: int | None = None
    # of sections that fio merged into it: name to options, where the output says so
    merged: dict[str, dict[str, str]] = field(default_factory=dict)
    elapsed_s: float | None = None
    cpu_usr: float | None = None
    cpu_sys: float | None = None
    # smallest number of I/Os in flight of a class to the percentage of all I/Os; a class ends where
    # the next one begins
    depth_shares: dict[int, float] = field(default_factory=dict)
    # shortest completion latency of a class, in nanoseconds, to the percentage of all I/Os,
    # likewise
    clat_shares: dict[int, float] = field(default_factory=dict)
    # start of I/O in seconds since the epoch; None before fio 3.36
    start_utc_s: float | None = None
    # fio's steady-state block, unmodified; None without one
    steadystate: dict[str, object] | None = None
    # I/Os by section of fio's JSON that volbench does not know; they are added up as `OTHER`
    other_ios: dict[str, int] = field(default_factory=dict)
    damage: str = ""  # why an entry has no numbers that can be read; empty for others
    hostname: str = ""  # host name of fio's client; empty where fio ran locally
    port: int | None = None  # port of that client

    def direction(self, name: Direction) -> DirectionResult | None:
        """Return the numbers of one direction, or None if it had no I/O."""
        return next((d for d in self.directions if d.direction is name), None)


@dataclass(frozen=True)
class RunOutput:
    """Complete report of one process."""

    tool_version: str  # such as ``fio-3.33``
    jobs: tuple[JobResult, ...]  # entries in fio's order; those without I/O have no directions
    # seconds since the epoch when the document was printed; None when unknown
    ended_utc_s: float | None = None
    global_options: dict[str, str] = field(default_factory=dict)  # fio's merged ``global options``
    # host and port of a client to its global options; empty without clients
    client_options: dict[tuple[str, int | None], dict[str, str]] = field(default_factory=dict)
    # global options that differ between clients, so that their owner is unknown
    disputed: frozenset[str] = frozenset()
    diagnostics: str = ""  # text around the JSON, such as notes and errors
    documents: int = 1  # number of JSON documents found; the last one is the result
    form: str = "json"  # or ``normal`` or ``terse``, in which fio rounds and leaves out options

    def shared_options(self, job: JobResult) -> dict[str, str]:
        """Return the global options that apply to an entry."""
        return self.client_options.get((job.hostname, job.port), self.global_options)
