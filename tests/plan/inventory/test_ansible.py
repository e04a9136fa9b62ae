"""Ansible's inventories: INI, YAML and JSON mean the same, and mean what Ansible means by them.

The files fleet.json, fleet-export.json and fleet-all.yaml were written by ansible-inventory 2.19,
from fleet.ini.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plan.inventory.reading import FILES, by_name, read
from volbench.model.campaign.host import Host, HostKind, Inventory
from volbench.model.profile.profile_model import Limits
from volbench.plan.inventory import load_inventory

KINDS = ("fleet.ini", "fleet.json", "fleet-export.json", "fleet-all.yaml")


@pytest.fixture(params=KINDS)
def fleet(request: pytest.FixtureRequest) -> Inventory:
    """Return the same fleet from each kind of file."""
    return load_inventory(FILES / request.param)


@pytest.fixture(scope="module")
def variables() -> dict[str, dict[str, Any]]:
    """Return host to the variables that Ansible itself worked out."""
    whole = json.loads((FILES / "fleet.json").read_text())
    found: dict[str, dict[str, Any]] = whole["_meta"]["hostvars"]
    return found


def test_ansible_agrees(fleet: Inventory, variables: dict[str, dict[str, Any]]) -> None:
    """Of every host, each variable has the value that ansible-inventory prints."""
    hosts = by_name(fleet)
    assert set(hosts) == set(variables)
    for name, host in hosts.items():
        told = variables[name]
        assert host.address == told.get("ansible_host", told.get("ansible_ssh_host", name))
        assert host.port == told.get("ansible_port")
        assert host.user == told["ansible_user"]
        assert host.sudo is (told.get("ansible_become") == "yes")
        assert host.workdir == told["volbench_workdir"]
        assert host.labels == {
            key.removeprefix("volbench_label_"): value
            for key, value in told.items()
            if key.startswith("volbench_label_")
        }


def test_one_host_in_full(fleet: Inventory) -> None:
    """Connection, volumes, limits and leave to destroy."""
    assert by_name(fleet)["az01"] == Host(
        name="az01",
        address="10.1.0.1",
        user="azureuser",
        jump=("jump@192.0.2.7:2200", "inner"),
        sudo=True,
        volumes={"data": "/dev/disk/by-id/azure-lun0"},
        labels={"kind": "cloud", "tier": "fast"},
        limits={"data": Limits(iops=1100.0, bandwidth_bytes_per_s=125e6)},
        allow_destroy=("serial:abc123", "/dev/disk/by-id/azure-lun0"),
        workdir="/srv/volbench",
    )


def test_groups(fleet: Inventory) -> None:
    """A group holds the hosts of the groups below it, and all is not listed."""
    groups = {name: set(hosts) for name, hosts in fleet.groups.items()}
    azure, gcp = {"az01", "az02", "az03"}, {"gca", "gcb", "gcc", "gcd"}
    assert groups == {
        "azure": azure,
        "gcp": gcp,
        "clouds": azure | gcp,
        "fast": {"az01", "gcb"},
        "ungrouped": {"gate.example.org", "10.0.9.1"},
    }


def test_what_is_not_used_is_told() -> None:
    """Variables for playbooks are named, not dropped without a word."""
    notes: list[str] = []
    load_inventory(FILES / "fleet.ini", tell=notes.append)
    (note,) = notes
    assert note.endswith("not used by volbench: ansible_python_interpreter, ntp_server")


def test_variables_in_folders_are_told(tmp_path: Path) -> None:
    """What stands in group_vars is not read, which the user must know."""
    (tmp_path / "group_vars").mkdir()
    path = tmp_path / "hosts"
    path.write_text("[web]\nvm1\n")
    notes: list[str] = []
    load_inventory(path, tell=notes.append)
    assert "group_vars" in notes[0]
    assert "ansible-inventory" in notes[0]


def test_a_plain_list_of_names(tmp_path: Path) -> None:
    """Names one below the other are aliases."""
    inventory = read(tmp_path, "# mine\nvm1\n\nvm2:2222\nvm[08:10]\n", "hosts")
    assert [(host.name, host.address, host.port) for host in inventory.hosts] == [
        ("vm1", "vm1", None),
        ("vm2", "vm2", 2222),
        ("vm08", "vm08", None),
        ("vm09", "vm09", None),
        ("vm10", "vm10", None),
    ]


def test_this_machine(tmp_path: Path) -> None:
    """Ansible's local connection is the controller's own machine."""
    (host,) = read(tmp_path, "localhost ansible_connection=local ansible_user=me\n", "hosts").hosts
    assert host.kind is HostKind.LOCAL
    assert host.user is None


def test_a_script_may_list_names_only(tmp_path: Path) -> None:
    """The short form of Ansible's dynamic inventories, without variables."""
    inventory = read(tmp_path, '{"web": ["a", "b"], "db": {"hosts": ["b", "c"]}}', "x.json")
    assert inventory.groups == {"web": ("a", "b"), "db": ("b", "c")}


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-J gate", ("gate",)),
        ("-Jme@gate:2200", ("me@gate:2200",)),
        ("-o ProxyJump=a,b", ("a", "b")),
        ("-oProxyJump=a -q", ("a",)),
        ("-o 'ProxyJump a'", ("a",)),
        ('-o ProxyCommand="ssh -W %h:%p -q me@gate"', ("me@gate",)),
        ('-o ProxyCommand="ssh -p 2200 -l me gate -W [%h]:%p"', ("me@gate:2200",)),
        ("-o ControlMaster=auto -o ControlPersist=60s -C", None),
    ],
)
def test_hops_in_arguments_of_ssh(
    tmp_path: Path, arguments: str, jump: tuple[str, ...] | None
) -> None:
    """Each usual way of naming a bastion is understood."""
    quoted = json.dumps(arguments)
    text = f"all:\n  hosts:\n    vm1:\n      ansible_ssh_common_args: {quoted}\n"
    (host,) = read(tmp_path, text).hosts
    assert host.jump == jump


