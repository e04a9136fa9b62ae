"""fio's latency bins: their bounds, sums and percentiles.

Bins are represented as in fio's json+: the midpoint of the bin to its count. The layout is
that of fio's ``stat.h`` (``FIO_IO_U_PLAT_BITS`` is 6: 64 bins a group, each group twice as wide).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from volbench.errors import OutputError
from volbench.model.campaign.planned_run import Imported
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency, RunOutput

GROUP_BINS = 64
BINS = 1856  # How many bins fio 3 has; they end near 17.2 s
# Elapsed time is in whole seconds, and a job may run on for some while after its runtime.
# Noticed by: tests/fio/results/test_merge_jobs.py::test_groups_that_had_no_time_to_take_turns
_MAX_ROUNDING_S = 3.0
# Shortest over longest runtime from which jobs ended together: fio starts them within milliseconds.
# Noticed by: test_section_series.py::test_windows_in_which_not_all_jobs_ran_are_marked
MIN_TOGETHER = 0.98
BINS_FIO2 = 1216  # How many bins fio 2 has; it counts microseconds


@lru_cache(maxsize=2 * BINS)
def bin_edges_ns(mid_ns: int, *, unit_ns: int = 1) -> tuple[int, int]:
    """Return the bounds of the bin with a midpoint: its first value, and the first above it.

    Args:
        mid_ns: a key of ``Latency.bins``.
        unit_ns: unit of fio's bins: 1 for fio 3, 1000 for fio 2.
    """
    mid = mid_ns // unit_ns
    if mid < 0:
        raise ValueError(f"{mid_ns} ns is not a latency")
    width = 1 << max(0, mid.bit_length() - GROUP_BINS.bit_length())
    low = mid - width // 2
    return low * unit_ns, (low + width) * unit_ns


def merge_bins(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of several sets of bins, in ascending order of latency."""
    total: Counter[int] = Counter()
    for bins in parts:
        total.update(bins)
    return dict(sorted(total.items()))


def percentile_ns(bins: Mapping[int, int], percentile: float) -> int:
    """Return the midpoint of the bin that contains a percentile, as fio does.

    fio takes the first bin at which the cumulative count reaches ``percentile / 100 * samples``
    (``calc_clat_percentiles`` in fio's ``stat.c``, in long double; here with exact fractions).
    """
    if not 0 <= percentile <= 100:
        raise ValueError(f"{percentile} is not a percentile")
    wanted = Fraction(percentile) * sum(bins.values())
    seen = 0
    for mid_ns, count in sorted(bins.items()):
        seen += count
        if count and seen * 100 >= wanted:
            return mid_ns
    raise ValueError("bins without samples have no percentiles")


def merge_jobs(jobs: Sequence[JobResult]) -> tuple[JobResult, ...]:
    """Return one result per section, in order of first appearance.

    Entries with the same name and group belong together. A section with a single entry keeps fio's
    own numbers.
    """
    sections: dict[tuple[str, int], list[JobResult]] = {}
    for job in jobs:
        sections.setdefault((job.name, job.groupid), []).append(job)
    return tuple(
        members[0] if len(members) == 1 else _merge(members) for members in sections.values()
    )


def _merge(members: list[JobResult]) -> JobResult:
    directions = (
        merge_direction([d for job in members if (d := job.direction(name)) is not None])
        for name in Direction
    )
    return replace(
        members[0],
        error=next((job.error for job in members if job.error), 0),
        total_errors=sum(job.total_errors for job in members),
        directions=tuple(d for d in directions if d is not None),
        members=sum(job.members for job in members),
        elapsed_s=_combined(max, [job.elapsed_s for job in members]),
        cpu_usr=_combined(_average, [job.cpu_usr for job in members]),
        cpu_sys=_combined(_average, [job.cpu_sys for job in members]),
        depth_shares=_merge_shares(members, [job.depth_shares for job in members]),
        clat_shares=_merge_shares(members, [job.clat_shares for job in members]),
        start_utc_s=_combined(min, [job.start_utc_s for job in members]),
        steadystate=None,
        other_ios=dict(sum((Counter(job.other_ios) for job in members), Counter())),
    )


