"""Ways in: keys, the agent, certificates, aliases, and several hops."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fleet import texts
from tests.fleet.hosts import Fleet, RealHost, call, fleet, make_key
from tests.fleet.ways import listed, pool_for
from tests.waiting import until
from volbench.errors import AuthError, ConnectError, HostKeyError, InventoryError, TransportError
from volbench.execute.agent.files import write_files
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.scheduler import on_each
from volbench.execute.ssh.ssh_channel import ssh_executor

pytestmark = pytest.mark.root


@contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[str]:
    """Hand out the socket of an ssh-agent that holds some keys."""
    folder.mkdir(exist_ok=True)
    path = str(folder / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        while not Path(path).exists():
            assert process.poll() is None
        for key in keys:
            call("env", f"SSH_AUTH_SOCK={path}", "ssh-add", "-q", str(key))
        yield path
    finally:
        process.terminate()
        process.wait(10)


def client(pool_host: str, executor: AgentExecutor) -> str:
    """Return the address that a host sees its user come from."""
    done = executor.run(["sh", "-c", "echo $SSH_CONNECTION"])
    assert done.exit_status == 0, pool_host
    return done.stdout.split()[0]


def test_a_key_of_the_agent_is_accepted(hosts: Fleet, tmp_path: Path) -> None:
    """Without any key file, the agent's keys are tried; without the agent there is nothing."""
    entry = listed(hosts, hosts[0], key="")
    other = make_key(tmp_path / "other")
    with agent(tmp_path, other, hosts.key) as socket, pool_for(hosts, entry, agent=socket) as pool:
        assert ssh_executor(entry, pool).run(["id", "-un"]).stdout == "root\n"
    with pool_for(hosts, entry) as pool, pytest.raises(AuthError, match="none available") as caught:
        pool.connection("h0")
    assert caught.value.exit_code == 4
    assert not caught.value.transient


def test_a_key_with_a_passphrase_works_through_the_agent(hosts: Fleet, tmp_path: Path) -> None:
    """The agent's copy of a key file is used; without it, there is a hint."""
    key = tmp_path / "locked"
    key.write_bytes(hosts.key.read_bytes())
    key.chmod(0o600)
    Path(f"{key}.pub").write_bytes(Path(f"{hosts.key}.pub").read_bytes())
    call("ssh-keygen", "-q", "-p", "-P", "", "-N", "a phrase", "-f", str(key))
    entry = listed(hosts, hosts[0], key=str(key))
    with agent(tmp_path, hosts.key) as socket, pool_for(hosts, entry, agent=socket) as pool:
        pool.connection("h0")
    with pool_for(hosts, entry) as pool, pytest.raises(AuthError, match="ssh-add") as caught:
        pool.connection("h0")
    assert "a phrase" not in caught.value.message


def test_a_chosen_key_is_the_only_one(hosts: Fleet, tmp_path: Path) -> None:
    """A key that the inventory gives is not helped out by others of the agent."""
    other = make_key(tmp_path / "other")
    entry = listed(hosts, hosts[0], key=str(other))
    with (
        agent(tmp_path, hosts.key) as socket,
        pool_for(hosts, entry, agent=socket) as pool,
        pytest.raises(AuthError, match=r"authentication failed at .*tried.*other"),
    ):
        pool.connection("h0")


def test_a_certificate_is_accepted(hosts: Fleet, tmp_path: Path) -> None:
    """A key that no host knows opens with a certificate beside it."""
    key = make_key(tmp_path / "signed")
    entry = listed(hosts, hosts[0], key=str(key))
    with pool_for(hosts, entry) as pool, pytest.raises(AuthError):
        pool.connection("h0")
    sign = ["ssh-keygen", "-q", "-s", str(hosts.user_ca), "-I", "test", "-n", "root"]
    call(*sign, f"{key}.pub")
    with pool_for(hosts, entry) as pool:
        pool.connection("h0")
    Path(f"{key}-cert.pub").rename(tmp_path / "elsewhere-cert.pub")
    config = f"CertificateFile {tmp_path}/elsewhere-cert.pub\n"
    with pool_for(hosts, entry, config=config) as pool:
        pool.connection("h0")


