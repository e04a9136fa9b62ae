"""Hosts of an inventory in, what reaches each of them out; SSH is loaded only where it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.host import Host


@dataclass(frozen=True)
class Trust:
    """Which host keys are believed.

    Attributes:
        known_hosts: the project's own file; None for the usual one.
        accept_new: add keys of unknown hosts to it.
    """

    known_hosts: Path | None = None
    accept_new: bool = False


@contextmanager
def reach(hosts: Sequence[Host], *, trust: Trust) -> Iterator[list[Executor]]:
    """Hand out what reaches each host, in their order; nothing is connected before it is used.

    Args:
        hosts: of the inventory.
        trust: which host keys are believed.

    Raises:
        InputError: the way to a host can't be found.
    """
    if all(host.is_local for host in hosts):
        yield [LocalExecutor(host.name) for host in hosts]
        return
    from volbench.execute.ssh.pool import open_pool  # noqa: PLC0415 - paramiko is slow to import
    from volbench.execute.ssh.remote import RemoteExecutor  # noqa: PLC0415 - the same

    pool = open_pool(hosts, known_hosts=trust.known_hosts, accept_new=trust.accept_new)
    try:
        yield [
            LocalExecutor(host.name) if host.is_local else RemoteExecutor(host, pool)
            for host in hosts
        ]
    finally:
        pool.close()
