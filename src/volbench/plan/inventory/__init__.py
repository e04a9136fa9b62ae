"""Lists of hosts: a file of any known kind in, an Inventory out, narrowed by ``--limit``."""

from __future__ import annotations

from volbench.plan.inventory.load import load_inventory
from volbench.plan.inventory.select import select

__all__ = ["load_inventory", "select"]
