"""Where the clients of one step wait for each other: ready clients enter, a common start leaves.

Every client says when it is ready: its files are laid out, its process is set up. Only then is the
start made known, far enough ahead that the news arrives everywhere before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start

MARGIN_S = 1.0
"""How far ahead the start is made known to a single client."""
MARGIN_PER_CLIENT_S = 0.05
"""How much longer for each further client: two cores tell thirty of them within a second."""


@dataclass(frozen=True)
class Call:
    """What a client that waits is told.

    Attributes:
        at_s: when it starts, in seconds of the controller's clock since 1970; None not to.
        reason: why not.
    """

    at_s: float | None
    reason: str = ""


class Barrier:
    """One step of a campaign, for all clients that take part in it.

    Args:
        runs: one for each client.
        least: how many clients must be ready; with fewer nobody starts.
        clock: seconds since 1970.
    """

    def __init__(
        self, runs: Sequence[Run], *, least: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._lock = Lock()
        self._order = [run.id for run in runs]
        self._offset_s = {run.id: run.start_offset_s for run in runs}
        self._in_turn = any(run.start is Start.SEQUENTIAL for run in runs)
        self._least = least
        self._clock = clock
        self._ready: set[str] = set()
        self._ended: set[str] = set()
        self._gone: set[str] = set()
        self._at_s: float | None = None
        self._too_few: Call | None = None

    def arrive(self, run_id: str) -> None:
        """Say that a client is ready."""
        with self._lock:
            self._ready.add(run_id)

    def leave(self, run_id: str) -> None:
        """Say that a client has ended, or will not come."""
        with self._lock:
            self._gone.add(run_id)

    def end(self, run_id: str) -> None:
        """Say that a client's process has ended; its results may still be on their way."""
        with self._lock:
            self._ended.add(run_id)

    @property
    def is_quiet(self) -> bool:
        """Whether no client measures any more, so that results may use the network."""
        with self._lock:
            return all(one in self._ended or one in self._gone for one in self._order)

    def call(self, run_id: str) -> Call | None:
        """Return what a client that is ready does now; None to wait on."""
        with self._lock:
            if self._too_few is not None:
                return self._too_few
            if self._at_s is None and not self._is_complete():
                return None
            ready = len(self._ready - self._ended - self._gone)
            if self._at_s is None and ready < self._least:
                told = f"only {ready} of {len(self._order)} clients are ready"
                self._too_few = Call(None, told)
                return self._too_few
            if self._in_turn:
                return self._turn(run_id)
            if self._at_s is None:
                self._at_s = self._clock() + MARGIN_S + MARGIN_PER_CLIENT_S * len(self._order)
            return Call(self._at_s + self._offset_s[run_id])

    def _is_complete(self) -> bool:
        """Tell whether nobody is to be waited for: one that ended too early is not ready."""
        return set(self._order) <= self._ready | self._ended | self._gone

    def _turn(self, run_id: str) -> Call | None:
        """Let a client start when all before it have ended."""
        before = self._order[: self._order.index(run_id)]
        if not all(one in self._gone or one in self._ended for one in before):
            return None
        now_s = self._clock() + MARGIN_S
        self._at_s = self._at_s or now_s
        return Call(now_s)
