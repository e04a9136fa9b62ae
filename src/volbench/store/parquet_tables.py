"""Parquet files with the column contract's types, as Arrow tables, plain rows or pandas frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import ArchiveError
from volbench.model.frames.columns import FRAMES, ON_DEMAND, Column, label_column

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Mapping[str, object]]

_ARROW = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of a frame, with unit and meaning as metadata of each field."""
    return pa.schema(
        [
            pa.field(
                column.name,
                _ARROW[column.dtype],
                metadata={"unit": column.unit, "meaning": column.meaning},
            )
            for column in columns
        ]
    )


def table_of(frame_name: str, rows: Rows, *, labels: Sequence[str] = ()) -> pa.Table:
    """Return rows as an Arrow table in the order and types of the contract.

    Args:
        frame_name: such as ``summary``.
        rows: column to value; a column that is left out is missing.
        labels: names of labels, whose columns follow those of the contract.

    Raises:
        ArchiveError: a row has a column the contract does not know.
    """
    columns = (*{**FRAMES, **ON_DEMAND}[frame_name], *map(label_column, labels))
    unknown = set().union(*rows) - {column.name for column in columns}
    if unknown:
        raise ArchiveError(f"{frame_name} has no columns {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema_of(columns))


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as pandas: nullable integers and booleans, NaN for unknown floats."""
    import pandas as pd  # noqa: PLC0415 - slow to import, and rows need none of it

    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Return the rows of an Arrow table as plain Python values, None for unknown ones."""
    columns = [_values(column) for column in table.itercolumns()]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value != value else value for value in values]  # noqa: PLR0124 - finds NaN
    return values


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file whole or not at all.

    Raises:
        ArchiveError: the filesystem refused.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, aside, compression="zstd")
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise ArchiveError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check permissions and free space",
            context={"path": str(path)},
        ) from error


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file.

    Raises:
        ArchiveError: it is missing or damaged.
    """
    try:
        with pq.ParquetFile(path) as file:  # read_table would import pandas
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"{path} cannot be read: {error}",
            hint="delete the tables folder; it is rebuilt from the raw files",
            context={"path": str(path)},
        ) from error
