"""State of a detached program, as pushed by its host."""

from __future__ import annotations

import codecs
import signal
from dataclasses import dataclass, field

from volbench.execute.session.frames import Frame

LOST_STATUS = -signal.SIGKILL  # Exit status if the exit was not observed, after a reboot or SIGKILL

_LOST = {
    "reboot": "its host rebooted",
    "died": "it was killed together with its parent, or its exit status could not be written",
    "none": "it was never started, or its control folder was removed",
}
_UNREAD_LIMIT_BYTES = 64 * 1024**2  # Output kept for the controller to read; more is dropped


@dataclass
class ProgramState:
    """What is known of a program."""

    is_known: bool = False  # whether its host has reported any state
    status: int | None = None  # exit status (negative: signal number); None while it runs
    lost: str = ""  # reason why its exit was not observed; empty otherwise
    offset: int = 0  # bytes of its output received so far
    # number of a followed file, from 1, to its first line
    lines: dict[int, str] = field(default_factory=dict)
    _unread: bytearray = field(default_factory=bytearray)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def take(self, frame: Frame) -> None:
        """Process a message of `watch.sh`."""
        match frame.kind:
            case "l":
                self._add(frame.payload + b"\n")
            case "p":
                self._add(frame.payload)
            case "f":
                number, _, line = frame.payload.decode("utf-8", "replace").partition(" ")
                if number.isdecimal() and len(number) < 3:
                    self.lines[int(number)] = line
            case "x":
                self._end(frame.payload.decode("ascii", "replace"))
            case _:
                pass
        self.is_known = self.is_known or frame.kind in {"r", "x"}

    def take_output(self) -> str:
        """Return the output since the last call."""
        text = self._decoder.decode(bytes(self._unread))
        self._unread.clear()
        return text

    def _add(self, part: bytes) -> None:
        self.offset += len(part)
        self._unread += part[: max(0, _UNREAD_LIMIT_BYTES - len(self._unread))]

    def _end(self, text: str) -> None:
        word, _, detail = text.strip().partition(" ")
        if word == "done":
            self.status = _exit_status(detail)
        else:
            reason = detail or word
            self.lost = _LOST.get(reason, f"its host reports {reason[:80]!r}")
            self.status = LOST_STATUS


def _exit_status(text: str) -> int:
    """Convert a shell's exit status to that of `Process`: 128 + signal becomes negative."""
    status = int(text) if text.isdecimal() and len(text) < 4 else 1
    return 128 - status if status in {128 + number for number in (9, 15)} else status
