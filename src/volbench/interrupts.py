"""Interrupts that end the program wherever it stands.

Python drops what a handler raises within the finalizer of a file or of an HTTP response, without a
word, and an exception within its import code leaves a lock taken: an interrupt comes again, unless
it is being handled.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

_AGAIN_S = 0.1
_number = signal.SIGINT  # of the last interrupt


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, as a handler of SIGINT or SIGTERM, at once or a moment later.

    Within Python's own import code, the import lock would stay taken: the next import of any other
    thread, for which the main thread waits, would never return.
    """
    global _number  # noqa: PLW0603 - a handler of a signal is given nothing else
    _number = signal.Signals(number)
    signal.signal(signal.SIGALRM, _come_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    if frame is None or frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        raise KeyboardInterrupt


def end_interrupt() -> None:
    """Take the last interrupt for handled."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _come_again(_number_of_alarm: int, _frame: FrameType | None) -> None:
    """Raise the last interrupt once more, for the handler of that time, unless it is handled."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None:
        signal.raise_signal(_number)
