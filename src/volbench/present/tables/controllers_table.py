"""Table of controllers in a cluster with their states."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.present.formatting import Row
from volbench.present.tables.table import IDENTITY, Column, Table

_COLUMNS: tuple[Column[Row], ...] = (
    Column("name", header="controller", priority=IDENTITY, meaning="Name of its objects."),
    Column("state", priority=IDENTITY, meaning="waiting, running, finished or failed."),
    Column("submitted_utc", header="submitted", priority=2, meaning="When it was submitted."),
    Column("ended_utc", header="ended", priority=3, is_optional=True, meaning="When it ended."),
    Column("reason", is_folded=True, is_optional=True, meaning="Why it waits, or has failed."),
)


def controllers_table(rows: Sequence[Row]) -> Table[Row]:
    """Return a table with a row for each controller.

    Args:
        rows: ``name, state, reason, arguments, submitted_utc, ended_utc`` and ``pod``.
    """
    return Table("controllers", _COLUMNS, rows)
