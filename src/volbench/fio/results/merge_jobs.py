"""Aggregation of the parallel jobs of each section.

fio's ``group_reporting`` mixes sections and their options (fio issues 2132 and 499), so the jobs of
a section (``numjobs``) are reported separately and aggregated here:

* totals are summed; a rate is the total over the longest runtime, and beside it stands the sum of
  the jobs' own rates, which is that of the time in which all of them ran;
* counts, means, deviations and extremes of latencies are pooled exactly; percentiles come from the
  added bins; without the bins of all jobs there are none, for percentiles cannot be averaged;
* ``*_min``, ``*_max`` and ``*_mean`` of rates are summed, as fio does for a group. So the minimum
  is a lower bound: the jobs need not have their worst window at the same time. ``*_stddev`` is the
  root of the summed squares, which treats the jobs as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from volbench.fio.results.latency_bins import merge_bins, percentile_ns
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency


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
        _merge_direction([d for job in members if (d := job.direction(name)) is not None])
        for name in Direction
    )
    return replace(
        members[0],
        error=next((job.error for job in members if job.error), 0),
        total_errors=sum(job.total_errors for job in members),
        directions=tuple(d for d in directions if d is not None),
        members=sum(job.members for job in members),
        elapsed_s=_combined(max, [job.elapsed_s for job in members]),
        job_runtime_s=_combined(max, [job.job_runtime_s for job in members]),
        cpu_usr=_combined(_average, [job.cpu_usr for job in members]),
        cpu_sys=_combined(_average, [job.cpu_sys for job in members]),
        context_switches=_total([job.context_switches for job in members]),
        major_faults=_total([job.major_faults for job in members]),
        minor_faults=_total([job.minor_faults for job in members]),
        depth_shares=_merge_shares(members, [job.depth_shares for job in members]),
        clat_shares=_merge_shares(members, [job.clat_shares for job in members]),
        start_utc_s=_combined(min, [job.start_utc_s for job in members]),
        steadystate=None,
    )


def _merge_direction(parts: list[DirectionResult]) -> DirectionResult | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    runtime_s = max(part.runtime_s for part in parts)
    total_ios = _total([part.total_ios for part in parts])
    io_bytes = sum(part.io_bytes for part in parts)
    timed = runtime_s > 0 and parts[0].direction is not Direction.SYNC
    return DirectionResult(
        direction=parts[0].direction,
        io_bytes=io_bytes,
        total_ios=total_ios,
        runtime_s=runtime_s,
        iops=total_ios / runtime_s if timed and total_ios is not None else None,
        bw_bytes_per_s=io_bytes / runtime_s if timed else None,
        iops_parallel=_combined(sum, [part.iops for part in parts]) if timed else None,
        bw_parallel_bytes_per_s=_combined(sum, [part.bw_bytes_per_s for part in parts]),
        parallel_s=min(part.runtime_s for part in parts),
        short_ios=_total([part.short_ios for part in parts]),
        drop_ios=_total([part.drop_ios for part in parts]),
        iops_min=_combined(sum, [part.iops_min for part in parts]),
        iops_max=_combined(sum, [part.iops_max for part in parts]),
        iops_mean=_combined(sum, [part.iops_mean for part in parts]),
        iops_stddev=_combined(_root_of_squares, [part.iops_stddev for part in parts]),
        bw_min_bytes_per_s=_combined(sum, [part.bw_min_bytes_per_s for part in parts]),
        bw_max_bytes_per_s=_combined(sum, [part.bw_max_bytes_per_s for part in parts]),
        bw_mean_bytes_per_s=_combined(sum, [part.bw_mean_bytes_per_s for part in parts]),
        bw_stddev_bytes_per_s=_combined(
            _root_of_squares, [part.bw_stddev_bytes_per_s for part in parts]
        ),
        lat=_merge_latency([(part.lat, part.total_ios) for part in parts]),
        clat=_merge_latency([(part.clat, part.total_ios) for part in parts]),
        slat=_merge_latency([(part.slat, part.total_ios) for part in parts]),
    )


def _merge_latency(parts: list[tuple[Latency | None, int | None]]) -> Latency | None:
    """Return pooled latencies; before fio 3.18 the I/O count replaces the missing sample count."""
    known = [(lat, lat.count or ios or 0) for lat, ios in parts if lat is not None]
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
    for part, weight in zip(parts, weights, strict=True):
        for start, share in part.items():
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


def _root_of_squares(values: list[float]) -> float:
    return math.hypot(*values)
