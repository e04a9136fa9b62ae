"""Executors for hosts and pods; a transport is imported only when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.host import Host, HostKind

Connect = Callable[[Host], Executor]


@dataclass(frozen=True)
class HostKeyPolicy:
    """Policy for unknown SSH host keys."""

    known_hosts: Path | None = None  # volbench's known_hosts file; None for the default path
    accept_new: bool = False  # whether to add the keys of unknown hosts to it


@contextmanager
def connect_hosts(hosts: Sequence[Host], *, host_keys: HostKeyPolicy) -> Iterator[list[Executor]]:
    """Yield one executor per host, in order; connections are opened on first use."""
    with ExitStack() as stack:
        connect: dict[HostKind, Connect] = {HostKind.LOCAL: lambda host: LocalExecutor(host.name)}
        if any(host.kind is HostKind.SSH for host in hosts):
            connect[HostKind.SSH] = stack.enter_context(_ssh(hosts, host_keys))
        if any(host.kind is HostKind.POD for host in hosts):
            connect[HostKind.POD] = stack.enter_context(_pods())
        yield [connect[host.kind](host) for host in hosts]


@contextmanager
def _ssh(hosts: Sequence[Host], host_keys: HostKeyPolicy) -> Iterator[Connect]:
    from volbench.execute.ssh.connection_pool import open_pool  # noqa: PLC0415 - paramiko imports slowly
    from volbench.execute.ssh.ssh_channel import ssh_executor  # noqa: PLC0415 - the same

    pool = open_pool(hosts, known_hosts=host_keys.known_hosts, accept_new=host_keys.accept_new)
    try:
        yield lambda host: ssh_executor(host, pool)
    finally:
        pool.close()


@contextmanager
def _pods() -> Iterator[Connect]:
    from volbench.kubernetes.pod_executor import PodConnections  # noqa: PLC0415 - optional client

    with PodConnections() as connections:
        yield connections.executor
