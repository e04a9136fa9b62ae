"""Conversion between Parquet files, Arrow tables, rows and pandas frames of the column contract."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from volbench.errors import ArchiveError, RefusedError
from volbench.extension import extensions
from volbench.model.campaign.planned_run import Campaign
from volbench.model.frames.columns import DERIVED, FRAMES, ON_DEMAND, Column, label_column
from volbench.store.atomic_files import (
    read_text,
    remove_half_written,
    replaced_file,
    unwritable,
    write_atomic,
)
from volbench.store.held_folder import hold_folder
from volbench.store.journal import History
from volbench.store.layout import Layout
from volbench.store.log_files import checksum
from volbench.units import utc_text

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Mapping[str, object]]
Values = npt.NDArray[Any]

_ARROW = {
    "string": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("ms", tz="UTC"),
}

# Rows of a row group: some 15 MB as texts and numbers, and few groups to read
_GROUP_ROWS = 100_000

# Incremented when the same raw files yield different values, so that tables are rebuilt
TABLES_VERSION = "25"
# Incremented when the same rows yield different verdicts, findings or aggregates
RULES_VERSION = "24"
# Rows that a section of a run has at most in each frame without a time
_SECTION_ROWS = {
    "histogram": 35_000,
    "findings": 2_000,
    "percentiles": 300,
    "shares": 200,
    "processes": 50_000,
}
_OTHER_ROWS = 50
_DIRECTIONS, _DEVICES = 4, 100  # Series of a section, and of a host
# Duration that a run without a runtime has at most; the table of a longer one is made each time
_UNKNOWN_S = 86_400.0
_SLACK_S = 3_600.0  # Before and after the runtime: layout, ramp, write-back, a volume that hangs
_MAX_DIGITS = 10  # Of a runtime
_REBUILT = "delete the tables folder; it is rebuilt from the raw files"
# Bytes of a row, and of a small table, before compression.
# Noticed by: tests/store/test_oversized_files.py
_MAX_ROW_BYTES, _FREE_BYTES = 8 << 10, 64 << 20


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
    """Convert rows to an Arrow table with the columns and types of the contract.

    Columns that a row lacks are null.
    """
    columns = (*{**FRAMES, **ON_DEMAND}[frame_name], *map(label_column, labels))
    _require_known(frame_name, set().union(*rows), [column.name for column in columns])
    for name in (column.name for column in columns if column.dtype == "time"):
        texts = [row.get(name) for row in rows]
        times = [datetime.fromisoformat(str(text)) if text else None for text in texts]
        rows = [{**row, name: at} for row, at in zip(rows, times, strict=True)]
    return pa.Table.from_pylist(cast("list[dict[str, object]]", rows), schema=schema_of(columns))


def _require_known(frame_name: str, names: set[str], known: Sequence[str]) -> None:
    if unknown := names - set(known):
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
    """Convert blocks of rows, all with the same `columns`, to an Arrow table like `table_of`."""
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
    instants = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    for name in instants:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, _without_zone(table[name]))
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=types.get, split_blocks=is_done, self_destruct=is_done
    )
    for name in instants:
        frame[name] = frame[name].dt.tz_localize(UTC)
    if is_done:
        del table
        pa.default_memory_pool().release_unused()
    return frame


def _without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants of UTC without their zone, which Arrow would look up: containers lack it."""
    plain = pa.timestamp(column.type.unit)  # a cast would import pyarrow.compute
    return pa.chunked_array([chunk.view(plain) for chunk in column.chunks], plain)


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Convert an Arrow table to rows of Python values, None for missing ones.

    Instants are texts in ISO 8601 with ``Z``.
    """
    columns = [_plain_values(column) for column in table.itercolumns()]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        instants = _without_zone(column).to_pylist()
        return [value and utc_text(value.replace(tzinfo=UTC)) for value in instants]
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value != value else value for value in values]  # noqa: PLR0124 - finds NaN
    return values


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


def write_tables(folder: Path, parts: Iterable[Mapping[str, pa.Table]]) -> None:
    """Write a Parquet file for each frame, all atomically, holding few rows in memory.

    Each part has consecutive rows of all frames. A missing folder is created.
    """
    try:
        folder.mkdir(exist_ok=True)
        remove_half_written(folder)
        with ExitStack() as stack:
            writers: dict[str, _Writer] = {}
            for tables in parts:
                for name, table in tables.items():
                    if name not in writers:
                        file = stack.enter_context(replaced_file(folder / f"{name}.parquet"))
                        writers[name] = stack.enter_context(closing(_Writer(file, table.schema)))
                    writers[name].write(table)
    except OSError as error:
        raise unwritable(folder, error) from error
    pa.default_memory_pool().release_unused()


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
        """Write the remaining rows, and the end of the file."""
        with self._file:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._file.write_table(pa.concat_tables(waiting))


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file.

    Args:
        columns: to read, texts as dictionaries, but instants; None for all, texts as such.
    """
    encoded = None if columns is None else [name for name in columns if name != "utc"]
    try:
        # pq.read_table would import pandas.
        with pq.ParquetFile(path, read_dictionary=encoded) as file:
            return file.read(columns=columns)
    except (OSError, pa.ArrowException, KeyError) as error:  # KeyError: a column is missing
        message = f"{path} cannot be read: {error}"
        raise ArchiveError(message, hint=_REBUILT, path=str(path)) from error


def _columns_digest(frame: str) -> str:
    """Return a digest of the columns behind a frame, so that tables with others are rebuilt."""
    behind = FRAMES if frame in DERIVED else [name for name in FRAMES if name not in DERIVED]
    columns = [(name, column.name, column.dtype) for name in behind for column in FRAMES[name]]
    return blake2b(repr(columns).encode(), digest_size=8).hexdigest()


