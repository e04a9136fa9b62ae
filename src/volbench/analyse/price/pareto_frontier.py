"""Pareto frontier of costs and gains."""

from __future__ import annotations

import math
from collections.abc import Sequence


def on_frontier(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Return which configurations no other one beats.

    One beats another when it costs no more and gives no less, and is better in one of the two
    (Pareto, Manuale di economia politica, 1906).

    Args:
        costs: less is better.
        gains: more is better.

    Returns:
        For each offer in order; False where cost or gain is NaN.
    """
    points = list(zip(costs, gains, strict=True))
    return [
        not (math.isnan(cost) or math.isnan(gain))
        and not any(_beats(other, (cost, gain)) for other in points)
        for cost, gain in points
    ]


def _beats(point: tuple[float, float], other: tuple[float, float]) -> bool:
    return point[0] <= other[0] and point[1] >= other[1] and point != other
