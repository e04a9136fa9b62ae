"""What the network and hosts do to a line: it is noticed in time, and mended where it can be."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.execute.host_files import text_of
from tests.fleet.hosts import Fleet, RealHost, fleet
from tests.fleet.ways import executor_for, listed, pool_for
from tests.waiting import PATIENCE_S, until
from volbench.errors import ConnectError, DeadlineError
from volbench.execute.agent.run_command import run
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import Patience
from volbench.execute.client import Request
from volbench.execute.scheduler import on_each
from volbench.execute.ssh.connection import USER_TIMEOUT_S, LoginLimits, connect
from volbench.execute.ssh.host_keys import KnownHosts
from volbench.execute.ssh.ssh_channel import ssh_executor

pytestmark = pytest.mark.root

ONCE = Patience(tries=1)


def begin_counted(hosts: Fleet, executor: AgentExecutor) -> None:
    """Run a program that notes each of its starts and never ends by itself."""
    assert hosts[0].tmp.is_dir()
    argv = ["sh", "-c", "echo one >>/tmp/starts; exec sleep 1000"]
    executor.client.ask(Request(run, {"argv": argv}, repeatable=False))


def test_a_broken_link_is_noticed_and_restored(tmp_path: Path) -> None:
    """A command in flight fails soon after the cable is out; with the cable back, all is well."""
    with fleet(1, tmp_path / "f") as own:
        entry = listed(own, own[0])
        with pool_for(own, entry) as pool, ThreadPoolExecutor(1) as worker:
            executor = ssh_executor(entry, pool, patience=ONCE)
            flight = worker.submit(begin_counted, own, executor)
            until((own[0].tmp / "starts").exists)
            own[0].link(up=False)
            begun = time.monotonic()
            error = flight.exception(PATIENCE_S)
            took_s = time.monotonic() - begun
            assert isinstance(error, ConnectError)
            assert error.sent is True
            assert "may have run" in error.hint
            assert took_s < USER_TIMEOUT_S + 60, "the kernel's own patience is a quarter of an hour"
            own[0].link(up=True)
            # The first connection may meet what the host still has to send on the lost one.
            assert text_of(ssh_executor(entry, pool), "/tmp/starts") == "one\n"


def test_a_frozen_host_is_given_up(tmp_path: Path) -> None:
    """A host whose kernel answers but whose programs stand still costs a deadline, no more."""
    with fleet(1, tmp_path / "f") as own, pool_for(own, listed(own, own[0])) as pool:
        route = pool.add(listed(own, own[0]))
        executor = ssh_executor(listed(own, own[0]), pool)
        assert executor.run(["true"]).exit_status == 0
        own[0].freeze()
        try:
            request = Request(run, {"argv": ["echo"]}, timeout_s=1, repeatable=False)
            with pytest.raises(DeadlineError, match="run did not end in 1 s on h0"):
                executor.client.ask(request)
            known = KnownHosts(own.known_hosts)
            with pytest.raises(ConnectError, match="h0 closed the connection before the login"):
                connect(route, known=known, logins=LoginLimits(), within_s=1)
        finally:
            own[0].freeze(thaw=True)
        assert executor.run(["echo", "back"]).stdout == "back\n"


def test_dead_hosts_do_not_delay_the_others(tmp_path: Path) -> None:
    """Of many hosts, the living answer while the dead are still waited for; each has its result."""
    with fleet(4, tmp_path / "f") as own, socket.create_server(("127.0.0.1", 0)) as silent:
        entries = [listed(own, host) for host in own.hosts]
        port = silent.getsockname()[1]
        for dead in (0, 2):
            entries[dead] = listed(own, own[dead], address="127.0.0.1", port=port)
        order: list[int] = []
        with pool_for(own, *entries) as pool:

            def look(host: RealHost) -> str:
                try:
                    executor = ssh_executor(entries[host.number], pool, patience=ONCE)
                    return executor.run(["hostname"]).stdout
                finally:
                    order.append(host.number)
                    if {1, 3} <= set(order):
                        silent.close()

            found = on_each(own.hosts, look)
        assert [found[n] for n in (1, 3)] == ["h1\n", "h3\n"]
        assert all(isinstance(found[n], ConnectError) for n in (0, 2))
        assert set(order[:2]) == {1, 3}


def test_a_closed_connection_leaves_nothing_behind(hosts: Fleet) -> None:
    """A closed pool has no threads left, and the host no session."""
    before = set(threading.enumerate())
    with executor_for(hosts, hosts[0]) as executor:
        executor.run(["true"])
        assert set(threading.enumerate()) - before
    until(lambda: not set(threading.enumerate()) - before)
    until(lambda: "root@notty" not in hosts[0].run("ps", "ax"))