def total_rates(jobs: Sequence[JobResult]) -> tuple[float, float]:
    """Return I/Os and bytes a second of all sections and directions, as tables show them."""
    total = [0.0, 0.0]
    for direction in (each for job in merge_jobs(jobs) for each in job.directions):
        together_s = direction.parallel_s or direction.runtime_s
        is_uneven = together_s < MIN_TOGETHER * direction.runtime_s
        if direction.direction is not Direction.SYNC:
            total[0] += (direction.iops_parallel if is_uneven else direction.iops) or 0.0
            uneven = direction.bw_parallel_bytes_per_s if is_uneven else direction.bw_bytes_per_s
            total[1] += uneven or 0.0
    return total[0], total[1]


def merge_direction(parts: list[DirectionResult]) -> DirectionResult | None:
    """Return the sum of one direction over several entries; None without any."""
    if len(parts) < 2:
        return parts[0] if parts else None
    runtime_s = max(entry.runtime_s for entry in parts)
    total_ios = _total([entry.total_ios for entry in parts])
    io_bytes = sum(entry.io_bytes for entry in parts)
    timed = runtime_s > 0 and parts[0].direction is not Direction.SYNC
    # Jobs that each moved the same size end as they finish: the faster ones leave the volume to the
    # others, so that their own rates add up to more than the volume gave at any time.
    is_sized = len({entry.io_bytes for entry in parts}) == 1
    counts = [_ios(entry) for entry in parts]
    done = _combined(sum, counts)
    return DirectionResult(
        direction=parts[0].direction,
        io_bytes=io_bytes,
        total_ios=total_ios,
        runtime_s=runtime_s,
        iops=done / runtime_s if timed and done is not None else None,
        bw_bytes_per_s=io_bytes / runtime_s if timed else None,
        iops_parallel=_combined(sum, [entry.iops for entry in parts]) if timed else None,
        bw_parallel_bytes_per_s=_combined(sum, [entry.bw_bytes_per_s for entry in parts]),
        parallel_s=runtime_s if is_sized else min(entry.runtime_s for entry in parts),
        iops_min=_combined(sum, [entry.iops_min for entry in parts]),
        iops_max=_combined(sum, [entry.iops_max for entry in parts]),
        lat=_merge_latency([(part.lat, ios) for part, ios in zip(parts, counts, strict=True)]),
        clat=_merge_latency([(part.clat, ios) for part, ios in zip(parts, counts, strict=True)]),
        slat=_merge_latency([(part.slat, ios) for part, ios in zip(parts, counts, strict=True)]),
    )


def _ios(entry: DirectionResult) -> float | None:
    """Return the number of I/Os, from rate and time where normal output lacks it."""
    if entry.total_ios is not None or entry.iops is None:
        return entry.total_ios
    return entry.iops * entry.runtime_s


def _merge_latency(parts: list[tuple[Latency | None, float | None]]) -> Latency | None:
    """Return pooled latencies; before fio 3.18 the I/O count replaces the missing sample count."""
    known = [(lat, lat.count or round(ios or 0)) for lat, ios in parts if lat is not None]
    total = sum(count for _, count in known)
    if total == 0:
        return None
    mean_s = math.fsum(lat.mean_s * count for lat, count in known) / total
    max_s = max(lat.max_s for lat, _ in known)
    whole = all(lat.bins for lat, _ in known)
    bins = merge_bins(lat.bins for lat, _ in known) if whole else {}
    return Latency(
        count=_total([lat.count for lat, _ in known]),
        min_s=min(lat.min_s for lat, _ in known),
        max_s=max_s,
        mean_s=mean_s,
        stddev_s=_pooled_stddev(known, mean_s=mean_s, total=total),
        percentiles=_percentiles([lat for lat, _ in known], bins=bins, max_s=max_s),
        bins=bins,
    )


def _pooled_stddev(parts: list[tuple[Latency, int]], *, mean_s: float, total: int) -> float:
    """Return the deviation of all samples; fio divides by samples - 1 (``calc_lat``, stat.c)."""
    squares = math.fsum(
        lat.stddev_s**2 * max(0, count - 1) + count * (lat.mean_s - mean_s) ** 2
        for lat, count in parts
    )
    return math.sqrt(squares / (total - 1)) if total > 1 else 0.0


def _percentiles(parts: list[Latency], *, bins: dict[int, int], max_s: float) -> dict[float, float]:
    """Return the percentiles that all parts have, from the added bins, limited by the maximum."""
    if not any(bins.values()):
        return {}
    return {
        percentile: min(percentile_ns(bins, percentile) / 1e9, max_s)
        for percentile in parts[0].percentiles
        if all(percentile in part.percentiles for part in parts)
    }


