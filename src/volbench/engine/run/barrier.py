"""Barrier that starts all clients of a step at one instant.

A client is ready when its files are laid out and its process is set up. When all are ready, or the
missing ones have been silent for too long, every ready client confirms that it is reachable. Only
then is the start announced, far enough ahead to reach every client in time. It is postponed, and at
last revoked, while the machine of a ready client has not acknowledged it. A client that had
started before it was postponed is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import RLock

from volbench.execute.presence import PRESENCE, own_time
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start

# Lead time of the announcement to a single client: a busy controller polls its gates every 0.2 s.
# Noticed by: test_start.py::test_the_true_skew_is_within_the_reported_bound
MARGIN_S = 1.0
# Additional lead time per client: two cores reach thirty clients within a second (measured).
# Noticed by: test_skew.py::test_32_hosts_start_together
MARGIN_PER_CLIENT_S = 0.05
# Wait of ready clients for a silent one, from the last arrival, for its confirmation, and for its
# acknowledgement of the start: a host restarts within it, and a cut of a minute is bridged.
# Noticed by: test_barrier.py::test_a_silent_client_is_waited_for_only_so_long
READY_TIMEOUT_S = 120.0
# Time before the start that is reserved for postponing it: two polls of a gate.
# Noticed by: test_barrier.py::test_start_is_postponed_until_every_client_has_received_it
POSTPONE_S = 0.4
# Round trips of the slowest link on top of the lead time, and of the time to postpone: half of one
# carries an instruction, as much its acknowledgement, and a lost packet takes another.
# Noticed by: test_skew.py::test_32_hosts_start_together
ROUND_TRIPS = 2
# Additional time to postpone for each client: two cores write 200 files a second to hosts.
# Noticed by: test_skew.py::test_32_hosts_start_together
POSTPONE_PER_CLIENT_S = 0.005


@dataclass(frozen=True)
class StartSignal:
    """Instruction to a waiting client."""

    # start time in seconds of the controller's clock since 1970; None not to start
    at_s: float | None
    reason: str = ""  # reason for not starting
    # start even if the instruction arrives after its time, as no other client waits
    may_be_late: bool = False


@dataclass(frozen=True)
class WaitPolicy:
    """Timeouts of a barrier."""

    ready_timeout_s: float = READY_TIMEOUT_S  # maximum wait for silent clients
    # returns the time since the machine of a run last answered
    silent_s: Callable[[Run], float] = lambda _run: 0.0
    # returns whether a run's client was late before and has been silent since
    is_given_up: Callable[[Run], bool] = lambda _run: False
    round_trip_s: float = 0.0  # longest round trip to any client's machine
    # called with the runs that the step no longer waits for
    on_late: Callable[[Sequence[Run]], None] = lambda _runs: None


class Barrier:
    """Barrier of one step of a campaign, shared by all clients of the step.

    Args:
        quorum: minimum number of ready clients; with fewer, no client starts.
        held_back: reason why no client may start; empty to allow the start.
        clock: returns seconds since 1970.
        elapsed: monotonic clock in seconds, which stands while the controller is stopped.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        quorum: int,
        wait: WaitPolicy | None = None,
        held_back: str = "",
        clock: Callable[[], float] = own_time,
        elapsed: Callable[[], float] = PRESENCE.attended_s,
    ) -> None:
        self._lock = RLock()
        self._runs = {run.id: run for run in runs}
        self._is_sequential = any(run.start is Start.SEQUENTIAL for run in runs)
        self._quorum = quorum
        self._wait = wait or WaitPolicy()
        self._clock = clock
        self._elapsed = elapsed
        self._missing = set(self._runs)
        self._ready: set[str] = set()
        self._busy = set(self._runs)
        self._inside = set(self._runs)
        self._late: set[str] = set()
        self._confirmed: set[str] = set()
        self._arrived_s = 0.0
        self._confirm_until_s: float | None = None
        self._at_s: float | None = None
        self._announce_until_s = 0.0
        self._unacknowledged: set[str] = set()
        self._reasons: dict[str, str] = {}  # of clients that have left
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
            self._enter(run_id)
            self._arrived_s = self._elapsed()

    def must_confirm(self, run_id: str) -> bool:
        """Return whether the start waits for the confirmation of a ready client."""
        with self._lock:
            self._decide()
            is_decided = self._at_s is not None or self._too_few is not None
            is_due = self._confirm_until_s is not None and not self._is_sequential
            is_open = run_id not in self._confirmed and run_id not in self._late
            return is_due and not is_decided and is_open

    def confirm(self, run_id: str) -> None:
        """Record the confirmation of a ready client."""
        with self._lock:
            self._confirmed.add(run_id)

    def release(self, run_id: str) -> None:
        """Record that an earlier controller has already announced a start to a client."""
        with self._lock:
            self._enter(run_id)
            self._confirmed.add(run_id)
            self._released.add(run_id)

    def acknowledge(self, run_id: str, signal: StartSignal) -> None:
        """Record that a client's machine has received a start."""
        with self._lock:
            if self._at_s is not None and signal.at_s == self._start_s(run_id, self._at_s):
                self._unacknowledged.discard(run_id)

    def is_final(self, run_id: str, signal: StartSignal) -> bool:
        """Return whether an instruction to a client is neither postponed nor revoked any more."""
        with self._lock:
            if signal.at_s is None or signal.may_be_late:
                return True
            return self.signal(run_id) == signal and self._is_final

    def leave(self, run_id: str, reason: str = "") -> None:
        """Record that a client has ended, or will not take part."""
        with self._lock:
            self._reasons[run_id] = reason
            self._inside.discard(run_id)
            self._remove([run_id])

    def end(self, run_id: str) -> None:
        """Record that a client's process has ended; its results may not have been fetched yet."""
        with self._lock:
            self._remove([run_id])

    @property
    def is_quiet(self) -> bool:
        """Whether all measurements have ended, so that results may use the network.

        A client that has been silent for `WaitPolicy.ready_timeout_s` counts as ended.
        """
        with self._lock:
            silent_s = (self._wait.silent_s(self._runs[run_id]) for run_id in self._busy)
            return all(seconds >= self._wait.ready_timeout_s for seconds in silent_s)

    @property
    def is_over(self) -> bool:
        """Whether all clients have left, so that the next step in turn may begin.

        A client that has been silent for `WaitPolicy.ready_timeout_s` counts as gone.
        """
        with self._lock:
            silent_s = (self._wait.silent_s(self._runs[run_id]) for run_id in self._inside)
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
                if next((other for other in self._runs if other in self._busy), run_id) != run_id:
                    return None  # a predecessor has not ended
                return StartSignal(self._clock() + self._margin_s, may_be_late=True)
            if self._at_s is not None:
                return StartSignal(self._start_s(run_id, self._at_s))
            return None

    def _enter(self, run_id: str) -> None:
        self._missing.discard(run_id)
        if run_id in self._busy:
            self._ready.add(run_id)

    def _remove(self, run_ids: Collection[str]) -> None:
        """Expect nothing more of some clients."""
        for group in (self._missing, self._ready, self._busy, self._unacknowledged):
            group.difference_update(run_ids)

    def _start_s(self, run_id: str, at_s: float) -> float:
        return at_s + self._runs[run_id].start_offset_s

    def _announce(self) -> None:
        """Set the start time, to be acknowledged by every ready client."""
        self._at_s = self._clock() + self._margin_s
        self._unacknowledged = self._ready - self._released

    def _decide(self) -> None:
        """Take the next decision that is due: missing clients, confirmations, start time."""
        if self._too_few is not None or self._is_final:
            return
        if self._at_s is not None:
            self._settle_start(self._at_s)
            return
        if self._confirm_until_s is None:
            if self._missing and not self._is_overdue():
                return
            self._mark_late(self._missing)
            if self._has_quorum():
                self._confirm_until_s = self._elapsed() + self._wait.ready_timeout_s
        if self._too_few is None and not self._is_sequential:
            self._start_confirmed()

    def _is_overdue(self) -> bool:
        """Return whether the wait for missing clients has timed out."""
        if not self._ready:
            return False
        runs = (self._runs[run_id] for run_id in self._missing)
        timeout_s = self._wait.ready_timeout_s
        if self._elapsed() - self._arrived_s >= timeout_s:
            return all(self._wait.silent_s(run) >= timeout_s for run in runs)
        return all(self._wait.is_given_up(run) for run in runs)

    def _start_confirmed(self) -> None:
        """Set the start time once every ready client has confirmed or timed out."""
        is_over = self._elapsed() >= (self._confirm_until_s or 0.0)
        if not is_over and not self._ready <= self._confirmed:
            return
        self._mark_late(self._ready - self._confirmed)
        if self._has_quorum():
            self._announce()
            self._announce_until_s = self._elapsed() + self._wait.ready_timeout_s

    def _settle_start(self, at_s: float) -> None:
        """Confirm an announced start that all ready clients have received.

        Shortly before its time, it is postponed for the clients that have not; after
        `WaitPolicy.ready_timeout_s` these are left behind.
        """
        if not self._has_quorum():
            return
        if not self._unacknowledged:
            self._is_final = True
        elif self._clock() >= at_s - self._postpone_s:
            if self._elapsed() >= self._announce_until_s:
                self._mark_late(self._unacknowledged)
                self._announce_until_s = self._elapsed() + self._wait.ready_timeout_s
            if self._has_quorum():
                self._announce()

    @property
    def _postpone_s(self) -> float:
        own_s = POSTPONE_S + self._on_the_way_s
        return own_s + POSTPONE_PER_CLIENT_S * len(self._runs)

    @property
    def _margin_s(self) -> float:
        """Lead time of a start, which has to be written and may have to be postponed."""
        own_s = MARGIN_S + self._on_the_way_s
        if self._is_sequential:
            return own_s
        return own_s + self._on_the_way_s + MARGIN_PER_CLIENT_S * len(self._runs)

    @property
    def _on_the_way_s(self) -> float:
        return ROUND_TRIPS * self._wait.round_trip_s

    def _mark_late(self, run_ids: Collection[str]) -> None:
        if run_ids:
            late = [run for run in self._runs.values() if run.id in run_ids]
            self._late.update(run_ids)
            self._remove([run.id for run in late])
            self._wait.on_late(late)

    def _has_quorum(self) -> bool:
        count = len(self._ready)
        if count >= self._quorum:
            return True
        text = f"only {count} of {len(self._runs)} clients are ready{self._missing_text()}"
        self._too_few = StartSignal(None, text)
        return False

    def _missing_text(self) -> str:
        groups: dict[str, list[str]] = {}
        for run in self._runs.values():
            if run.id in self._late:
                groups.setdefault("did not answer", []).append(run.client_name)
            elif run.id not in self._ready:
                reason = self._reasons.get(run.id)
                words = f"cannot go on ({reason})" if reason else "ended or lost before the start"
                groups.setdefault(words, []).append(run.client_name)
        listed = [f"{', '.join(names)} {words}" for words, names in groups.items()]
        return f": {'; '.join(listed)}" if listed else ""
