"""Pool of SSH connections: one per host, reopened when broken."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from volbench.execute.parallel import on_each
from volbench.execute.ssh.connection import CONNECT_S, Connection, LoginLimits, connect
from volbench.execute.ssh.host_keys import KnownHosts, default_known_hosts
from volbench.execute.ssh.ssh_config import SshConfig
from volbench.execute.ssh.ssh_route import Resolver, Route
from volbench.model.campaign.host import Host, HostKind, by_name


@dataclass
class _Entry:
    """Route and open connection of a host."""

    route: Route
    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None


class ConnectionPool:
    """Connections to hosts."""

    def __init__(self, resolver: Resolver, *, known: KnownHosts) -> None:
        self._resolver = resolver
        self._known = known
        self._logins = LoginLimits()
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def add(self, host: Host) -> Route:
        """Register a host by name and return its route, without connecting."""
        with self._lock:
            if host.name not in self._entries:
                self._entries[host.name] = _Entry(self._resolver.route(host))
            return self._entries[host.name].route

    def existing(self, name: str) -> Connection | None:
        """Return the existing connection to a host, which may have died, or None."""
        return self._entries[name].connection

    def connection(self, name: str) -> Connection:
        """Return the connection to a host, opened if there is none or it is dead."""
        entry = self._entries[name]
        with entry.lock:
            if entry.connection is not None and entry.connection.is_alive:
                return entry.connection
            if entry.connection is not None:
                entry.connection.close()
                entry.connection = None
            entry.connection = connect(
                entry.route, known=self._known, logins=self._logins, within_s=CONNECT_S
            )
            return entry.connection

    def close(self) -> None:
        """Close all connections; programs on the hosts continue."""
        with self._lock:
            entries = list(self._entries.values())
        on_each(entries, _close)


def open_pool(
    hosts: Iterable[Host],
    *,
    config: Path | None = None,
    known_hosts: Path | None = None,
    accept_new: bool = False,
) -> ConnectionPool:
    """Return a pool for the hosts of an inventory, without connecting.

    Args:
        config: path of the ssh configuration; None for ``~/.ssh/config``.
        known_hosts: volbench's known_hosts file; None for the default path.
        accept_new: whether to add the keys of unknown hosts to it.
    """
    listed = tuple(hosts)
    others = {name: host for name, host in by_name(listed).items() if host.kind is HostKind.SSH}
    known = KnownHosts(known_hosts or default_known_hosts(), accept_new=accept_new)
    pool = ConnectionPool(Resolver(SshConfig(config), others=others), known=known)
    for host in others.values():
        pool.add(host)
    return pool


def _close(entry: _Entry) -> None:
    with entry.lock:
        if entry.connection is not None:
            entry.connection.close()
            entry.connection = None
