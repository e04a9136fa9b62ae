"""SSH channel: a program on a pooled connection, started by the host's login shell.

paramiko raises no error when a connection breaks: reads return EOF, and the exit status is -1. Nor
does it detect a hung host: only a time limit ends the wait. One thread reads all hosts.
"""

from __future__ import annotations

import os
import select
import shlex
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import paramiko

from volbench.errors import ConnectError, DeadlineError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import (
    STDERR_LIMIT_BYTES,
    OnEnd,
    OnOutput,
    Patience,
    ProgramEnd,
    connection_lost,
)
from volbench.execute.ssh.connection import Connection, ConnectionPool
from volbench.model.campaign.host import Host

_CHUNK_BYTES = 65_536
_CHUNKS_A_TURN = 16  # One thread reads all hosts: a flood of one must not keep it.
_NO_STATUS = -1
_STATUS_S = 0.2  # The exit status follows the end of the output at once, if there is one.
_SEND_S = 15.0  # A host that hangs reads no requests.


class SshChannel:
    """A host of a connection pool."""

    def __init__(self, host: str, pool: ConnectionPool) -> None:
        self.host = host
        self._pool = pool

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SshStream:
        """Start a program, after reopening a dead connection; see `Channel.open`."""
        line = shlex.join(argv).encode("utf-8", "surrogateescape")
        existing = self._pool.existing(self.host)
        connection = self._pool.connection(self.host)
        try:
            return _open_stream(connection, line, on_output, on_end, within_s=within_s)
        except ConnectError as error:
            if connection is not existing or error.sent:
                raise
        connection = self._pool.connection(self.host)
        return _open_stream(connection, line, on_output, on_end, within_s=within_s)

    def close(self) -> None:
        """Do nothing: the pool owns the connection."""


def ssh_executor(
    host: Host, pool: ConnectionPool, *, patience: Patience | None = None
) -> AgentExecutor:
    """Return the executor of a host and add the host to the pool."""
    pool.add(host)
    return AgentExecutor(
        SshChannel(host.name, pool),
        python=host.python,
        sudo=host.sudo,
        work_folder=host.workdir,
        patience=patience,
    )


def _open_stream(
    connection: Connection, line: bytes, on_output: OnOutput, on_end: OnEnd, *, within_s: float
) -> SshStream:
    until_s = time.monotonic() + within_s
    try:
        channel = connection.open_channel(within_s)
    except ConnectError as error:
        if time.monotonic() < until_s:
            raise
        connection.in_doubt = True
        raise DeadlineError(
            f"no program was started on {connection.host} in {within_s:g} s",
            hint="the host may be hung",
        ) from error
    try:
        # paramiko's request has no timeout, so a timer closes the channel.
        timer = threading.Timer(until_s - time.monotonic(), connection.close_channel, [channel])
        timer.daemon = True
        timer.start()
        try:
            channel.exec_command(line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise connection_lost(connection.host, str(error), sent=True) from error
        finally:
            timer.cancel()
        stream = SshStream(connection, channel, on_output, on_end)
    except BaseException:
        connection.close_channel(channel)
        raise
    READER.add(stream)
    return stream


class SshStream:
    """Standard input of a program on a host."""

    def __init__(
        self, connection: Connection, channel: paramiko.Channel, on_output: OnOutput, on_end: OnEnd
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._on_output = on_output
        self._on_end: OnEnd | None = on_end
        self._errors = bytearray()
        self._lock = threading.Lock()
        self._is_closed = False
        channel.settimeout(_SEND_S)
        self.descriptor = channel.fileno()

    def send(self, data: bytes) -> None:
        """Write to standard input."""
        try:
            self._channel.sendall(data)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise connection_lost(self._connection.host, str(error), sent=True) from error

    def close(self, *, in_doubt: bool = False) -> None:
        """End the stream without a further call of its receivers."""
        self._on_end = None
        if in_doubt:
            self._connection.in_doubt = True
        READER.remove(self)

    def release(self) -> None:
        """Close its channel, once; it must not be polled any more."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._connection.close_channel(self._channel)

    def pump(self) -> bool:
        """Pass on arrived data; return whether more may follow."""
        channel = self._channel
        for _ in range(_CHUNKS_A_TURN):
            if channel.recv_ready():
                self._on_output(channel.recv(_CHUNK_BYTES))
            if channel.recv_stderr_ready():
                chunk = channel.recv_stderr(_CHUNK_BYTES)
                self._errors += chunk[: STDERR_LIMIT_BYTES - len(self._errors)]
        has_more = channel.recv_ready() or channel.recv_stderr_ready()
        return has_more or not (channel.eof_received or channel.closed)

    def report_end(self) -> None:
        """Report the end of the program, unless the stream was closed."""
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        self._channel.status_event.wait(_STATUS_S)
        if self._channel.exit_status == _NO_STATUS:
            on_end(connection_lost(self._connection.host, "", sent=True))
        else:
            on_end(ProgramEnd(self._channel.exit_status, self._errors.decode("utf-8", "replace")))


class StreamReader:
    """Reader of all streams of this process.

    Its thread starts with the first stream and ends with the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[int, SshStream] = {}
        self._leaving: list[SshStream] = []
        self._thread: threading.Thread | None = None
        self._wake = -1

    def add(self, stream: SshStream) -> None:
        """Read a stream until its end."""
        with self._lock:
            self._streams[stream.descriptor] = stream
            self._notify()

    def remove(self, stream: SshStream) -> None:
        """Stop reading a stream, and close it."""
        with self._lock:
            if self._streams.get(stream.descriptor) is not stream:
                return
            self._leaving.append(stream)
            self._notify()

    def _notify(self) -> None:
        """Wake the thread, or start it."""
        if self._thread is None:
            self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._thread = threading.Thread(target=self._run_reader, name="streams", daemon=True)
            self._thread.start()
        os.eventfd_write(self._wake, 1)

    def _run_reader(self) -> None:
        poller = select.epoll()
        poller.register(self._wake, select.EPOLLIN)
        known: set[int] = set()
        while self._update(poller, known):
            for descriptor, _ in poller.poll():
                stream = self._streams.get(descriptor)
                if stream is None:
                    with suppress(BlockingIOError):
                        os.eventfd_read(self._wake)
                elif not stream.pump():
                    self._drop(stream, poller, known)
                    stream.report_end()

    def _drop(self, stream: SshStream, poller: select.epoll, known: set[int]) -> None:
        if stream.descriptor in known:  # it may leave before it was ever polled
            poller.unregister(stream.descriptor)
            known.discard(stream.descriptor)
        with self._lock:
            del self._streams[stream.descriptor]
        threading.Thread(target=stream.release, daemon=True).start()

    def _update(self, poller: select.epoll, known: set[int]) -> bool:
        """Register new streams and drop closed ones; return whether any is left."""
        with self._lock:
            leaving, self._leaving = self._leaving, []
        for stream in leaving:
            if self._streams.get(stream.descriptor) is stream:
                self._drop(stream, poller, known)
        with self._lock:
            for descriptor in self._streams.keys() - known:
                poller.register(descriptor, select.EPOLLIN)
                known.add(descriptor)
            if self._streams:
                return True
            self._thread = None
            poller.close()
            os.close(self._wake)
            return False


READER = StreamReader()
"""The reader of this process."""
