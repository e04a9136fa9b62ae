"""Listings of Ansible: ansible.json is what ansible-inventory 2.19 prints of ansible.ini."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.plan.inventory.reading import FILES, by_name, read
from volbench.errors import InventoryError
from volbench.model.campaign.host import Host, Inventory
from volbench.plan.inventory.load_inventory import load_inventory

TEMPLATE = {"ansible_host": "{{ address }}"}
DOCKER = {"ansible_connection": "docker"}
VAULT = {"ansible_user": {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256"}}


def listed(folder: Path, variables: Mapping[str, object]) -> Host:
    """Return the host vm1 of a listing with these variables."""
    text = json.dumps({"_meta": {"hostvars": {"vm1": variables}}, "web": {"hosts": ["vm1"]}})
    (host,) = read(folder, text, "hosts.json").hosts
    return host


@pytest.fixture(scope="module")
def fleet() -> Inventory:
    """Return the hosts of a real listing."""
    return load_inventory(FILES / "ansible.json")


def test_hosts_are_those_of_ansible(fleet: Inventory) -> None:
    """Address, login, key, sudo and jump host; the jump host is not behind itself."""
    cloud = {"user": "azureuser", "key": "~/.ssh/azure", "sudo": True, "jump": ("gate",)}
    gate = Host(name="gate", address="192.0.2.1", port=2222, jump=())
    hosts = {name: host.model_copy(update={"hops": ()}) for name, host in by_name(fleet).items()}
    assert hosts == {
        "az01": Host(name="az01", address="10.1.0.1", **cloud),
        "az02": Host(name="az02", address="az02", **cloud),
        "az03": Host(name="az03", address="az03", **cloud),
        "gate": gate,
        "localhost": Host(name="localhost", address=""),
    }
    assert by_name(fleet)["az01"].hops == (gate,)


def test_groups_are_those_of_ansible(fleet: Inventory) -> None:
    """A group holds the hosts of the groups below it; all is every host."""
    azure = ("az01", "az02", "az03")
    assert fleet.groups == {"azure": azure, "clouds": azure, "fast": ("az01",)}


def test_variables_without_a_meaning_are_named_in_one_sentence() -> None:
    """Those of playbooks are not; what Ansible connects by is."""
    notes: list[str] = []
    load_inventory(FILES / "ansible.json", on_note=notes.append)
    (note,) = notes
    assert note.endswith("volbench does not use ansible_python_interpreter")


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-J gate", ("gate",)),
        ("-Jme@gate:2200", ("me@gate:2200",)),
        ("-o ProxyJump=a,b", ("a", "b")),
        ("-o ProxyCommand='ssh -J a -W %h:%p b'", None),
        ("-J gate -F config", None),
    ],
)
def test_a_plain_jump_host_is_read(
    tmp_path: Path, arguments: str, jump: tuple[str, ...] | None
) -> None:
    """Whatever else the arguments say is named, not half read."""
    assert listed(tmp_path, {"ansible_ssh_common_args": arguments}).jump == jump


@pytest.mark.parametrize(
    ("variables", "words"),
    [(TEMPLATE, "this template"), (DOCKER, "not by docker"), (VAULT, "ansible_user")],
)
def test_what_only_ansible_can_follow_is_refused(
    tmp_path: Path, variables: Mapping[str, object], words: str
) -> None:
    """Another machine would be measured, or none."""
    with pytest.raises(InventoryError, match=words) as caught:
        listed(tmp_path, variables)
    assert "hosts.json:1:" in caught.value.message


def test_a_listing_with_variables_in_groups_is_refused(tmp_path: Path) -> None:
    """With --export, hosts do not have the variables of their groups."""
    text = '{"_meta": {"hostvars": {}}, "web": {"hosts": ["a"], "vars": {"ansible_user": "me"}}}'
    with pytest.raises(InventoryError, match="without --export"):
        read(tmp_path, text, "hosts.json")


@pytest.mark.parametrize("name", ["hosts.ini", "hosts", "all.yaml", "groups.yaml", "script.json"])
def test_inventories_that_ansible_evaluates_are_refused_with_its_command(
    tmp_path: Path, name: str
) -> None:
    """INI, YAML and the short form of a script."""
    path = tmp_path / name
    shutil.copyfile(FILES / "ansible.ini", path)
    if name == "all.yaml":
        path.write_text("all:\n  hosts:\n    vm1: {ansible_host: 10.0.0.4}\n")
    elif name == "groups.yaml":
        path.write_text("web:\n  hosts:\n    vm1:\n")
    elif name == "script.json":
        path.write_text('{"web": {"hosts": ["vm1"]}}')
    with pytest.raises(InventoryError) as caught:
        load_inventory(path)
    assert f"ansible-inventory -i {path} --list > hosts.json" in caught.value.hint
