"""One thread that reads the kept sessions of all hosts."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

import paramiko

from volbench.execute.shell.channel import CommandEnd, OnEnd, Sink, connection_lost
from volbench.execute.ssh.connection import Connection

_CHUNK_BYTES = 65_536
_ERROR_LIMIT_BYTES = 65_536
_SEND_S = 15.0  # Time limit of a write: a host that hangs reads no requests
_NO_STATUS = -1


class KeptStream:
    """A kept session; see `channel.Stream`."""

    def __init__(
        self, connection: Connection, channel: paramiko.Channel, on_output: Sink, on_end: OnEnd
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
        """Write to the command's standard input."""
        try:
            self._channel.sendall(data)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise connection_lost(self._connection.host, str(error), sent=True) from error

    def close(self, *, in_doubt: bool = False) -> None:
        """End the session without a further call of its receivers."""
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
        """Pass on what has arrived; return whether more may follow."""
        channel = self._channel
        while channel.recv_ready():
            self._on_output(channel.recv(_CHUNK_BYTES))
        while channel.recv_stderr_ready():
            part = channel.recv_stderr(_CHUNK_BYTES)
            self._errors += part[: _ERROR_LIMIT_BYTES - len(self._errors)]
        return not (channel.eof_received or channel.closed)

    def report_end(self) -> None:
        """Report the end of the command, unless it was closed."""
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        self._channel.status_event.wait(0.2)
        if self._channel.exit_status == _NO_STATUS:
            on_end(connection_lost(self._connection.host, "", sent=True))
        else:
            on_end(CommandEnd(self._channel.exit_status, bytes(self._errors)))


class StreamReader:
    """Reader of all kept sessions of this process.

    Its thread starts with the first session and ends with the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[int, KeptStream] = {}
        self._leaving: list[KeptStream] = []
        self._thread: threading.Thread | None = None
        self._wake = -1

    def add(
        self, connection: Connection, channel: paramiko.Channel, on_output: Sink, on_end: OnEnd
    ) -> KeptStream:
        """Read a channel until its end."""
        stream = KeptStream(connection, channel, on_output, on_end)
        with self._lock:
            self._streams[stream.descriptor] = stream
            self._notify()
        return stream

    def remove(self, stream: KeptStream) -> None:
        """Stop reading a channel, and close it."""
        with self._lock:
            if self._streams.get(stream.descriptor) is not stream:
                return
            self._leaving.append(stream)
            self._notify()

    def _notify(self) -> None:
        """Wake the thread, or start it."""
        if self._thread is None:
            self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._thread = threading.Thread(target=self._run, name="streams", daemon=True)
            self._thread.start()
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
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

    def _drop(self, stream: KeptStream, poller: select.epoll, known: set[int]) -> None:
        if stream.descriptor in known:  # it may leave before it was ever polled
            poller.unregister(stream.descriptor)
            known.discard(stream.descriptor)
        with self._lock:
            del self._streams[stream.descriptor]
        threading.Thread(target=stream.release, daemon=True).start()

    def _update(self, poller: select.epoll, known: set[int]) -> bool:
        """Register new sessions and drop those that leave; return whether any is left."""
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


READER = StreamReader()  # The reader of this process
