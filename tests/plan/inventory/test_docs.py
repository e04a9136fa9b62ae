"""Inventories shown in the documentation are inventories."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from volbench.plan.inventory.load_inventory import load_inventory

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "inventory.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
PROGRAMS = re.findall(r"\| jq '(.*?)' > \w+\.json", TEXT, re.DOTALL)
TERRAFORM = {"vms": {"value": {"vm01": {"private_ip": "10.1.0.4", "size": "Standard_F2s_v2"}}}}
KUBEVIRT = {
    "items": [
        {
            "metadata": {"name": name},
            "status": {
                "phase": phase,
                "nodeName": "node-1",
                "interfaces": [{"ipAddress": "10.244.0.12"}],
            },
        }
        for name, phase in (("guest-a", "Running"), ("guest-b", "Pending"))
    ]
}
"""Fields of ``kubectl get vmi -o json`` with KubeVirt 1.2."""


def test_inventory_examples_are_found() -> None:
    """Inventories, and programs of jq for Terraform and KubeVirt."""
    assert len(BLOCKS) == 2
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("text", BLOCKS)
def test_every_inventory_example_is_valid(tmp_path: Path, text: str) -> None:
    """Each loads and gives hosts."""
    path = tmp_path / "inventory.yaml"
    path.write_text(text, encoding="utf-8")
    assert load_inventory(path).hosts


@pytest.mark.parametrize(
    ("program", "source", "address"),
    [(PROGRAMS[0], TERRAFORM, "10.1.0.4"), (PROGRAMS[1], KUBEVIRT, "10.244.0.12")],
    ids=["terraform", "kubevirt"],
)
def test_what_jq_writes_is_an_inventory(
    tmp_path: Path, program: str, source: object, address: str
) -> None:
    """Outputs of other tools become hosts; guests of KubeVirt that do not run are left out."""
    done = subprocess.run(
        ["jq", program], input=json.dumps(source), capture_output=True, text=True, check=True
    )
    path = tmp_path / "fleet.json"
    path.write_text(done.stdout, encoding="utf-8")
    assert [host.address for host in load_inventory(path).hosts] == [address]
