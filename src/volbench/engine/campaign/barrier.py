"""Barrier that starts all clients of a step at one instant.

A client is ready when its files are laid out and its process is set up. When all are ready, or the
missing ones have been silent for too long, every ready client confirms that it is reachable. Only
then is the start announced, far enough ahead to reach every client in time. It is postponed, and at
last revoked, while the machine of a ready client has not acknowledged it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import RLock

from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start

MARGIN_S = 1.0
"""Lead time of the start announcement to a single client."""
MARGIN_PER_CLIENT_S = 0.05
"""Additional lead time per further client: two cores reach thirty clients within a second."""
READY_TIMEOUT_S = 120.0
"""Time for which ready clients wait for a silent client, counted from the last arrival."""
CONFIRM_S = 20.0
"""Time limit for a ready client to confirm, and then to acknowledge a start; it polls its process
and sampler meanwhile."""
POSTPONE_S = 0.4
"""Time before the start that is reserved for postponing it; four round trips come on top."""
POSTPONE_PER_CLIENT_S = 0.005
"""Additional time for each client."""


@dataclass(frozen=True)
class StartSignal:
    """Instruction to a waiting client.

    Attributes:
        at_s: start time in seconds of the controller's clock since 1970; None not to start.
        reason: reason for not starting.
        may_be_late: start even if the instruction arrives after its time, as no other client waits.
    """

    at_s: float | None
    reason: str = ""
    may_be_late: bool = False


@dataclass(frozen=True)
class WaitPolicy:
    """Timeouts of a barrier.

    Attributes:
        ready_timeout_s: maximum wait for silent clients.
        silent_s: returns the time since the machine of a run last answered.
        is_given_up: returns whether a run's client was late before and has been silent since.
        round_trip_s: longest round trip to any client's machine.
        on_late: called with the runs that the step no longer waits for.
    """

    ready_timeout_s: float = READY_TIMEOUT_S
    silent_s: Callable[[Run], float] = lambda _run: 0.0
    is_given_up: Callable[[Run], bool] = lambda _run: False
    round_trip_s: float = 0.0
    on_late: Callable[[Sequence[Run]], None] = lambda _runs: None


class Barrier:
    """Barrier of one step of a campaign, shared by all clients of the step.

    Args:
        runs: one for each client.
        quorum: minimum number of ready clients; with fewer, no client starts.
        wait: timeouts for missing clients.
        held_back: reason why no client may start; empty to allow the start.
        clock: returns seconds since 1970.
        elapsed: monotonic clock in seconds.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        quorum: int,
        wait: WaitPolicy | None = None,
        held_back: str = "",
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lock = RLock()
        self._runs = {run.id: run for run in runs}
        self._is_sequential = any(run.start is Start.SEQUENTIAL for run in runs)
        self._quorum = quorum
        self._wait = wait or WaitPolicy()
        self._clock = clock
        self._elapsed = elapsed
        self._ready: set[str] = set()
        self._confirmed: set[str] = set()
        self._ended: set[str] = set()
        self._gone: set[str] = set()
        self._late: set[str] = set()
        self._arrived_s = 0.0
        self._confirm_until_s: float | None = None
        self._at_s: float | None = None
        self._announce_until_s = 0.0
        self._acknowledged: dict[str, float] = {}
        self._released: set[str] = set()
        self._is_final = False
        self._too_few = StartSignal(None, held_back) if held_back else None

    @property
    def size(self) -> int:
        """Number of clients."""
        return len(self._runs)

    def arrive(self, run_id: str) -> None:
        """Record that a client is ready."""
        with self._lock:
            self._ready.add(run_id)
            self._arrived_s = self._elapsed()

    def must_confirm(self, run_id: str) -> bool:
        """Return whether the start waits for the confirmation of a ready client."""
        with self._lock:
            self._decide()
            is_decided = self._at_s is not None or self._too_few is not None
            is_due = self._confirm_until_s is not None and not self._is_sequential
            return is_due and not is_decided and run_id not in self._confirmed | self._late

    def confirm(self, run_id: str) -> None:
        """Record the confirmation of a ready client."""
        with self._lock:
            self._confirmed.add(run_id)

    def release(self, run_id: str) -> None:
        """Record that an earlier controller has already announced a start to a client."""
        with self._lock:
            self._ready.add(run_id)
            self._confirmed.add(run_id)
            self._released.add(run_id)

    def acknowledge(self, run_id: str, signal: StartSignal) -> None:
        """Record that a client's machine has received a start."""
        with self._lock:
            if signal.at_s is not None:
                self._acknowledged[run_id] = signal.at_s

    def is_final(self, run_id: str, signal: StartSignal) -> bool:
        """Return whether an instruction to a client is neither postponed nor revoked any more."""
        with self._lock:
            if signal.at_s is None or signal.may_be_late:
                return True
            return self.signal(run_id) == signal and self._is_final

    def leave(self, run_id: str) -> None:
        """Record that a client has ended, or will not take part."""
        with self._lock:
            self._gone.add(run_id)

    def end(self, run_id: str) -> None:
        """Record that a client's process has ended; its results may not have been fetched yet."""
        with self._lock:
            self._ended.add(run_id)

    @property
    def is_quiet(self) -> bool:
        """Whether all measurements have ended, so that results may use the network.

        A client that has been silent for `WaitPolicy.ready_timeout_s` counts as ended.
        """
        with self._lock:
            busy = self._runs.keys() - self._ended - self._gone - self._late
            silent_s = (self._wait.silent_s(self._runs[run_id]) for run_id in busy)
            return all(seconds >= self._wait.ready_timeout_s for seconds in silent_s)

    def signal(self, run_id: str) -> StartSignal | None:
        """Return the instruction to a ready client; None to keep waiting."""
        with self._lock:
            self._decide()
            if run_id in self._late:
                return StartSignal(None, "it was not ready in time; the others did not wait for it")
            if self._too_few is not None:
                return self._too_few
            if self._is_sequential and self._confirm_until_s is not None:
                return self._next_in_sequence(run_id)
            if self._at_s is not None:
                return StartSignal(self._at_s + self._runs[run_id].start_offset_s)
            return None

    def _decide(self) -> None:
        """Take the next decision that is due: missing clients, confirmations, start time."""
        if self._too_few is not None or self._is_final:
            return
        if self._at_s is not None:
            self._settle_start(self._at_s)
            return
        if self._confirm_until_s is None:
            missing = set(self._runs) - self._ready - self._ended - self._gone
            if missing and not self._is_overdue(missing):
                return
            self._mark_late(missing)
            if self._has_quorum():
                self._confirm_until_s = self._elapsed() + CONFIRM_S
        if self._too_few is None and not self._is_sequential:
            self._start_confirmed()

    def _is_overdue(self, missing: Collection[str]) -> bool:
        """Return whether the wait for missing clients has timed out."""
        runs = [self._runs[run_id] for run_id in missing]
        if not self._ready - self._ended - self._gone:
            return False
        if all(self._wait.is_given_up(run) for run in runs):
            return True
        waited_s = self._elapsed() - self._arrived_s
        silent_s = min(self._wait.silent_s(run) for run in runs)
        return min(waited_s, silent_s) >= self._wait.ready_timeout_s

    def _start_confirmed(self) -> None:
        """Set the start time once every ready client has confirmed or timed out."""
        unconfirmed = self._ready - self._ended - self._gone - self._late - self._confirmed
        if unconfirmed and self._elapsed() < (self._confirm_until_s or 0.0):
            return
        self._mark_late(unconfirmed)
        if self._has_quorum():
            self._at_s = self._clock() + self._margin_s
            self._announce_until_s = self._elapsed() + CONFIRM_S

    def _settle_start(self, at_s: float) -> None:
        """Confirm an announced start that all ready clients have received.

        Shortly before its time, it is postponed for the clients that have not; after `CONFIRM_S`
        these are left behind.
        """
        if not self._has_quorum():
            return
        waiting = self._ready - self._ended - self._gone - self._late - self._released
        missing = {
            run_id
            for run_id in waiting
            if self._acknowledged.get(run_id) != at_s + self._runs[run_id].start_offset_s
        }
        if not missing:
            self._is_final = True
        elif self._clock() >= at_s - self._postpone_s:
            if self._elapsed() >= self._announce_until_s:
                self._mark_late(missing)
                self._announce_until_s = self._elapsed() + CONFIRM_S
            if self._has_quorum():
                self._at_s = self._clock() + self._margin_s

    @property
    def _postpone_s(self) -> float:
        own_s = POSTPONE_S + 4 * self._wait.round_trip_s
        return own_s + POSTPONE_PER_CLIENT_S * len(self._runs)

    @property
    def _margin_s(self) -> float:
        """Lead time of a start: writing it takes four round trips, and so does postponing it."""
        own_s = MARGIN_S + 4 * self._wait.round_trip_s
        if self._is_sequential:
            return own_s
        return own_s + 4 * self._wait.round_trip_s + MARGIN_PER_CLIENT_S * len(self._runs)

    def _mark_late(self, run_ids: Collection[str]) -> None:
        if run_ids:
            self._late.update(run_ids)
            self._wait.on_late([run for run in self._runs.values() if run.id in run_ids])

    def _has_quorum(self) -> bool:
        """Return whether enough clients are ready; if not, record the reason."""
        ready = self._ready - self._ended - self._gone - self._late
        if len(ready) >= self._quorum:
            return True
        self._too_few = StartSignal(
            None,
            f"only {len(ready)} of {len(self._runs)} clients are ready{self._missing_text(ready)}",
        )
        return False

    def _missing_text(self, ready: Collection[str]) -> str:
        """Return the names of the missing clients, with reasons."""
        groups = {
            "did not answer": self._late,
            "ended or lost before the start": set(self._runs) - self._late - set(ready),
        }
        listed = [
            f"{', '.join(client_name(run) for run in self._runs.values() if run.id in ids)} {words}"
            for words, ids in groups.items()
            if ids
        ]
        return f": {'; '.join(listed)}" if listed else ""

    def _next_in_sequence(self, run_id: str) -> StartSignal | None:
        """Start a client when all its predecessors have ended."""
        order = list(self._runs)
        before = set(order[: order.index(run_id)])
        if not before <= self._gone | self._ended | self._late:
            return None
        return StartSignal(self._clock() + self._margin_s, may_be_late=True)


def client_name(run: Run) -> str:
    """Return the display name of a run's client."""
    return f"{run.host} client {run.client}" if run.client else run.host
