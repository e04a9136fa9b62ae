"""Reachability of the NBD server of an export."""

import socket
from urllib.parse import parse_qs, urlsplit

_PORT = 10809
_REACH_S = 5.0  # A server that answers at all does so within a retransmission or two.


def reach_nbd(uri: str) -> str:
    """Return why the server of an export cannot be reached; empty where it can, and with TLS."""
    parts = urlsplit(uri)
    try:
        if parts.scheme == "nbd" and parts.hostname:
            address = parts.hostname, parts.port or _PORT
            socket.create_connection(address, timeout=_REACH_S).close()
        elif parts.scheme == "nbd+unix":
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_REACH_S)
                connection.connect(parse_qs(parts.query).get("socket", [""])[0])
    except (OSError, ValueError) as error:  # ValueError: the port is no number
        return str(getattr(error, "strerror", None) or error)
    return ""