def test_a_bad_key_file_is_reported(hosts: Fleet, tmp_path: Path) -> None:
    """A file that is no key, and one that is missing, are told apart."""
    junk = tmp_path / "junk"
    junk.write_text("this is no key\n", encoding="utf-8")
    entry = listed(hosts, hosts[0], key=str(junk))
    with (
        pool_for(hosts, entry) as pool,
        pytest.raises(AuthError, match="junk is not a private key"),
    ):
        pool.connection("h0")
    with (
        pytest.raises(InventoryError, match="gone does not exist"),
        pool_for(hosts, listed(hosts, hosts[0], key=str(tmp_path / "gone"))),
    ):
        pytest.fail("a missing key was taken")


def test_an_alias_of_the_configuration_is_followed(hosts: Fleet, tmp_path: Path) -> None:
    """Address, user, key and the name on record come from ``~/.ssh/config``, through an Include."""
    part = tmp_path / "part.conf"
    part.write_text(
        f"Host db\n  HostName {hosts[0].address}\n  User {texts.USER}\n"
        f"  IdentityFile {hosts.key}\n  HostKeyAlias database\n",
        encoding="utf-8",
    )
    known = tmp_path / "known"
    known.write_text(f"database {hosts[0].public_key}\n", encoding="utf-8")
    config = f"Include {tmp_path}/*.conf\nHost *\n  User wrong\n  Port 2222\n"
    entry = listed(hosts, hosts[0], address="db", user=None, key="", port=22)
    with pool_for(hosts, entry, config=config, known=known) as pool:
        assert ssh_executor(entry, pool).run(["id", "-un"]).stdout == f"{texts.USER}\n"


def test_a_host_behind_two_jump_hosts_is_reached(tmp_path: Path) -> None:
    """The host sees the last jump as its client, and each hop's key is looked at."""
    with fleet(3, tmp_path / "f") as own:
        first, second, target = own.hosts
        entries = [
            listed(own, first),
            listed(own, second),
            listed(own, target, jump=("h0", f"root@{second.address}:22")),
        ]
        config = f"IdentityFile {own.key}\n"
        with pool_for(own, *entries, config=config) as pool:
            executor = ssh_executor(entries[2], pool)
            assert executor.run(["hostname"]).stdout == "h2\n"
            assert client("h2", executor) == second.address
            executor.ask(write_files, {"/tmp/d/through": "x" * 5_000_000})
            executor.fetch_work_folder("/tmp/d", str(tmp_path))
            assert (tmp_path / "through").stat().st_size == 5_000_000
        jump = f"Host {target.address}\n  ProxyJump h0,{second.address}\n"
        direct = listed(own, target)
        with pool_for(own, entries[0], entries[1], direct, config=config + jump) as pool:
            assert client("h2", ssh_executor(direct, pool)) == second.address
        without = tmp_path / "without"
        lines = own.known_hosts.read_text(encoding="utf-8").splitlines(keepends=True)
        without.write_text(lines[0] + lines[2], encoding="utf-8")
        with (
            pool_for(own, *entries, config=config, known=without) as pool,
            pytest.raises(HostKeyError, match=second.address.replace(".", r"\.")),
        ):
            pool.connection("h2")


def test_an_unreachable_jump_host_is_reported(hosts: Fleet) -> None:
    """A host behind a jump that does not answer, and a jump that forwards nothing, are named."""
    gone = listed(hosts, hosts[1], name="gone", address="127.0.0.1", port=9, jump=("h0",))
    with (
        pool_for(hosts, listed(hosts, hosts[0]), gone) as pool,
        pytest.raises(ConnectError, match=r"gone cannot be reached .* from its jump host"),
    ):
        pool.connection("gone")
    behind = listed(hosts, hosts[1], jump=("h0",))
    with (
        configured(hosts[0], "AllowTcpForwarding no"),
        pool_for(hosts, listed(hosts, hosts[0]), behind) as pool,
        pytest.raises(TransportError, match="does not forward connections") as caught,
    ):
        pool.connection("h1")
    assert not caught.value.transient


