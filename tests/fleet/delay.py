"""Long line to a test host: a port here whose bytes arrive later, in both directions."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread

from tests.fleet.hosts import RealHost


@contextmanager
def long_line(host: RealHost, *, round_trip_s: float) -> Iterator[int]:
    """Yield a port on 127.0.0.1 that leads to a host's sshd."""
    listener = socket.create_server(("127.0.0.1", 0))
    wires: list[socket.socket] = []
    arguments = (listener, host.address, round_trip_s / 2, wires)
    accepting = Thread(target=_accept, args=arguments, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        _close(listener)
        accepting.join()
        for wire in wires:
            _close(wire)


def _close(wire: socket.socket) -> None:
    with suppress(OSError):  # its other end has closed it
        wire.shutdown(socket.SHUT_RDWR)
    wire.close()


def _accept(
    listener: socket.socket, address: str, delay_s: float, wires: list[socket.socket]
) -> None:
    with suppress(OSError):
        while True:
            here, _ = listener.accept()
            try:
                there = socket.create_connection((address, 22))
            except OSError:  # the host is down: the line stays
                here.close()
                continue
            wires += [here, there]
            for wire in (here, there):
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _pump(here, there, delay_s)
            _pump(there, here, delay_s)


def _pump(source: socket.socket, sink: socket.socket, delay_s: float) -> None:
    """Carry bytes from one socket to another, each part a while after it came."""
    parts: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def receive() -> None:
        part = b"begin"
        while part:
            try:
                part = source.recv(65536)
            except OSError:
                part = b""
            parts.put((time.monotonic() + delay_s, part))

    def send() -> None:
        with suppress(OSError):
            while True:
                due_s, part = parts.get()
                time.sleep(max(0.0, due_s - time.monotonic()))
                if not part:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(part)

    for work in (receive, send):
        Thread(target=work, daemon=True).start()
