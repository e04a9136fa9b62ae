"""CSV of a frame's plain rows, for which no pandas is imported."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence


def render_csv_rows(rows: Sequence[Mapping[str, object]], *, columns: Sequence[str]) -> bytes:
    """Return CSV with the same bytes as `frame_export.export_frame` makes of the frame.

    Args:
        rows: as `volbench.dataset.Dataset.rows` returns them.
        columns: to write, in this order.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # RFC 4180
    writer.writerow(columns)
    writer.writerows([row[column] for column in columns] for row in rows)
    return text.getvalue().encode()
