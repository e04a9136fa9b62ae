"""Table of the bundled profiles."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.present.formatting import Row
from volbench.present.tables.table import IDENTITY, Column, Table

_COLUMNS: tuple[Column[Row], ...] = (
    Column("profile", priority=IDENTITY),
    Column("jobs", is_right=True),
    Column("description", is_folded=True),
)


def profiles_table(index: Sequence[Row]) -> Table[Row]:
    """Return a row for each profile.

    Args:
        index: name, number of jobs and description of each.
    """
    return Table("profiles", _COLUMNS, index)
