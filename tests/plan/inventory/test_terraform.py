"""Terraform's outputs with a mapping. terraform.json was printed by Terraform 1.11."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.inventory.reading import FILES
from volbench.errors import InventoryError
from volbench.model.campaign.host import Host, Inventory
from volbench.plan.inventory import load_inventory

OUTPUTS = FILES / "terraform.json"


def mapped(folder: Path, text: str) -> Inventory:
    """Return the hosts that a mapping finds."""
    mapping = folder / "mapping.yaml"
    mapping.write_text(text)
    return load_inventory(OUTPUTS, mapping=mapping)


def test_a_map_of_objects_is_read(tmp_path: Path) -> None:
    """The keys are the names; paths, texts with holes, defaults and a group all work."""
    inventory = mapped(
        tmp_path,
        "defaults: {user: azureuser, labels: {provider: azure}, volumes: {os: /tmp}}\n"
        "hosts:\n"
        "  from: vms\n"
        "  address: private_ip\n"
        "  volumes: {data: '/dev/disk/by-id/azure-{disk}'}\n"
        "  labels: {flavor: size, zone: zone, public: net.public}\n"
        "  allow_destroy: ['serial:{disk}']\n"
        "  group: cloud\n",
    )
    first, second = inventory.hosts
    assert first == Host(
        name="vm01",
        address="10.1.0.4",
        user="azureuser",
        volumes={"os": "/tmp", "data": "/dev/disk/by-id/azure-lun0"},
        labels={
            "provider": "azure",
            "flavor": "Standard_F2s_v2",
            "zone": "1",
            "public": "20.1.2.3",
        },
        allow_destroy=("serial:lun0",),
    )
    assert "public" not in second.labels, "null in an output is nothing"
    assert inventory.groups == {"cloud": ("vm01", "vm02")}


@pytest.mark.parametrize(
    "source",
    [
        "{from: vm_list, name: hostname, address: private_ip, labels: {size: size}}",
        "{name: names, address: ips, labels: {size: sizes}}",
        "{name: names, address: addresses, labels: {size: vms.size}}",
    ],
)
def test_lists_and_maps_side_by_side(tmp_path: Path, source: str) -> None:
    """The same hosts, however their author put them into outputs."""
    hosts = mapped(tmp_path, f"hosts: {source}").hosts
    assert [(host.name, host.address, host.labels["size"]) for host in hosts] == [
        ("vm01", "10.1.0.4", "Standard_F2s_v2"),
        ("vm02", "10.1.0.5", "Standard_F4s_v2"),
    ]


def test_expressions_can_filter_and_compute(tmp_path: Path) -> None:
    """JMESPath selects rows and works values out."""
    (host,) = mapped(
        tmp_path,
        "hosts:\n"
        "  from: vm_list[?zone > `1`]\n"
        "  name: hostname\n"
        '  address: "net.public || private_ip"\n'
        "  labels: {place: \"join('-', [size, disk])\"}\n",
    ).hosts
    assert (host.name, host.address) == ("vm02", "10.1.0.5")
    assert host.labels == {"place": "Standard_F4s_v2-lun1"}


@pytest.mark.parametrize("expression", ["vms[", "vms[?", "nosuch(vms)", "join(',', vms)"])
def test_invalid_expressions_are_refused(tmp_path: Path, expression: str) -> None:
    """Each is named with its place in the mapping."""
    with pytest.raises(InventoryError, match="JMESPath") as caught:
        mapped(tmp_path, f'hosts:\n  from: "{expression}"\n')
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(2, 9)]


def test_an_invalid_value_in_the_outputs_is_refused(tmp_path: Path) -> None:
    """The problem names the host and the value, at the expression that found it."""
    with pytest.raises(InventoryError, match="'lun0'") as caught:
        mapped(tmp_path, "hosts: {from: vms, address: private_ip, volumes: {data: disk}}")
    assert caught.value.problems[0].key == "hosts.volumes.data[vm01]"


def test_several_sources_are_combined(tmp_path: Path) -> None:
    """A map of names to addresses, a list of addresses' names, and one object alone."""
    hosts = mapped(
        tmp_path,
        "hosts:\n  - {from: addresses}\n  - {from: bastion, name: name, address: ip, user: name}\n",
    ).hosts
    assert [(host.name, host.address, host.user) for host in hosts] == [
        ("vm01", "10.1.0.4", None),
        ("vm02", "10.1.0.5", None),
        ("jump", "20.0.0.1", "jump"),
    ]


def test_a_list_of_addresses_is_read(tmp_path: Path) -> None:
    """Addresses are names where there are no others; a single value holds for all."""
    assert [host.name for host in mapped(tmp_path, "hosts: {from: ips}").hosts] == [
        "10.1.0.4",
        "10.1.0.5",
    ]
    hosts = mapped(tmp_path, "hosts: {name: names, address: ips, user: admin}").hosts
    assert {host.user for host in hosts} == {"azureuser"}


def test_without_a_mapping_it_lists_the_outputs() -> None:
    """Outputs have whatever names their author gave them."""
    with pytest.raises(InventoryError) as caught:
        load_inventory(OUTPUTS)
    assert "vm_list" in caught.value.hint
    assert "--mapping" in caught.value.hint


def test_a_mapping_for_another_file_is_refused() -> None:
    """It would mean nothing there."""
    with pytest.raises(InventoryError, match="does not need a mapping"):
        load_inventory(FILES / "fleet.yaml", mapping=OUTPUTS)
