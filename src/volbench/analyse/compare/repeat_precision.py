"""Precision of repeats: whether the median is known closely enough to stop repeating."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from volbench.analyse.compare.repeat_statistics import (
    MIN_REPEATS,
    Interval,
    location_interval,
    pseudomedian,
)
from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.significance import trend_p_value
from volbench.analyse.time.change_points import inflation_of
from volbench.units import format_percent

# Error rate of each look: as many looks as 5 % pay for by this share are taken (Bonferroni).
# Constant, since equal values by chance mislead the early looks most; chosen by simulation.
# Noticed by: test_repeat_precision.py::test_looking_again_keeps_the_confidence
_LOOK = 0.0015
# p-value of a drift that is named as the reason. Noticed by: test_repeat_precision.py
_DRIFT = 0.05
# Share of the range that a gap between two levels takes, and repeats on each side of it.
# Noticed by: test_repeat_precision.py::test_the_reason_is_named
_GAP, _MIN_LEVEL = 0.5, 2
# Standard deviations by which the first repeat differs from all others if it was cold.
# Noticed by: test_repeat_precision.py::test_the_reason_is_named
_COLD = 4.0


@dataclass(frozen=True)
class Precision:
    """How closely repeats determine their median."""

    interval: Interval  # of the median; its ends are NaN with fewer than three repeats
    within: float  # largest relative half-width that was asked for
    reason: str  # what keeps the interval wide; empty if it is narrow enough

    @property
    def half_width(self) -> float:
        """Relative half-width of the interval; infinite if unknown."""
        ratio = self.interval.high / self.interval.low
        return math.sqrt(ratio) - 1 if ratio >= 1 else math.inf

    @property
    def is_reached(self) -> bool:
        """Whether the interval is narrow enough."""
        return self.half_width <= self.within


def judge_precision(values: Floats, within: float) -> Precision:
    """Judge repeats in their order; may be called after each of them."""
    found = location_interval(values, confidence=1 - _LOOK)
    if len(values) < MIN_REPEATS:
        return Precision(found, within, "too few repeats")
    logs = np.log(values)
    scatter = float(logs.std(ddof=1))
    residuals = (logs - logs.mean()) / scatter if scatter else np.zeros(len(logs))
    wider = inflation_of(residuals)
    low, high = (
        found.estimate * (end / found.estimate) ** wider for end in (found.low, found.high)
    )
    judged = Precision(Interval(low, found.estimate, high), within, "")
    if judged.is_reached:
        return judged
    return Precision(judged.interval, within, _reason(logs))


def _reason(logs: Floats) -> str:
    rest = logs[1:]
    if len(rest) >= MIN_REPEATS and abs(logs[0] - median(rest)) > _COLD * rest.std(ddof=1):
        first = format_percent(abs(math.expm1(logs[0] - median(rest))))
        return f"cold: the first repeat differs from the others by {first}"
    if len(logs) > MIN_REPEATS and trend_p_value(logs) < _DRIFT:
        half = len(logs) // 2
        change = math.expm1(pseudomedian(logs[-half:]) - pseudomedian(logs[:half]))
        return f"drift: {'up' if change > 0 else 'down'} by {format_percent(abs(change))}"
    ordered = np.sort(logs)
    gaps = np.diff(ordered)
    place = int(gaps.argmax()) + 1
    if min(place, len(logs) - place) >= _MIN_LEVEL and gaps.max() > _GAP * np.ptp(logs):
        apart = math.expm1(median(ordered[place:]) - median(ordered[:place]))
        return f"bimodal: two levels {format_percent(apart)} apart"
    return f"noise of {format_percent(float(logs.std(ddof=1)))} between repeats"
