"""Ranking of configurations: by the cost of their repeats, and the Pareto frontier.

All pairs of a question are judged together, by Holm's method.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from volbench.analyse.compare.repeat_statistics import Group, contrast, holm, shortage


def orders(groups: Sequence[Group | None]) -> tuple[list[list[int]], list[list[int]]]:
    """Return for each offer which others are shown to be cheaper, and which can't be told from it.

    Args:
        groups: what an I/O costs in each repeat; None where that is not known.
    """
    cheaper: list[list[int]] = [[] for _ in groups]
    indistinct: list[list[int]] = [[] for _ in groups]
    pairs = []
    for first, second in itertools.combinations(range(len(groups)), 2):
        base, other = groups[first], groups[second]
        if base is None or other is None:
            continue
        if shortage(base, other):
            indistinct[first].append(second)
            indistinct[second].append(first)
        else:
            pairs.append((first, second, contrast(base, other)))
    levels = holm([found.p_value for *_, found in pairs])
    for (first, second, found), level in zip(pairs, levels, strict=True):
        interval = found.interval(level)
        if interval.high < 1:
            cheaper[first].append(second)
        elif interval.low > 1:
            cheaper[second].append(first)
        else:
            indistinct[first].append(second)
            indistinct[second].append(first)
    return cheaper, [sorted(others) for others in indistinct]


def no_faster(
    costs: Sequence[float], groups: Sequence[Group | None], front: Sequence[bool]
) -> list[list[int]]:
    """Return for each offer on the front the cheaper ones that it is not shown to be faster than.

    Args:
        costs: of a month.
        groups: rates of each; None where they are not known. Too few repeats say nothing.
        front: who stands on it by the estimates.
    """
    pairs = []
    for place, other in itertools.permutations(range(len(costs)), 2):
        base, candidate = groups[other], groups[place]
        if not front[place] or not costs[other] < costs[place] or not base or not candidate:
            continue
        if not shortage(base, candidate):
            pairs.append((place, other, contrast(base, candidate)))
    levels = holm([found.p_value for *_, found in pairs])
    unsure: list[list[int]] = [[] for _ in costs]
    for (place, other, found), level in zip(pairs, levels, strict=True):
        if found.interval(level).low <= 1:
            unsure[place].append(other)
    return unsure


def on_frontier(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Return which configurations no other one beats.

    One beats another when it costs no more and gives no less, and is better in one of the two
    (Pareto, Manuale di economia politica, 1906).

    Args:
        costs: less is better.
        gains: more is better.

    Returns:
        For each configuration in order; False where cost or gain is NaN.
    """
    points = list(zip(costs, gains, strict=True))
    return [
        not (math.isnan(cost) or math.isnan(gain))
        and not any(_beats(other, (cost, gain)) for other in points)
        for cost, gain in points
    ]


def _beats(point: tuple[float, float], other: tuple[float, float]) -> bool:
    return point[0] <= other[0] and point[1] >= other[1] and point != other
