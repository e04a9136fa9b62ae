"""Access to the test hosts: hosts of an inventory, pools and executors for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fleet.hosts import Fleet, RealHost
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.ssh.connection import ConnectionPool
from volbench.execute.ssh.host_keys import KnownHosts
from volbench.execute.ssh.ssh_channel import ssh_executor
from volbench.execute.ssh.ssh_config import SshConfig
from volbench.execute.ssh.ssh_route import Resolver
from volbench.model.campaign.host import Host


def listed(fleet: Fleet, host: RealHost, **more: object) -> Host:
    """Return a test host as an inventory has it: root logs in with the fleet's key."""
    said = {"name": host.name, "address": host.address, "user": "root", "key": str(fleet.key)}
    return Host.model_validate(said | more)


@contextmanager
def pool_for(
    fleet: Fleet,
    *hosts: Host,
    config: str = "",
    known: Path | None = None,
    accept_new: bool = False,
    agent: str = "",
) -> Iterator[ConnectionPool]:
    """Hand out a pool whose user has nothing but the fleet's folder for a home.

    Args:
        fleet: the test hosts.
        hosts: of the inventory.
        config: text of the user's ``~/.ssh/config``.
        known: the project's own file of host keys; None for the fleet's.
        accept_new: whether unknown hosts are added to it.
        agent: socket of an ssh-agent.
    """
    home = fleet.folder / "home"
    (home / ".ssh").mkdir(parents=True, exist_ok=True)
    (home / ".ssh/config").write_text(config, encoding="utf-8")
    resolver = Resolver(
        SshConfig(home=home), others={host.name: host for host in hosts}, agent=agent
    )
    record = KnownHosts(fleet.known_hosts if known is None else known, accept_new=accept_new)
    pool = ConnectionPool(resolver, known=record)
    try:
        for host in hosts:
            pool.add(host)
        yield pool
    finally:
        pool.close()


@contextmanager
def executor_for(fleet: Fleet, host: RealHost, **more: object) -> Iterator[AgentExecutor]:
    """Hand out a machine that is reached by SSH."""
    entry = listed(fleet, host, **more)
    with pool_for(fleet, entry) as pool:
        yield ssh_executor(entry, pool)
