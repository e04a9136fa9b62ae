"""Conversion between Parquet files, Arrow tables, rows and pandas frames of the column contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from volbench.errors import ArchiveError
from volbench.model.frames.columns import FRAMES, ON_DEMAND, label_column
from volbench.model.frames.frame_column import Column
from volbench.store.atomic_files import replaced_file, unwritable

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Mapping[str, object]]
Values = npt.NDArray[Any]

_ARROW = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}

# Rows of a row group: some 15 MB as texts and numbers, and few groups to read
_GROUP_ROWS = 100_000


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of a frame, with unit and meaning as field metadata."""
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
    """Convert rows to an Arrow table with the column order and types of the contract.

    Args:
        frame_name: name such as ``summary``.
        rows: column to value; absent columns are null.
    """
    columns = (*{**FRAMES, **ON_DEMAND}[frame_name], *map(label_column, labels))
    _require_known(frame_name, set().union(*rows), [column.name for column in columns])
    return pa.Table.from_pylist(cast("list[dict[str, object]]", rows), schema=schema_of(columns))


def _require_known(frame_name: str, found: set[str], known: Sequence[str]) -> None:
    if unknown := found - set(known):
        raise ArchiveError(f"{frame_name} has no columns {', '.join(sorted(unknown))}")


@dataclass(frozen=True)
class Block:
    """Rows of a frame with some values in common, such as the bins of one histogram."""

    shared: Mapping[str, object]  # column to the value that every row has
    # column to its values, one for each row; NaN and None are unknown
    columns: Mapping[str, Values]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))


def table_of_blocks(frame_name: str, blocks: Sequence[Block]) -> pa.Table:
    """Convert blocks of rows to an Arrow table with the columns and types of the contract.

    Args:
        frame_name: name such as ``histogram``.
        blocks: all with the same `columns`; absent columns are null.
    """
    schema = schema_of(FRAMES[frame_name])
    unknown = set().union(*(block.shared.keys() | block.columns for block in blocks))
    _require_known(frame_name, unknown, schema.names)
    if not blocks:
        return schema.empty_table()
    owners = pa.array(np.repeat(np.arange(len(blocks)), [len(block) for block in blocks]))
    return pa.table([_column(blocks, field, owners) for field in schema], schema=schema)


def _column(blocks: Sequence[Block], field: pa.Field, owners: pa.Array) -> pa.Array:
    if field.name not in blocks[0].columns:
        shared = [block.shared.get(field.name) for block in blocks]
        return pa.array(shared, type=field.type).take(owners)
    values = np.concatenate([block.columns[field.name] for block in blocks])
    return pa.array(values, from_pandas=True).cast(field.type)


def frame_of(table: pa.Table, *, is_done: bool = False) -> pd.DataFrame:
    """Convert an Arrow table to pandas: nullable integers and booleans, NaN for missing floats.

    Args:
        is_done: whether nobody uses the table any more, so that its memory is let go on the way.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import, and not needed for rows

    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=types.get, split_blocks=is_done, self_destruct=is_done
    )
    if is_done:
        del table
        pa.default_memory_pool().release_unused()
    return frame


def columns_of(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    """Return some columns of a table, texts as dictionaries; None for the table as it is."""
    if columns is None:
        return table
    chosen = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column
        for column in table.select(columns).columns
    ]
    return pa.table(chosen, names=columns)


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Convert an Arrow table to rows of Python values, None for missing ones."""
    columns = [_values(column) for column in table.itercolumns()]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value != value else value for value in values]  # noqa: PLR0124 - finds NaN
    return values


def same_rows(table: pa.Table | None, other: pa.Table) -> bool:
    """Return whether two tables have the same columns and values; NaN equals NaN."""
    if table is None or table.schema != other.schema or len(table) != len(other):
        return False
    return all(
        _without_nan(mine).equals(_without_nan(theirs))
        for mine, theirs in zip(table.itercolumns(), other.itercolumns(), strict=True)
    )


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    missing = pa.scalar(None, column.type)
    return pc.if_else(pc.is_nan(column), missing, column)


def joined_tables(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return the rows of all parts, frame by frame."""
    held = list(parts)
    return {name: pa.concat_tables(part[name] for part in held) for name in held[0]}


def write_tables(folder: Path, parts: Iterable[Mapping[str, pa.Table]]) -> None:
    """Write a Parquet file for each frame, all atomically, holding few rows in memory.

    Args:
        folder: of the files, created if it is missing.
        parts: frame name to consecutive rows; all have the same frames.
    """
    try:
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            writers: dict[str, _Writer] = {}
            for part in parts:
                for name, table in part.items():
                    if name not in writers:
                        file = stack.enter_context(replaced_file(folder / f"{name}.parquet"))
                        writers[name] = stack.enter_context(closing(_Writer(file, table.schema)))
                    writers[name].write(table)
    except OSError as error:
        raise unwritable(folder, error) from error


class _Writer:
    """Parquet file whose row groups are large, whatever the parts that come in."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._file = pq.ParquetWriter(file, schema, compression="zstd")
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Write rows, or keep them until there are more."""
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        with self._file:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._file.write_table(pa.concat_tables(waiting))


def pieces_of(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Yield a table in pieces of at most so many rows."""
    return (table.slice(start, rows) for start in range(0, len(table), rows))


def read_pieces(path: Path, rows: int) -> Iterator[pa.Table]:
    """Yield a Parquet file in pieces of at most so many rows, without reading all of it at once."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(rows):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def row_count(path: Path) -> int:
    """Return the number of rows of a Parquet file, without reading them."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file.

    Args:
        columns: to read, texts as dictionaries; None for all, texts as such.
    """
    try:
        # pq.read_table would import pandas.
        with pq.ParquetFile(path, read_dictionary=columns) as file:
            return file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ArchiveError:
    return ArchiveError(
        f"{path} cannot be read: {error}",
        hint="delete the tables folder; it is rebuilt from the raw files",
        path=str(path),
    )
