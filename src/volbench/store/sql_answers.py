"""Conversion of SQL results to types that every export format supports."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa

from volbench.store.parquet_tables import frame_of


def plain_answer(table: pa.Table) -> pd.DataFrame:
    """Return a frame with only string, integer, float and boolean columns.

    Args:
        table: table of any types. Decimals become integers or floats, times ISO 8601 strings, lists
            and structs JSON. Duplicate column names are numbered.
    """
    names: list[str] = []
    for name in table.column_names:
        number = names.count(name) + sum(other.startswith(f"{name}_") for other in names)
        names.append(name if name not in names else f"{name}_{number + 1}")
    columns = [_plain(column) for column in table.columns]
    return frame_of(pa.Table.from_arrays(columns, names=names))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal(kind):
        fits = kind.scale == 0 and all(
            value is None or abs(value) < 2**63 for value in column.to_pylist()
        )
        return column.cast(pa.int64() if fits else pa.float64(), safe=False)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64() if kind != pa.uint64() else pa.uint64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    texts = [None if value is None else _text(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _text(value: object) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if callable(isoformat) else str(value)
