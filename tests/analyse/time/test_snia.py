"""The rule of the SNIA specification, at its bounds."""

import math

import numpy as np
import pytest

from tests.analyse.noise import times
from volbench.analyse.time.steady_state import judge_snia, snia_rounds


@pytest.mark.parametrize(
    ("rounds", "passes"),
    [
        ([100, 100, 100, 100, 100], True),
        ([100, 110, 90, 110, 100], True),
        ([100, 111, 89, 110, 100], False),
        ([105, 102.5, 100, 97.5, 95], True),
        ([106, 103, 100, 97, 94], False),
        ([0, 0, 0, 0, 0], False),
    ],
)
def test_range_and_slope_are_within_limits(rounds: list[float], *, passes: bool) -> None:
    """A range of 20 % and a slope of 10 % of the mean pass, more of either does not."""
    assert judge_snia(rounds).steady is passes


def test_the_numbers_are_reported() -> None:
    """Range and slope are of the mean, of the last five rounds; the first that passed is told."""
    judged = judge_snia([104, 102, 100, 98, 96])
    assert judged.mean == 100
    assert judged.range_ratio == pytest.approx(0.08)
    assert judged.slope_ratio == pytest.approx(0.08)
    judged = judge_snia([400, 300, 200, 100, 100, 100, 100, 100, 100])
    assert judged.steady
    assert judged.at_round == 8
    judged = judge_snia([100] * 5 + [50] * 2)
    assert not judged.steady
    assert judged.at_round == 5


@pytest.mark.parametrize("count", [0, 4])
def test_fewer_than_five_rounds_have_no_window(count: int) -> None:
    """Without five rounds nothing is steady and no ratio is told."""
    judged = judge_snia([100.0] * count)
    assert not judged.steady
    assert judged.at_round is None
    assert math.isnan(judged.range_ratio)


def test_a_series_is_cut_into_minutes() -> None:
    """Ten minutes make ten rounds of 60 s, each a mean; 20 s make five of 4 s."""
    values = np.repeat(np.arange(100.0, 110.0), 60)
    judged = snia_rounds(times(600), values)
    assert judged.round_s == 60
    assert judged.values == (105, 106, 107, 108, 109)
    assert judged.at_round == 5
    judged = snia_rounds(times(80, 0.25), np.full(80, 7.0))
    assert judged.round_s == 4
    assert judged.steady
