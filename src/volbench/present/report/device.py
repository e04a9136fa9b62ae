"""The device in the report: summary, device and verdicts frames enter, the USE table leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.use import use_rows
from volbench.present.cells import records, text
from volbench.present.use_table import UseColumn, run_name, use_columns

KIND = "device"
"""The chart that stands beside the table."""


@dataclass(frozen=True)
class UseRow:
    """A Run: its name and id, a text for each column, and what speaks for what binds it."""

    name: str
    run: str
    cells: Sequence[str]
    explanation: str


@dataclass(frozen=True)
class UseSection:
    """The table; without rows there is no such part of the page."""

    columns: Sequence[UseColumn]
    rows: Sequence[UseRow]

    @property
    def is_explained(self) -> bool:
        """Tell whether a row says what binds it."""
        return any(row.explanation for row in self.rows)


def use_section(frames: Mapping[str, pd.DataFrame]) -> UseSection:
    """Return the USE table of a campaign.

    Args:
        frames: frame name to frame; without ``device`` the table is empty.
    """
    if frames.get(KIND, pd.DataFrame()).empty:
        return UseSection((), ())
    rows = records(use_rows(frames["summary"], frames[KIND], frames.get("verdicts")))
    columns = use_columns(rows)
    return UseSection(
        columns,
        [
            UseRow(
                run_name(row, rows),
                text(row, "run"),
                [column.show(row) for column in columns],
                text(row, "explanation"),
            )
            for row in rows
        ],
    )
