"""Server that takes metrics as a Pushgateway does, and messages as a webhook does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Gateway(BaseHTTPRequestHandler):
    """Takes whatever is put or posted."""

    taken: dict[str, str]

    def do_PUT(self) -> None:
        """Keep them by their path."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        type(self).taken[self.path] = text
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        """Keep a message in the same way."""
        self.do_PUT()


@contextmanager
def gateway() -> Iterator[tuple[str, dict[str, str]]]:
    """Serve a gateway on loopback, and yield its address and what it takes."""
    taken: dict[str, str] = {}
    own = type("OwnGateway", (Gateway,), {"taken": taken})
    with ThreadingHTTPServer(("127.0.0.1", 0), own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()
