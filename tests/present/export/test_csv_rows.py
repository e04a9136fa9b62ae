"""CSV made of plain rows."""

from __future__ import annotations

import io
import math

import pandas as pd

from volbench.present.export.frame_export import export_frame
from volbench.present.formatting import records
from volbench.present.tables.render_table import csv_text


def test_plain_rows_and_a_frame_make_the_same_bytes() -> None:
    """Numbers, gaps, truth values, quotes and a lone empty field are written as pandas does."""
    frame = pd.DataFrame(
        {
            "job": pd.array(['a, "b"\nc', "", None], dtype="string"),
            "iops": [0.1 + 0.2, 5e-324, math.nan],
            "bw_bytes_per_s": [1e300, math.inf, 3.0],
            "io_bytes": pd.array([2**53 + 1, None, 0], dtype="Int64"),
            "direct": pd.array([True, None, False], dtype="boolean"),
        }
    )
    for columns in (list(frame.columns), ["direct", "iops"], ["job"]):
        expected = io.BytesIO()
        export_frame(frame[columns], frame_name="summary", format="csv", into=expected)
        rows = records(frame)
        text = csv_text(rows, columns=columns, line_end="\r\n")
        assert text.encode() == expected.getvalue()
