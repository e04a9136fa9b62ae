"""Barrier that starts all clients of a step at one instant.

A client is ready when its files are laid out and its process is set up. Only when all are ready is
the start announced, far enough ahead that the announcement reaches everybody before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start

MARGIN_S = 1.0
"""How far ahead the start is announced to a single client."""
MARGIN_PER_CLIENT_S = 0.05
"""How much further for each other client: two cores reach thirty of them within a second."""


@dataclass(frozen=True)
class StartSignal:
    """What a waiting client is to do.

    Attributes:
        at_s: when it starts, in seconds of the controller's clock since 1970; None not to start.
        reason: why not.
    """

    at_s: float | None
    reason: str = ""


class Barrier:
    """One step of a campaign, for all clients that take part in it.

    Args:
        runs: one for each client.
        quorum: how many clients must be ready; with fewer nobody starts.
        clock: seconds since 1970.
    """

    def __init__(
        self, runs: Sequence[Run], *, quorum: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._lock = Lock()
        self._order = [run.id for run in runs]
        self._offset_s = {run.id: run.start_offset_s for run in runs}
        self._is_sequential = any(run.start is Start.SEQUENTIAL for run in runs)
        self._quorum = quorum
        self._clock = clock
        self._ready: set[str] = set()
        self._ended: set[str] = set()
        self._gone: set[str] = set()
        self._at_s: float | None = None
        self._too_few: StartSignal | None = None

    def arrive(self, run_id: str) -> None:
        """Note that a client is ready."""
        with self._lock:
            self._ready.add(run_id)

    def leave(self, run_id: str) -> None:
        """Note that a client has ended, or will not come."""
        with self._lock:
            self._gone.add(run_id)

    def end(self, run_id: str) -> None:
        """Note that a client's process has ended; its results may not have arrived yet."""
        with self._lock:
            self._ended.add(run_id)

    @property
    def is_quiet(self) -> bool:
        """Whether no client measures any more, so that results may use the network."""
        with self._lock:
            return set(self._order) <= self._ended | self._gone

    def signal(self, run_id: str) -> StartSignal | None:
        """Return what a client that is ready does now; None to keep waiting."""
        with self._lock:
            if self._too_few is not None:
                return self._too_few
            if self._at_s is None and not self._is_complete():
                return None
            ready = len(self._ready - self._ended - self._gone)
            if self._at_s is None and ready < self._quorum:
                reason = f"only {ready} of {len(self._order)} clients are ready"
                self._too_few = StartSignal(None, reason)
                return self._too_few
            if self._is_sequential:
                return self._next_in_sequence(run_id)
            if self._at_s is None:
                self._at_s = self._clock() + MARGIN_S + MARGIN_PER_CLIENT_S * len(self._order)
            return StartSignal(self._at_s + self._offset_s[run_id])

    def _is_complete(self) -> bool:
        """Return whether no client is missing; those that ended early count as here."""
        return set(self._order) <= self._ready | self._ended | self._gone

    def _next_in_sequence(self, run_id: str) -> StartSignal | None:
        """Start a client when all before it have ended."""
        before = set(self._order[: self._order.index(run_id)])
        if not before <= self._gone | self._ended:
            return None
        now_s = self._clock() + MARGIN_S
        self._at_s = self._at_s or now_s
        return StartSignal(now_s)
