"""Inventories shown in the documentation are inventories."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.plan.inventory.reading import FILES
from volbench.plan.inventory import load_inventory

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "reference" / "inventory.md"
BLOCK = re.compile(r"^```(yaml|ini)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
OUTPUTS = {
    "vms": {"vm01": {"private_ip": "10.1.0.4", "size": "Standard_F2s_v2", "disk": "lun0"}},
    "vm_names": ["vm01"],
    "vm_addresses": ["10.1.0.4"],
    "vm_sizes": ["Standard_F2s_v2"],
    "admin_user": "azureuser",
}


def test_inventory_examples_are_found() -> None:
    """Own inventories, one of Ansible's, and mappings."""
    assert len(BLOCKS) == 5


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_every_inventory_example_is_valid(tmp_path: Path, kind: str, text: str) -> None:
    """Each loads without a remark and gives hosts."""
    path, mapping = tmp_path / f"inventory.{kind}", None
    path.write_text(text, encoding="utf-8")
    if "from: vms" in text or "name: vm_names" in text:
        mapping, path = path, tmp_path / "outputs.json"
        path.write_text(json.dumps({name: {"value": value} for name, value in OUTPUTS.items()}))
    notes: list[str] = []
    inventory = load_inventory(path, mapping=mapping, on_note=notes.append)
    assert inventory.hosts
    assert notes == []


def test_guests_of_kubevirt_are_hosts(tmp_path: Path) -> None:
    """The mapping of the how-to finds those that run, with the device of their claim.

    vmi.json has the fields of ``kubectl get vmi -o json`` with KubeVirt 1.2 that a mapping may use.
    """
    text = (DOCS / "how-to" / "kubevirt.md").read_text(encoding="utf-8")
    ((_, block),) = BLOCK.findall(text)
    mapping = tmp_path / "kubevirt.yaml"
    mapping.write_text(block, encoding="utf-8")
    first, second = load_inventory(FILES / "vmi.json", mapping=mapping).hosts
    assert (first.name, first.address, first.user) == ("guest-a", "10.244.0.12", "fedora")
    assert first.volumes == {"data": "/dev/vdb"}
    assert second.volumes == {"data": "/dev/vdc"}
    assert second.labels == {"provider": "kubevirt", "node": "node-2", "claim": "data-b"}
