"""Rates that alternate between two levels, and what looks like it."""

import numpy as np
import pytest

from tests.analyse.noise import times
from volbench.analyse.time.change_points import Change
from volbench.analyse.time.rate_swings import real_jumps, swing_of, without_swing
from volbench.analyse.time.steady_state import judge_steady
from volbench.model.results.steadiness import State


def noisy(rates: np.ndarray, share: float = 0.02) -> np.ndarray:
    """Return rates with noise."""
    return rates * np.exp(share * np.random.default_rng(5).normal(size=len(rates)))


@pytest.mark.parametrize(
    ("pattern", "low", "high", "period_s"),
    [
        ([15_000, 5_700], 5_700, 15_000, 2),
        ([19_000, 7_300, 19_000], 7_300, 19_000, 3),
        ([1_000, 1_000, 1_000, 1_000, 400], 400, 1_000, 5),
    ],
)
def test_levels_and_period_are_found(
    pattern: list[float], low: float, high: float, period_s: float
) -> None:
    """Each second another level, or 0.6 s in five without I/O."""
    rates = noisy(np.resize(np.array(pattern, dtype=float), 60))
    swing = swing_of(times(60), rates)
    assert swing is not None
    assert (swing.low, swing.high) == pytest.approx((low, high), rel=0.03)
    assert swing.period_s == pytest.approx(period_s, rel=0.05)


@pytest.mark.parametrize(
    "rates",
    [
        noisy(np.full(60, 1000.0), 0.2),  # noise
        noisy(np.array([1000.0] * 30 + [400.0] * 30)),  # a step
        noisy(np.array([1000.0] * 20 + [400.0] * 10 + [1000.0] * 30)),  # a neighbour
        np.resize(np.array([30.0, 10.0]), 60),  # counting noise
        np.linspace(100, 1000, 60),  # a climb
        noisy(np.resize(np.array([1000.0] * 9 + [400.0]), 60)),  # rare dips
    ],
)
def test_irregular_changes_are_not_swings(rates: np.ndarray) -> None:
    """Noise, single changes, few I/Os and rare dips are judged otherwise."""
    assert swing_of(times(60), rates) is None


def test_too_few_intervals_hold_no_pattern() -> None:
    """Nine returns are a pattern; a run of 19 s is not searched."""
    rates = np.resize(np.array([15_000.0, 5_700.0]), 20)
    assert swing_of(times(20), rates) is not None
    assert swing_of(times(19), rates[:19]) is None


def test_means_over_periods_are_steady() -> None:
    """Medians of blocks jump between two levels; means over periods do not."""
    rates = noisy(np.resize(np.array([15_000.0, 5_700.0]), 300))
    swing = swing_of(times(300), rates)
    t_s, means = without_swing(times(300), rates, swing)
    assert (t_s[0], len(means)) == (8, 37)
    assert means == pytest.approx(10_350, rel=0.03)
    assert judge_steady(t_s, means).state is State.STEADY
    assert without_swing(t_s, means, None) == (t_s, means)


def test_a_jump_shows_in_means() -> None:
    """Where two levels are as frequent, the median jumps from one to the other by chance."""
    mixed = np.concatenate([np.resize([400.0, 1000.0, 1000.0, 400.0, 1000.0], 100)] * 2)
    mixed[100:] = np.resize([400.0, 1000.0, 400.0, 1000.0, 400.0], 100)
    jump = Change(100.0, 1000.0, 400.0)
    assert real_jumps((jump,), times(200), mixed, least_s=0.0) == ()
    step = np.repeat([1000.0, 400.0], 100)
    assert real_jumps((jump,), times(200), step, least_s=0.0) == (jump,)
    assert real_jumps((jump,), times(200), step, least_s=101.0) == ()


@pytest.mark.parametrize(
    ("back_s", "after", "kept"), [(21.0, 980.0, 0), (24.0, 980.0, 2), (21.0, 700.0, 2)]
)
def test_a_single_interval_is_not_a_jump(back_s: float, after: float, kept: int) -> None:
    """A second below the rest that comes back changes no level."""
    changes = (Change(20.0, 1000.0, 500.0), Change(back_s, 500.0, after))
    rates = np.where(times(60) <= 20, 1000.0, np.where(times(60) <= back_s, 500.0, after))
    assert len(real_jumps(changes, times(60), rates, least_s=0.0)) == kept


@pytest.mark.parametrize(("seconds", "is_swing"), [(35, False), (42, True)])
def test_six_repetitions_are_a_pattern(seconds: int, *, is_swing: bool) -> None:
    """Two seconds of seven at the lower level, five and six times."""
    rates = noisy(np.resize(np.array([1000.0] * 5 + [400.0] * 2), seconds))
    assert (swing_of(times(seconds), rates) is not None) is is_swing


def test_a_fall_to_a_noisy_level_is_not_a_swing() -> None:
    """A write cliff after 16 s leaves a rate that doubles now and then, in each quarter."""
    noisy_level = np.resize([150.0, 350.0, 130.0, 120.0, 360.0, 160.0, 140.0], 59)
    rates = np.concatenate([np.full(16, 632.0), noisy_level])
    assert swing_of(times(75), rates) is None
    assert swing_of(times(59), noisy_level) is not None
