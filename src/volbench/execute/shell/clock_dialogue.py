"""Dialogue with a shell that prints the time: a question, its answer, and when each passed here."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

from volbench.execute.protocol import ClockReading

_ANSWER_S = 20.0


class ClockDialogue:
    """Questions for a running `posix_scripts.CLOCK`, and its answers.

    Args:
        count: number of questions.

    Attributes:
        readings: one for each answer that was a time.
    """

    def __init__(self, count: int) -> None:
        self.readings: list[ClockReading] = []
        self._count = count
        self._unfinished = b""
        self._answers: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()

    def take(self, part: bytes) -> None:
        """Take a part of the shell's output."""
        now_s = time.time()
        *lines, self._unfinished = (self._unfinished + part).split(b"\n")
        for line in lines:
            self._answers.put((now_s, line.decode("ascii", "replace").strip()))

    def questions(self) -> Iterator[bytes]:
        """Yield the questions, each after the answer to the one before; end when none comes."""
        if self._answer() is None:  # the shell is ready
            return
        for _ in range(self._count):
            sent_s = time.time()
            yield b"\n"
            answer = self._answer()
            if answer is None:
                return
            received_s, text = answer
            seconds, _, fraction = text.partition(".")
            if not seconds.isdecimal():
                continue
            # A date without nanoseconds prints whole seconds: the middle of one is the best guess.
            is_fine = fraction.isdecimal()
            remote_s = float(text) if is_fine else int(seconds) + 0.5
            resolution_s = 0.0 if is_fine else 1.0
            self.readings.append(ClockReading(sent_s, remote_s, received_s, resolution_s))

    def _answer(self) -> tuple[float, str] | None:
        try:
            return self._answers.get(timeout=_ANSWER_S)
        except queue.Empty:
            return None
