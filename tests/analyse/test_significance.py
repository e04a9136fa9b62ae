"""Distributions and exact tests give the numbers of SciPy."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from volbench.analyse.significance import (
    beta_quantile,
    signed_rank_p_value,
    student_quantile,
    student_tail,
    trend_p_value,
)

FREEDOMS = (1, 1.3, 2, 4.7, 30, 300, 1e4, 1e6)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_are_those_of_scipy(freedom: float) -> None:
    """From the middle far into the tails, of few and of many degrees of freedom."""
    for share in (0.5, 0.501, 0.8, 0.975, 0.99995, 0.05, 1e-6):
        assert student_quantile(freedom, share) == pytest.approx(
            special.stdtrit(freedom, share), rel=1e-8, abs=1e-7
        )


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_tails_are_those_of_scipy(freedom: float) -> None:
    """At 0 it is one half; far out it is tiny, and not 0 by cancellation."""
    for value in (0, 1e-9, 0.3, 1, 2.5, 8, 40):
        expected = special.stdtr(freedom, -value)
        assert student_tail(freedom, value) == pytest.approx(expected, rel=1e-7, abs=1e-300)


@pytest.mark.parametrize(
    ("first", "second"), [(1, 300), (300, 1), (0.4, 7.1), (12.5, 40), (5e4, 9)]
)
def test_beta_quantiles_are_those_of_scipy(first: float, second: float) -> None:
    """Shapes are counts of intervals, whole or not."""
    for share in (0.001, 0.025, 0.5, 0.975):
        expected = special.betaincinv(first, second, share)
        assert beta_quantile(first, second, share) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("count", [3, 4, 7, 20, 60])
def test_trends_are_those_of_scipy(count: int) -> None:
    """Up, down and without order; the test is exact for every number of values."""
    source = np.random.default_rng(count)
    for slope in (0, 0.2, -1):
        values = slope * np.arange(count) + source.normal(size=count)
        expected = stats.kendalltau(np.arange(count), values, method="exact").pvalue
        assert trend_p_value(values) == pytest.approx(expected, rel=1e-9)


def test_equal_values_are_no_trend() -> None:
    """They count as half in order, so that a trend with ties is less certain than one without."""
    assert trend_p_value(np.ones(6)) == 1
    ties = trend_p_value(np.array([1.0, 1, 2, 2, 3, 3]))
    assert trend_p_value(np.arange(6.0)) < ties < 0.1


@pytest.mark.parametrize("count", [1, 5, 20, 50, 51, 400])
def test_signed_ranks_are_those_of_scipy(count: int) -> None:
    """Exact up to 50 pairs, then by the normal distribution."""
    values = np.random.default_rng(count).normal(0.3, size=count)
    expected = stats.wilcoxon(values, alternative="greater").pvalue
    assert signed_rank_p_value(values) == pytest.approx(expected, rel=1e-9)


def test_signed_ranks_with_ties_are_exact() -> None:
    """All ways to give signs are counted; zeros say nothing."""
    values = np.array([0, 1, 1, -1, 2, 2, 3, -4.0, 0])
    ranks = stats.rankdata(np.abs(values[values != 0]))
    reached = ranks[values[values != 0] > 0].sum()
    ways = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))]
    assert signed_rank_p_value(values) == pytest.approx(np.mean(np.array(ways) >= reached))
    assert signed_rank_p_value(np.zeros(5)) == 1
