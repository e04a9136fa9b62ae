"""Inventories shown in the documentation are inventories, and its jq programs make some."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plan.inventory.reading import FILES
from volbench.model.campaign.host import Host
from volbench.plan.inventory import load_inventory

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```(yaml|ini|jq)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the examples of a page: format and text."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


EXAMPLES = [example for example in blocks("reference/inventory.md") if example[0] != "jq"]


def test_inventory_examples_are_found() -> None:
    """Own inventories, and one of Ansible's."""
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_every_inventory_example_is_valid(tmp_path: Path, kind: str, text: str) -> None:
    """Each loads without a remark and gives hosts."""
    path = tmp_path / f"inventory.{kind}"
    path.write_text(text, encoding="utf-8")
    notes: list[str] = []
    assert load_inventory(path, on_note=notes.append).hosts
    assert notes == []


def hosts_by_jq(page: str, listing: Path) -> tuple[Host, ...]:
    """Return the hosts that the jq program of a page finds in a listing."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    (program,) = (text for kind, text in blocks(page) if kind == "jq")
    done = subprocess.run(["jq", program, listing], check=True, capture_output=True, timeout=60)
    path = listing.with_name("hosts.json")
    path.write_bytes(done.stdout)
    return load_inventory(path).hosts


def test_outputs_of_terraform_become_hosts(tmp_path: Path) -> None:
    """A map of objects, as ``terraform output -json`` prints it."""
    vm01 = {"private_ip": "10.1.0.4", "size": "Standard_F2s_v2", "disk": "lun0"}
    listing = tmp_path / "outputs.json"
    listing.write_text(json.dumps({"vms": {"sensitive": False, "value": {"vm01": vm01}}}))
    (host,) = hosts_by_jq("reference/inventory.md", listing)
    assert host == Host(
        name="vm01",
        address="10.1.0.4",
        user="azureuser",
        volumes={"data": "/dev/disk/by-id/azure-lun0"},
        labels={"provider": "azure", "flavor": "Standard_F2s_v2"},
    )


def test_guests_of_kubevirt_become_hosts(tmp_path: Path) -> None:
    """Guests that run, with the device of their claim.

    vmi.json has the fields of ``kubectl get vmi -o json`` with KubeVirt 1.2 that a program may use.
    """
    listing = Path(shutil.copy(FILES / "vmi.json", tmp_path))
    first, second = hosts_by_jq("how-to/kubevirt.md", listing)
    assert (first.name, first.address, first.user) == ("guest-a", "10.244.0.12", "fedora")
    assert first.volumes == {"data": "/dev/vdb"}
    assert second.volumes == {"data": "/dev/vdc"}
    assert second.labels == {"provider": "kubevirt", "node": "node-2", "claim": "data-b"}
