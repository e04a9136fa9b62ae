"""Stop request of the user: set by signals, and read by every loop that waits."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Stop request and its urgency."""

    def __init__(self) -> None:
        # 0 to continue; 1 to end the process gracefully; 2 or more to end it immediately
        self.requests = 0

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
def stop_on_signals(*, on_hangup: Callable[[], None] | None = None) -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into stop requests within the block.

    Signals that are already ignored stay ignored, such as SIGHUP under nohup.

    Args:
        on_hangup: called on SIGHUP instead; None to stop.
    """
    stop = StopRequest()

    def request(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and on_hangup is not None:
            on_hangup()
        else:
            stop.request()

    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, request) for number in handled}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
