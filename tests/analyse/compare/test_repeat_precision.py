"""Precision of repeats whose truth is known: intervals hold, and reasons are named."""

from collections.abc import Callable

import numpy as np
import pytest

from volbench.analyse.compare.repeat_precision import judge_precision
from volbench.analyse.frames.resample import Floats

MOST = 20


def even(rng: np.random.Generator) -> Floats:
    """Return normal noise of 2 %."""
    return 0.02 * rng.standard_normal(MOST)


def two_levels(rng: np.random.Generator) -> Floats:
    """Return one of two levels 6 % apart."""
    return 0.01 * rng.standard_normal(MOST) + 0.06 * (rng.random(MOST) < 0.5) - 0.03


def linked(rng: np.random.Generator) -> Floats:
    """Return noise of 3 % whose neighbours are correlated."""
    values = rng.standard_normal(MOST)
    for place in range(1, MOST):
        values[place] = 0.3 * values[place - 1] + 0.95 * values[place]
    return 0.03 * values


@pytest.mark.slow
@pytest.mark.parametrize("draw", [even, two_levels, linked])
def test_looking_again_keeps_the_confidence(draw: Callable[[np.random.Generator], Floats]) -> None:
    """Where repeats stop, at least 94 % of intervals hold the truth; most series do stop."""
    wrong = stopped = 0
    for seed in range(200):
        logs = draw(np.random.default_rng(seed))
        for count in range(3, MOST + 1):
            judged = judge_precision(np.exp(logs[:count]), 0.03)
            if judged.is_reached:
                stopped += 1
                wrong += judged.interval.excludes(1.0)
                break
    assert wrong <= 12
    assert stopped > 60


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([100.0, 130, 100, 131, 99, 130, 101, 129], "bimodal: two levels 30 % apart"),
        ([50.0, 100, 101, 100, 99, 100], "cold: the first repeat differs from the others by 50 %"),
        ([100.0, 112, 119, 131, 142, 149], "drift: up by 27 %"),
        ([100.0, 140, 121, 90, 133, 108], "noise of 17 % between repeats"),
        ([100.0, 100], "too few repeats"),
    ],
)
def test_the_reason_is_named(values: list[float], reason: str) -> None:
    """Each series shows one cause."""
    judged = judge_precision(np.array(values), 0.03)
    assert not judged.is_reached
    assert judged.reason == reason
