"""The hosts that ``--inventory``, ``--limit`` and ``--mapping`` mean; remarks go to stderr."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from volbench.model.campaign.host import Inventory


def read_hosts(file: Path, *, limits: Sequence[str] = (), mapping: Path | None = None) -> Inventory:
    """Return the hosts of an inventory that are meant, and print what was left aside.

    Raises:
        InventoryError: problems in the file, or a limit that means no host.
    """
    from volbench.plan.inventory import load_inventory, select

    inventory = load_inventory(
        file, mapping=mapping, ssh_config=Path.home() / ".ssh" / "config", tell=_tell
    )
    return select(inventory, limits)


def _tell(note: str) -> None:
    click.echo(f"note: {note}", err=True)
