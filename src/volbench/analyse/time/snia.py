"""Steady state as the SNIA Performance Test Specification defines it: rounds in, judgement out.

PTS 2.0.2, 2.1.24: over a window of five rounds the range of the tracking variable is at most 20 %
of its mean, and the line fitted to it changes by at most 10 % of the mean within the window. The
rule was made for drives in a laboratory. On clouds it rejects volumes that are steady but noisy
and accepts slow declines: volbench reports it, never alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volbench.analyse.time.change_points import Floats, interval_of

ROUNDS = 5
MOST_RANGE = 0.20
MOST_SLOPE = 0.10
WANTED_ROUNDS = 25
"""The specification ends after 25 rounds; a series is cut into at most as many."""


@dataclass(frozen=True)
class Snia:
    """The judgement.

    Attributes:
        steady: whether the last five rounds pass.
        round_s: length of a round; 0 when rounds were given as such.
        values: of the last five rounds, or of fewer when there are no five.
        mean: of them.
        range_ratio: greatest less least, of the mean; NaN with fewer than five.
        slope_ratio: change of the fitted line over the window, of the mean; NaN with fewer.
        at_round: number, from 1, of the first round that ended a window that passed.
    """

    steady: bool
    round_s: float
    values: tuple[float, ...]
    mean: float
    range_ratio: float
    slope_ratio: float
    at_round: int | None


def judge_snia(rounds: Sequence[float], *, round_s: float = 0.0) -> Snia:
    """Judge rounds of a tracking variable, exactly as the specification says."""
    passed = next(
        (
            end
            for end in range(ROUNDS, len(rounds) + 1)
            if _passes(*_ratios(rounds[end - ROUNDS : end]))
        ),
        None,
    )
    window = rounds[-ROUNDS:]
    whole = len(window) == ROUNDS
    range_ratio, slope_ratio = _ratios(window) if whole else (float("nan"), float("nan"))
    return Snia(
        steady=whole and _passes(range_ratio, slope_ratio),
        round_s=round_s,
        values=tuple(float(value) for value in window),
        mean=float(np.mean(window)) if len(window) else float("nan"),
        range_ratio=range_ratio,
        slope_ratio=slope_ratio,
        at_round=passed,
    )


def snia_rounds(t_s: Floats, values: Floats, *, round_s: float | None = None) -> Snia:
    """Cut a series into rounds of equal length, the mean of each being its value, and judge them.

    Args:
        t_s: ends of the intervals, all of the same length.
        values: of the intervals.
        round_s: length of a round; None for 60 s, or less so that there are five at least.
    """
    sample_s = interval_of(t_s)
    wanted = 60.0 if round_s is None else round_s
    if round_s is None:
        wanted = max(min(wanted, len(values) * sample_s / ROUNDS), sample_s)
        wanted = max(wanted, len(values) * sample_s / WANTED_ROUNDS)
    size = max(1, int(wanted / sample_s + 1e-9))
    count = len(values) // size
    means = values[len(values) - count * size :].reshape(count, size).mean(axis=1)
    return judge_snia([float(mean) for mean in means], round_s=size * sample_s)


def _ratios(window: Sequence[float]) -> tuple[float, float]:
    mean = float(np.mean(window))
    if mean == 0:
        return float("inf"), float("inf")
    # Least squares over five even steps, in closed form: exact at the bound, unlike a solver.
    slope = (2 * (window[4] - window[0]) + window[3] - window[1]) / 10
    return (max(window) - min(window)) / mean, abs(slope) * (ROUNDS - 1) / mean


def _passes(range_ratio: float, slope_ratio: float) -> bool:
    return range_ratio <= MOST_RANGE and slope_ratio <= MOST_SLOPE
