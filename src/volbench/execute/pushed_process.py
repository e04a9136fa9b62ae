"""Program whose agent pushes its events (`agent.watch`)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

from volbench.errors import VolbenchError
from volbench.execute.agent.watch import ProgramEvent
from volbench.execute.protocol import Supervision

LOST_STATUS = -signal.SIGKILL
"""Exit status if the exit was not observed, after a reboot or SIGKILL."""

STATE_TIMEOUT_S = 20.0
"""Time without a message after which the stream counts as broken; the host sends one a second."""

TRY_S = 1.0  # Between two attempts to subscribe.
_UNREAD_LIMIT = 64 * 1024**2  # Characters of output kept for the controller; more is dropped.
_LOST = {
    "reboot": "its host rebooted",
    "died": "its supervisor was killed, alone or with it, or its exit status was not written",
    "none": "it was never started, or its folder was removed, as by volbench hosts --clean",
}


class Unread:
    """Text that was pushed and is to be read."""

    def __init__(self) -> None:
        self.offset = 0  # bytes received so far
        self._parts: list[str] = []
        self._length = 0

    def add(self, text: str, offset: int) -> None:
        """Add a part that ends at a number of bytes."""
        self.offset = offset
        if self._length < _UNREAD_LIMIT:
            self._parts.append(text)
            self._length += len(text)

    def take(self) -> str:
        """Return the text since the last call."""
        text, self._parts, self._length = "".join(self._parts), [], 0
        return text


def launch_arguments(argv: Sequence[str], supervision: Supervision | None) -> dict[str, Any]:
    """Return the arguments of `agent.supervisor.launch` that do not depend on the host."""
    order = supervision or Supervision()
    return {
        "argv": [*argv],
        "environment": dict(order.environment),
        "hold": [dict(device) for device in order.hold],
        "longest_s": order.longest_s,
        "gate_s": order.gate_s,
        "sampling": order.sampling and dict(order.sampling),
        "temporary": order.is_temporary,
    }


class PushedProcess:
    """State of a program whose agent pushes its events.

    Args:
        is_known: whether it counts as running before any message.
        followed: files whose first lines are pushed when they change.
    """

    def __init__(self, *, is_known: bool, followed: Sequence[str] = ()) -> None:
        self.lost = ""  # reason why its exit was not observed
        self._followed = tuple(followed)
        self._is_known = is_known  # whether its host has reported any state
        self._is_over = False  # whether its sampler has ended too
        self._status: int | None = None
        self._text = {"output": Unread(), "samples": Unread()}
        self._lines: dict[int, str] = {}
        self._changed = threading.Condition()
        self._responded_s = time.monotonic()
        self._refused: VolbenchError | None = None
        self._has_news = False

    def watch(self) -> None:
        """Subscribe to the events of the program."""

    def skip(self, *, output_bytes: int = 0, sample_bytes: int = 0) -> None:
        """Skip the first bytes of output and samples, which an earlier controller has read."""
        self._text["output"].offset = output_bytes
        self._text["samples"].offset = sample_bytes

    def first_line(self, path: str) -> str | None:
        """Return the first line of a followed file as last pushed; None if empty or missing."""
        return self._lines.get(self._followed.index(path)) or None

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the program runs."""
        self.watch()
        if not self._is_known:
            with self._changed:
                self._changed.wait_for(self._is_news_due, STATE_TIMEOUT_S)
        return self._status

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        return self._read_state("output")

    def read_samples(self) -> str:
        """Return the output of its sampler since the last call."""
        return self._read_state("samples")

    def _read_state(self, name: str) -> str:
        self.poll()
        with self._changed:
            return self._text[name].take()

    @property
    def is_sampled(self) -> bool:
        """Whether its sampler may print more, also after its end."""
        self.watch()
        return not self._is_over

    def _is_news_due(self) -> bool:
        """Whether a wait for the first message is over."""
        return self._is_known

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None after `timeout_s` or when a followed file appeared."""
        deadline_s = time.monotonic() + timeout_s
        while self.poll() is None and not self._has_news:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            with self._changed:
                self._changed.wait_for(
                    lambda: self._status is not None or self._has_news, min(left_s, TRY_S)
                )
        self._has_news = False
        return self._status

    def happened(self, event: ProgramEvent) -> None:
        """Process a pushed event."""
        with self._changed:
            self._responded_s = time.monotonic()
            match event.kind:
                case "output" | "samples":
                    self._text[event.kind].add(event.text, event.number)
                case "line":
                    self._has_news = self._has_news or event.number not in self._lines
                    self._lines[event.number] = event.text
                case "status":
                    self._status = event.number
                case "lost":
                    self.lost = _LOST.get(event.text, f"its host reports {event.text[:80]!r}")
                    self._status = LOST_STATUS
                case "running":
                    self._is_known = True
                case _:
                    pass
            self._is_known = self._is_known or self._status is not None
            self._changed.notify_all()

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Note that nothing more is pushed; without an error, all has ended."""
        del result
        with self._changed:
            self._is_over = error is None and self._status is not None
            if error is not None and not error.transient:
                self._refused = error
            self._changed.notify_all()
