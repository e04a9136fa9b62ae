"""Readers of the inventories that these tests write."""

from pathlib import Path

from volbench.model.campaign.host import Host, Inventory
from volbench.plan.inventory.load_inventory import load_inventory

FILES = Path(__file__).parent / "files"
BAD = Path(__file__).parents[2] / "inventories"


def read(folder: Path, text: str, name: str = "inventory.yaml") -> Inventory:
    """Return the inventory that a text holds."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_inventory(path)


def by_name(inventory: Inventory) -> dict[str, Host]:
    """Return the hosts by name."""
    return {host.name: host for host in inventory.hosts}
