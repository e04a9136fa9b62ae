"""Intervals of a mean rate and of a share of time, from intervals that are not independent.

The seconds of a run resemble their neighbours, so that there are fewer independent ones than
seconds: n / f^2, where f is the factor by which autocorrelation widens the error of a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volbench.analyse.compare.repeat_statistics import CONFIDENCE, MIN_REPEATS, Interval
from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.significance import beta_quantile, student_quantile
from volbench.analyse.time.change_points import inflation_of

_UPPER = (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Estimate:
    """An interval, and the number of independent values that it is worth."""

    interval: Interval
    effective: float


def mean_rate(parts: Sequence[Floats]) -> Estimate:
    """Return the mean of the rates of several runs with its 95 % interval.

    It is as wide as the seconds of all runs require, or the scatter of the runs if that is more.
    """
    values = np.concatenate(parts)
    mean, count = float(values.mean()), len(values)
    if count < MIN_REPEATS:
        return Estimate(Interval(math.nan, mean, math.nan), count)
    deviation = float(values.std(ddof=1))
    effective = count / _inflation(values) ** 2
    reach = student_quantile(effective - 1, _UPPER) * deviation / math.sqrt(effective)
    means = np.array([part.mean() for part in parts if len(part)])
    if len(means) >= MIN_REPEATS:
        error = float(means.std(ddof=1)) / math.sqrt(len(means))
        reach = max(reach, student_quantile(len(means) - 1, _UPPER) * error)
    return Estimate(Interval(max(0.0, mean - reach), mean, mean + reach), effective)


def share_reached(values: Floats, rate: float) -> Estimate:
    """Return the share of intervals that reach a rate, with its 95 % interval.

    The interval is that of Clopper and Pearson (Biometrika 26, 1934) with effective counts (Korn
    and Graubard, Survey Methodology 24, 1998): of 300 independent seconds that all reach the rate,
    at least 98.8 % do.
    """
    failed = values < rate
    share = float(failed.mean())
    inflation = _inflation(values if share in {0.0, 1.0} else failed.astype(float))
    effective = max(1.0, len(values) / inflation**2)
    missed = share * effective
    low = beta_quantile(missed, effective - missed + 1, 1 - _UPPER) if share else 0.0
    high = beta_quantile(missed + 1, effective - missed, _UPPER) if share < 1 else 1.0
    return Estimate(Interval(1 - high, 1 - share, 1 - low), effective)


def needed_for_share(share: float) -> float:
    """Return the independent intervals without a failure that show a share of time."""
    return math.log(1 - _UPPER) / math.log(share)


def _inflation(values: Floats) -> float:
    """Return the factor by which autocorrelation widens the error of the mean of values."""
    off = values - median(values)
    scale = 1.4826 * median(np.abs(off)) or float(values.std())
    # At most half of its intervals make a series: two independent values are the fewest.
    most = math.sqrt(len(values) / 2)
    return min(inflation_of(off / scale), most) if scale else 1.0