def test_weaker_host_keys_are_not_taken_over(tmp_path: Path) -> None:
    """Host keys go on being checked, and the user is told."""
    path = tmp_path / "hosts"
    path.write_text("vm1 ansible_ssh_common_args='-o StrictHostKeyChecking=no -J gate'\n")
    notes: list[str] = []
    (host,) = load_inventory(path, tell=notes.append).hosts
    assert host.jump == ("gate",)
    assert "host keys" in notes[0]


def test_a_bastion_in_its_own_group(tmp_path: Path) -> None:
    """Arguments meant for all do not send the bastion through itself."""
    text = "gate ansible_host=192.0.2.1\nvm1\n[all:vars]\nansible_ssh_common_args=-J gate\n"
    ways = {name: host.jump for name, host in by_name(read(tmp_path, text, "hosts")).items()}
    assert ways == {"gate": (), "vm1": ("gate",)}


def test_single_entries_stand_over_a_mapping(tmp_path: Path) -> None:
    """One volume of a group's mapping can be another one on one host."""
    text = (
        "[web]\nvm1 volbench_volume_data=/x volbench_limit_iops=1100 volbench_sudo=yes\n"
        "[web:vars]\nvolbench_volumes={'data': '/a', 'os': '/b'}\nansible_become=no\n"
    )
    (host,) = read(tmp_path, text, "hosts").hosts
    assert host.volumes == {"data": "/x", "os": "/b"}
    assert host.limits == {"*": Limits(iops=1100.0)}
    assert host.sudo


def test_texts_that_python_would_warn_of(tmp_path: Path) -> None:
    """An odd escape in a variable is a text, and no remark of Python's reaches the user."""
    text = "vm1\n[all:vars]\nvolbench_label_match='a\\d+'\nvolbench_label_size=007\n"
    (host,) = read(tmp_path, text, "hosts").hosts
    assert host.labels == {"match": "a\\d+", "size": "007"}
