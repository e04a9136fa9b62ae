"""Changes of level over campaigns, each found from the campaigns up to that moment only.

A search of the whole series would move and withdraw changes as campaigns are added. Here the
campaigns are replayed in order: what was found on one night stays as it was on every later one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.significance import student_quantile

# Probability of a change for the worse, in each comparison of an unchanged series. Up to seven are
# made a night; they are alike, and together give 0.7 false alarms in 350 nights.
# Noticed by: test_level_changes.py::test_a_year_has_less_than_one_false_alarm
_WORSE = 8e-4
# For the better: it is not urgent, and a false one makes the return to normal a false alarm.
# Noticed by: test_level_changes.py::test_a_rise_needs_more_evidence
_BETTER = 1e-4
# Campaigns of the new level that are compared with all before them: few find large changes soon,
# many find small ones at all. One campaign never is a level.
# Noticed by: test_level_changes.py::test_small_changes_take_longer
_LENGTHS = np.array([2, 3, 4, 6, 10, 20, 40])
# Campaigns of the old level: three are a level, with a wide interval; fewer show a fall, which
# nothing confirms. Noticed by: test_workload_trends.py::test_a_reference_period_ends_at_a_change
MIN_BEFORE = 3
# Standard deviations to which an outlier counts, or the smallest change where that is more: two of
# them are no new level beside three normal nights, and a large change counts for more than the dips
# of a volume at its limit, which has hardly any scatter otherwise.
# Noticed by: test_level_changes.py::test_single_bad_nights_are_not_a_level,
# test_small_dips_do_not_hide_a_large_change
_CLIP = 3.0
# Share of the change by which more than half of the new level must differ as well.
# Noticed by: test_level_changes.py::test_single_bad_nights_are_not_a_level
_MIN_MEDIAN_SHARE = 0.6
# Smallest relative scatter: less is the resolution of a measurement.
# Noticed by: test_level_changes.py::test_equal_values_have_a_scatter
_MIN_SCATTER = 1e-3
# Standard errors by which an autocorrelation is reduced: that of white noise is above zero in half
# of all series. Noticed by: test_level_changes.py::test_slow_noise_is_not_a_change
_SHRINK = 0.3
_MAX_LINKED = 0.9  # an autocorrelation that still has a mean. Noticed by: as _SHRINK


@dataclass(frozen=True)
class FoundChange:
    """A change of level in a series."""

    place: int  # first value of the new level
    found: int  # value at which it was found


def find_level_changes(logs: Floats, *, worse: int, least_step: float) -> tuple[FoundChange, ...]:
    """Return the changes of level, in order; those of the first n values never depend on others.

    Args:
        logs: natural logarithms, a value a campaign.
        worse: sign of a change for the worse.
        least_step: smallest change, as a share of the larger level.
    """
    changes: list[FoundChange] = []
    start, old = 0, np.empty(0)
    for count in range(MIN_BEFORE + 2, len(logs) + 1):
        level = logs[start:count]
        place = _split_place(level, old, len(changes), worse, least_step)
        if not place and not changes:
            place = _early_place(worse * level, -math.log1p(-least_step))
        if place:
            old = np.concatenate([old, level[:place] - median(level[:place])])
            start += place
            changes.append(FoundChange(start, count - 1))
    return tuple(changes)


def _split_place(level: Floats, old: Floats, changes: int, worse: int, least_step: float) -> int:
    """Return where the present level changes; 0 for nowhere.

    The residuals of all earlier levels, `old`, share the scatter of the logarithms since then.
    """
    before = len(level) - _LENGTHS
    before = before[before >= MIN_BEFORE]
    if not len(before):
        return 0
    raw = np.concatenate([old, level - median(level)])
    least = -math.log1p(-least_step)
    residuals = _clip_outliers(raw, least)
    past, now = residuals[: len(old)], residuals[len(old) :]
    after = len(now) - before
    sums, squares = (np.concatenate([[0.0], part.cumsum()]) for part in (now, now**2))
    means, ends = sums[before] / before, (sums[-1] - sums[before]) / after
    freedom = np.maximum(1, len(level) - 2 + max(0, len(past) - changes))
    power = squares[-1] - before * means**2 - after * ends**2 + past @ past
    scatter = np.maximum(np.sqrt(power / freedom), _MIN_SCATTER) * _inflation(residuals[:-4])
    steps = ends - means
    limits = [student_quantile(float(freedom), 1 - share) for share in (_WORSE, _BETTER)]
    strengths = np.abs(steps) / scatter / np.sqrt(1 / before + 1 / after)
    strengths /= np.where(np.sign(steps) == worse, *limits)
    for n in np.argsort(-strengths):
        if strengths[n] <= 1:
            break
        # an outlier counts to its limit above, and by its place here
        new = np.sort((raw[len(old) + before[n] :] - means[n]) * np.sign(steps[n]))
        if new[(len(new) - 1) // 2] >= max(_MIN_MEDIAN_SHARE * abs(steps[n]), least):
            return int(before[n])
    return 0


def _early_place(level: Floats, least: float) -> int:
    """Return where a series got higher after too few campaigns to be a level; 0 for nowhere."""
    for place in range(MIN_BEFORE - 1, 0, -1):
        centre, count = median(level[place:]), len(level) - place
        residuals = _clip_outliers(level[place:] - centre, least)
        scatter = max(float(residuals.std(ddof=1)), _MIN_SCATTER) * _inflation(residuals[:-4])
        limit = student_quantile(count - 1, 1 - _WORSE) * scatter * math.sqrt(1 + 1 / count)
        if centre - level[:place].max() > max(limit, least):
            return place
    return 0


def _clip_outliers(residuals: Floats, least: float) -> Floats:
    scale = max(1.4826 * median(np.abs(residuals)), _MIN_SCATTER)
    limit = max(_CLIP * scale, least)
    return np.clip(residuals, -limit, limit)


def _inflation(residuals: Floats) -> float:
    power = float(residuals @ residuals)
    if not power:
        return 1.0
    linked = float(residuals[1:] @ residuals[:-1]) / power - _SHRINK / math.sqrt(len(residuals))
    linked = min(max(linked, 0.0), _MAX_LINKED)
    return math.sqrt((1 + linked) / (1 - linked))