def _merge_shares(
    members: Sequence[JobResult], parts: Sequence[Mapping[int, float]]
) -> dict[int, float]:
    """Return the percentages of classes, weighted by the I/Os of each job."""
    weights = [sum(d.total_ios or 0 for d in job.directions) for job in members]
    total = sum(weights)
    if total == 0:
        return dict(parts[0])
    shares: dict[int, float] = {}
    for distribution, weight in zip(parts, weights, strict=True):
        for start, share in distribution.items():
            shares[start] = shares.get(start, 0.0) + share * weight / total
    return dict(sorted(shares.items()))


def _combined(
    combine: Callable[[list[float]], float], values: Sequence[float | None]
) -> float | None:
    """Return a combination of several numbers; None when any of them is unknown."""
    known = [value for value in values if value is not None]
    return combine(known) if len(known) == len(values) else None


def _total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _average(values: list[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(frozen=True)
class Part:
    """Entries that ran at the same time in one process."""

    hostname: str  # of the client; empty without one
    port: int | None  # of the client
    place: int  # number of earlier parts of the same client
    jobs: tuple[JobResult, ...]  # its entries, in fio's order
    # number of jobs, and so of log numbers, in earlier parts of the same process
    jobs_before: int = 0


def split_result(output: RunOutput) -> tuple[Part, ...]:
    """Return the parts of a result by client, in the order in which they ran."""
    clients: dict[tuple[str, int | None], list[JobResult]] = {}
    for job in output.jobs:
        clients.setdefault((job.hostname, job.port), []).append(job)
    parts: list[Part] = []
    for hostname, port in sorted(clients, key=lambda client: (client[0], client[1] or 0)):
        jobs = clients[hostname, port]
        before = 0
        for index, together in enumerate(_in_turn(jobs)):
            parts.append(Part(hostname, port, index, tuple(together), before))
            before += sum(count for _, count in sections_of(together))
    return tuple(parts)


def _in_turn(jobs: Sequence[JobResult]) -> list[list[JobResult]]:
    """Return entries that ran together; a new group means a stonewall unless it has new_group."""
    turns: list[list[JobResult]] = []
    for job in sorted(jobs, key=lambda job: job.groupid):
        is_new = not turns or turns[-1][-1].groupid != job.groupid
        waits = {"stonewall", "wait_for_previous"} & {*job.options}
        is_beside = "new_group" in job.options and not waits
        if is_new and not (turns and (is_beside or _had_no_turn(turns[-1], job))):
            turns.append([])
        turns[-1].append(job)
    return turns


def _had_no_turn(earlier: Sequence[JobResult], job: JobResult) -> bool:
    """Return whether the runtimes of two groups exceed the time that fio ran for both.

    Before 3.39 results omit a bare ``new_group``: groups in parallel look like groups in turn.
    """
    ran_s = max((done.runtime_s for each in earlier for done in each.directions), default=0.0)
    own_s = max((done.runtime_s for done in job.directions), default=0.0)
    return bool(job.elapsed_s) and ran_s + own_s > (job.elapsed_s or 0.0) + _MAX_ROUNDING_S


def sections_of(jobs: Sequence[JobResult]) -> list[tuple[JobResult, int]]:
    """Return the first entry of each section with its number of jobs."""
    entries_by_section: dict[tuple[str, int], list[JobResult]] = {}
    for job in jobs:
        entries_by_section.setdefault((job.name, job.groupid), []).append(job)
    counted = []
    for entries in entries_by_section.values():
        text, known = entries[0].options.get("numjobs", ""), entries[0].jobs_in_it or 1
        numjobs = max(len(entries), int(text) if text.isdecimal() else 1, known)
        counted.append((entries[0], numjobs))
    return counted


def select_part(output: RunOutput, imported: Imported) -> RunOutput:
    """Return a result with only the entries of one run, named after its sections."""
    wanted = {(job.name, job.groupid): job.section for job in imported.jobs}
    jobs = tuple(
        replace(job, name=wanted[plain_name(job), job.groupid])
        for job in output.jobs
        if (plain_name(job), job.groupid) in wanted
        and (job.hostname, job.port) == (imported.hostname, imported.port)
    )
    if {job.name for job in jobs} != {*wanted.values()}:
        raise OutputError("the result lacks a job of this run", hint="import it again")
    return replace(output, jobs=jobs)


def plain_name(job: JobResult) -> str:
    """Return fio's jobname, without the client's name in front."""
    return job.name.removeprefix(f"{job.hostname}:") if job.hostname else job.name
