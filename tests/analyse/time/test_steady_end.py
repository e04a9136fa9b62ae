"""The steady stretch at the end of a series: what came before it is no part of it."""

import numpy as np
import pytest

from tests.analyse.findings.conftest import a_run, a_view, series_rows
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.time.steady_state import judge_steady, steady_end
from volbench.model.profile.profile_settings import Until

RNG = np.random.default_rng(1)


def noisy(level: float, seconds: int) -> list[float]:
    """Return a flat stretch with 1 % of noise."""
    return [float(entry) for entry in level * (1 + RNG.normal(0, 0.01, seconds))]


def ramp(start: float, end: float, seconds: int) -> list[float]:
    """Return a slow climb or fall."""
    return [float(entry) for entry in np.linspace(start, end, seconds)]


@pytest.mark.parametrize(
    ("rates", "begin_s", "level"),
    [
        (noisy(1000, 300), 0, 1000),
        (noisy(3000, 100) + noisy(300, 200), 100, 300),
        (noisy(1000, 100) + noisy(400, 60) + noisy(1000, 140), 160, 1000),
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
    [
        ramp(1000, 500, 300),
        noisy(1000, 280) + noisy(300, 20),
        noisy(1000, 100) + ramp(500, 50, 200),
    ],
    ids=["drifting", "a jump at the end", "drifting after a jump"],
)
def test_an_unsteady_end_has_no_level(rates: list[float]) -> None:
    """A slow fall is no level, and a few seconds after a jump show nothing."""
    t_s, values = np.arange(1.0, len(rates) + 1), np.array(rates)
    assert steady_end(t_s, values, judge_steady(t_s, values)) is None


def test_a_run_until_steady_has_the_level_of_its_last_window() -> None:
    """A climb without a jump, and a flat minute: the frame tells the minute."""
    rates = ramp(100, 1000, 240) + noisy(1000, 60)
    run = a_run(until=Until(window_s=60.0, block_s=5.0))
    view = a_view(run, series=series_rows(run, rates))
    (row,) = verdict_rows(Context((view,)))
    assert row["verdict"] != "steady"
    assert row["steady_iops"] == pytest.approx(1000, rel=0.01)
    assert row["steady_from_s"] == pytest.approx(240, abs=1)
