"""Inventories: host lists in all supported formats, and selection by ``--limit``."""

from __future__ import annotations

from volbench.plan.inventory.host_names import select
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.plan.inventory.named_hosts import named_hosts, named_volume

__all__ = ["load_inventory", "named_hosts", "named_volume", "select"]
