"""Verdicts on series whose truth is known."""

import math

import numpy as np
import pytest

from tests.analyse.noise import noisy, times
from volbench.analyse.time.steady_state import judge_steady
from volbench.model.results.steadiness import State


def verdicts(ramp: float, *, cv: float, phi: float, samples: int = 3600) -> list[State]:
    """Return the verdicts on 40 series that fall evenly by a share of their middle."""
    line = np.linspace(1 + ramp / 2, 1 - ramp / 2, samples)
    return [
        judge_steady(times(samples), line * noisy(samples, cv=cv, phi=phi, seed=seed)).state
        for seed in range(40)
    ]


@pytest.mark.parametrize(("cv", "phi"), [(0.03, 0.5), (0.03, 0.8), (0.08, 0.5), (0.15, 0.5)])
def test_a_level_with_noise_is_steady(cv: float, phi: float) -> None:
    """At least 38 of 40 hours of noise around one level are steady."""
    assert verdicts(0.0, cv=cv, phi=phi).count(State.STEADY) >= 38


@pytest.mark.parametrize("cv", [0.03, 0.15])
def test_a_decline_is_not_steady(cv: float) -> None:
    """At most 2 of 40 hours that lose a fifth are called steady."""
    assert verdicts(0.2, cv=cv, phi=0.8).count(State.STEADY) <= 2


def test_a_decline_is_reported_with_its_size() -> None:
    """A fifth lost in an hour is a drift of -20 %, and its bound is larger."""
    values = np.linspace(1.1, 0.9, 3600) * noisy(3600, cv=0.03, phi=0.5, seed=1)
    judged = judge_steady(times(3600), values)
    assert judged.state is State.DRIFTING
    assert judged.drift == pytest.approx(-0.2, abs=0.01)
    assert 0.2 < judged.drift_bound < 0.25


def test_noisy_data_give_no_verdict() -> None:
    """Half a minute at 60 % noise, or an hour of nothing, shows no level."""
    judged = judge_steady(times(30), noisy(30, cv=0.6, seed=3))
    assert judged.state is State.NOISY
    judged = judge_steady(times(3600), np.zeros(3600))
    assert judged.state is State.NOISY
    assert judged.median == 0
    assert math.isnan(judged.spread)


@pytest.mark.parametrize("samples", [0, 1, 7])
def test_short_data_give_no_verdict(samples: int) -> None:
    """Fewer than eight blocks give no verdict."""
    judged = judge_steady(times(samples), noisy(samples, cv=0.01, seed=4))
    assert judged.state is State.TOO_SHORT


def test_the_window_is_reported() -> None:
    """Begin, end and spread are those of the series; a day has a thousand blocks at most."""
    judged = judge_steady(times(600, 0.5) + 100, noisy(600, cv=0.02, seed=5), block_s=10.0)
    assert (judged.from_s, judged.to_s) == (100, 400)
    assert (judged.block_s, judged.blocks) == (10, 30)
    assert judged.median == pytest.approx(1000, rel=0.01)
    assert 0.001 < judged.spread < 0.02
    judged = judge_steady(times(86_400), noisy(86_400, cv=0.05, phi=0.5, seed=6))
    assert judged.state is State.STEADY
    assert judged.blocks <= 1000
