"""The rule of the SNIA specification, at its bounds."""

import math

import pytest

from volbench.analyse.time.steady_state import judge_snia


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
    """Range and slope are of the mean, of the last five rounds."""
    judged = judge_snia([104, 102, 100, 98, 96])
    assert judged.mean == 100
    assert judged.range_ratio == pytest.approx(0.08)
    assert judged.slope_ratio == pytest.approx(0.08)
    assert judge_snia([400, 300, 200, 100, 100, 100, 100, 100, 100]).steady
    assert not judge_snia([100] * 5 + [50] * 2).steady


@pytest.mark.parametrize("count", [0, 4])
def test_fewer_than_five_rounds_have_no_window(count: int) -> None:
    """Without five rounds nothing is steady and no ratio is told."""
    judged = judge_snia([100.0] * count)
    assert not judged.steady
    assert math.isnan(judged.range_ratio)
