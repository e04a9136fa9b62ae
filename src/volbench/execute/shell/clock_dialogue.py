"""Clock readings of a host by requests to a running shell, timestamped by the controller."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

from volbench.execute.protocol import ClockReading

_RESPONSE_TIMEOUT_S = 20.0


class ClockDialogue:
    """Requests to a running `posix_scripts.CLOCK`, and its responses.

    Args:
        count: number of requests.

    Attributes:
        readings: one per valid response.
    """

    def __init__(self, count: int) -> None:
        self.readings: list[ClockReading] = []
        self._count = count
        self._partial_line = b""
        self._responses: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()

    def take(self, part: bytes) -> None:
        """Process a chunk of the shell's output."""
        now_s = time.time()
        *lines, self._partial_line = (self._partial_line + part).split(b"\n")
        for line in lines:
            self._responses.put((now_s, line.decode("ascii", "replace").strip()))

    def requests(self) -> Iterator[bytes]:
        """Yield one request after each response; stop if a response times out."""
        if self._next_response() is None:  # the shell is ready
            return
        for _ in range(self._count):
            sent_s = time.time()
            yield b"\n"
            response = self._next_response()
            if response is None:
                return
            received_s, text = response
            seconds, _, fraction = text.partition(".")
            if not seconds.isdecimal():
                continue
            # `date` without %N prints whole seconds: the midpoint is the best estimate.
            is_fine = fraction.isdecimal()
            remote_s = float(text) if is_fine else int(seconds) + 0.5
            resolution_s = 0.0 if is_fine else 1.0
            self.readings.append(ClockReading(sent_s, remote_s, received_s, resolution_s))

    def _next_response(self) -> tuple[float, str] | None:
        try:
            return self._responses.get(timeout=_RESPONSE_TIMEOUT_S)
        except queue.Empty:
            return None
