"""Points of a time series from the sums by window of one direction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from volbench.fio.logs.averaged_logs import Totals
from volbench.fio.logs.log_percentiles import BinStore, Triple
from volbench.fio.logs.log_rows import Ints
from volbench.fio.logs.per_io_logs import WAYS, Counts
from volbench.fio.logs.time_grid import Floats, Windows, fitted
from volbench.model.results.result import SeriesPoint


@dataclass(frozen=True)
class Gathered:
    """Sums over the logs of a section.

    Attributes:
        counts: of per-I/O logs.
        histograms: of histogram logs, by the cells of `Counts`.
        averaged: of averaged logs, by fio's direction number.
        jobs: first window of each job's rows and the one after its last; None for a job whose rows
            are too sparse to say when it ran.
    """

    counts: Counts
    histograms: BinStore
    averaged: dict[int, Totals]
    jobs: dict[int, tuple[int, int] | None] = field(default_factory=dict)

    def running(self, count: int) -> Ints | None:
        """Return the number of jobs that ran through each window; None where that is unknown."""
        spans = [span for span in self.jobs.values() if span is not None]
        if len(spans) < len(self.jobs) or not spans:
            return None
        found = np.zeros(count, dtype=np.int64)
        for first, end in spans:
            found[first:end] += 1
        return found

    def last(self) -> int:
        """Return the last whole window, -1 for none; the last one of per-I/O logs is partial."""
        ways = len(WAYS)
        cells = np.flatnonzero(self.counts.ios)
        single = int(cells[-1]) // ways - 1 if len(cells) else -1
        closed = self.histograms.last() // ways if self.histograms.last() >= 0 else -1
        return max(
            single, closed - 1 if len(cells) else closed, *(t.last() for t in self._totals()), -1
        )

    def directions(self) -> list[int]:
        """Return the direction numbers for which anything was logged."""
        ways = len(WAYS)
        seen = {cell % ways for cell in self.histograms.windows()}
        seen |= {int(cell) % ways for cell in np.unique(np.flatnonzero(self.counts.ios) % ways)}
        return sorted(seen | set(self.averaged))

    def _totals(self) -> list[Totals]:
        return list(self.averaged.values())


@dataclass(frozen=True)
class Span:
    """Windows of a series.

    Attributes:
        count: number of windows of the run.
        shift: number of windows before the first one of the logs.
        epoch_s: start of the run's first window since the epoch; None when unknown.
    """

    count: int
    shift: int
    epoch_s: float | None


@dataclass(frozen=True)
class _Columns:
    """One direction by window; NaN where unknown."""

    iops: Floats | None
    bw_bytes_per_s: Floats | None
    lat_mean_s: Floats
    lat_max_s: Floats
    jobs_running: Ints | None


def points_of(gathered: Gathered, way: int, windows: Windows, span: Span) -> list[SeriesPoint]:
    """Return the points of one direction, aggregated over all jobs.

    Args:
        gathered: the sums over the logs.
        way: fio's direction number.
        windows: the windows of the logs.
        span: the windows to show.
    """
    logged = max(0, span.count - span.shift)
    columns = _columns(gathered, way, windows, logged)
    first, end = _reported(gathered.averaged.get(way), windows, logged)
    before = range(-span.shift, 0) if first == 0 else range(0)
    return [
        _point(gathered, way, slot, columns, windows, span)
        for slot in (*before, *range(first, end))
    ]


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


def _columns(gathered: Gathered, way: int, windows: Windows, count: int) -> _Columns:
    counts, ways = gathered.counts, len(WAYS)
    totals = gathered.averaged.get(way, Totals())
    ios = fitted(counts.ios, count * ways)[way::ways]
    iops = None if totals.iops is None else fitted(totals.iops, count)
    bw = None if totals.bw_bytes_per_s is None else fitted(totals.bw_bytes_per_s, count)
    if counts.ios[way::ways].any():
        moved = fitted(counts.moved_bytes, count * ways)[way::ways]
        iops = ios / windows.interval_s + (0 if iops is None else iops)
        bw = moved / windows.interval_s + (0 if bw is None else bw)
    values = fitted(counts.value_sum, count * ways)[way::ways]
    timed = np.where(values > 0, ios, 0)
    weights = fitted(totals.lat_weights, count) * windows.interval_s + timed
    known = weights > 0 if iops is None else (weights > 0) & (iops > 0)
    means = (fitted(totals.lat_weighted, count) * windows.interval_s + values) / np.where(
        known, weights, 1
    )
    highest = np.maximum(
        fitted(counts.value_max, count * ways)[way::ways], fitted(totals.lat_max, count)
    )
    return _Columns(
        iops,
        bw,
        np.where(known, means / windows.per_second, np.nan),
        np.where(highest > 0, highest / windows.per_second, np.nan),
        gathered.running(count),
    )


def _point(
    gathered: Gathered, way: int, slot: int, columns: _Columns, windows: Windows, span: Span
) -> SeriesPoint:
    end_s = (slot + span.shift + 1) * windows.interval_s
    iops = _at(columns.iops, slot)
    highest = _known(columns.lat_max_s, slot)
    cell = slot * len(WAYS) + way
    shares = None
    if slot >= 0 and iops != 0:
        shares = gathered.counts.bins.percentiles(cell) or gathered.histograms.percentiles(cell)
    p50_s, p99_s, p999_s = _seconds(shares, windows.per_second, highest)
    return SeriesPoint(
        direction=WAYS[way],
        t_s=end_s,
        utc_s=None if span.epoch_s is None else span.epoch_s + end_s,
        iops=iops,
        bw_bytes_per_s=_at(columns.bw_bytes_per_s, slot),
        lat_mean_s=_known(columns.lat_mean_s, slot),
        lat_p50_s=p50_s,
        lat_p99_s=p99_s,
        lat_p999_s=p999_s,
        lat_max_s=highest,
        jobs_running=_count_at(columns.jobs_running, slot),
    )


def _at(column: Floats | None, slot: int) -> float | None:
    """Return a rate; 0 before the first window of the logs."""
    if column is None:
        return None
    return float(column[slot]) if slot >= 0 else 0.0


def _count_at(column: Ints | None, slot: int) -> int | None:
    return None if column is None or slot < 0 else int(column[slot])


def _known(column: Floats, slot: int) -> float | None:
    value = float(column[slot]) if slot >= 0 else np.nan
    return None if np.isnan(value) else value


def _seconds(
    shares: Triple | None, per_second: float, highest: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return percentiles in seconds; the midpoint of a bin may exceed the maximum."""
    if shares is None:
        return None, None, None
    p50, p99, p999 = (value / per_second for value in shares)
    if highest is None:
        return p50, p99, p999
    return min(p50, highest), min(p99, highest), min(p999, highest)
