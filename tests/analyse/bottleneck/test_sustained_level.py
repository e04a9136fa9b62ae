"""Levels whose truth is known: limits under noise, stalls that repeat, noise to both sides."""

import numpy as np
import pytest

from tests.analyse.findings.conftest import Limits
from tests.analyse.noise import noisy
from tests.analyse.runs_at_levels import ran
from volbench.analyse.bottleneck.bottleneck import explain
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.sustained_level import Level, sustained_level
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.change_points import find_changes, plateaus
from volbench.analyse.time.run_rates import rates_of
from volbench.model.results.finding import Cause

LIMIT = 1000.0


def level_of(view: RunView) -> Level:
    """Return the level of the writes of a run."""
    found = Context((view,)).level(view, "write")
    assert found is not None
    return found


def below(limit: float, seconds: int, *, seed: int) -> list[float]:
    """Return rates that noise of a fifth takes away from a limit, and never adds to it."""
    rng = np.random.default_rng(seed)
    tenths = np.minimum(1.0, np.exp(rng.normal(0, 0.2, (seconds, 10)).cumsum(axis=1) / 2))
    return [float(rate) for rate in limit * tenths.mean(axis=1)]


@pytest.mark.parametrize("seed", range(6))
def test_the_level_of_a_limit_is_the_upper_edge(seed: int) -> None:
    """The median of such rates is some percent too low."""
    rates = below(LIMIT, 60, seed=seed)
    view = ran(rates, limits=Limits(iops=LIMIT), lat_s=(0.016, 0.0155, 0.002))
    assert float(np.median(rates)) < 0.99 * LIMIT
    (first, *_) = explain(view, "write")
    assert first.cause is Cause.IOPS_LIMIT
    assert first.level == pytest.approx(LIMIT, rel=0.03)
    found = level_of(view)
    assert found.iops == pytest.approx(LIMIT, rel=0.03)
    assert found.low_iops <= LIMIT <= found.high_iops


@pytest.mark.parametrize("seed", range(4))
def test_symmetric_noise_has_no_edge(seed: int) -> None:
    """A second that was lucky is no limit."""
    rates = LIMIT * noisy(60, cv=0.15, seed=seed) / 1000
    (only,) = plateaus(np.arange(1.0, 61), rates, changes=())
    assert np.isnan(only.ceiling)


@pytest.mark.slow
def test_the_interval_has_the_true_level_nineteen_times_in_twenty() -> None:
    """Under noise that lasts some seconds, in runs of a minute; and it is no wider than needed."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(100):
        noise = np.empty(60)
        state = 0.0
        for second in range(60):
            state = 0.6 * state + 0.8 * rng.normal()
            noise[second] = state
        rates = rates_of(ran(list(LIMIT * np.exp(0.15 * noise))), "write")
        assert rates is not None
        found.append(sustained_level(rates, ()))
    holds = sum(each.low_iops <= LIMIT <= each.high_iops for each in found)
    assert holds >= 93
    assert float(np.median([each.reach for each in found])) < 0.12


def test_a_cache_that_stalls_again_and_again_delivers_what_drains() -> None:
    """Three seconds of nothing for each of 900 I/Os a second: 225, not the median of 0."""
    rates = [2000.0] * 20 + ([0.0] * 3 + [900.0]) * 15
    found = level_of(ran(rates, lat_s=(0.008, 0.0078, 0.0001)))
    assert found.iops == pytest.approx(225, rel=0.03)


@pytest.mark.slow
def test_dips_below_a_limit_are_not_steps() -> None:
    """A limit under noise that lasts for seconds now and then ends with some slow ones."""
    rng, stepped = np.random.default_rng(11), 0
    for _ in range(100):
        state, rates = 0.0, np.full(60, LIMIT)
        for second in range(60):
            state = 0.75 * state + 0.66 * rng.normal()
            rates[second] *= min(1.0, np.exp(0.2 * state))
        stepped += bool(find_changes(np.arange(1.0, 61), rates))
    assert stepped <= 20


def test_dips_in_the_first_seconds_are_not_a_ramp_up() -> None:
    """A rate that is at its plateau in the third second has not climbed to it in the ninth."""
    rates = [677.0, 654.0, 844.0, *[1000.0] * 4, 772.0, 586.0, *[1000.0] * 21]
    causes = {entry.cause for entry in explain(ran(rates), "write")}
    assert not causes & {Cause.WARMING, Cause.RAMP_UP}


@pytest.mark.parametrize(("used", "cause"), [(92.0, Cause.CPU), (70.0, Cause.IOPS_LIMIT)])
def test_a_cpu_that_was_taken_away_is_still_the_limit(used: float, cause: Cause) -> None:
    """What fio used on average is less than a CPU, because it did not always get one."""
    rates = [1000.0] * 40 + [750.0] * 20
    view = ran([rates[(7 * place) % 60] for place in range(60)], lat_s=(0.016, 0.0155, 0.002))
    row = view.summary.assign(cpu_usr=used / 2, cpu_sys=used / 2)
    busy = RunView(view.campaign, view.run, row, view.series, view.device, view.percentiles)
    (first, *_) = explain(busy, "write")
    assert (first.cause is Cause.CPU) == (cause is Cause.CPU)
    assert not first.is_certain
