"""Inventories shown in the documentation are inventories."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from volbench.plan.inventory import load_inventory

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "inventory.md"
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
