"""Start gate of a client: its process reports ready, the controller announces the start.

The process waits in `agent.gate`, which fio runs as ``exec_prerun`` once its files are laid out and
its jobs are set up, right before its clock starts (measured: thirty clients start within 50 ms;
a process that sleeps and then starts fio takes seconds on a busy machine).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from volbench.engine.hosts.connected_host import Clock, estimate_clock
from volbench.engine.run.barrier import Barrier, StartSignal
from volbench.engine.run.stop_request import StopRequest
from volbench.execute.agent.files import read_files, write_files
from volbench.execute.agent.gate import GO, LATE, MISSED, NEVER, READY, WOKE
from volbench.execute.presence import own_time
from volbench.execute.protocol import Executor, Process

_POLL_S = 0.2  # Of a barrier whose start is announced at least 1 s ahead.
# The same once a client has confirmed: its start may have to be postponed within 0.4 s.
# Noticed by: test_start_gate.py::test_lost_link_after_one_announcement_starts_no_client_alone
_CONFIRMED_POLL_S = 0.02
# A machine that was heard of within this time is reachable; it pushes something every second.
# Noticed by: test_start.py::test_a_hung_host_delays_the_others_only_briefly
_HEARD_S = 1.5
# A process that follows a start has recorded that so long after it, also on a busy machine.
# Noticed by: test_start_gate.py::test_client_that_may_be_waking_up_has_not_received_a_later_start
_WOKEN_S = 1.0
# Starts that differ by less are the same: they are written in microseconds.
# Noticed by: test_loopback_fleet.py::test_false_start_is_left_behind
_SAME_S = 1e-3
# Additional time between two polls for each client of a step, which all poll one barrier: 500
# clients took 0.6 of a core before. Noticed by: fleet.py
_PER_CLIENT_S = 0.001


class Gate:
    """Start gate of one run.

    Args:
        patience_s: maximum wait of the process for its start without a controller.
    """

    def __init__(self, barrier: Barrier, run_id: str, clock: Clock, *, patience_s: float) -> None:
        self._barrier = barrier
        self._run_id = run_id
        self._clock = clock  # of the process's own time, once it is ready
        self._lead_s = clock.lead_s
        self.patience_s = patience_s
        self._executor: Executor | None = None
        self._folder = ""
        self._process: Process | None = None
        self._polled_s = 0.0
        self._ready_s: float | None = None
        self._arrived_s = 0.0
        self._at_s: float | None = None
        self._reason = ""
        self._announced: StartSignal | None = None
        # earliest start that the process may follow, as no later one reached its machine in time
        self._due_s = math.inf
        self.is_void = False  # whether the process followed a start that holds for no other client
        self._is_settled = False
        self._is_confirmed = False
        self._is_resting = False
        self._active_s = time.monotonic()

    @property
    def held_back(self) -> str:
        """Reason why a ready process did not start; empty if it did, or was never ready."""
        if self._ready_s is None or self._at_s is not None:
            return ""
        return self._reason or "no start was announced"

    @property
    def waited_s(self) -> float:
        """Time the process waited at the gate, in seconds, which the run's deadline excludes."""
        if not self._arrived_s:
            return 0.0
        begin_s = own_time() if self._at_s is None else self._at_s
        return max(0.0, begin_s - self._arrived_s)

    @property
    def poll_s(self) -> float:
        """Longest time until the next poll."""
        if self._is_settled:
            return math.inf
        least_s = _CONFIRMED_POLL_S if self._is_confirmed else _POLL_S
        return max(least_s, _PER_CLIENT_S * self._barrier.size)

    @property
    def active_for_s(self) -> float:
        """Seconds since it last waited for other clients; 0 while it does."""
        return 0.0 if self._is_resting else time.monotonic() - self._active_s

    @property
    def is_waiting(self) -> bool:
        """Whether the process has not started yet."""
        return self._at_s is None or own_time() < self._at_s

    def open_for(self, executor: Executor, folder: str) -> None:
        """Take note of the folder of a process that is about to be started."""
        self._executor, self._folder = executor, folder

    @property
    def followed(self) -> tuple[str, ...]:
        """Files that tell of the process's state; it is watched closely until the first appears."""
        return tuple(f"{self._folder}/{name}" for name in (READY, WOKE, MISSED))

    def follow(self, process: Process) -> None:
        """Learn the state of a process from the events of its machine, if it has a handle."""
        self._process = process if process.handle else None

    def reopen(self, executor: Executor, folder: str) -> None:
        """Take over a process that an earlier controller started and may have released."""
        self.open_for(executor, folder)
        go, ready = executor.ask(read_files, [f"{folder}/{GO}", f"{folder}/{READY}"])
        self._measure_clock(executor, ready)
        if (go or "").strip() == NEVER:
            self._reason = "an earlier controller revoked its start"
        else:
            self._at_s = self._time_of(go)
            if self._at_s is None:
                return
            self._barrier.release(self._run_id)
        self._ready_s = self._time_of(ready)
        self._is_settled = True

    def wait_until_quiet(self, stop: StopRequest) -> None:
        """Wait until all clients of the step have ended their measurements."""
        self._barrier.end(self._run_id)
        self._rest()
        while not self._barrier.is_quiet and not stop.requested:
            time.sleep(max(_POLL_S, 4 * _PER_CLIENT_S * self._barrier.size))
        self._act()

    def poll(self) -> None:
        """Take the next step that is due: report ready, confirm, announce the start.

        It never waits for other clients; `poll_s` says when it is to be called again.
        """
        if self._executor is None or self._is_settled:
            return
        now_s = time.monotonic()
        is_ready_now = self._ready_s is None and self._pushed(READY) is not None
        if not is_ready_now and now_s - self._polled_s < 0.9 * self.poll_s:
            return
        self._polled_s = now_s
        if self._ready_s is None:
            ready = self._reported(READY)
            if self._time_of(ready) is None:
                return
            self._arrived_s = own_time()
            self._measure_clock(self._executor, ready)
            self._ready_s = self._time_of(ready)
            self._barrier.arrive(self._run_id)
        if self._barrier.must_confirm(self._run_id):
            self._confirm(self._executor)
        if (signal := self._barrier.signal(self._run_id)) is not None:
            self._announce(self._executor, signal)

    def _measure_clock(self, executor: Executor, ready: str | None) -> None:
        """Measure the offset of a ready process's own time; the more precise of two values counts.

        The clock of its machine may have been set since it was surveyed.
        """
        fields = [float(field) for field in (ready or "").split()]
        readings = executor.clock() if len(fields) > 1 else ()
        if readings:
            lead_s = fields[0] - fields[1]
            own = [replace(each, remote_s=each.steady_s + lead_s) for each in readings]
            found, known = estimate_clock(own), self._clock
            is_moved = abs(found.offset_s - known.offset_s) > found.bound_s + known.bound_s
            self._clock = found if is_moved or found.bound_s < known.bound_s else known

    def _announce(self, executor: Executor, signal: StartSignal) -> None:
        """Write a start that is new; follow it until it is neither postponed nor revoked."""
        if signal != self._announced:
            self._act()
            announcement = _announcement(signal, self._clock)
            self._due_s = min(self._due_s, math.inf if signal.at_s is None else signal.at_s)
            executor.ask(write_files, {f"{self._folder}/{GO}": f"{announcement}\n"})
            self._announced = signal
            self._at_s, self._reason = signal.at_s, signal.reason
            if self._is_received(signal):
                self._barrier.acknowledge(self._run_id, signal)
            self._is_confirmed = True
            self._rest()
        if not self._is_settled and self._barrier.is_final(self._run_id, signal):
            self._is_settled = True
            self._act()

    def _is_received(self, signal: StartSignal) -> bool:
        """Return whether the process follows a start that was written.

        If an earlier start was due before the reply, it may have followed that one: the link was
        lost when its machine had received it.
        """
        if signal.at_s is None or signal.may_be_late or self._barrier.size == 1:
            return True
        now_s = own_time()
        if now_s >= self._due_s - self._clock.bound_s:
            woke = self._gate_text(WOKE)
            if woke is None and now_s < self._due_s + _WOKEN_S:
                return False
            if self._started_early(woke):
                self._void_start()
                return False
        self._due_s = signal.at_s
        return True

    def _started_early(self, woke: str | None) -> bool:
        """Return whether the process followed an earlier start than the last one written."""
        followed_s = self._time_of(" ".join((woke or "").split()[1:]))
        if followed_s is None or self._at_s is None:
            return False
        return followed_s < self._at_s - _SAME_S

    def _void_start(self) -> None:
        """Leave a process behind that started before the others."""
        self._reason, self._at_s = "it started before the others, which were postponed", None
        self.is_void = self._is_settled = True
        self._barrier.end(self._run_id)

    def _confirm(self, executor: Executor) -> None:
        """Confirm that the machine is reachable."""
        is_heard = self._process is not None and executor.silent_s < _HEARD_S
        if is_heard or self._gate_text(READY):
            self._barrier.confirm(self._run_id)
            self._is_confirmed = True
            self._rest()

    def _rest(self) -> None:
        """Wait for other clients, without a request to the machine."""
        self._is_resting = True

    def _act(self) -> None:
        if self._is_resting:
            self._is_resting, self._active_s = False, time.monotonic()

    def record(self) -> dict[str, float | None]:
        """Return the record of the start, in seconds of the controller's clock; None for never.

        ``late_s`` is the delay of the process against the announced start.
        """
        woke = self._reported(WOKE)
        woke_s = self._time_of(woke)
        if woke_s is None and self._at_s is not None and self._gate_text(MISSED) is not None:
            self._at_s = None
            self._reason = "its start was announced too late, or its clock was set meanwhile"
        if self._started_early(woke) or (woke_s is not None and self._is_superseded()):
            self._void_start()
        late_s = None if woke_s is None or self._at_s is None else woke_s - self._at_s
        words = (woke or "").split()
        set_s = float(words[2]) - float(words[0]) if len(words) > 2 else 0.0
        return {
            "ready_s": self._ready_s,
            "start_s": self._at_s,
            "late_s": None if late_s is None else round(late_s, 6),
            "clock_offset_s": round(self._clock.offset_s + set_s, 6),
            "clock_bound_s": round(self._clock.bound_s, 6),
            "clock_moved_s": self._moved_s,
        }

    @property
    def _moved_s(self) -> float | None:
        """Seconds by which the clock of the machine was set since its survey; None if unknown."""
        readings = () if self._executor is None else self._executor.clock()
        if self._lead_s is None or not readings:
            return None
        return round(readings[-1].remote_s - readings[-1].steady_s - self._lead_s, 6)

    def _is_superseded(self) -> bool:
        """Return whether the start that the process followed holds for no other client."""
        if self._is_settled or self._announced is None or self._at_s is None:
            return False
        return not self._barrier.is_final(self._run_id, self._announced)

    def _reported(self, name: str) -> str | None:
        """Return the first line of a file as last reported."""
        return self._gate_text(name) if self._process is None else self._pushed(name)

    def _pushed(self, name: str) -> str | None:
        """Return the first line of a file as its machine has pushed it."""
        if self._process is None:
            return None
        return self._process.first_line(f"{self._folder}/{name}")

    def _time_of(self, text: str | None) -> float | None:
        fields = (text or "").split()
        try:
            return float(fields[0]) - self._clock.offset_s if fields else None
        except ValueError:
            return None

    def _gate_text(self, name: str) -> str | None:
        if self._executor is None:
            return None
        return self._executor.ask(read_files, [f"{self._folder}/{name}"])[0]


def _announcement(signal: StartSignal, clock: Clock) -> str:
    """Return the content of ``go``: start in the machine's clock, and whether it may be late."""
    if signal.at_s is None:
        return NEVER
    start = f"{signal.at_s + clock.offset_s:.6f}"
    return f"{start} {LATE}" if signal.may_be_late else start
