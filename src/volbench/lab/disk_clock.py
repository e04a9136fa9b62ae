"""Virtual time of the simulated disk (stalls, steps, drift), and pacing of arrivals.

A stall is a speed of 0, a step a constant speed, drift a linear change of speed. Everything in the
disk (limits, latencies, penalties, the cache) is scheduled in virtual time. A step to 0.5 thus
halves every rate and doubles every latency.

Pacing compensates for the overhead of the server. A client that keeps N requests in flight sends
the next one after an answer. Timer, socket and scheduler delay it by about 100 us, during which a
real disk would already be working. A request that arrives shortly after an answer was due is
therefore treated as having arrived when it was due. At queue depth 1, a latency of 2.5 ms then
gives 400 IOPS instead of 385.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate
from math import sqrt

from volbench.lab.disk_parameters import DiskParameters

LEAST_DRIFT = 0.1  # Minimum speed under drift, as a share of the normal speed


class Speed:
    """Conversion between real and virtual time of the disk; both start at 0.

    Args:
        steps: start and speed of each; 1 before the first.
        drift_per_s: change of speed per second.
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
        """Return the virtual time at a real time; before 0 the two are equal."""
        if real_s <= 0:
            return real_s
        piece = bisect_right(self._begins, real_s) - 1
        gone = self._drifted(real_s) - self._drifted(self._begins[piece])
        return self._works[piece] + self._factors[piece] * gone

    def real(self, work_s: float) -> float:
        """Return the real time of a virtual time; for a stall, its end."""
        if work_s < 0:
            return work_s
        piece = bisect_right(self._works, work_s) - 1
        if not self._factors[piece]:  # the end of a final stall
            return self._begins[piece]
        gone = (work_s - self._works[piece]) / self._factors[piece]
        return self._undrifted(self._drifted(self._begins[piece]) + gone)

    def _drifted(self, real_s: float) -> float:
        """Return the integral of the speed under drift alone."""
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
    """Return the speed after an edge, without drift."""
    if any(begin <= at < begin + length for begin, length in stalls):
        return 0.0
    passed = [(begin, factor) for begin, factor in steps if begin <= at]
    return max(passed)[1] if passed else 1.0


class Timeline:
    """Conversion between the server's clock and the virtual time of the disk."""

    def __init__(self, parameters: DiskParameters) -> None:
        self._speed = Speed(
            stalls=parameters.stalls, steps=parameters.steps, drift_per_s=parameters.drift_per_s
        )
        self._at_write = parameters.clock_starts_at_write
        self._first: float | None = None
        self._started = False
        self._offset = 0.0

    def work(self, now: float, *, write: bool) -> float:
        """Return the virtual time; the first request, or the first write, starts the clock."""
        if self._first is None:
            self._first = now
        if not self._started and (write or not self._at_write):
            self._started, self._offset, self._first = True, now - self._first, now
        elapsed = now - self._first
        return self._offset + (self._speed.work(elapsed) if self._started else elapsed)

    def real(self, work: float) -> float:
        """Return the server's time at a virtual time."""
        gone = work - self._offset
        return (self._first or 0.0) + (self._speed.real(gone) if self._started else gone)


# Maximum delay that is treated as overhead; longer delays are think time of the client
PATIENCE_S = 0.001


class Pacer:
    """Matches arrivals with the answers that triggered them."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._due: list[float] = []

    def arrival(self, now: float) -> float:
        """Return the arrival time of a request without overhead."""
        while self._due and self._due[0] < now - self._patience_s:
            heappop(self._due)
        if self._due and self._due[0] <= now:
            return heappop(self._due)
        return now

    def expect(self, due: float) -> None:
        """Record the due time of an answer."""
        heappush(self._due, due)
