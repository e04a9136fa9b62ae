"""Takes the server's own overhead out of the simulation.

A client that keeps N requests in flight sends the next one when one was answered. Between the two
lie a late timer, a socket and a scheduler: some 100 us in which a real disk would have been at work
already. A request that arrives shortly after an answer was due is therefore taken as having arrived
when it was due. At queue depth 1 a latency of 2.5 ms then gives 400 IOPS and not 385.
"""

from __future__ import annotations

from heapq import heappop, heappush

PATIENCE_S = 0.001
"""How much lateness is taken as overhead. A client that thinks longer is taken at its word."""


class Pacer:
    """Matches arrivals with the answers that set them off."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._due: list[float] = []

    def arrival(self, now: float) -> float:
        """Return when a request that came in now should have come in."""
        while self._due and self._due[0] < now - self._patience_s:
            heappop(self._due)
        if self._due and self._due[0] <= now:
            return heappop(self._due)
        return now

    def expect(self, due: float) -> None:
        """Note when an answer is due."""
        heappush(self._due, due)
