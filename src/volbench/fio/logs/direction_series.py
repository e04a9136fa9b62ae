"""Time series of one direction, from the sums by window."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from volbench.fio.logs.log_rows import Floats, Ints, Windows, fitted
from volbench.fio.logs.log_windows import WAYS, BinStore, Counts, Totals
from volbench.model.results.result import Direction


@dataclass(frozen=True)
class Gathered:
    """Sums over the logs of a section."""

    counts: Counts  # of per-I/O logs
    histograms: BinStore  # of histogram logs, by the cells of `Counts`
    averaged: dict[int, Totals]  # of averaged logs, by fio's direction number
    # first window of each job's rows and the one after its last; None for a job whose rows are too
    # sparse to say when it ran
    jobs: dict[int, tuple[int, int] | None] = field(default_factory=dict)

    def running(self, count: int, *, flushes_at_end: bool = False) -> Ints | None:
        """Return the number of jobs that ran through each window; None where that is unknown.

        Until the first I/O and after the last one of all jobs the volume hung, unless fio flushes.
        """
        spans = [span for span in self.jobs.values() if span is not None]
        if len(spans) < len(self.jobs) or not spans:
            return None
        jobs = np.zeros(count, dtype=np.int64)
        for first, end in spans:
            jobs[first:end] += 1
        known = np.flatnonzero(jobs)
        if len(known):
            jobs[: known[0]] = jobs[known[0]]
            if not flushes_at_end:
                jobs[known[-1] :] = jobs[known[-1]]
        return jobs

    def last(self) -> int:
        """Return the last whole window, -1 for none; the last one of per-I/O logs is partial."""
        ways = len(WAYS)
        cells = np.flatnonzero(self.counts.ios)
        single = int(cells[-1]) // ways - 1 if len(cells) else -1
        closed = self.histograms.last() // ways if self.histograms.last() >= 0 else -1
        return max(
            single,
            closed - 1 if len(cells) else closed,
            *(t.last() for t in self.averaged.values()),
            -1,
        )

    def directions(self) -> list[int]:
        """Return the direction numbers for which anything was logged."""
        ways = len(WAYS)
        seen = {cell % ways for cell in self.histograms.windows()}
        seen |= {int(cell) % ways for cell in np.unique(np.flatnonzero(self.counts.ios) % ways)}
        return sorted(seen | set(self.averaged))


@dataclass(frozen=True)
class Span:
    """Windows of a series."""

    count: int  # number of windows of the run
    shift: int  # number of windows before the first one of the logs
    epoch_s: float | None  # start of the run's first window since the epoch; None when unknown
    flushes_at_end: bool = False  # whether the runtime includes a flush after the last I/O


@dataclass(frozen=True)
class DirectionSeries:
    """Intervals of one direction, aggregated over the jobs of a section.

    All arrays have a value for each interval, in order of time; NaN is unknown.
    """

    direction: Direction  # of the I/O
    t_s: Floats  # end of the interval, from the start of I/O
    # the same instants in seconds since the epoch; None when the logs have no epoch
    utc_s: Floats | None
    iops: Floats  # mean over the interval, 0 when nothing completed; NaN without a log of it
    bw_bytes_per_s: Floats  # as `iops`
    lat_mean_s: Floats  # mean latency of the interval's I/Os; NaN for none
    lat_p50_s: Floats  # from histogram or per-I/O logs, as the other percentiles; NaN without these
    lat_p99_s: Floats  # percentile 99
    lat_p999_s: Floats  # percentile 99.9
    lat_max_s: Floats  # NaN where the logs contain means or bins only
    clat_mean_s: Floats  # mean completion latency; NaN without a log of it
    slat_mean_s: Floats  # mean submission latency; NaN without a log of it
    jobs_running: Floats  # jobs in parallel that ran through the interval


@dataclass(frozen=True)
class _Slots:
    """Windows of a series that are shown: some before the logs begin, and some of the logs."""

    before: int  # number of those in which nothing had been logged yet
    first: int  # first window of the logs
    end: int  # the one after the last

    def of(self, column: Floats | Ints | None, *, ahead: float = math.nan) -> Floats:
        """Return a column by window as shown; NaN for None, `ahead` before the logs begin."""
        cells = np.full(self.before + self.end - self.first, math.nan)
        if column is not None:
            cells[: self.before] = ahead
            cells[self.before :] = column[self.first : self.end]
        return cells


def series_of(gathered: Gathered, way: int, windows: Windows, span: Span) -> DirectionSeries:
    """Return the intervals of one direction, aggregated over all jobs."""
    logged = max(0, span.count - span.shift)
    first, end = _reported(gathered.averaged.get(way), windows, logged)
    slots = _Slots(span.shift if first == 0 else 0, first, end)
    iops, bw_bytes_per_s = _rates(gathered, way, windows, logged)
    lat_mean_s, lat_max_s = _latencies(gathered, way, windows, logged, iops=iops)
    p50_s, p99_s, p999_s = _percentiles(gathered, way, windows, slots, iops=iops)
    most_s = slots.of(lat_max_s)
    parts = {
        kind: slots.of(_mean_s(gathered, way, windows, logged, kind=kind))
        for kind in ("clat", "slat")
    }
    ends = np.arange(first - slots.before, end) + (span.shift + 1)
    t_s = np.multiply(ends, windows.interval_s, dtype=np.float64)
    utc_s: Floats | None = None if span.epoch_s is None else np.add(span.epoch_s, t_s)
    return DirectionSeries(
        direction=WAYS[way],
        t_s=t_s,
        utc_s=utc_s,
        iops=slots.of(iops, ahead=0.0),
        bw_bytes_per_s=slots.of(bw_bytes_per_s, ahead=0.0),
        lat_mean_s=slots.of(lat_mean_s),
        # The midpoint of a bin may exceed the maximum.
        lat_p50_s=np.where(p50_s > most_s, most_s, p50_s),
        lat_p99_s=np.where(p99_s > most_s, most_s, p99_s),
        lat_p999_s=np.where(p999_s > most_s, most_s, p999_s),
        lat_max_s=most_s,
        clat_mean_s=parts["clat"],
        slat_mean_s=parts["slat"],
        jobs_running=slots.of(gathered.running(logged, flushes_at_end=span.flushes_at_end)),
    )


def _reported(totals: Totals | None, windows: Windows, count: int) -> tuple[int, int]:
    """Return the first window that fio reported for every job, and the one after the last.

    fio 3 often loses the last one. fio 2 loses up to half a second at either end, where a stall
    cannot be distinguished from the loss.
    """
    first, end = 0, count
    for flags in [] if totals is None else totals.reported:
        known = np.flatnonzero(flags)
        if not len(known):
            continue
        if windows.fio_version[0] < 3:
            first, end = max(first, int(known[0])), min(end, int(known[-1]) + 1)
        elif not flags[max(0, count - 1) : count].any():
            end = min(end, count - 1)
    return first, max(first, end)


def _rates(
    gathered: Gathered, way: int, windows: Windows, count: int
) -> tuple[Floats | None, Floats | None]:
    """Return IOPS and bandwidth by window; None without a log of it."""
    counts, ways = gathered.counts, len(WAYS)
    totals = gathered.averaged.get(way, Totals())
    iops = None if totals.iops is None else fitted(totals.iops, count)
    bw = None if totals.bw_bytes_per_s is None else fitted(totals.bw_bytes_per_s, count)
    if counts.ios[way::ways].any():
        ios = fitted(counts.ios, count * ways)[way::ways]
        moved = fitted(counts.moved_bytes, count * ways)[way::ways]
        iops = ios / windows.interval_s + (0 if iops is None else iops)
        bw = moved / windows.interval_s + (0 if bw is None else bw)
    return iops, bw


def _latencies(
    gathered: Gathered, way: int, windows: Windows, count: int, *, iops: Floats | None
) -> tuple[Floats, Floats]:
    """Return mean and maximum latency by window in seconds; NaN where unknown."""
    counts, ways = gathered.counts, len(WAYS)
    totals = gathered.averaged.get(way, Totals())
    values = fitted(counts.value_sum, count * ways)[way::ways]
    timed = np.where(values > 0, fitted(counts.ios, count * ways)[way::ways], 0)
    sums = totals.means("lat")
    weights = fitted(sums.weights, count) * windows.interval_s + timed
    known = weights > 0 if iops is None else (weights > 0) & (iops > 0)
    means = (fitted(sums.weighted, count) * windows.interval_s + values) / np.where(
        known, weights, 1
    )
    highest = np.maximum(
        fitted(counts.value_max, count * ways)[way::ways], fitted(totals.lat_max, count)
    )
    return (
        np.where(known, means / windows.per_second, np.nan),
        np.where(highest > 0, highest / windows.per_second, np.nan),
    )


def _mean_s(
    gathered: Gathered, way: int, windows: Windows, count: int, *, kind: str
) -> Floats | None:
    """Return the mean latency of a kind by window in seconds; None without a log of it."""
    sums = gathered.averaged.get(way, Totals()).latencies.get(kind)
    if sums is None:
        return None
    weights = fitted(sums.weights, count)
    known = weights > 0
    means_s = fitted(sums.weighted, count) / np.where(known, weights * windows.per_second, 1)
    return np.where(known, means_s, np.nan)


def _percentiles(
    gathered: Gathered, way: int, windows: Windows, slots: _Slots, *, iops: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return percentiles 50, 99 and 99.9 in seconds, from per-I/O logs if there are any."""
    columns = slots.of(None), slots.of(None), slots.of(None)
    stores = gathered.counts.bins, gathered.histograms
    for slot in range(slots.first, slots.end) if any(map(BinStore.windows, stores)) else ():
        if iops is not None and iops[slot] == 0:
            continue
        cell = slot * len(WAYS) + way
        shares = stores[0].percentiles(cell) or stores[1].percentiles(cell)
        for column, value in zip(columns, shares or (), strict=False):
            column[slots.before + slot - slots.first] = value / windows.per_second
    return columns