@contextmanager
def configured(host: RealHost, line: str) -> Iterator[None]:
    """Add a line to the configuration of a host's sshd for a while."""
    config = host.folder / "run/fleet/sshd_config"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}{line}\n", encoding="utf-8")
    host.kill_sshd()
    host.start_sshd()
    try:
        yield
    finally:
        config.write_text(text, encoding="utf-8")
        host.kill_sshd()
        host.start_sshd()


def test_an_algorithm_mismatch_is_no_lost_connection(hosts: Fleet) -> None:
    """It names the kind of algorithm, and is not tried again."""
    line = "Ciphers chacha20-poly1305@openssh.com"
    with (
        configured(hosts[0], line),
        pool_for(hosts, listed(hosts, hosts[0])) as pool,
        pytest.raises(TransportError, match="no acceptable ciphers") as caught,
    ):
        pool.connection("h0")
    assert not caught.value.transient


def test_many_hosts_are_reached_through_one_bastion(tmp_path: Path) -> None:
    """Thirty hosts behind a bastion with sshd's own limits are all reached, without a crowd."""
    with fleet(31, tmp_path / "f", max_startups="10:30:100") as own:
        bastion, *behind = own.hosts
        entries = [listed(own, host, jump=("h0",)) for host in behind]
        start = threading.Barrier(len(behind))
        with pool_for(own, listed(own, bastion), *entries) as pool:

            def meet(host: RealHost) -> str:
                start.wait(30)
                entry = entries[host.number - 1]
                return ssh_executor(entry, pool).run(["hostname"]).stdout.strip()

            assert on_each(behind, meet) == [host.name for host in behind]
        assert bastion.log.count("drop connection") < 3, "sshd counts late, but not that late"
        assert bastion.log.count("Accepted publickey") == 30


RELAY = """import os, socket, sys, threading
wire = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def carry():
    while part := os.read(0, 65536):
        wire.sendall(part)
    wire.shutdown(socket.SHUT_WR)
threading.Thread(target=carry, daemon=True).start()
while part := wire.recv(65536):
    os.write(1, part)
"""


def test_a_host_is_reached_through_a_proxy_command(hosts: Fleet, tmp_path: Path) -> None:
    """The connection is the input and output of the user's program, which ends with it."""
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    config = f"Host {hosts[0].address}\n  ProxyCommand {sys.executable} {relay} %h %p\n"
    entry = listed(hosts, hosts[0])
    with pool_for(hosts, entry, config=config) as pool:
        assert ssh_executor(entry, pool).run(["hostname"]).stdout == "h0\n"
        assert call("pgrep", "-f", str(relay))
    until(lambda: subprocess.run(["pgrep", "-f", str(relay)], check=False).returncode == 1)


def test_proxy_command_that_fails_is_reported(hosts: Fleet) -> None:
    """A program that is not there, and one that ends at once."""
    entry = listed(hosts, hosts[0])
    for command, words in (("/no/such/program", "cannot be started"), ("false", "by hand: false")):
        config = f"Host {hosts[0].address}\n  ProxyCommand {command}\n"
        with pool_for(hosts, entry, config=config) as pool, pytest.raises(TransportError) as caught:
            pool.connection("h0")
        assert words in f"{caught.value.message} {caught.value.hint}"


def test_container_is_reached_without_a_network(hosts: Fleet) -> None:
    """What `docker exec -i NAME sshd -i` does: an sshd for one connection inside the namespaces."""
    inside = f"nsenter -t {hosts[0].space.init} -m -u -i -n -p"
    config = f"Host box\n  ProxyCommand {inside} {texts.SSHD} -i -f {texts.PLACE}/sshd_config\n"
    entry = listed(hosts, hosts[0], address="box")
    with pool_for(hosts, entry, config=config, accept_new=True, known=hosts.folder / "kb") as pool:
        hosts[0].link(up=False)
        try:
            assert ssh_executor(entry, pool).run(["hostname"]).stdout == "h0\n"
        finally:
            hosts[0].link(up=True)
