"""Token buckets by virtual scheduling: when a request of some cost is admitted.

The generic cell rate algorithm (ITU-T I.371, annex A, "virtual scheduling") keeps one number a
bucket: when the next request is due at the refill rate. Nothing is counted in ticks, so a cap is
exact over any span longer than the slack.
"""

from __future__ import annotations

from collections.abc import Iterable

from volbench.lab.disk_parameters import BucketParameters

SLACK_S = 0.002
"""How far a cap may be behind its schedule and catch up: a hiccup of the machine, no burst."""


class Bucket:
    """One token bucket; times never need to be in order."""

    def __init__(self, parameters: BucketParameters) -> None:
        self._rate = parameters.rate
        self._ahead_s = max(SLACK_S, parameters.depth / parameters.rate)
        self._due = float("-inf")

    def earliest(self, at: float) -> float:
        """Return when a request of time `at` may pass."""
        return max(at, self._due - self._ahead_s)

    def take(self, at: float, cost: float) -> None:
        """Let a request of some cost pass."""
        self._due = max(self._due, at) + cost / self._rate


class Admission:
    """All buckets of a disk: a request waits until each lets it pass, first come first served."""

    def __init__(
        self, *, requests: Iterable[BucketParameters], volume: Iterable[BucketParameters]
    ) -> None:
        self._requests = [Bucket(parameters) for parameters in requests]
        self._bytes = [Bucket(parameters) for parameters in volume]
        self._last = float("-inf")

    def admit(self, at: float, length_bytes: int) -> float:
        """Return when a request passes, and charge it."""
        if not self._requests and not self._bytes:
            return at
        for bucket in (*self._requests, *self._bytes):
            at = bucket.earliest(at)
        at = max(at, self._last)
        for bucket in self._requests:
            bucket.take(at, 1)
        for bucket in self._bytes:
            bucket.take(at, length_bytes)
        self._last = at
        return at
