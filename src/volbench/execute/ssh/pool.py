"""Kept connections to many hosts: hosts enter, one open line each leaves, made anew when it breaks.

Only what passes is tried again, and only what may be done twice: a command that may have begun is
repeated only where its caller says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from volbench.errors import (
    ConnectError,
    DeadlineError,
    TransferError,
    TransportError,
    VolbenchError,
)
from volbench.execute.ssh.address import Resolver, Route
from volbench.execute.ssh.command import Command, Ended, execute
from volbench.execute.ssh.config import SshConfig
from volbench.execute.ssh.connection import CONNECT_S, Connection, Gates, connect
from volbench.execute.ssh.hostkeys import KnownHosts, default_known_hosts
from volbench.execute.ssh.retry import Patience, again
from volbench.model.campaign.host import Host, by_name

T = TypeVar("T")
R = TypeVar("R")

WORKERS = 64
"""Threads for many hosts: few workers behind dead hosts make the living wait."""


@dataclass
class _Line:
    """The way to one host, and the connection to it while there is one."""

    route: Route
    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None


class ConnectionPool:
    """Connections to hosts.

    Args:
        resolver: finds the way to a host.
        known: host keys on record.
        patience: with hosts that can't be reached.
    """

    def __init__(
        self, resolver: Resolver, *, known: KnownHosts, patience: Patience | None = None
    ) -> None:
        self._resolver = resolver
        self._known = known
        self._patience = Patience() if patience is None else patience
        self._gates = Gates()
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()

    def add(self, host: Host) -> Route:
        """Make a host known by its name and return the way to it; nothing is connected yet.

        Raises:
            InputError: the way can't be found.
        """
        with self._lock:
            if host.name not in self._lines:
                self._lines[host.name] = _Line(self._resolver.route(host))
            return self._lines[host.name].route

    def be_patient(self, patience: Patience) -> None:
        """From now on, try as long as this: what is under way is worth more waiting."""
        self._patience = patience

    def connection(self, name: str) -> Connection:
        """Return the open connection to a host; it is made, or made again, when there is none.

        Raises:
            TransportError: there is no way in.
        """
        line = self._lines[name]
        with line.lock:
            if line.connection is not None and line.connection.is_alive:
                return line.connection
            if line.connection is not None:
                line.connection.close()
                line.connection = None
            line.connection = connect(
                line.route, known=self._known, gates=self._gates, within_s=CONNECT_S
            )
            return line.connection

    def execute(
        self,
        name: str,
        command: Command,
        sink: Callable[[], Callable[[bytes], None]],
        *,
        repeat: bool,
    ) -> Ended:
        """Run a command on a host.

        Args:
            name: of the host.
            command: what to run.
            sink: makes what takes the output, once for each try.
            repeat: whether the command may be run again when it may have begun.

        Raises:
            TransportError: it could not be run to its end.
        """

        def attempt() -> Ended:
            kept = self._lines[name].connection
            connection = self.connection(name)
            try:
                return execute(connection, command, sink())
            except ConnectError as error:
                if connection is not kept or error.context.get("sent", True):
                    raise
            # The line had died unnoticed: this costs no patience.
            return execute(self.connection(name), command, sink())

        def may_repeat(error: TransportError) -> bool:
            if isinstance(error, ConnectError):
                return repeat or not error.context.get("sent", True)
            return repeat and isinstance(error, DeadlineError | TransferError)

        return again(attempt, may_repeat=may_repeat, patience=self._patience)

    def close(self) -> None:
        """Close every connection; what runs on the hosts is left alone."""
        with self._lock:
            lines = list(self._lines.values())
        on_each(lines, _close)


def open_pool(
    hosts: Iterable[Host],
    *,
    config: Path | None = None,
    known_hosts: Path | None = None,
    accept_new: bool = False,
) -> ConnectionPool:
    """Return a pool for the hosts of an inventory; nothing is connected yet.

    Args:
        hosts: of the inventory; they may be jumps for each other.
        config: of ssh; None for the user's own.
        known_hosts: the project's own file of host keys; None for the usual one.
        accept_new: whether unknown hosts are added to it.

    Raises:
        InputError: a host, or the configuration of ssh, can't be used.
    """
    listed = tuple(hosts)
    others = {name: host for name, host in by_name(listed).items() if not host.is_local}
    known = KnownHosts(known_hosts or default_known_hosts(), accept_new=accept_new)
    pool = ConnectionPool(Resolver(SshConfig(config), others=others), known=known)
    for host in others.values():
        pool.add(host)
    return pool


def on_each(things: Iterable[T], work: Callable[[T], R]) -> list[R | VolbenchError]:
    """Do some work for many at once; return what each gave, or its error, in their order."""
    listed = list(things)

    def safely(thing: T) -> R | VolbenchError:
        try:
            return work(thing)
        except VolbenchError as error:
            return error

    if not listed:
        return []
    with ThreadPoolExecutor(min(len(listed), WORKERS), thread_name_prefix="host") as workers:
        return list(workers.map(safely, listed))


def _close(line: _Line) -> None:
    with line.lock:
        if line.connection is not None:
            line.connection.close()
            line.connection = None
