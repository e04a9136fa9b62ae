"""One command on an open line: a command and its input enter, its output and status leave.

A line that breaks makes no noise in paramiko: reading ends, and the status is -1. A host that is
frozen makes none either, and only the deadline ends that wait.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import paramiko

from volbench.errors import ConnectError, DeadlineError, TransportError
from volbench.execute.ssh.connection import Connection, lost

_CHUNK_BYTES = 1024**2
_NO_STATUS = -1
_ERROR_LIMIT_BYTES = 16 * 1024**2


@dataclass(frozen=True)
class Command:
    """What to run on a host.

    Attributes:
        line: for the login shell there, fully quoted.
        name: for messages.
        stdin: its input.
        timeout_s: deadline.
        quiet_s: instead of a deadline, the longest time without any output; None for the deadline.
    """

    line: bytes
    name: str
    stdin: bytes = b""
    timeout_s: float = 60.0
    quiet_s: float | None = None


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    status: int
    stderr: bytes


class _Clock:
    """When to give up."""

    def __init__(self, command: Command) -> None:
        self._span_s = command.timeout_s if command.quiet_s is None else command.quiet_s
        self._renews = command.quiet_s is not None
        self._end_s = time.monotonic() + self._span_s

    def heard(self) -> None:
        """Note that something came."""
        if self._renews:
            self._end_s = time.monotonic() + self._span_s

    @property
    def left_s(self) -> float:
        """Seconds left; zero when it is over."""
        return max(0.0, self._end_s - time.monotonic())


def execute(connection: Connection, command: Command, sink: Callable[[bytes], None]) -> Ended:
    """Run a command and hand its standard output to a sink as it comes.

    Raises:
        DeadlineError: it did not end in time.
        ConnectError: the line broke; ``context["sent"]`` tells whether it may have begun.
        TransportError: it ended without a status.
    """
    clock = _Clock(command)
    try:
        with connection.channel(clock.left_s) as channel:
            _begin(connection, channel, command, clock)
            errors = _receive(channel, sink, clock)
            return Ended(_status(connection, channel, command, clock), errors)
    except ConnectError as error:
        if clock.left_s == 0:
            raise _late(connection, command) from error
        raise


def _status(
    connection: Connection, channel: paramiko.Channel, command: Command, clock: _Clock
) -> int:
    channel.status_event.wait(clock.left_s)
    if channel.status_event.is_set() and channel.exit_status != _NO_STATUS:
        return channel.exit_status
    if not connection.is_alive:
        raise lost(connection.host, "", sent=True)
    if clock.left_s == 0:
        raise _late(connection, command)
    raise TransportError(
        f"{command.name} ended on {connection.host} without a status",
        hint="it was killed there, or its sshd was",
        context={"host": connection.host},
    )


def _begin(
    connection: Connection, channel: paramiko.Channel, command: Command, clock: _Clock
) -> None:
    """Start the command; asking for it has no end of its own, so the channel is closed at ours."""
    guard = threading.Timer(clock.left_s, connection.let_go, [channel])
    guard.daemon = True
    guard.start()
    try:
        channel.exec_command(command.line)
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise lost(connection.host, str(error), sent=True) from error
    finally:
        guard.cancel()
    threading.Thread(target=_feed, args=[channel, command.stdin], daemon=True).start()


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    """Send the input beside the reading: a program may answer before it has read everything.

    What goes wrong is seen by the reader: the line is lost, or the program did not read all.
    """
    with suppress(paramiko.SSHException, EOFError, OSError):
        if stdin:
            channel.sendall(stdin)
        channel.shutdown_write()


def _receive(channel: paramiko.Channel, sink: Callable[[bytes], None], clock: _Clock) -> bytes:
    """Read both outputs to their end, or to the deadline; return standard error."""
    waiter = select.poll()
    waiter.register(channel.fileno(), select.POLLIN)
    errors = bytearray()
    while clock.left_s > 0:
        came = False
        while channel.recv_ready():
            sink(channel.recv(_CHUNK_BYTES))
            came = True
        while channel.recv_stderr_ready():
            part = channel.recv_stderr(_CHUNK_BYTES)
            errors += part[: _ERROR_LIMIT_BYTES - len(errors)]
            came = True
        if came:
            clock.heard()
        elif channel.eof_received or channel.closed:
            break
        else:
            waiter.poll(clock.left_s * 1000)
    return bytes(errors)


def _late(connection: Connection, command: Command) -> DeadlineError:
    connection.in_doubt = True
    limit = (
        f"was silent for {command.quiet_s:g} s"
        if command.quiet_s is not None
        else f"did not end in {command.timeout_s:g} s"
    )
    return DeadlineError(
        f"{command.name} {limit} on {connection.host}, and was given up",
        hint="the host may hang, or a volume there does not answer",
        context={"host": connection.host},
    )
