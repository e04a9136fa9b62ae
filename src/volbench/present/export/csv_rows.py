"""CSV of a frame's plain rows, for which no pandas is imported."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from volbench.present.formatting import spreadsheet_text


def render_csv_rows(
    rows: Sequence[Mapping[str, object]], *, columns: Sequence[str], raw: bool = False
) -> bytes:
    """Return CSV with the same bytes as `frame_export.export_frame` makes of the frame.

    Args:
        columns: to write, in this order.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # RFC 4180
    safe = (lambda value: value) if raw else spreadsheet_text
    writer.writerow([safe(column) for column in columns])
    writer.writerows([safe(row[column]) for column in columns] for row in rows)
    return text.getvalue().encode()
