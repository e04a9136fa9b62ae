"""Stop request of the user: set by signals, and read by every loop that waits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType

from volbench.errors import StoppedError

# Seconds after which a stop request says what it waits for: a person has not repeated it yet.
# Noticed by: tests/cli/test_hung_volume.py
SAY_S = 1.5
# Seconds that a second request leaves to end a process by SIGKILL, and to remove its files.
# Noticed by: tests/cli/test_hung_volume.py
LEAVE_S = 4.0

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Stop request and its urgency."""

    def __init__(self) -> None:
        # 0 to continue; 1 to end the process gracefully; 2 or more to end it immediately
        self.requests = 0
        self._awaited: dict[str, None] = {}

    @property
    def requested(self) -> bool:
        """Whether to stop at all."""
        return self.requests > 0

    @property
    def urgent(self) -> bool:
        """Whether to stop without waiting for I/O in flight."""
        return self.requests > 1

    def request(self) -> None:
        """Request a stop, or request it more urgently."""
        self.requests += 1

    @contextmanager
    def awaiting(self, name: str) -> Iterator[None]:
        """Name a process whose end is waited for within the block."""
        self._awaited[name] = None
        try:
            yield
        finally:
            del self._awaited[name]

    def say(self) -> None:
        """Say what a stop waits for."""
        names = ", ".join(tuple(self._awaited))
        what = f"{names} to finish its I/O" if names else "files and locks to be removed"
        _write_error(f"stopping: waiting for {what}; press Ctrl-C again to leave it")

    def leave(self) -> None:
        """End this program at once; its supervisors end what is left when the volume answers."""
        names = ", ".join(tuple(self._awaited)) or "files and locks"
        _write_error(
            f"stopped, leaving behind: {names}; once the volume answers, remove what stays: "
            "volbench status --clean"
        )
        os._exit(StoppedError.exit_code)


def _write_error(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"volbench: {text}\n".encode())


@contextmanager
def stop_on_signals(
    *, on_hangup: Callable[[], None] | None = None, leaves: bool = False
) -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into stop requests within the block.

    Signals that are already ignored stay ignored, such as SIGHUP under nohup.

    Args:
        on_hangup: called on SIGHUP instead; None to stop.
        leaves: say what a stop waits for, and leave it at a second request.
    """
    stop = StopRequest()

    def request(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and on_hangup is not None:
            on_hangup()
            return
        stop.request()
        if stop.requests <= len(waits):
            timers.append(Timer(*waits[stop.requests - 1]))
            timers[-1].daemon = True
            timers[-1].start()

    timers: list[Timer] = []
    waits = ((SAY_S, stop.say), (LEAVE_S, stop.leave)) if leaves else ()
    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, request) for number in handled}
    try:
        yield stop
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
