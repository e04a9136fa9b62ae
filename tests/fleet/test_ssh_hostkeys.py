"""Host keys of real hosts: known, unknown, changed, revoked, accepted once."""

import threading
from pathlib import Path

import pytest

from tests.fleet.hosts import Fleet, RealHost, call, fleet
from tests.fleet.ways import listed, pool_for
from volbench.errors import HostKeyError
from volbench.execute.scheduler import on_each
from volbench.execute.ssh.host_keys import fingerprint, read_keys

pytestmark = pytest.mark.root


def connect(hosts: Fleet, host: RealHost, known: Path, *, accept_new: bool = False) -> None:
    """Connect to a host once, with some record of host keys."""
    entry = listed(hosts, host)
    with pool_for(hosts, entry, known=known, accept_new=accept_new) as pool:
        pool.connection(host.name)


def record(tmp_path: Path, *lines: str) -> Path:
    """Write a record of host keys."""
    path = tmp_path / "known_hosts"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_an_unknown_host_is_refused(hosts: Fleet, tmp_path: Path) -> None:
    """The message has the fingerprint to compare, and nothing is written."""
    known = tmp_path / "none" / "known_hosts"
    with pytest.raises(HostKeyError, match=r"h0 .* is unknown: it presents ssh-ed25519") as caught:
        connect(hosts, hosts[0], known)
    shown = call("ssh-keygen", "-lf", str(hosts[0].folder / "run/fleet/host_key.pub")).split()[1]
    assert shown in caught.value.message
    assert "--accept-new-host-keys" in caught.value.hint
    assert caught.value.exit_code == 4
    assert not known.parent.exists()


def test_an_unknown_host_is_accepted_where_requested(hosts: Fleet, tmp_path: Path) -> None:
    """Its key goes to the project's own file, once, and holds from then on."""
    other = hosts[1].public_key
    known = record(tmp_path, "# mine", f"elsewhere {other}")
    for _ in range(2):
        connect(hosts, hosts[0], known, accept_new=True)
    connect(hosts, hosts[0], known)
    assert known.read_text(encoding="utf-8").splitlines() == [
        "# mine",
        f"elsewhere {other}",
        f"{hosts[0].address} {hosts[0].public_key}",
    ]


def test_many_hosts_are_accepted_at_once(tmp_path: Path) -> None:
    """Hosts that are met at the same time do not overwrite each other's keys."""
    with fleet(8, tmp_path / "f") as own:
        known = tmp_path / "new" / "known_hosts"
        entries = [listed(own, host) for host in own.hosts]
        start = threading.Barrier(len(entries))
        with pool_for(own, *entries, known=known, accept_new=True) as pool:

            def meet(host: RealHost) -> None:
                start.wait(30)
                pool.connection(host.name)

            assert on_each(own.hosts, meet) == [None] * 8
        lines = known.read_text(encoding="utf-8").splitlines()
        assert sorted(lines) == sorted(f"{h.address} {h.public_key}" for h in own.hosts)


@pytest.mark.parametrize("accept_new", [False, True])
def test_a_changed_key_always_fails(tmp_path: Path, *, accept_new: bool) -> None:
    """A host set up anew is refused whatever was requested; the hint works."""
    with fleet(1, tmp_path / "f") as own:
        host = own[0]
        known = record(tmp_path, f"{host.address} {host.public_key}")
        old = known.read_bytes()
        connect(own, host, known)
        host.new_host_key()
        with pytest.raises(HostKeyError, match="has changed") as caught:
            connect(own, host, known, accept_new=accept_new)
        assert f"{known}:1" in caught.value.message
        assert known.read_bytes() == old
        command = f"ssh-keygen -f '{known}' -R '{host.address}'"
        assert command in caught.value.hint
        call("sh", "-c", command)
        connect(own, host, known, accept_new=True)
        (key,) = read_keys(known, host.address)
        assert f"ssh-ed25519 {fingerprint(key.blob)}" in caught.value.message


def test_a_key_of_another_type_does_not_bypass_the_check(tmp_path: Path) -> None:
    """A host whose key on record is of a kind it does not show is refused, not accepted as new."""
    with fleet(1, tmp_path / "f") as own:
        rsa = tmp_path / "rsa"
        call("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(rsa))
        public = " ".join(Path(f"{rsa}.pub").read_text(encoding="utf-8").split()[:2])
        known = record(tmp_path, f"{own[0].address} {public}")
        with pytest.raises(HostKeyError, match="has changed"):
            connect(own, own[0], known, accept_new=True)


def test_the_recorded_key_type_is_requested(tmp_path: Path) -> None:
    """A host with several keys shows the one that is on record."""
    with fleet(1, tmp_path / "f") as own:
        place = own[0].folder / "run/fleet"
        call("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(place / "rsa"))
        config = place / "sshd_config"
        text = config.read_text(encoding="utf-8")
        config.write_text(f"HostKey /run/fleet/rsa\n{text}", encoding="utf-8")
        own[0].kill_sshd()
        own[0].start_sshd()
        public = " ".join((place / "rsa.pub").read_text(encoding="utf-8").split()[:2])
        known = record(tmp_path, f"{own[0].address} {public}")
        connect(own, own[0], known)


def test_hashed_names_and_patterns_are_understood(hosts: Fleet, tmp_path: Path) -> None:
    """Lines as ssh writes them itself, and with wildcards, are found; excluded names are not."""
    host = hosts[0]
    known = record(tmp_path, f"{host.address} {host.public_key}")
    call("ssh-keygen", "-q", "-H", "-f", str(known))
    assert host.address not in known.read_text(encoding="utf-8")
    connect(hosts, host, known)
    network = host.address.rpartition(".")[0]
    connect(hosts, host, record(tmp_path, f"{network}.* {host.public_key}"))
    excluded = record(tmp_path, f"{network}.*,!{host.address} {host.public_key}")
    with pytest.raises(HostKeyError, match="is unknown"):
        connect(hosts, host, excluded)


def test_revoked_keys_and_authorities_are_refused(hosts: Fleet, tmp_path: Path) -> None:
    """A revoked key is refused though it is on record; an authority alone vouches for nobody."""
    host = hosts[0]
    line = f"{host.address} {host.public_key}"
    with pytest.raises(HostKeyError, match="presents a key revoked"):
        connect(hosts, host, record(tmp_path, line, f"@revoked * {host.public_key}"))
    authority = f"@cert-authority * {hosts[1].public_key}"
    with pytest.raises(HostKeyError, match="host certificates"):
        connect(hosts, host, record(tmp_path, authority), accept_new=True)
    connect(hosts, host, record(tmp_path, authority, line))
