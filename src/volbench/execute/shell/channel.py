"""Channel protocol: command execution on a host, the only requirement of a new transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from volbench.errors import ConnectError, DeadlineError, VolbenchError

Sink = Callable[[bytes], None]  # Receives standard output in chunks, as it arrives


@dataclass(frozen=True)
class TimeLimit:
    """Time limit of a command."""

    command: str  # name of the command, for messages
    seconds: float  # the limit
    # whether the limit applies to the time without output, not to the total time
    of_silence: bool = False

    def exceeded(self, host: str) -> DeadlineError:
        """Return the error of a command that exceeded the limit."""
        limit = (
            f"was silent for {self.seconds:g} s"
            if self.of_silence
            else f"did not end in {self.seconds:g} s"
        )
        return DeadlineError(
            f"{self.command} {limit} on {host} and was abandoned",
            hint="the host may be hung, or a volume there does not respond",
        )


class Countdown:
    """Remaining time of a limit."""

    def __init__(self, limit: TimeLimit) -> None:
        self._limit = limit
        self._end_s = time.monotonic() + limit.seconds

    def note_output(self) -> None:
        """Restart the countdown if the limit applies to silence."""
        if self._limit.of_silence:
            self._end_s = time.monotonic() + self._limit.seconds

    @property
    def left_s(self) -> float:
        """Seconds left; zero after expiry."""
        return max(0.0, self._end_s - time.monotonic())


@dataclass(frozen=True)
class CommandEnd:
    """Exit status and standard error of a command."""

    status: int
    stderr: bytes


# Receives the end of a kept command, or the reason why it cannot be observed; at most once
OnEnd = Callable[[CommandEnd | VolbenchError], None]


class Stream(Protocol):
    """A running command whose input stays open."""

    def send(self, data: bytes) -> None:
        """Write to its standard input."""

    def close(self, *, in_doubt: bool = False) -> None:
        """End it without a further call of its receivers.

        Args:
            in_doubt: whether the connection itself may be dead.
        """


class Channel(Protocol):
    """Command execution on one host; thread-safe."""

    host: str  # host name

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command once, to completion.

        Args:
            argv: program and arguments, which the channel quotes if a login shell parses them.
        """

    def open(
        self, argv: Sequence[str], on_output: Sink, on_end: OnEnd, *, limit: TimeLimit
    ) -> Stream:
        """Start a command that runs until its input is closed.

        Args:
            argv: program and arguments, which the channel quotes if a login shell parses them.
            on_output: receives standard output; called by a thread shared with other hosts, so it
                must not block.
        """

    def close(self) -> None:
        """Release the connection; programs running on the host continue."""


def connection_lost(host: str, reason: str, *, sent: bool) -> ConnectError:
    """Return the error of a broken connection.

    Args:
        reason: cause; may be empty.
        sent: whether the command may have started; if not, it is safe to retry.
    """
    return ConnectError(
        f"the connection to {host} was lost{f': {reason}' if reason else ''}",
        hint="check that the host is up; the command may have run there"
        if sent
        else "check the host and the network path to it",
        sent=sent,
    )
