"""fio's latency bins: their bounds, sums and percentiles.

Bins are represented as in fio's json+: the midpoint of the bin to its count. The layout is
that of fio's ``stat.h`` (``FIO_IO_U_PLAT_BITS`` is 6: 64 bins a group, each group twice as wide).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

GROUP_BINS = 64
BINS = 1856  # How many bins fio 3 has; they end near 17.2 s
BINS_FIO2 = 1216  # How many bins fio 2 has; it counts microseconds


def bin_mid_ns(index: int) -> int:
    """Return the midpoint of one of fio 3's bins, exact below 128 ns."""
    low, high = bin_range_ns(index)
    return low + (high - low) // 2


def bin_range_ns(index: int) -> tuple[int, int]:
    """Return the lower bounds of a bin of fio 3 and of the next one."""
    if not 0 <= index < BINS:
        raise ValueError(f"fio has no latency bin {index}, only 0 to {BINS - 1}")
    if index < 2 * GROUP_BINS:
        return index, index + 1
    width = 1 << (index // GROUP_BINS - 1)
    low = (GROUP_BINS + index % GROUP_BINS) * width
    return low, low + width


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
    for part in parts:
        total.update(part)
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
