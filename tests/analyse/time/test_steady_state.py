"""Verdicts on series whose truth is known, and the steady stretch at their end."""

import math

import numpy as np
import pytest

from tests.analyse.findings.conftest import a_run, a_view, series_rows
from tests.analyse.noise import noisy, times
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.time.steady_state import judge_steady, steady_end
from volbench.model.profile.profile_settings import Until
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


RNG = np.random.default_rng(1)


def flat(level: float, seconds: int) -> list[float]:
    """Return a flat stretch with 1 % of noise."""
    return [float(entry) for entry in level * (1 + RNG.normal(0, 0.01, seconds))]


def ramp(start: float, end: float, seconds: int) -> list[float]:
    """Return a slow climb or fall."""
    return [float(entry) for entry in np.linspace(start, end, seconds)]


@pytest.mark.parametrize(
    ("rates", "begin_s", "level"),
    [
        (flat(1000, 300), 0, 1000),
        (flat(3000, 100) + flat(300, 200), 100, 300),
        (flat(1000, 100) + flat(400, 60) + flat(1000, 140), 160, 1000),
    ],
    ids=["all of it", "after a burst", "after a dip"],
)
def test_samples_before_the_last_jump_are_left_out(
    rates: list[float], begin_s: float, level: float
) -> None:
    """The level is that of the stretch, and its begin is where the jump was."""
    t_s, values = np.arange(1.0, len(rates) + 1), np.array(rates)
    found = steady_end(t_s, values, judge_steady(t_s, values))
    assert found is not None
    assert found.from_s == pytest.approx(begin_s, abs=8)
    assert found.to_s == len(rates)
    assert found.median == pytest.approx(level, rel=0.01)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_the_sample_of_the_change_belongs_to_no_level(share: float) -> None:
    """Credits that run out within a sample leave a steady rest, whole but for that sample."""
    rates = [1500.0] * 20 + [300 + 1200 * share] + [300.0] * 29
    t_s, values = np.arange(1.0, len(rates) + 1) / 2, np.array(rates)
    found = steady_end(t_s, values, judge_steady(t_s, values))
    assert found is not None
    assert found.from_s == pytest.approx(10, abs=0.5)
    assert found.median == 300


@pytest.mark.parametrize(
    "rates",
    [ramp(1000, 500, 300), flat(1000, 280) + flat(300, 20), flat(1000, 100) + ramp(500, 50, 200)],
    ids=["drifting", "a jump at the end", "drifting after a jump"],
)
def test_an_unsteady_end_has_no_level(rates: list[float]) -> None:
    """A slow fall is no level, and a few seconds after a jump show nothing."""
    t_s, values = np.arange(1.0, len(rates) + 1), np.array(rates)
    assert steady_end(t_s, values, judge_steady(t_s, values)) is None


def test_a_run_until_steady_has_the_level_of_its_last_window() -> None:
    """A climb without a jump, and a flat minute: the frame tells the minute."""
    rates = ramp(100, 1000, 240) + flat(1000, 60)
    run = a_run(until=Until(window_s=60.0, block_s=5.0))
    view = a_view(run, series=series_rows(run, rates))
    (row,) = verdict_rows(Context((view,)))
    assert row["verdict"] != "steady"
    assert row["steady_iops"] == pytest.approx(1000, rel=0.01)
    assert row["steady_from_s"] == pytest.approx(240, abs=1)
