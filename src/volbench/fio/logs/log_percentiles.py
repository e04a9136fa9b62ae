"""Percentiles by window from latencies in fio's histogram bins.

The bins are those of fio's histograms, in the unit of the log, continued beyond fio's last one, so
that a latency of a minute is not cut to 17 s. The midpoint of a bin is within 0.8 % of any value in
it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from volbench.fio.logs.log_rows import Ints
from volbench.fio.results.latency_bins import GROUP_BINS

WIDE = 2880  # Number of bins for values up to 2**50
_HOT_WINDOWS = 128
_COUNTERS = (np.uint8, np.uint16, np.uint32, np.int64)
_PERMILLE = (500, 990, 999)

Triple = tuple[float, float, float]


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
        found = self.counts(window)
        if found is None:
            return None
        bins, counts = found
        running = np.cumsum(counts)
        wanted = [-(-share * int(running[-1]) // 1000) for share in _PERMILLE]
        p50, p99, p999 = bin_mids(bins[np.searchsorted(running, wanted)]).tolist()
        return p50, p99, p999

    def _unpacked(self, window: int) -> Ints:
        whole = np.zeros(WIDE, dtype=np.int64)
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
