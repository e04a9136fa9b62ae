"""Points of a series: the clones of one direction go in, one point for each window comes out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from volbench.fio.histogram import merge_bins, percentile_ns
from volbench.fio.logclones import CloneSeries
from volbench.model.result import SeriesPoint

_PERCENTILES = (50.0, 99.0, 99.9)


def points_of(
    clones: Sequence[CloneSeries], *, interval_s: float, count: int, epoch_s: float | None
) -> list[SeriesPoint]:
    """Return the points of one direction, all clones together.

    Args:
        clones: the clones that did something in this direction.
        interval_s: the width of a window.
        count: how many windows the run has.
        epoch_s: when the first one began, in seconds since the epoch.
    """
    if not clones:
        return []
    return [
        _point(clones, slot, end_s=(slot + 1) * interval_s, epoch_s=epoch_s)
        for slot in _reported(clones, count)
    ]


def _reported(clones: Sequence[CloneSeries], count: int) -> range:
    """Return the windows that fio reported for every clone.

    fio 3 often loses the last one. fio 2 loses up to half a second at either end, and then a stall
    there can't be told from a loss.
    """
    first, end = 0, count
    for clone in clones:
        rates = clone.bw if clone.iops is None else clone.iops
        if not clone.averaged or not rates:
            continue
        if clone.loses_edges:
            first, end = max(first, min(rates)), min(end, max(rates) + 1)
        elif count - 1 not in rates:
            end = min(end, count - 1)
    return range(first, max(first, end))


def _point(
    clones: Sequence[CloneSeries], slot: int, *, end_s: float, epoch_s: float | None
) -> SeriesPoint:
    iops = _sum([None if clone.iops is None else clone.iops.get(slot, 0.0) for clone in clones])
    quiet = iops == 0
    p50_s, p99_s, p999_s = (None, None, None) if quiet else _percentiles(clones, slot)
    samples = [value for clone in clones for value in clone.samples_s.get(slot, ())]
    return SeriesPoint(
        direction=clones[0].direction,
        t_s=end_s,
        utc_s=None if epoch_s is None else epoch_s + end_s,
        iops=iops,
        bw_bytes_per_s=_sum(
            [None if clone.bw is None else clone.bw.get(slot, 0.0) for clone in clones]
        ),
        lat_mean_s=None if quiet else _mean_latency(clones, slot),
        lat_p50_s=p50_s,
        lat_p99_s=p99_s,
        lat_p999_s=p999_s,
        lat_max_s=max(samples, default=None),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _mean_latency(clones: Sequence[CloneSeries], slot: int) -> float | None:
    """Return the mean over clones, each weighted by its IOPS; evenly where those are unknown."""
    parts = [
        (clone.lat_s[slot], 1.0 if clone.iops is None else clone.iops.get(slot, 0.0))
        for clone in clones
        if slot in clone.lat_s
    ]
    total = math.fsum(weight for _, weight in parts)
    return math.fsum(lat * weight for lat, weight in parts) / total if total > 0 else None


def _percentiles(
    clones: Sequence[CloneSeries], slot: int
) -> tuple[float | None, float | None, float | None]:
    """Return percentiles 50, 99 and 99.9 of all clones: of the samples, else of the bins."""
    samples = sorted(value for clone in clones for value in clone.samples_s.get(slot, ()))
    bins = merge_bins(clone.bins.get(slot, {}) for clone in clones)
    if samples:
        p50, p99, p999 = (_nearest_rank(samples, p) for p in _PERCENTILES)
    elif any(bins.values()):
        p50, p99, p999 = (percentile_ns(bins, p) / 1e9 for p in _PERCENTILES)
    else:
        return None, None, None
    return p50, p99, p999


def _nearest_rank(ordered: Sequence[float], percentile: float) -> float:
    """Return the smallest sample that at least this share of them does not exceed."""
    return ordered[max(0, math.ceil(percentile * len(ordered) / 100) - 1)]
