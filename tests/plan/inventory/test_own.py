"""volbench's own YAML: defaults, ranges, ways, groups."""

from pathlib import Path

import pytest

from tests.plan.inventory.reading import FILES, by_name, read
from volbench.model.campaign.host import LOCAL, Host, Inventory
from volbench.model.campaign.host import by_name as names_of
from volbench.model.profile.profile_settings import Limits
from volbench.plan.inventory.host_names import select
from volbench.plan.inventory.load_inventory import load_inventory


@pytest.fixture(scope="module")
def fleet() -> Inventory:
    """Return an inventory that uses every key."""
    return load_inventory(FILES / "fleet.yaml")


def test_every_key_of_a_host(fleet: Inventory) -> None:
    """Its own values stand over the defaults; volumes and labels are joined with theirs."""
    assert by_name(fleet)["vm01"] == Host(
        name="vm01",
        address="10.0.0.4",
        port=22,
        user="root",
        key="~/.ssh/id_ed25519",
        volumes={"data": "/dev/vdb", "os": "/tmp"},
        labels={"provider": "azure", "flavor": "Standard_F2s_v2", "volume_type": "P15"},
        limits={"*": Limits(iops=1100.0, bandwidth_bytes_per_s=125e6)},
        allow_destroy=("serial:abc123", "/dev/disk/by-id/azure-lun0"),
        workdir="/srv/volbench",
    )


def test_a_range_is_many_hosts(fleet: Inventory) -> None:
    """Names keep their zeros, addresses count beside them, in the order of the file."""
    names = [host.name for host in fleet.hosts]
    assert names[:30] == [f"vm{number:02}" for number in range(1, 31)]
    assert [host.address for host in fleet.hosts[1:30]] == [f"10.0.0.{n}" for n in range(5, 34)]


def test_null_removes_a_default(fleet: Inventory) -> None:
    """A key and a label that many have can be taken from one."""
    host = by_name(fleet)["r1n08"]
    assert (host.key, host.user, host.sudo) == ("", "admin", True)
    assert host.labels == {"rack": "own"}
    assert host.volumes == {"data": "/data"}
    assert host.limits == {"data": Limits(iops=500.0), "*": Limits(iops=100.0)}


def test_a_host_keeps_its_jump_hosts(fleet: Inventory) -> None:
    """It knows its way even when the hop is left out by a limit later."""
    host = select(fleet, ["vm02"]).hosts[0]
    assert host.jump == ("jump@192.0.2.7:2200", "gate")
    assert host.hops == (by_name(fleet)["gate"],)
    assert names_of(select(fleet, ["vm02"]).hosts)["gate"].port == 2222


def test_local_refers_to_this_machine(fleet: Inventory) -> None:
    """It has no address, and what defaults say of connections does not hold for it."""
    host = by_name(fleet)["local"]
    assert host.is_local
    assert (host.user, host.key, host.volumes) == (None, "", {"data": "/data"})


def test_another_name_can_be_this_machine(tmp_path: Path) -> None:
    """``address: local`` says so."""
    (host,) = read(tmp_path, "hosts: {desk: {address: local}}").hosts
    assert (host.name, host.kind) == ("desk", LOCAL)


def test_groups_hold_hosts_ranges_and_groups(fleet: Inventory) -> None:
    """Each host stands once in a group, in the order of the inventory."""
    racks = tuple(f"r{rack}n{number}" for rack in (1, 2) for number in ("08", "09", "10"))
    assert fleet.groups == {
        "fast": ("vm01",),
        "racks": racks,
        "cloud": ("vm01", "vm02", "vm03", *racks),
        "nobody": (),
        "one": ("alias",),
    }


def test_a_list_of_names_is_enough(tmp_path: Path) -> None:
    """Hosts without a word about them may stand in a list."""
    inventory = read(tmp_path, "defaults: {user: me}\nhosts: [a, 'b[1-2]']\n")
    assert [(host.name, host.address, host.user) for host in inventory.hosts] == [
        ("a", "a", "me"),
        ("b1", "b1", "me"),
        ("b2", "b2", "me"),
    ]


def test_json_is_yaml(tmp_path: Path) -> None:
    """Programs write JSON."""
    text = '{\n    "hosts": {\n        "vm1": {"address": "10.0.0.1", "port": 2222}\n    }\n}\n'
    (host,) = read(tmp_path, text, "inventory").hosts
    assert (host.address, host.port) == ("10.0.0.1", 2222)


@pytest.mark.parametrize(
    ("written", "jump"),
    [
        ("none", ()),
        ("[]", ()),
        ("gate", ("gate",)),
        ("a@gate:2200, inner", ("a@gate:2200", "inner")),
        ("['fe80::1%eth0', '[fe80::2]:22']", ("fe80::1%eth0", "[fe80::2]:22")),
    ],
)
def test_every_notation_of_a_route_is_read(
    tmp_path: Path, written: str, jump: tuple[str, ...]
) -> None:
    """A text as ssh's ProxyJump, a list, or that there is none."""
    (host,) = read(tmp_path, f"hosts:\n  vm1:\n    jump: {written}\n").hosts
    assert host.jump == jump


def test_a_default_route_ends_at_its_own_jump_hosts(tmp_path: Path) -> None:
    """A bastion that is in the inventory itself is not reached through itself."""
    text = (
        "defaults: {jump: [outer, inner]}\n"
        "hosts:\n"
        "  outer: {address: 192.0.2.1}\n"
        "  inner: {address: 10.0.0.1}\n"
        "  vm1: {address: 10.0.0.2}\n"
    )
    ways = {name: host.jump for name, host in by_name(read(tmp_path, text)).items()}
    assert ways == {"outer": (), "inner": ("outer",), "vm1": ("outer", "inner")}


@pytest.mark.parametrize(
    "second",
    ["address: 10.0.0.1, port: 2222", "address: 10.0.0.1, jump: gate", "address: 10.0.0.2"],
)
def test_one_address_may_be_two_machines(tmp_path: Path, second: str) -> None:
    """Behind another port or another way stands another machine."""
    text = f"hosts:\n  vm1: {{address: 10.0.0.1}}\n  vm2: {{{second}}}\n"
    assert len(read(tmp_path, text).hosts) == 2
