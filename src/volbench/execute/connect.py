"""Executors for hosts of every kind; a transport is imported only when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import InputError
from volbench.execute.local import LocalExecutor, require_linux
from volbench.execute.protocol import Executor
from volbench.extension import extensions, load
from volbench.model.campaign.host import LOCAL, SSH, Host

Connect = Callable[[Host], Executor]

# Kind of a host to a context manager that yields how to connect to such hosts, given the hosts of
# the campaign and the policy for their keys
CHANNELS = {
    LOCAL: "volbench.execute.connect:open_local",
    SSH: "volbench.execute.connect:open_ssh",
}


@dataclass(frozen=True)
class HostKeyPolicy:
    """Policy for unknown SSH host keys."""

    known_hosts: Path | None = None  # volbench's known_hosts file; None for the default path
    accept_new: bool = False  # whether to add the keys of unknown hosts to it


@contextmanager
def connect_hosts(hosts: Sequence[Host], *, host_keys: HostKeyPolicy) -> Iterator[list[Executor]]:
    """Yield one executor per host, in order; connections are opened on first use."""
    require_linux()
    channels = dict(CHANNELS)
    for extension in extensions():
        channels |= extension.channels
    for host in hosts:
        if host.kind not in channels:
            message = f"{host.name} is a {host.kind}, which no installed extension connects to"
            hint = "install the package of the extension that made the campaign"
            raise InputError(message, hint=hint)
    with ExitStack() as stack:
        connect: dict[str, Connect] = {
            kind: stack.enter_context(load(channels[kind])(hosts, host_keys))
            for kind in dict.fromkeys(host.kind for host in hosts)
        }
        yield [connect[host.kind](host) for host in hosts]


@contextmanager
def open_local(_hosts: Sequence[Host], _host_keys: HostKeyPolicy) -> Iterator[Connect]:
    """Yield the executor of this machine."""
    yield lambda host: LocalExecutor(host.name)


@contextmanager
def open_ssh(hosts: Sequence[Host], host_keys: HostKeyPolicy) -> Iterator[Connect]:
    """Yield the executors of hosts with sshd, whose connections are closed at the end."""
    from volbench.execute.ssh.connection import open_pool  # noqa: PLC0415 - paramiko imports slowly
    from volbench.execute.ssh.ssh_channel import ssh_executor  # noqa: PLC0415 - the same

    pool = open_pool(hosts, known_hosts=host_keys.known_hosts, accept_new=host_keys.accept_new)
    try:
        yield lambda host: ssh_executor(host, pool)
    finally:
        pool.close()
