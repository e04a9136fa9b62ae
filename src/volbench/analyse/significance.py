"""Student's t, beta quantiles, and p-values of exact tests, for single values.

SciPy has them too, but takes 125 MB and a second to import. The tests compare the results.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from volbench.analyse.frames.resample import Floats

# Relative change below which an iteration has converged: some units in the last place of a float.
# Noticed by: test_significance.py::test_quantiles_are_those_of_scipy
_CONVERGED = 1e-14
# Pairs up to which the distribution of signed ranks is computed; it is close to normal by then.
# Noticed by: test_significance.py::test_signed_ranks_are_those_of_scipy
_MAX_EXACT_PAIRS = 50
# Samples above a percentile: with fewer, its error exceeds a third.
# Noticed by: test_jobs.py::test_too_few_samples_for_a_percentile_are_reported
MIN_SAMPLES_ABOVE = 10


def beta_probability(first: float, second: float, x: float) -> float:
    """Return the regularised incomplete beta function of shape parameters above 0.

    It is a continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), evaluated
    by the method of Lentz (Applied Optics 15, 1976).
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (first + 1) / (first + second + 2):
        return 1 - beta_probability(second, first, 1 - x)
    logarithm = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    front = math.exp(logarithm + first * math.log(x) + second * math.log1p(-x)) / first
    value = above = 1.0
    below = factor = 0.0
    step = 0
    while abs(factor - 1) > _CONVERGED:
        step += 1
        half, place = step // 2, first + step
        term = -(first + half) * (first + second + half) if step % 2 else half * (second - half)
        term *= x / ((place - 1) * place)
        below = 1 / (1 + term * below)
        above = 1 + term / above
        factor = above * below
        value *= factor
    return front / value


def beta_quantile(first: float, second: float, share: float) -> float:
    """Return the value below which a share of the beta distribution lies, by bisection."""
    low, high = 0.0, 1.0
    while high - low > _CONVERGED * high:
        middle = (low + high) / 2
        if beta_probability(first, second, middle) < share:
            low = middle
        else:
            high = middle
    return high


def student_tail(freedom: float, value: float) -> float:
    """Return the probability that Student's t exceeds a value of at least 0."""
    return beta_probability(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2


def student_quantile(freedom: float, share: float) -> float:
    """Return the value below which a share of Student's t lies.

    Newton's method from the normal quantile, which is nearer to 0. The tail is convex there, so
    that each step ends before the quantile.
    """
    if share < 0.5:
        return -student_quantile(freedom, 1 - share)
    value = NormalDist().inv_cdf(share)
    logarithm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    height = logarithm - math.log(freedom * math.pi) / 2
    step = math.inf
    while step > _CONVERGED * value:
        density = math.exp(height - (freedom + 1) / 2 * math.log1p(value * value / freedom))
        step = (student_tail(freedom, value) - (1 - share)) / density
        value += step
    return value


def trend_p_value(values: Floats) -> float:
    """Return the two-sided p-value of Kendall's test for a trend (Biometrika 30, 1938).

    Equal values count as half in order.
    """
    count = len(values)
    order = np.sign(values[None, :] - values[:, None])[np.triu_indices(count, 1)]
    pairs = len(order)
    inversions = (pairs - abs(float(order.sum()))) / 2
    chances = np.ones(1)  # of each number of inversions of a random order
    for length in range(2, count + 1):
        chances = np.convolve(chances, np.full(length, 1 / length))
    return min(1.0, 2 * float(chances[: math.ceil(inversions) + 1].sum()))


def signed_rank_p_value(differences: Floats) -> float:
    """Return the p-value of Wilcoxon's test (Biometrics Bulletin 1, 1945) for values above 0."""
    differences = differences[differences != 0]
    count = len(differences)
    _, place, shared = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(shared) - shared + 1)[place]  # ranks, with halves of ties
    reached = int(doubled[differences > 0].sum())
    if count > _MAX_EXACT_PAIRS:
        above = reached - float(doubled.sum()) / 2
        return 1 - NormalDist().cdf(above / math.sqrt(float((doubled**2).sum()) / 4))
    chances = np.ones(1)  # of each sum of doubled ranks if signs are random
    for rank in doubled:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return float(chances[reached:].sum())


def needed_samples(percentile: float) -> float:
    """Return the samples that a percentile needs: 10 / (1 - p), so that ten are above it."""
    return math.inf if percentile >= 100 else 100 * MIN_SAMPLES_ABOVE / (100 - percentile)
