"""Process watch: until the end, a stop request or the deadline, without leaving orphans."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from volbench.engine.run.start_gate import Gate
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import ArchiveError, TransportError
from volbench.execute.protocol import Process
from volbench.store.journal import utc_now

POLL_S = 0.1  # Shorter than a user notices after Ctrl-C.
# The same for a process whose host reports each change at once: only the deadline needs a poll.
# Noticed by: fleet.py
PUSHED_POLL_S = 1.0
# Grace period after each signal: fio reacts to SIGINT only when I/O in flight completes, and a
# stalled volume needs seconds.
# Noticed by: test_process_watch.py::test_an_error_while_watching_ends_the_process
PATIENCE_S = {signal.SIGINT: 30.0, signal.SIGTERM: 10.0, signal.SIGKILL: 10.0}

# Grace period after a second stop request.
# Noticed by: test_process_watch.py::test_a_second_request_kills_a_process_that_ignores_the_first
URGENT_S = 1.0


class Ending(StrEnum):
    """Reason of a process's end."""

    ITSELF = "itself"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    STEADY = "steady"


@dataclass(frozen=True)
class Watched:
    """End of a watched process."""

    exit_status: int | None  # as reported by the system; None if it could not be killed
    ending: Ending  # by itself, by a stop request, at its deadline, or because its work was done
    elapsed_s: float  # seconds since the start of the watch
    ended_utc: str = ""  # time of its end
    lost: str = ""  # reason why its end was not observed; empty if it was


def watch(
    process: Process,
    *,
    deadline_s: float,
    stop: StopRequest,
    on_output: Callable[[str, float], object],
    is_enough: Callable[[], bool] = lambda: False,
    gate: Gate | None = None,
) -> Watched:
    """Watch a process until it ends; end it at a stop request, its deadline or a false start.

    Args:
        deadline_s: seconds after which it is ended.
        on_output: called with new standard output (possibly empty) and the seconds elapsed; returns
            whether to poll ten times as often.
        is_enough: called after each poll; True ends the process gracefully, as its work is done.
        gate: its start gate; the deadline excludes the time at the gate.

    Returns:
        The end of the process. On any other exception the process is ended first.
    """
    started = time.monotonic()
    ending = Ending.ITSELF
    poll_s = usual_s = PUSHED_POLL_S if process.handle else POLL_S
    try:
        while True:
            process.wait(min(poll_s, poll_s if gate is None else gate.poll_s))
            if (status := process.poll()) is not None:
                on_output(process.read_output(), time.monotonic() - started)
                break
            elapsed_s = time.monotonic() - started
            is_brisk = on_output(process.read_output(), elapsed_s)
            poll_s = usual_s / 10 if is_brisk else usual_s
            if stop.requested or (gate is not None and gate.is_void):
                ending = Ending.STOPPED
                break
            if is_enough():
                ending = Ending.STEADY
                break
            if elapsed_s - (0.0 if gate is None else gate.waited_s) > deadline_s:
                ending = Ending.DEADLINE
                break
    except BaseException as error:
        if not continues_after(process.handle, error):
            end_process(process, stop)
        raise
    status = _end_by_signals(process, stop)
    return Watched(status, ending, time.monotonic() - started, utc_now(), process.lost)


def continues_after(handle: str, error: BaseException) -> bool:
    """Return whether a process keeps running after an error, to be taken over by a resume.

    Args:
        handle: handle of the process; empty if it ends with the controller.
    """
    lost = isinstance(error, TransportError) and error.transient
    return lost or (bool(handle) and isinstance(error, ArchiveError))


def end_process(process: Process, stop: StopRequest) -> int | None:
    """End a process by SIGINT, SIGTERM, SIGKILL; return its status, None if it cannot be ended."""
    status = _end_by_signals(process, stop)
    process.stop_sampling()
    return status


def _end_by_signals(process: Process, stop: StopRequest) -> int | None:
    for number, patience_s in PATIENCE_S.items():
        if (status := process.poll()) is not None:
            return status
        process.signal(number)
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            process.wait(POLL_S)
            if (status := process.poll()) is not None:
                return status
            if stop.urgent and number != signal.SIGKILL:
                until = min(until, time.monotonic() + URGENT_S)
    return process.poll()
