"""Rows of plain values enter, CSV leaves."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a heading and a line for each row, numbers in full precision; None is empty.

    Args:
        rows: one at least; all have the columns of the first.
    """
    sink = io.StringIO()
    writer = csv.DictWriter(sink, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue()
