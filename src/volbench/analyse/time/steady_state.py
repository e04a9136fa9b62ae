"""Steady state of a series: a verdict with its numbers.

Steady is what is shown to be flat, not what no test found to move: the upper 95 % bound of the
drift over the window must stay within 10 % of the median, and nothing may have jumped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from volbench.analyse.frames.resample import Floats, interval_of, median
from volbench.analyse.time.change_points import (
    Change,
    block_length_s,
    block_medians,
    find_changes,
    inflation_of,
)

MOST_DRIFT = 0.10
LEAST_BLOCKS = 8
# Factor from a 95 % interval to one that a steady series leaves out in 1 of 200 runs
_SURE = 2.8 / 1.959963984540054
_NORMAL_95 = 1.959963984540054  # Quantile 0.975 of the normal distribution
_MOST_BLOCKS = 1000  # Theil-Sen compares all pairs: a thousand blocks are half a million


class State(StrEnum):
    """The verdict."""

    STEADY = "steady"
    DRIFTING = "drifting"
    STEPPED = "stepped"
    NOISY = "noisy"
    TOO_SHORT = "too-short"


@dataclass(frozen=True)
class Steadiness:
    """A verdict and the numbers it rests on."""

    # steady; drifting: it moves evenly; stepped: it jumped; noisy: too restless to say; too-short:
    # fewer than 8 blocks
    state: State
    from_s: float  # begin of the window
    to_s: float  # end of the window
    block_s: float  # length of the blocks
    blocks: int  # how many
    median: float  # of the blocks
    spread: float  # 1.4826 times the median absolute deviation of the blocks, over the median
    drift: float  # Theil-Sen slope times the window, over the median
    drift_bound: float  # the larger of the ends of its 95 % interval, without sign
    changes: tuple[Change, ...] = ()  # jumps in the window


def judge_steady(t_s: Floats, values: Floats, *, block_s: float | None = None) -> Steadiness:
    """Judge a window.

    Args:
        block_s: length of the blocks; None for 30 s, or less where that gives fewer than 40.
    """
    if not len(values):
        nan = float("nan")
        return Steadiness(State.TOO_SHORT, 0.0, 0.0, 0.0, 0, nan, nan, nan, nan)
    length_s = _thin(t_s, block_length_s(t_s, block_s))
    blocks = block_medians(t_s, values, block_s=length_s)
    usual = median(blocks if len(blocks) else values)
    drift, bound, sign = _drift(blocks, usual)
    changes = find_changes(t_s, values, block_s=length_s)
    deviation = 1.4826 * median(np.abs(blocks - usual)) if len(blocks) else 0.0
    return Steadiness(
        state=_state(len(blocks), drift=drift, bound=bound, has_sign=sign, changes=changes),
        from_s=float(t_s[0]) - interval_of(t_s),
        to_s=float(t_s[-1]),
        block_s=length_s,
        blocks=len(blocks),
        median=usual,
        spread=deviation / usual if usual else float("nan"),
        drift=drift,
        drift_bound=bound,
        changes=changes,
    )


def judge_last(
    t_s: Floats, values: Floats, *, window_s: float, block_s: float | None = None
) -> Steadiness:
    """Judge the last seconds of a series, as `judge_steady` does."""
    last = t_s > (t_s[-1] - window_s if len(t_s) else 0.0)
    return judge_steady(t_s[last], values[last], block_s=block_s)


def steady_end(t_s: Floats, values: Floats, judged: Steadiness) -> Steadiness | None:
    """Return the steady stretch at the end of a series; None where there is none.

    It is the whole of a steady series, and else what came after the last jump, if that is steady
    for at least 8 blocks as long as those of the whole. A burst, a climb or a dip that ended in a
    jump is no part of it.
    """
    if judged.state is State.STEADY:
        return judged
    if not judged.changes:
        return None
    tail = judge_last(
        t_s, values, window_s=judged.to_s - judged.changes[-1].t_s, block_s=judged.block_s
    )
    return tail if tail.state is State.STEADY else None


def _thin(t_s: Floats, block_s: float) -> float:
    """Return longer blocks where there would be too many."""
    return max(block_s, math.ceil(len(t_s) / _MOST_BLOCKS) * interval_of(t_s))


def _drift(blocks: Floats, usual: float) -> tuple[float, float, bool]:
    """Return drift over the window, its 95 % bound, and whether its 99.5 % interval leaves out 0.

    The interval of Theil and Sen holds for independent blocks; it is widened by what the blocks'
    autocorrelation adds.
    """
    if len(blocks) < 2 or not usual:
        return float("nan"), float("inf"), False
    slope, low, high = theil_sen(blocks)
    level = median(blocks) - slope * (len(blocks) - 1) / 2
    residuals = blocks - level - slope * np.arange(len(blocks))
    scale = 1.4826 * median(np.abs(residuals))
    wider = inflation_of(residuals / scale) if scale else 1.0
    low, high = slope - wider * (slope - low), slope + wider * (high - slope)
    window = len(blocks) / usual
    ends = slope - _SURE * (slope - low), slope + _SURE * (high - slope)
    return slope * window, max(abs(low), abs(high)) * window, ends[0] * ends[1] > 0


def theil_sen(values: Floats) -> tuple[float, float, float]:
    """Return the median slope of all pairs of values and the ends of its 95 % interval (Sen 1968).

    Ties make the interval narrower, as in Sen's equation 2.6.
    """
    first, second = np.triu_indices(len(values), k=1)
    slopes = np.sort((values[second] - values[first]) / (second - first))
    ties = np.unique(values, return_counts=True)[1].astype(float)
    count = float(len(values))
    variance = count * (count - 1) * (2 * count + 5)
    variance -= float((ties * (ties - 1) * (2 * ties + 5)).sum())
    reach = _NORMAL_95 * math.sqrt(variance / 18)
    upper = min(round((len(slopes) + reach) / 2), len(slopes) - 1)
    lower = max(round((len(slopes) - reach) / 2) - 1, 0)
    return median(slopes), float(slopes[lower]), float(slopes[upper])


def _state(
    blocks: int, *, drift: float, bound: float, has_sign: bool, changes: tuple[Change, ...]
) -> State:
    if blocks < LEAST_BLOCKS:
        return State.TOO_SHORT
    if changes:
        return State.STEPPED
    if bound <= MOST_DRIFT:
        return State.STEADY
    return State.DRIFTING if has_sign and abs(drift) > MOST_DRIFT / 2 else State.NOISY
