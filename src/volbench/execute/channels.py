"""Channels: a byte stream to a program on a machine, and nothing else.

Each way to reach a machine (ssh, pod, subprocess) is one channel. It starts a program, carries
bytes to its standard input, and reports what it prints and how it ends:

    stream = channel.open(argv, on_output, on_end, within_s=30.0)
    stream.send(b"...")
    stream.close()

The agent is the only program that is started this way (`execute.client`): everything else,
such as files, other programs, retries and time limits, is asked of the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from volbench.errors import ConnectError, VolbenchError

STDERR_LIMIT_BYTES = 65_536  # Enough for the last lines of a traceback; the rest is dropped.

OnOutput = Callable[[bytes], None]
"""Receives standard output in chunks, as it arrives; must not block."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended."""

    status: int  # exit status as its shell reports it
    stderr: str  # start of its standard error, at most `STDERR_LIMIT_BYTES`


OnEnd = Callable[[ProgramEnd | VolbenchError], None]
"""Receives the end of the program, or why that cannot be observed; called at most once."""


class Stream(Protocol):
    """Standard input of a running program."""

    def send(self, data: bytes) -> None:
        """Write to standard input, all of it; several threads never call it at the same time.

        Raises:
            ConnectError: the connection is broken.
        """

    def close(self, *, in_doubt: bool = False) -> None:
        """Close standard input and the stream, without a further call of its receivers.

        Args:
            in_doubt: whether the connection below may be dead, so that it is to be tested before
                it is used again.
        """


class Channel(Protocol):
    """Connection to one machine; thread-safe."""

    host: str  # name of the machine, for messages

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> Stream:
        """Start a program, over a connection that is opened if there is none or it is dead.

        Args:
            argv: program and arguments, which the channel quotes if a login shell parses them.
            on_output: receives standard output; called by a thread that may serve other hosts.
            on_end: receives the end; called by the same thread.
            within_s: time limit of the start.

        Raises:
            ConnectError: the connection cannot be opened, or was lost.
            DeadlineError: the program was not started in time.
            TransportError: the machine refuses to start it.
        """

    def close(self) -> None:
        """Release the connection; detached programs on the machine continue."""


def connection_lost(host: str, reason: str, *, sent: bool) -> ConnectError:
    """Return the error of a broken connection.

    Args:
        host: name of the machine.
        reason: cause; may be empty.
        sent: whether a request may have reached the machine; if not, it is safe to repeat.
    """
    return ConnectError(
        f"the connection to {host} was lost{f': {reason}' if reason else ''}",
        hint="check that the host is up; the command may have run there"
        if sent
        else "check the host and the network path to it",
        sent=sent,
    )
