"""Percentiles by window from latencies in fio's histogram bins.

The bins are those of fio's histograms, in the unit of the log, continued beyond fio's last one, so
that a latency of a minute is not cut to 17 s. The midpoint of a bin is within 0.8 % of any value in
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from volbench.errors import OutputError
from volbench.fio.logs.log_rows import Floats, Ints, Windows, fitted, grown
from volbench.fio.results.merge_jobs import BINS, BINS_FIO2, GROUP_BINS
from volbench.model.results.result import Direction

BIN_COUNT = 2880  # Number of bins for values up to 2**50
_HOT_WINDOWS = 128
_COUNTERS = (np.uint8, np.uint16, np.uint32, np.int64)
_PERMILLE = (500, 990, 999)

Triple = tuple[float, float, float]

# Share of windows with a row from which a job's last row is its end.
# Noticed by: test_section_series.py::test_sparse_rows_do_not_show_when_a_job_ended
_MIN_DENSE = 0.9
LATENCIES = ("lat", "clat", "slat")  # Kinds of logs whose values are latencies
# Directions by fio's number; syncs, which newer versions log too, are not part of a series
WAYS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_EXACT = 2**53  # Sums below this are exact in float64, which numpy uses for weights
# The window in which a job ends is whole if it ends within its last tenth: fio ends some ms early.
# Noticed by: test_section_series.py::test_the_partial_last_second_of_a_job_is_marked
_MAX_SHORT_END = 0.1
# Share of the first window from which its rows stand for all of it.
# Noticed by: test_section_series.py::test_a_first_window_that_is_not_full_is_scaled
_MIN_FIRST = 0.5
_HISTOGRAM_LEAD = 3  # Columns before the bins: time, direction and block size


def bin_of(values: Ints) -> Ints:
    """Return the bin index of each value below 2**50, like ``plat_val_to_idx`` in fio."""
    bits = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - GROUP_BINS.bit_length(), 0)
    bins: Ints = shift * GROUP_BINS + (values >> shift)
    return bins


def bin_mids(bins: Ints) -> Ints:
    """Return the midpoint of each bin, in the unit of the values."""
    shift = np.maximum(bins // GROUP_BINS - 1, 0)
    low = (bins - shift * GROUP_BINS) << shift
    mids: Ints = low + (np.int64(1) << shift) // 2
    return mids


class BinStore:
    """Counts by window and bin, in memory that only grows with the number of windows.

    Recently used windows are kept as full arrays. Older ones are packed, and unpacked again when a
    row goes back in time or the log of another job begins.
    """

    def __init__(self) -> None:
        self._hot: dict[int, Ints] = {}
        self._cold: dict[int, tuple[npt.NDArray[np.uint16], Ints]] = {}

    def add(self, window: int, bins: Ints, counts: Ints) -> None:
        """Add counts to distinct bins of one window."""
        whole = self._hot.get(window)
        if whole is None:
            whole = self._hot[window] = self._unpacked(window)
            self._cold.pop(window, None)
            if len(self._hot) > _HOT_WINDOWS:
                oldest = next(iter(self._hot))
                self._pack(oldest, self._hot.pop(oldest))
        whole[bins] += counts

    def last(self) -> int:
        """Return the last window that has counts, -1 for none."""
        return max((*self._hot, *self._cold), default=-1)

    def windows(self) -> set[int]:
        """Return every window that has counts."""
        return {*self._hot, *self._cold}

    def counts(self, window: int) -> tuple[Ints, Ints] | None:
        """Return the non-empty bins of a window, ascending, and their counts; None for none."""
        whole = self._hot.get(window)
        if whole is not None:
            bins = np.flatnonzero(whole)
            return (bins, whole[bins]) if len(bins) else None
        if window in self._cold:
            packed, narrow = self._cold[window]
            return (packed.astype(np.int64), narrow.astype(np.int64)) if len(packed) else None
        return None

    def percentiles(self, window: int) -> Triple | None:
        """Return percentiles 50, 99 and 99.9 of a window, None when it has no counts.

        As in fio it is the midpoint of the first bin at which the cumulative count reaches the
        share (``calc_clat_percentiles`` in fio's ``stat.c``).
        """
        window_counts = self.counts(window)
        if window_counts is None:
            return None
        bins, counts = window_counts
        running = np.cumsum(counts)
        wanted = [-(-share * int(running[-1]) // 1000) for share in _PERMILLE]
        p50, p99, p999 = bin_mids(bins[np.searchsorted(running, wanted)]).tolist()
        return p50, p99, p999

    def _unpacked(self, window: int) -> Ints:
        whole = np.zeros(BIN_COUNT, dtype=np.int64)
        if window in self._cold:
            bins, counts = self._cold[window]
            whole[bins] = counts
        return whole

    def _pack(self, window: int, whole: Ints) -> None:
        bins = np.flatnonzero(whole)
        counts = whole[bins]
        top = int(counts.max(initial=0))
        narrow = next(dtype for dtype in _COUNTERS if top <= np.iinfo(dtype).max)
        self._cold[window] = bins.astype(np.uint16), counts.astype(narrow)


Flags = npt.NDArray[np.bool_]


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass
class Averages:
    """Averaged rows of one log and one direction, accumulated block by block."""

    windows: Windows
    span: int = 1
    # sums of the values, each multiplied by the share of the window it covers
    weighted: Floats = field(default_factory=_nothing)
    # sums of these shares; 0 in a window without a row
    weights: Floats = field(default_factory=_nothing)
    # the maximum in a window, where the log has maxima
    highest: Floats = field(default_factory=_nothing)
    _at: float = 0.0
    _slot: int = -1

    def add(self, table: Ints) -> None:
        """Add rows; rows in the same window are averaged by the time they cover."""
        at = self.windows.at(table[0])
        steps = at - np.concatenate(([self._at], at[:-1]))
        slots = self._closing(at, steps / self.span)
        befores = np.concatenate(([self._slot], slots[:-1]))
        shares = np.clip(steps, 1e-3, 1.0)
        count = int(slots.max()) + 1
        self.weighted = grown(self.weighted, count)
        self.weights = grown(self.weights, count)
        for back in range(self.span):
            # A row covers the windows since the row before, and always its own.
            covers = (slots - back > befores) if back else np.ones(len(slots), dtype=bool)
            covered, share = slots[covers] - back, shares[covers]
            np.add.at(self.weighted, covered, table[1][covers] * share)
            np.add.at(self.weights, covered, share)
        if len(table) > 4:
            self.highest = grown(self.highest, count)
            np.maximum.at(self.highest, slots, table[4])
        self._at, self._slot = float(at[-1]), int(slots[-1])

    def means(self) -> tuple[Floats, Flags]:
        """Return the mean of each window, and which windows have one."""
        known = self.weights > 0
        return self.weighted / np.where(known, self.weights, 1.0), known

    def rates(self) -> tuple[Floats, Flags]:
        """Return the means; that of a first row before half of its window is scaled to it."""
        means, known = self.means()
        if len(means) > 1 and self.weights[0] < _MIN_FIRST:
            means[0] *= self.weights[0]
        return means, known

    def last(self) -> int:
        """Return the last window with a row, -1 for none."""
        return int(np.flatnonzero(self.weights)[-1]) if self.weights.any() else -1

    def _closing(self, at: Floats, steps: Floats) -> Ints:
        """Return the window that each row closes; on a loaded host rows come late.

        A row about one window after the last one closes the next window, unless that drifts from
        the clock. The offset from the clock only changes at rows that come out of step.
        """
        nearest = self.windows.nearest(at)
        timely = (steps > 0.5) & (steps < 1.5)
        on_beat = timely & (np.diff(nearest, prepend=-1) == self.span)
        on_beat[0] = False
        breaks = np.flatnonzero(~on_beat)
        leads = np.zeros(len(breaks), dtype=np.int64)
        lead = 0
        for number, row in enumerate(breaks.tolist()):
            before = self._slot if row == 0 else int(nearest[row - 1]) + lead
            lead = before + self.span - int(nearest[row])
            if not timely[row] or abs(lead) > 1:
                lead = 0
            leads[number] = lead
        closing: Ints = nearest + np.repeat(leads, np.diff([*breaks.tolist(), len(at)]))
        return closing


@dataclass
class Means:
    """Mean latencies of one kind, aggregated over all jobs, by window."""

    # means in the unit of the logs, each multiplied by its weight
    weighted: Floats = field(default_factory=_nothing)
    # I/Os per second behind each mean; 1 where they are unknown
    weights: Floats = field(default_factory=_nothing)

    def add(self, weighted: Floats, weights: Floats, *, first: int = 0) -> None:
        """Add the values of one job from window `first` on."""
        mine = slice(first, first + len(weights))
        self.weighted = grown(self.weighted, mine.stop)
        self.weights = grown(self.weights, mine.stop)
        self.weighted[mine] += weighted
        self.weights[mine] += weights


@dataclass
class Totals:
    """Sums over all jobs in one direction by window; rates come from averaged logs."""

    iops: Floats | None = None  # None without such a log
    bw_bytes_per_s: Floats | None = None  # None without such a log
    # mean latencies by `LATENCIES`; ``lat`` from averaged logs only, ``clat`` where these lack it
    latencies: dict[str, Means] = field(default_factory=dict)
    lat_max: Floats = field(default_factory=_nothing)  # in the unit of the logs; 0 where unknown
    # for each job the windows in which it has a rate
    reported: list[Flags] = field(default_factory=list)
    _last: int = -1

    def add_job(self, logs: Mapping[str, Averages]) -> None:
        """Add the logs of one job: ``iops``, ``bw`` and `LATENCIES`, as far as it has them."""
        for kind in {"iops", "bw", "lat"} & logs.keys():
            self._last = max(self._last, logs[kind].last())
        rates = {kind: logs[kind].rates() for kind in ("iops", "bw") if kind in logs}
        if "iops" in rates:
            self.iops = added(self.iops, rates["iops"][0])
        if "bw" in rates:
            # Averaged logs have KiB/s (per-I/O logs kB/s, which are not used).
            self.bw_bytes_per_s = added(self.bw_bytes_per_s, rates["bw"][0] * 1024)
        if rates:
            flags = (rates["iops"] if "iops" in rates else rates["bw"])[1]
            self.reported.append(flags)
        for kind in logs.keys() & LATENCIES:
            means, known = logs[kind].means()
            if "iops" in rates:
                weights = fitted(rates["iops"][0], len(means)) * known
            else:
                weights = known.astype(np.float64)
            self.means(kind).add(means * weights, weights)
        if "lat" in logs:
            highest = logs["lat"].highest
            self.lat_max = grown(self.lat_max, len(highest))
            mine = self.lat_max[: len(highest)]
            np.maximum(mine, highest, out=mine)

    def means(self, kind: str) -> Means:
        """Return the mean latencies of a kind, empty ones where it has none so far."""
        return self.latencies.setdefault(kind, Means())

    def last(self) -> int:
        """Return the last window with a row, -1 for none."""
        return self._last


def span_of(directions: Sequence[Flags]) -> tuple[int, int] | None:
    """Return the first window with a row of any direction, and the one after the last.

    Returns:
        None where so many windows in between are empty that the last one does not tell the end.
    """
    flags = np.zeros(max(map(len, directions), default=0), dtype=bool)
    for covered in directions:
        flags[: len(covered)] |= covered
    known = np.flatnonzero(flags)
    if not len(known):
        return None
    first, end = int(known[0]), int(known[-1]) + 1
    return (first, end) if len(known) >= _MIN_DENSE * (end - first) else None


def added(total: Floats | None, part: Floats) -> Floats:
    """Return the sum of two arrays by window."""
    total = grown(np.zeros(0) if total is None else total, len(part))
    total[: len(part)] += part
    return total


def by_direction(
    tables: Iterable[Ints], windows: Windows, *, ways: int, span: int
) -> dict[int, Averages]:
    """Return the averages of one log by fio's direction number."""
    averages: dict[int, Averages] = {}
    for table in tables:
        counts = np.bincount(table[2], minlength=ways)[:ways]
        for way in np.flatnonzero(counts).tolist():
            mine = table if counts[way] == table.shape[1] else table[:, table[2] == way]
            averages.setdefault(way, Averages(windows, span)).add(mine)
    return averages


class Counts:
    """Sums over all jobs by cell: each window has three cells, one per direction."""

    def __init__(self) -> None:
        self.ios: Ints = np.zeros(0, dtype=np.int64)  # number of completed I/Os
        self.moved_bytes = self.ios.copy()  # sum of their sizes
        self.value_sum = self.ios.copy()  # sum of their latencies, in the unit of the log
        self.value_max = self.ios.copy()  # maximum of their latencies
        self.bins = BinStore()  # their latencies by bin

    def add(self, tables: Iterable[Ints], windows: Windows, *, kind: str) -> None:
        """Add the rows of a per-I/O log; only lat and clat have latencies."""
        for table in tables:
            mine = table if (table[2] < len(WAYS)).all() else table[:, table[2] < len(WAYS)]
            if mine.shape[1]:
                cells = windows.holding(mine[0]) * len(WAYS) + mine[2]
                self._add_block(mine, cells, with_latency=kind in {"lat", "clat"})

    def _add_block(self, table: Ints, cells: Ints, *, with_latency: bool) -> None:
        value, size = table[1], table[3]
        first = int(cells.min())
        where = cells - first
        places = int(where.max()) + 1
        mine = slice(first, first + places)
        self._make_room(first + places)
        self.ios[mine] += np.bincount(where, minlength=places)
        self.moved_bytes[mine] += _sums(where, size, places)
        if not with_latency:
            return
        self.value_sum[mine] += _sums(where, value, places)
        np.maximum.at(self.value_max[mine], where, value)
        codes, counts = np.unique(where * BIN_COUNT + bin_of(value), return_counts=True)
        owners, starts = np.unique(codes // BIN_COUNT, return_index=True)
        ends = [*starts.tolist()[1:], len(codes)]
        for owner, start, end in zip(owners.tolist(), starts.tolist(), ends, strict=True):
            self.bins.add(first + owner, codes[start:end] % BIN_COUNT, counts[start:end])

    def _make_room(self, count: int) -> None:
        self.ios = grown(self.ios, count)
        self.moved_bytes = grown(self.moved_bytes, count)
        self.value_sum = grown(self.value_sum, count)
        self.value_max = grown(self.value_max, count)


def add_single_latencies(
    totals: dict[int, Totals], tables: Iterable[Ints], windows: Windows, *, kind: str
) -> None:
    """Add the means of a per-I/O log to the totals of each direction."""
    for table in tables:
        for way in np.unique(table[2][table[2] < len(WAYS)]).tolist():
            mine = table[:, table[2] == way]
            at = windows.holding(mine[0])
            first = int(at.min())
            rates = np.bincount(at - first) / windows.interval_s
            weighted = np.bincount(at - first, mine[1]) / windows.interval_s
            totals.setdefault(way, Totals()).means(kind).add(weighted, rates, first=first)


class SeenWindows:
    """Windows in which a per-I/O log has rows."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._flags: Flags = np.zeros(0, dtype=bool)
        self._end = 0

    def watched(self, tables: Iterable[Ints]) -> Iterator[Ints]:
        """Yield tables as they are, and remember their windows."""
        for table in tables:
            if not table.size:
                continue
            at = self._windows.at(table[0])
            count = int(at.max()) + 1
            if count > len(self._flags):
                self._flags = np.pad(self._flags, (0, count - len(self._flags)))
            self._flags[at.astype(np.int64)] = True
            # The window in which a job ends is whole if it ends within its last tenth.
            self._end = max(self._end, int(float(at.max()) + _MAX_SHORT_END))
            yield table

    def span(self) -> tuple[int, int] | None:
        """Return the first window and the one after the last whole one, as `span_of` does."""
        span = span_of([self._flags])
        return None if span is None else (span[0], max(span[0], self._end))


def add_histograms(
    store: BinStore, tables: Iterable[Ints], windows: Windows, *, bins: Ints
) -> None:
    """Add the rows of a histogram log, which fio writes when an interval ends."""
    for table in tables:
        cells = windows.nearest(windows.at(table[0])) * len(WAYS) + table[1]
        for cell, way, counts in zip(
            cells.tolist(), table[1].tolist(), table[_HISTOGRAM_LEAD:].T, strict=True
        ):
            used = np.flatnonzero(counts)
            if way < len(WAYS) and len(used):
                store.add(cell, bins[used], counts[used])


def histogram_columns(width: int, *, fio2: bool) -> tuple[tuple[int, ...], Ints] | None:
    """Return the columns of a histogram log and the bin index of each column of counts.

    Each step of ``log_hist_coarseness`` halves the number of bins; the middle one of the merged
    bins represents them.

    Args:
        fio2: whether fio 2 wrote it, which has fewer bins.

    Returns:
        None for a width that no version of fio writes.
    """
    whole, count = BINS_FIO2 if fio2 else BINS, width - _HISTOGRAM_LEAD
    step = whole // count if count > 0 else 0
    if step == 0 or step * count != whole or step & (step - 1):
        return None
    return tuple(range(width)), np.arange(0, whole, step, dtype=np.int64) + step // 2


def wrong_histogram(name: str, columns: int) -> OutputError:
    """Return the error for a histogram log whose lines have an unknown number of columns."""
    return OutputError(
        f"{name} has {columns} columns, unlike any histogram log of fio, from line 1 on",
        hint="fio was killed, or the disk that holds its logs was full",
        path=str(name),
        line=1,
    )


def _sums(where: Ints, values: Ints, places: int) -> Ints:
    totals: Ints
    if int(values.max()) * len(values) < _EXACT:
        totals = np.bincount(where, weights=values, minlength=places).astype(np.int64)
    else:
        totals = np.zeros(places, dtype=np.int64)
        np.add.at(totals, where, values)
    return totals
