"""A wish to stop: signals in, a flag that running loops look at."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Whether the user wants to stop, and how urgently.

    Attributes:
        requests: 0 to go on; 1 to end the running process gently; 2 or more to end it at once.
    """

    def __init__(self) -> None:
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
        """Ask to stop, or ask again more urgently."""
        self.requests += 1


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into requests to stop for the length of the block."""
    stop = Stop()

    def request(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    before = {number: signal.signal(number, request) for number in STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
