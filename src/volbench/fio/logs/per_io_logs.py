"""Sums by window over per-I/O logs and histogram logs.

Counts and histograms of parallel jobs are added; percentiles are never averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from volbench.errors import OutputError
from volbench.fio.logs.averaged_logs import Flags, span_of
from volbench.fio.logs.log_percentiles import WIDE, BinStore, bin_of
from volbench.fio.logs.log_rows import Ints
from volbench.fio.logs.time_grid import Windows, grown
from volbench.fio.results.latency_bins import BINS, BINS_FIO2
from volbench.model.results.result import Direction

# Directions by fio's number; syncs, which newer versions log too, are not part of a series
WAYS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_EXACT = 2**53  # Sums below this are exact in float64, which numpy uses for weights
_WHOLE = 0.1
_HISTOGRAM_LEAD = 3  # Columns before the bins: time, direction and block size


class Counts:
    """Sums over all jobs by cell: each window has three cells, one per direction."""

    def __init__(self) -> None:
        self.ios: Ints = np.zeros(0, dtype=np.int64)  # number of completed I/Os
        self.moved_bytes = self.ios.copy()  # sum of their sizes
        self.value_sum = self.ios.copy()  # sum of their latencies, in the unit of the log
        self.value_max = self.ios.copy()  # maximum of their latencies
        self.bins = BinStore()  # their latencies by bin

    def add(self, tables: Iterable[Ints], windows: Windows, *, kind: str) -> None:
        """Add the rows of a per-I/O log; only those of lat and clat have latencies."""
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
        codes, counts = np.unique(where * WIDE + bin_of(value), return_counts=True)
        owners, starts = np.unique(codes // WIDE, return_index=True)
        ends = [*starts.tolist()[1:], len(codes)]
        for owner, start, end in zip(owners.tolist(), starts.tolist(), ends, strict=True):
            self.bins.add(first + owner, codes[start:end] % WIDE, counts[start:end])

    def _make_room(self, count: int) -> None:
        self.ios = grown(self.ios, count)
        self.moved_bytes = grown(self.moved_bytes, count)
        self.value_sum = grown(self.value_sum, count)
        self.value_max = grown(self.value_max, count)


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
            self._end = max(self._end, int(float(at.max()) + _WHOLE))
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
    """Return exact sums by index."""
    totals: Ints
    if int(values.max()) * len(values) < _EXACT:
        totals = np.bincount(where, weights=values, minlength=places).astype(np.int64)
    else:
        totals = np.zeros(places, dtype=np.int64)
        np.add.at(totals, where, values)
    return totals
