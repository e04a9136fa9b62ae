"""Web socket of a command in a container: its streams, and how it ended.

Each message begins with the number of its stream (``v4.channel.k8s.io`` and ``v5``; see
k8s.io/apimachinery/pkg/util/remotecommand). The end of a command is a Status object.
"""

from __future__ import annotations

import json
import select
import ssl
import threading
from contextlib import suppress
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any

from websocket import ABNF, WebSocketException

from volbench.errors import ConnectError
from volbench.execute.shell.channel import CommandEnd, Sink, connection_lost

if TYPE_CHECKING:
    from websocket import WebSocket

_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_ERROR_LIMIT_BYTES = 16 * 1024**2
# Length of a message to standard input: what a writable socket takes without blocking
CHUNK_BYTES = 4096


class ExecSocket:
    """Streams of a command.

    Reading and writing take turns: a TLS connection must not be used by two threads at a time.
    """

    def __init__(self, host: str, socket: WebSocket, sink: Sink) -> None:
        self._host = host
        self._socket = socket
        self._inner: Any = socket.sock
        self._sink = sink
        self._turn = threading.Lock()
        self._errors = bytearray()
        self._status = b""
        self.has_ended = False

    def send(self, data: bytes) -> None:
        """Write to standard input."""
        try:
            with self._turn:
                self._socket.send_binary(bytes([_STDIN]) + data)
        except (WebSocketException, OSError) as error:
            raise connection_lost(self._host, str(error), sent=True) from error

    def ping(self) -> None:
        """Show the proxies on the way that the connection is in use."""
        with suppress(WebSocketException, OSError), self._turn:
            self._socket.ping()

    def wait(self, timeout_s: float, *, to_send: bool = False) -> tuple[bool, bool]:
        """Wait until the connection can be read, or written; return which."""
        inner = self._inner
        if isinstance(inner, ssl.SSLSocket) and inner.pending():
            return True, False
        poller = select.poll()
        poller.register(inner, select.POLLIN | (select.POLLOUT if to_send else 0))
        found = dict(poller.poll(timeout_s * 1000)).get(inner.fileno(), 0)
        return bool(found & ~select.POLLOUT), bool(found & select.POLLOUT)

    def receive(self) -> None:
        """Process one message."""
        try:
            with self._turn:
                code, frame = self._socket.recv_data_frame(control_frame=True)
        except (WebSocketException, OSError) as error:
            self.has_ended = True
            if not self._status:
                raise connection_lost(self._host, str(error), sent=True) from error
            return
        if code == ABNF.OPCODE_CLOSE:
            self.has_ended = True
        elif code == ABNF.OPCODE_BINARY and len(frame.data) > 1:
            self._take(frame.data[0], frame.data[1:])

    def _take(self, stream: int, data: bytes) -> None:
        if stream == _STDOUT:
            self._sink(data)
        elif stream == _STDERR:
            self._errors += data[: _ERROR_LIMIT_BYTES - len(self._errors)]
        elif stream == _STATUS:
            self._status += data

    def end(self) -> CommandEnd:
        """Return how the command ended."""
        if not self._status:
            raise connection_lost(self._host, "", sent=True)
        status = exit_status(self._host, self._status)
        return CommandEnd(status, bytes(self._errors))

    def abort(self) -> None:
        """End the connection, so that its reader ends and closes it."""
        self.has_ended = True
        with suppress(OSError):  # closed already
            self._inner.shutdown(SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the command sees the end of its input."""
        self.abort()
        self._socket.shutdown()


def exit_status(host: str, text: bytes) -> int:
    """Return the exit status in a Status object."""
    try:
        found = json.loads(text)
        if found.get("status") == "Success":
            return 0
        causes = (found.get("details") or {}).get("causes") or []
        codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
        if codes:
            return int(codes[0])
        message = str(found.get("message", ""))
    except (ValueError, AttributeError, KeyError, TypeError):
        message = text.decode("utf-8", "replace")
    raise not_started(host, message)


def not_started(host: str, message: str) -> ConnectError:
    """Return the error of a command that was not started, in the words of the cluster."""
    return ConnectError(
        f"a command could not be started on {host}: {message}",
        hint="check its node and its pod: kubectl get nodes; kubectl describe pod",
        sent=False,
    )
