"""Reads of an export of an NBD server without TLS, by the protocol's fixed newstyle handshake.

See doc/proto.md of https://github.com/NetworkBlockDevice/nbd. Each call has a time limit.
"""

import socket
import struct
from urllib.parse import parse_qs, unquote, urlsplit

_PORT = 10809
_REACH_S = 5.0  # A server that answers at all does so within a retransmission or two.
_GO, _INFO, _ACK, _READ, _DISCONNECT = 7, 3, 1, 0, 2
_OPTION_MAGIC = b"IHAVEOPT"
_REPLY_MAGIC, _REQUEST_MAGIC, _SIMPLE_MAGIC = 0x3E889045565A9, 0x25609513, 0x67446698
_MAX_REPLY_BYTES = 4096  # Names and messages of a handshake; a hostile server may announce more.


class NbdExport:
    """An open export.

    Args:
        uri: ``nbd://HOST[:PORT]/NAME`` or ``nbd+unix:///NAME?socket=PATH``.
        limit_s: longest wait for each answer.
    """

    def __init__(self, uri: str, limit_s: float) -> None:
        self._socket, name = _connect(uri, limit_s)
        self.size_bytes = 0
        try:
            self._negotiate(name)
        except BaseException:
            self._socket.close()
            raise

    def _negotiate(self, name: bytes) -> None:
        magic, option_magic, flags = struct.unpack(">8s8sH", self._receive(18))
        if (magic, option_magic) != (b"NBDMAGIC", _OPTION_MAGIC) or not flags & 1:
            raise OSError("not a newstyle NBD server")
        data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        option = _OPTION_MAGIC + struct.pack(">II", _GO, len(data)) + data
        self._socket.sendall(struct.pack(">I", flags & 3) + option)
        while True:
            magic_number, _, kind, length = struct.unpack(">QIII", self._receive(20))
            if magic_number != _REPLY_MAGIC or length > _MAX_REPLY_BYTES:
                raise OSError("malformed reply of the NBD server")
            reply = self._receive(length)
            if kind == _ACK:
                return
            if kind != _INFO:
                raise OSError("the NBD server refuses the export")
            if len(reply) == 12 and reply[:2] == b"\0\0":
                (self.size_bytes,) = struct.unpack(">Q", reply[2:10])

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the export."""
        self._socket.sendall(
            struct.pack(">IHHQQI", _REQUEST_MAGIC, 0, _READ, offset, offset, length)
        )
        magic, error, cookie = struct.unpack(">IIQ", self._receive(16))
        if (magic, cookie) != (_SIMPLE_MAGIC, offset):
            raise OSError("malformed reply of the NBD server")
        if error:
            raise OSError(error, "the NBD server cannot read")
        return self._receive(length)

    def close(self) -> None:
        """Disconnect."""
        try:
            request = struct.pack(">IHHQQI", _REQUEST_MAGIC, 0, _DISCONNECT, 0, 0, 0)
            self._socket.sendall(request)
        except OSError:  # it has gone
            pass
        self._socket.close()

    def _receive(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            chunk = self._socket.recv(length - len(data))
            if not chunk:
                raise OSError("the NBD server closed the connection")
            data += chunk
        return data


def reach_nbd(uri: str) -> str:
    """Return why the server of an export cannot be reached; empty where it can, and with TLS."""
    if urlsplit(uri).scheme not in {"nbd", "nbd+unix"}:
        return ""
    try:
        connection, _ = _connect(uri, _REACH_S)
    except (OSError, ValueError) as error:  # ValueError: the port is no number
        return str(getattr(error, "strerror", None) or error)
    connection.close()
    return ""


def _connect(uri: str, limit_s: float) -> "tuple[socket.socket, bytes]":
    """Return a connection to the server of a URI, and the name of the export."""
    parts = urlsplit(uri)
    name = unquote(parts.path[1:]).encode()
    path = parse_qs(parts.query).get("socket", [""])[0]
    if parts.scheme == "nbd" and parts.hostname:
        address = parts.hostname, parts.port or _PORT
        return socket.create_connection(address, timeout=limit_s), name
    if parts.scheme != "nbd+unix" or not path:
        reason = "exports of {} are not read".format(parts.scheme or "this kind")
        raise OSError(reason)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(limit_s)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection, name
