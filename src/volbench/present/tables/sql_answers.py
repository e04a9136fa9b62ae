"""Answers to SQL: an Arrow table of any types enters, a frame or a table for a terminal leaves."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
from rich.table import Table

from volbench.present.formatting import MISSING, records
from volbench.present.tables.result_tables import text_table
from volbench.store.parquet_tables import frame_of


def plain_answer(table: pa.Table) -> pd.DataFrame:
    """Return a frame of texts, whole numbers, floats and flags, which every format can hold.

    Args:
        table: of any types. Decimals become whole numbers or floats, times ISO 8601, lists and
            structures JSON. Columns of one name are numbered.
    """
    names: list[str] = []
    for name in table.column_names:
        number = names.count(name) + sum(one.startswith(f"{name}_") for one in names)
        names.append(name if name not in names else f"{name}_{number + 1}")
    columns = [_plain(column) for column in table.columns]
    return frame_of(pa.Table.from_arrays(columns, names=names))


def answer_table(frame: pd.DataFrame) -> Table:
    """Return an answer for a terminal: floats to six digits, ``n/a`` for what is not told.

    Args:
        frame: as `plain_answer` returns it.
    """
    words = [
        str(name)
        for name, dtype in frame.dtypes.items()
        if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    ]
    rows = [[_cell(value) for value in row.values()] for row in records(frame)]
    return text_table([str(name) for name in frame.columns], rows, words=words)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal(kind):
        fits = kind.scale == 0 and all(
            one is None or abs(one) < 2**63 for one in column.to_pylist()
        )
        return column.cast(pa.int64() if fits else pa.float64(), safe=False)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64() if kind != pa.uint64() else pa.uint64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    told = [None if one is None else _text(one) for one in column.to_pylist()]
    return pa.chunked_array([pa.array(told, pa.string())])


def _text(value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if callable(isoformat) else str(value)


def _cell(value: object) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
