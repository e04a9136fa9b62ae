"""How fast time passes inside the disk: stalls, steps and drift; real seconds in and out.

A stall is a speed of 0, a step a speed of its own, drift a speed that changes evenly. Everything in
the disk (caps, latencies, penalties, the cache) is scheduled in its own time. A step to 0.5 thus
halves every rate and doubles every latency.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import sqrt

LEAST_DRIFT = 0.1
"""Drift never takes more than nine tenths of the speed."""


class Speed:
    """The relation between real time and the disk's own time; both begin at 0.

    Args:
        stalls: begin and length of each.
        steps: begin and speed of each; 1 before the first.
        drift_per_s: change of the speed a second.
    """

    def __init__(
        self,
        *,
        stalls: Sequence[tuple[float, float]] = (),
        steps: Sequence[tuple[float, float]] = (),
        drift_per_s: float = 0.0,
    ) -> None:
        self._drift = drift_per_s
        self._floor_at = (LEAST_DRIFT - 1) / drift_per_s if drift_per_s < 0 else float("inf")
        edges = {0.0, *(at for at, _ in steps)}
        edges |= {edge for at, length in stalls for edge in (at, at + length)}
        self._begins = sorted(edges)
        self._factors = [_factor(at, stalls, steps) for at in self._begins]
        pieces = zip(self._factors, self._begins, self._begins[1:], strict=False)
        grown = (
            factor * (self._drifted(end) - self._drifted(begin)) for factor, begin, end in pieces
        )
        self._works = list(accumulate(grown, initial=0.0))

    def work(self, real_s: float) -> float:
        """Return the disk's own time at a real time; before 0 the two are the same."""
        if real_s <= 0:
            return real_s
        piece = bisect_right(self._begins, real_s) - 1
        gone = self._drifted(real_s) - self._drifted(self._begins[piece])
        return self._works[piece] + self._factors[piece] * gone

    def real(self, work_s: float) -> float:
        """Return the real time at which the disk's own time is reached; the end of a stall."""
        if work_s < 0:
            return work_s
        piece = bisect_right(self._works, work_s) - 1
        if not self._factors[piece]:  # a time at the very end of a stall that nothing follows
            return self._begins[piece]
        gone = (work_s - self._works[piece]) / self._factors[piece]
        return self._undrifted(self._drifted(self._begins[piece]) + gone)

    def _drifted(self, real_s: float) -> float:
        """Return the integral of drift alone."""
        until = min(real_s, self._floor_at)
        return until + self._drift * until**2 / 2 + LEAST_DRIFT * (real_s - until)

    def _undrifted(self, value: float) -> float:
        """Return the inverse of `_drifted`."""
        if self._floor_at < float("inf") and value > self._drifted(self._floor_at):
            return self._floor_at + (value - self._drifted(self._floor_at)) / LEAST_DRIFT
        root = sqrt(max(0.0, 1 + 2 * self._drift * value))
        return 2 * value / (1 + root)


def _factor(
    at: float, stalls: Sequence[tuple[float, float]], steps: Sequence[tuple[float, float]]
) -> float:
    """Return the speed from one edge on, without drift."""
    if any(begin <= at < begin + length for begin, length in stalls):
        return 0.0
    passed = [(begin, factor) for begin, factor in steps if begin <= at]
    return max(passed)[1] if passed else 1.0