def fingerprint_of(layout: Layout, campaign: Campaign, history: History) -> str:
    """Return a digest of the names and sizes of all raw files behind the frames.

    Contents and timestamps are excluded: the cache stays valid when a campaign is copied, and
    checking thousands of runs takes a fraction of a second.
    """
    digest = blake2b(digest_size=16)

    def add_files(folder: Path) -> None:
        with suppress(OSError), os.scandir(folder) as entries:  # missing or unreadable: no files
            files = [f"{file.name} {file.stat().st_size}\n" for file in entries if file.is_file()]
            digest.update("".join(sorted(files)).encode())

    for run in campaign.runs:
        state = history.states.get(run.id)
        if state is not None and state.has_ended:
            digest.update(f"{run.id} {state}\n".encode())
            add_files(layout.run(run.id).path)
    for role in campaign.cold_probe_roles:
        add_files(layout.probe(role).path)
    digest.update(repr(sorted(history.speeds.items())).encode() if history.speeds else b"")
    return digest.hexdigest()


def max_rows(campaign: Campaign, name: str) -> int:
    """Return the maximum number of rows of a frame, from the plan of the campaign."""
    rows = 1_000.0
    for run in campaign.runs:
        per_section = _SECTION_ROWS.get(name, _OTHER_ROWS)
        texts = [run.effective(section).get("runtime", "") for section in run.sections]
        seconds = [text.removesuffix("s") for text in texts]
        is_known = all(text.isdecimal() and len(text) < _MAX_DIGITS for text in seconds)
        # Imported results may last longer than the options that they report.
        is_known = is_known and run.imported is None
        longest_s = _SLACK_S + (max(map(float, seconds)) if is_known else _UNKNOWN_S)
        if name == "series" and run.sample_s:
            per_section += round(_DIRECTIONS * longest_s / run.sample_s)
        if name == "device" and run.device_sample_s:
            per_section += round(_DEVICES * longest_s / run.device_sample_s)
        rows += per_section * len(run.sections)
    return round(rows)


@dataclass(frozen=True)
class StoredTables:
    """The Parquet files of a campaign."""

    layout: Layout  # paths of the campaign
    fingerprint: str  # current fingerprint of its raw files
    campaign: Campaign  # its plan, which bounds the tables

    def path(self, name: str) -> Path:
        """Return the path of a frame's file, which need not exist."""
        return self.layout.tables / f"{name}.parquet"

    def is_current(self, name: str) -> bool:
        """Return whether the stored frame is up to date."""
        return name in self._checksums(name)

    def is_intact(self, name: str) -> bool:
        """Return whether the file of a frame is as it was written."""
        path = self.path(name)
        listed = self._checksums(name).get(name)
        return path.is_file() and self._fits(name) and checksum(path) == listed

    def _fits(self, name: str) -> bool:
        """Return whether the plan allows the rows and bytes of a frame's file."""
        try:
            metadata = pq.read_metadata(self.path(name))
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        except (OSError, pa.ArrowException):
            return False
        size = sum(group.total_byte_size for group in groups)
        rows: int = metadata.num_rows
        is_small = rows <= max_rows(self.campaign, name)
        return is_small and bool(size <= _FREE_BYTES + rows * _MAX_ROW_BYTES)

    def read(self, name: str) -> pa.Table:
        """Read a frame from its file, which is as it was written."""
        path = self.path(name)
        if not self.is_intact(name):
            message = f"{path} was changed after volbench wrote it"
            raise ArchiveError(message, hint=_REBUILT, path=str(path))
        return read_table(path)

    def keep(self, parts: Iterable[Mapping[str, pa.Table]]) -> bool:
        """Write all frames of one kind and then their stamp, which marks them as complete.

        Write errors, such as a read-only folder or a full disk, are ignored: the files are a cache.

        Returns:
            Whether the frames were written; if not, some of the parts may be used up.
        """
        if not os.access(self.layout.root, os.W_OK):
            return False
        names: dict[str, None] = {}

        def named() -> Iterator[Mapping[str, pa.Table]]:
            for tables in parts:
                names.update(dict.fromkeys(tables))
                yield tables

        with suppress(ArchiveError, RefusedError), hold_folder(self.layout.root):
            write_tables(self.layout.tables, named())
            first = next(iter(names))
            lines = [f"{checksum(self.path(name))}  {name}.parquet\n" for name in names]
            write_atomic(self._stamp_file(first), self._stamp(first) + "".join(lines))
            return True
        return False

    def _checksums(self, name: str) -> dict[str, str]:
        """Return the checksum of each frame of a kind; empty if they are not up to date."""
        lines = read_text(self._stamp_file(name)).splitlines(keepends=True)
        if not lines or lines[0] != self._stamp(name):
            return {}
        pairs = [line.rstrip("\n").partition("  ") for line in lines[1:]]
        return {file.removesuffix(".parquet"): digest for digest, _, file in pairs}

    def _stamp_file(self, name: str) -> Path:
        return self.layout.tables / ("rules-stamp" if name in DERIVED else "stamp")

    def _stamp(self, name: str) -> str:
        added = (reference for extension in extensions() for reference in extension.findings)
        rules = " ".join([f" rules {RULES_VERSION}", *added]) if name in DERIVED else ""
        version = f"tables {TABLES_VERSION}{rules} columns {_columns_digest(name)}"
        return f"{version} files {self.fingerprint}\n"
