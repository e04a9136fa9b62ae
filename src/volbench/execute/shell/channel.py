"""Channel: a way to run a command on a machine; all that a new kind of machine must provide."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from volbench.errors import ConnectError, DeadlineError

Sink = Callable[[bytes], None]
"""Receives standard output in parts, as it arrives."""

Input = bytes | Iterable[bytes]
"""Standard input: all of it, or parts that may wait for output, in a thread of their own."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a command may take.

    Attributes:
        command: what runs, for messages.
        seconds: the limit.
        of_silence: whether the limit holds for the time without any output, not for the whole.
    """

    command: str
    seconds: float
    of_silence: bool = False

    def exceeded(self, host: str) -> DeadlineError:
        """Return the error of a command that took longer."""
        limit = (
            f"was silent for {self.seconds:g} s"
            if self.of_silence
            else f"did not end in {self.seconds:g} s"
        )
        return DeadlineError(
            f"{self.command} {limit} on {host} and was abandoned",
            hint="the host may hang, or a volume there does not respond",
            context={"host": host},
        )


class Countdown:
    """Time that is left of a limit."""

    def __init__(self, limit: TimeLimit) -> None:
        self._limit = limit
        self._end_s = time.monotonic() + limit.seconds

    def note_output(self) -> None:
        """Start again where only silence is limited."""
        if self._limit.of_silence:
            self._end_s = time.monotonic() + self._limit.seconds

    @property
    def left_s(self) -> float:
        """Seconds left; zero when the time is up."""
        return max(0.0, self._end_s - time.monotonic())


@dataclass(frozen=True)
class CommandEnd:
    """Exit status and standard error of a command."""

    status: int
    stderr: bytes


class Channel(Protocol):
    """A way to run commands on one machine; several threads may use it at once.

    Attributes:
        host: name of the machine.
        poll_s: seconds between two looks at a program that runs there: what a look costs decides.
    """

    host: str
    poll_s: float

    def execute(
        self, argv: Sequence[str], stdin: Input, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command once, to its end.

        Args:
            argv: program and arguments. Where a login shell is in between, the channel quotes them.
            stdin: its standard input; parts are sent one by one as soon as they are there.
            sink: receives its standard output.
            limit: when it is abandoned.

        Raises:
            DeadlineError: the limit was exceeded.
            ConnectError: see `connection_lost`.
            TransportError: it can't be run, or ended without an exit status.
        """

    def close(self) -> None:
        """Release the connection; what runs on the machine is left alone."""


def connection_lost(host: str, reason: str, *, sent: bool) -> ConnectError:
    """Return the error of a connection that broke.

    Args:
        host: name of the machine.
        reason: why; may be empty.
        sent: whether the command may have begun: if not, it can be sent again safely.
    """
    return ConnectError(
        f"the connection to {host} was lost{f': {reason}' if reason else ''}",
        hint="check that the host is up; the command may have run there"
        if sent
        else "check that the host is up, and the network between",
        context={"host": host, "sent": sent},
    )
