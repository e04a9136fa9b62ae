"""Acknowledged changes over campaigns, in a file beside these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from volbench.model.campaign.known_change import KnownChange, KnownChanges
from volbench.store.atomic_files import read_model, write_atomic
from volbench.store.held_folder import HeldPath, hold_folder
from volbench.store.journal import utc_now

FILE = "volbench-trend.json"


def read_known_changes(folders: Iterable[Path]) -> list[KnownChange]:
    """Return the changes in the files of folders that hold campaigns."""
    found = (read_model(folder / FILE, KnownChanges) for folder in dict.fromkeys(folders))
    return [change for changes in found if changes is not None for change in changes.changes]


def keep_known_changes(folder: Path, changes: Iterable[KnownChange]) -> None:
    """Store that changes are acknowledged now, in the file of the folder that holds campaigns."""
    with hold_folder(folder):
        held = HeldPath(folder)
        kept = {change.key: change for change in read_known_changes([held])}
        for change in changes:
            kept[change.key] = change.model_copy(update={"acknowledged_utc": utc_now()})
        content = KnownChanges(changes=tuple(kept.values()))
        write_atomic(held / FILE, content.model_dump_json(indent=2) + "\n")
