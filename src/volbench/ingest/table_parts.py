"""Tables joined of parts, and some columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa


def columns_of(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    """Return some columns of a table, texts as dictionaries; None for the table as it is."""
    if columns is None:
        return table
    chosen = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column
        for column in table.select(columns).columns
    ]
    return pa.table(chosen, names=columns)


def joined_tables(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return the rows of all parts, frame by frame."""
    held = list(parts)
    return {name: pa.concat_tables(tables[name] for tables in held) for name in held[0]}
