"""SSH channel: commands on a pooled connection, run by the host's login shell.

paramiko raises no error when a connection breaks: reads return EOF, and the exit status is -1. Nor
does it detect a hung host: only the time limit ends the wait.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import paramiko

from volbench.errors import ConnectError, TransportError
from volbench.execute.retry import Patience
from volbench.execute.shell.channel import (
    CommandEnd,
    Countdown,
    OnEnd,
    Sink,
    TimeLimit,
    connection_lost,
)
from volbench.execute.shell.shell_executor import ShellExecutor
from volbench.execute.ssh.connection import Connection
from volbench.execute.ssh.connection_pool import ConnectionPool
from volbench.execute.ssh.stream_reader import READER, KeptStream
from volbench.model.campaign.host import Host

T = TypeVar("T")

_CHUNK_BYTES = 1024**2
_NO_STATUS = -1
_ERROR_LIMIT_BYTES = 16 * 1024**2

# Linux limits one argument to 131,072 bytes (MAX_ARG_STRLEN); sshd passes the line as one
_MAX_LINE_BYTES = 120_000


class SshChannel:
    """A host of a connection pool."""

    def __init__(self, host: str, pool: ConnectionPool) -> None:
        self.host = host
        self._pool = pool

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command once, to completion, after reopening a dead connection."""
        line = command_line(argv)
        return self._attempt(lambda connection: _execute(connection, line, stdin, sink, limit))

    def open(
        self, argv: Sequence[str], on_output: Sink, on_end: OnEnd, *, limit: TimeLimit
    ) -> KeptStream:
        """Start a command whose input stays open, after reopening a dead connection."""
        line = command_line(argv)
        return self._attempt(
            lambda connection: _open(connection, line, limit, on_output=on_output, on_end=on_end)
        )

    def _attempt(self, attempt: Callable[[Connection], T]) -> T:
        """Use the open connection; if it turns out dead before a command was sent, a new one."""
        existing = self._pool.existing(self.host)
        connection = self._pool.connection(self.host)
        try:
            return attempt(connection)
        except ConnectError as error:
            if connection is not existing or error.sent:
                raise
        return attempt(self._pool.connection(self.host))

    def close(self) -> None:
        """Do nothing: the pool owns the connection."""


def ssh_executor(
    host: Host, pool: ConnectionPool, *, patience: Patience | None = None
) -> ShellExecutor:
    """Return the executor of a host and add the host to the pool."""
    pool.add(host)
    channel = SshChannel(host.name, pool)
    return ShellExecutor(channel, sudo=host.sudo, work_folder=host.workdir, patience=patience)


# Within quotes, tcsh refuses newlines and expands `!` unless a blank, `=` or `(` follows; fish
# reads backslashes as escapes
_SPECIAL = re.compile(rb"[\n\\]|!(?![ =(])")
_ESCAPE = "~"
# Shell script that decodes its arguments and executes them; see `_encoded`
_DECODE = (
    f'for w do case $w in "{_ESCAPE}"*) w=$(printf "%s" "${{w#?}}" | tr "{_ESCAPE}" "\\134"); '
    'w=$(printf "%bx" "$w"); w=${w%x};; esac; shift; set -- "$@" "$w"; done; exec "$@"'
)


def command_line(argv: Sequence[str]) -> bytes:
    """Return a command line that any login shell parses into `argv`.

    Every word is quoted. Characters that some shell interprets within quotes are encoded. `exec` is
    not used, because restricted shells refuse it.
    """
    words = [os.fsencode(word) for word in argv]
    if any(_SPECIAL.search(word) for word in words):
        words = [b"sh", b"-c", _DECODE.encode(), b"sh", *map(_encoded, words)]
    line = shlex.join(os.fsdecode(word) for word in words).encode("utf-8", "surrogateescape")
    if len(line) > _MAX_LINE_BYTES:
        raise TransportError(
            f"a command of {len(line)} bytes is too long to be sent",
            hint="shorten the name or argument",
        )
    return line


def _encoded(word: bytes) -> bytes:
    """Encode a word for `_DECODE`, without `_SPECIAL` characters."""
    escape = _ESCAPE.encode()
    if not (word.startswith(escape) or _SPECIAL.search(word)):
        return word
    for byte in (escape, b"\\", b"\n", b"!"):
        word = word.replace(byte, b"%s0%03o" % (escape, byte[0]))
    return escape + word


def _execute(
    connection: Connection, line: bytes, stdin: bytes, sink: Sink, limit: TimeLimit
) -> CommandEnd:
    countdown = Countdown(limit)
    try:
        with connection.channel(countdown.left_s) as channel:
            _begin(connection, channel, line, countdown)
            threading.Thread(target=_feed, args=[channel, stdin], daemon=True).start()
            errors = _receive(channel, sink, countdown)
            return CommandEnd(_status(connection, channel, limit, countdown), errors)
    except ConnectError as error:
        if countdown.left_s == 0:
            connection.in_doubt = True
            raise limit.exceeded(connection.host) from error
        raise


def _begin(
    connection: Connection, channel: paramiko.Channel, line: bytes, countdown: Countdown
) -> None:
    """Start the command. paramiko's request has no timeout, so a timer closes the channel."""
    timer = threading.Timer(countdown.left_s, connection.close_channel, [channel])
    timer.daemon = True
    timer.start()
    try:
        channel.exec_command(line)
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise connection_lost(connection.host, str(error), sent=True) from error
    finally:
        timer.cancel()


def _open(
    connection: Connection, line: bytes, limit: TimeLimit, *, on_output: Sink, on_end: OnEnd
) -> KeptStream:
    countdown = Countdown(limit)
    try:
        channel = connection.open_channel(countdown.left_s)
    except ConnectError as error:
        if countdown.left_s == 0:
            connection.in_doubt = True
            raise limit.exceeded(connection.host) from error
        raise
    try:
        _begin(connection, channel, line, countdown)
        return READER.add(connection, channel, on_output, on_end)
    except BaseException:
        connection.close_channel(channel)
        raise


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    """Send standard input while another thread reads the output and detects errors."""
    with suppress(OSError, paramiko.SSHException, EOFError):
        channel.sendall(stdin)
        channel.shutdown_write()


def _receive(channel: paramiko.Channel, sink: Sink, countdown: Countdown) -> bytes:
    """Read both outputs until EOF or the time limit; return standard error."""
    waiter = select.poll()
    waiter.register(channel.fileno(), select.POLLIN)
    errors = bytearray()
    while countdown.left_s > 0:
        received = False
        while channel.recv_ready():
            sink(channel.recv(_CHUNK_BYTES))
            received = True
        while channel.recv_stderr_ready():
            part = channel.recv_stderr(_CHUNK_BYTES)
            errors += part[: _ERROR_LIMIT_BYTES - len(errors)]
            received = True
        if received:
            countdown.note_output()
        elif channel.eof_received or channel.closed:
            break
        else:
            waiter.poll(countdown.left_s * 1000)
    return bytes(errors)


def _status(
    connection: Connection, channel: paramiko.Channel, limit: TimeLimit, countdown: Countdown
) -> int:
    channel.status_event.wait(countdown.left_s)
    if channel.status_event.is_set() and channel.exit_status != _NO_STATUS:
        return channel.exit_status
    if not connection.is_alive:
        raise connection_lost(connection.host, "", sent=True)
    if countdown.left_s == 0:
        connection.in_doubt = True
        raise limit.exceeded(connection.host)
    raise TransportError(
        f"{limit.command} ended on {connection.host} without an exit status",
        hint="the command or its sshd was killed on the host",
    )
