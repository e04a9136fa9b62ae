"""Table of storage classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from volbench.plan.storage_classes import StorageClass
from volbench.present.tables.table import IDENTITY, Column, Table

_COLUMNS: tuple[Column[StorageClass], ...] = (
    Column("name", lambda each: each.name, priority=IDENTITY),
    Column("title", lambda each: each.title, priority=2, is_folded=True),
    Column("provisioner", lambda each: each.provisioner, priority=4),
    Column(
        "parameters",
        lambda each: ", ".join(f"{key}: {value}" for key, value in each.parameters.items()),
        priority=3,
        is_folded=True,
    ),
)


def classes_table(classes: Sequence[StorageClass]) -> Table[StorageClass]:
    """Return a row for each storage class."""
    return Table("storage-classes", _COLUMNS, classes, record=asdict)
