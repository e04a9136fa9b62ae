"""Swings of a rate, and jumps that are real: two levels that alternate are no jumps between them.

Medians of blocks hide them: each block holds both levels, and its median is one of them by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from volbench.analyse.frames.resample import Floats, median, median_step
from volbench.analyse.time.change_points import Change

# Intervals that are searched at least: fewer hold no pattern.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_too_few_intervals_hold_no_pattern
_MIN_INTERVALS = 20
# I/Os in an interval of the lower level: counting noise is then 14 %.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_irregular_changes_are_not_swings
_MIN_IOS = 50
# Upper level over the lower one. Noticed by: tests/analyse/time/test_rate_swings.py
_MIN_RATIO = 1.5
# Share of the intervals at the rarer level. A seventh: 0.6 s of 5 s are in one or two seconds.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_irregular_changes_are_not_swings
_MIN_SHARE = 1 / 7
# Returns to the lower level: a few are events of their own.
# Noticed by: test_rate_swings.py::test_six_repetitions_are_a_pattern
_MIN_RETURNS = 6
# Share of each level in a quarter of the run over that in the whole: after a fall, a noisy rate
# returns to the level before it, which is no pattern of the run.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_a_fall_to_a_noisy_level_is_not_a_swing
_MIN_QUARTER_SHARE = 0.5
# Scatter of the upper level over the distance of the levels, as logarithms: two levels, not noise.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_irregular_changes_are_not_swings
_MAX_SCATTER = 0.25
# Periods in a mean that hides a swing. Noticed by: tests/analyse/time/test_rate_swings.py
_MEAN_PERIODS = 4
# Share of a jump of medians that the means of both sides show, as logarithms.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_a_jump_shows_in_means
_MIN_MEAN_SHARE = 0.5
# Distance of the levels around a moment that make it no change: as of a steady rate.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_a_single_interval_is_not_a_jump
_MAX_BACK_DISTANCE = 0.10
# Shortest stretch between two jumps, and so dip: disks seek and flush for a second.
# Noticed by: tests/analyse/time/test_rate_swings.py::test_a_single_interval_is_not_a_jump
_MIN_STRETCH_S = 2.0


@dataclass(frozen=True)
class Swing:
    """Two levels that a rate changes between all the time."""

    low: float  # median of the lower intervals
    high: float  # median of the upper intervals
    period_s: float  # mean time from one return to the lower level to the next
    intervals: int  # of a period, rounded up


def swing_of(t_s: Floats, rates: Floats) -> Swing | None:
    """Return the swing of a rate; None where there is none."""
    if len(rates) < _MIN_INTERVALS:
        return None
    bottom, top = (float(end) for end in np.quantile(rates, [0.05, 0.95]))
    is_low = rates < (max(bottom, 0.0) * top) ** 0.5
    share = float(is_low.mean())
    if not _MIN_SHARE <= share <= 1 - _MIN_SHARE:
        return None
    low, high = median(rates[is_low]), median(rates[~is_low])
    interval_s = median_step(t_s)
    if low * interval_s < _MIN_IOS or high < _MIN_RATIO * low:
        return None
    scatter = 1.4826 * median(np.abs(np.log(rates[~is_low] / high)))
    begins = np.flatnonzero(is_low[1:] & ~is_low[:-1])
    if len(begins) < _MIN_RETURNS:
        return None
    quarters = [float(part.mean()) for part in np.array_split(is_low, 4)]
    least = min(min(quarters) / share, (1 - max(quarters)) / (1 - share))
    if least < _MIN_QUARTER_SHARE or scatter > _MAX_SCATTER * np.log(high / low):
        return None
    period_s = float(np.diff(t_s[begins]).mean())
    return Swing(low, high, period_s, int(np.ceil(period_s / interval_s)))


def without_swing(t_s: Floats, rates: Floats, swing: Swing | None) -> tuple[Floats, Floats]:
    """Return means over some periods of a swing, at the end of each; without one all as it is."""
    if swing is None:
        return t_s, rates
    width = _MEAN_PERIODS * swing.intervals
    count = len(rates) // width
    means: Floats = rates[: count * width].reshape(count, width).mean(axis=1)
    return t_s[width - 1 : count * width : width], means


def real_jumps(
    changes: Sequence[Change], t_s: Floats, rates: Floats, *, least_s: float
) -> tuple[Change, ...]:
    """Return the jumps that the means show too, and that lasted.

    Args:
        least_s: length from which the stretch after a jump says anything: some latencies.
    """
    kept = list(changes)
    for first, second in pairwise(changes):
        is_brief = second.t_s - first.t_s < _MIN_STRETCH_S and first.before > 0
        if is_brief and abs(second.after / first.before - 1) <= _MAX_BACK_DISTANCE:
            kept = [change for change in kept if change not in (first, second)]
    end_s = float(t_s[-1]) if len(t_s) else 0.0
    edges = [0.0, *(change.t_s for change in kept), end_s]
    return tuple(
        change
        for change, (begin, middle, end) in zip(
            kept, zip(edges, edges[1:], edges[2:], strict=False), strict=True
        )
        if min(middle - begin, end - middle) >= least_s
        and _shows_in_means(
            change, rates[_within(t_s, begin, middle)], rates[_within(t_s, middle, end)]
        )
    )


def _within(t_s: Floats, begin: float, end: float) -> npt.NDArray[np.bool_]:
    return (t_s > begin) & (t_s <= end)


def _shows_in_means(change: Change, before: Floats, after: Floats) -> bool:
    if not (len(before) and len(after)) or min(change.before, change.after) <= 0:
        return True
    means = float(before.mean()), float(after.mean())
    if min(means) <= 0:
        return True
    return math.log(means[1] / means[0]) / math.log(change.ratio) >= _MIN_MEAN_SHARE
