"""Targets with hosts, as scp names files."""

from pathlib import Path

import pytest

from tests.command_line import Volbench
from volbench.errors import InputError
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.plan.inventory.named_hosts import named_hosts


def read(*targets: str) -> tuple[list[tuple[str, str, str | None, dict[str, str]]], list[str]]:
    """Return name, address, user and volumes of each host, and the targets that all have."""
    content, shared = named_hosts(targets)
    hosts = load_inventory("--on", content).hosts if content else ()
    return [(host.name, host.address, host.user, host.volumes) for host in hosts], shared


@pytest.mark.parametrize(
    "target",
    [
        *("/data", "./a:b", "a/b:c", ":/data", "/dev/disk/by-path/pci-0000:00", "data=./a:b"),
        *("nbd://host/name", "data=nbd+unix:///x?socket=/s", ".", "vm1", "a=b=c"),
    ],
)
def test_targets_of_this_machine(target: str) -> None:
    """A slash before the first colon, a colon at the begin, and URIs are no hosts."""
    assert read(target) == ([], [target])


@pytest.mark.parametrize(
    ("target", "name", "address", "user"),
    [
        ("vm1:/data", "vm1", "vm1", None),
        ("root@vm1:/data", "vm1", "vm1", "root"),
        ("me@corp@vm1.example:/data", "vm1.example", "vm1.example", "me@corp"),
        ("10.0.0.4:/data", "10.0.0.4", "10.0.0.4", None),
        ("[fe80::1]:/data", "fe80-1", "fe80::1", None),
        ("root@[2001:db8::2]:/data", "2001-db8-2", "2001:db8::2", "root"),
        ("data=vm1:/data", "vm1", "vm1", None),
    ],
)
def test_a_host(target: str, name: str, address: str, user: str | None) -> None:
    """User, host and path as scp reads them; an IPv6 address is in brackets."""
    assert read(target) == ([(name, address, user, {"data": "/data"})], ["/data"])


def test_ranges_and_roles() -> None:
    """A range is as many hosts; hosts with the same volumes share their targets."""
    hosts, shared = read("data=vm[08-10]:/data", "os=vm[08-10]:/")
    assert [name for name, *_ in hosts] == ["vm08", "vm09", "vm10"]
    assert {tuple(volumes.items()) for *_, volumes in hosts} == {(("data", "/data"), ("os", "/"))}
    assert shared == ["/data", "os=/"]


def test_volumes_of_each_host() -> None:
    """Hosts with other volumes keep their own; this machine is a host beside others."""
    hosts, shared = read("vm1:/a", "vm2:/b", "/here")
    assert shared == []
    assert [(name, volumes["data"]) for name, _, _, volumes in hosts] == [
        ("vm1", "/a"),
        ("vm2", "/b"),
        ("local", "/here"),
    ]


def test_several_volumes_of_a_host_are_compared() -> None:
    """They are arms as on this machine, so that all of them are targets."""
    hosts, shared = read("vm1:/a", "vm1:/b")
    assert [name for name, *_ in hosts] == ["vm1"]
    assert shared == ["/a", "/b"]


@pytest.mark.parametrize(
    "target",
    [
        *("-oProxyCommand=id:/data", "data=-oProxyCommand:/data", "root@-vm:/data", "-l@vm1:/data"),
        *("$(id):/data", "vm1;id:/data", "`id`:/data", "a b:/data", "vm\n1:/data", "vm1|id:/data"),
        *("$(id)@vm1:/data", "'@vm1:/data", "@vm1:/data", "%h:/data", "*:/data", "ü:/data"),
        *("vm1:data", "vm1:~/data", "vm1:$HOME", "vm1:-rf", "vm1:/a\nb", "vm1:/a\0b", "vm1: /a"),
        *("[::1:/data", "[::g]:/data", "vm[1-:/data", "vm[3-1]:/data", "vm[1-99999]:/data"),
        *("all:/data", "x" * 300 + ":/data", "[::1%eth0;id]:/data", "[::1%eth0 -x]:/data"),
    ],
)
def test_hostile_targets_are_refused(target: str) -> None:
    """Nothing of a target can be an option of a program, or be parsed by a shell."""
    with pytest.raises(InputError):
        read(target)


@pytest.mark.parametrize(
    "targets",
    [("vm1:/a", "root@vm1:/b"), ("vm1:/a", "vm1:/b", "vm2:/c"), ("vm[1-2]:/a", "os=vm1:/")],
)
def test_contradictions_are_refused(targets: tuple[str, ...]) -> None:
    """A host has one user, and one volume of a role beside others."""
    with pytest.raises(InputError):
        read(*targets)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("root@vm1", "root@vm1:/"),
        ("root@vm1/data", "root@vm1:/data"),
        ("known/data", "known:/data"),
        ("data=known", "known:/"),
        ("disk:1", "./disk:1"),
        ("root@vm1:2201:/data", "Port 2201 for vm1 in ~/.ssh/config"),
    ],
)
def test_typos_are_asked_about_by_name(
    target: str, hint: str, volbench: Volbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that may be meant as a host is no new file, and no host is a file that exists."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host known\n  HostName 192.0.2.1\n")
    (tmp_path / "disk:1").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    done = volbench("run", "quick", "--on", target, "--dry-run")
    assert done.returncode == 2
    assert hint in done.stderr
    assert not (tmp_path / "root@vm1").exists()


def test_hosts_are_named_once(volbench: Volbench, tmp_path: Path) -> None:
    """An inventory and a host in --on contradict each other."""
    (tmp_path / "fleet.yaml").write_text("hosts: [vm1]\n")
    done = volbench("run", "quick", "--on", "vm1:/data", "--inventory", "fleet.yaml")
    assert done.returncode == 2
    assert "--inventory" in done.stderr


def test_hosts_are_listed_and_saved(volbench: Volbench, tmp_path: Path) -> None:
    """The inventory that is saved has the hosts that were named."""
    done = volbench(
        "hosts", "--on", "root@vm[1-2]:/data", "--on", "[::1]:/x", "--list", "--save", "new/"
    )
    assert done.returncode == 0, done.stderr
    assert "vm2" in done.stdout
    saved = load_inventory(tmp_path / "new" / "fleet.yaml")
    assert [(host.address, host.user) for host in saved.hosts] == [
        ("vm1", "root"),
        ("vm2", "root"),
        ("::1", None),
    ]
