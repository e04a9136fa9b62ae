"""Trace file: a row for each I/O in Parquet, sorted by time, with the facts of the recording.

A trace may be larger than memory. It is written in parts, each sorted, which are merged in the end;
a recording that is killed leaves its parts behind. It is read in batches.
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any, Literal

import numpy as np

# pyarrow imports it for its first array, in the middle of a verb: an interrupt at that time was
# followed by a wait without end for the import lock (seen four times with CPython 3.11).
import pandas as pd  # noqa: F401 - imported early
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from volbench.errors import ArchiveError, InputError, quoted
from volbench.model.frozen_model import Count, Frozen, Seconds
from volbench.store.archive import is_locked
from volbench.store.atomic_files import first_error, open_regular, replaced_file, unwritable
from volbench.store.held_folder import make_private_folder
from volbench.store.layout import TRACE

_KEY = b"volbench.trace"

# Rows that are sorted at once: 40 MB in memory. Noticed by:
# tests/extensions/traces/test_trace_file.py::test_rows_out_of_order_are_merged
PART_ROWS = 1 << 19
# Rows of a batch that is read: 5 MB, so that the parts of a billion I/Os can be merged. Noticed by:
# benchmarks/trace.py
BATCH_ROWS = 1 << 16
_PART_S = 60.0  # of a recording that is lost at most when it is killed
UNKNOWN = -1  # latency or queue that the source does not have
# Minimum and maximum of each column of a trace. Later times (100 days) and larger offsets (1 EiB)
# are those of a damaged file; a replay at --speed 0.01 could not represent them. Noticed by:
# tests/extensions/traces/test_trace_file.py::test_a_trace_with_impossible_values_is_refused
_RANGES = {
    "time_ns": (0, 100 * 86_400 * 10**9),
    "offset_bytes": (0, 1 << 60),
    "size_bytes": (0, (1 << 31) - 1),
    "kind": (0, 3),
    "latency_ns": (UNKNOWN, 100 * 86_400 * 10**9),
}

Change = Callable[[pa.Table], pa.Table]
Source = Literal[
    "tracefs", "blktrace", "blkparse", "iolog2", "iolog3", "alibaba", "tencent", "thesios"
]


class Kind(IntEnum):
    """What an I/O does."""

    READ = 0
    WRITE = 1
    DISCARD = 2
    FLUSH = 3


class Flags(IntFlag):
    """Bits of the column `flags`."""

    FLUSH = 1  # with a flush before it, or with force unit access (FUA)
    SYNC = 2
    METADATA = 4
    READAHEAD = 8


_NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    {
        "time_ns": pa.int64(),  # of the issue, from the start of the recording
        "offset_bytes": pa.int64(),
        "size_bytes": pa.int32(),
        "kind": pa.uint8(),  # see `Kind`
        "flags": pa.uint8(),  # see `Flags`
        "queue": pa.int16(),  # CPU that issued it; -1 unknown
        "latency_ns": pa.int64(),  # from issue to completion; -1 unknown
        "process": _NAMES,  # "" unknown
        "device": _NAMES,
    }
)
_TEXTS = ("process", "device")
_DELTAS = dict.fromkeys(("time_ns", "latency_ns"), "DELTA_BINARY_PACKED")


class TraceFacts(Frozen):
    """Facts of a trace, stored in the metadata of its file."""

    version: Literal[1] = 1
    source: Source
    start_utc: str = ""  # of time 0, ISO 8601 with Z; empty if unknown
    # size of each device, as far as known
    device_bytes: dict[str, Count] = Field(default_factory=dict)
    duration_s: Seconds = 0.0  # of the recording; 0 if unknown
    lost_events: Count = 0  # that the kernel overwrote before they were read
    sector_bytes: Count = 512  # unit of offsets and sizes at the source
    anonymised: bool = False
    ended_early: bool = False  # killed, or its host or disk failed; lost events are unknown then
    damaged_lines: Count = 0  # of an imported file, left out


class TraceWriter:
    """A trace that is being written, in parts beside its file until `close`.

    Args:
        facts: known so far, which make a trace of each part; None where nobody will keep them.

    Raises:
        InputError: another process writes the same trace, or a killed recording left its parts.
    """

    def __init__(self, path: Path, facts: TraceFacts | None = None) -> None:
        self._path = path
        self._facts = facts
        self._written_s = time.monotonic()
        self._parts = _parts_folder(path)
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._count = 0
        self._lock = _taken_folder(self._parts)

    def add(self, rows: pa.Table) -> None:
        """Add rows with the columns of `SCHEMA`, in any order of time."""
        if len(rows):
            self._waiting.append(rows)
            self._rows += len(rows)
        if self._rows >= PART_ROWS or time.monotonic() - self._written_s >= _PART_S:
            self._write_part()

    def close(self, facts: TraceFacts, change: Change | None = None) -> None:
        """Merge the parts into the file, and remove them.

        Args:
            change: applied to the rows on their way into the file; None for none.
        """
        self._write_part()
        merge_parts(self._path, facts, change)
        os.close(self._lock)

    def discard(self) -> None:
        """Remove the parts, after an error."""
        with suppress(OSError):
            for part in self._parts.iterdir():
                part.unlink()
            self._parts.rmdir()
        os.close(self._lock)

    def _write_part(self) -> None:
        self._written_s = time.monotonic()
        if self._waiting:
            self._count += 1
            table = _by_time(pa.concat_tables(self._waiting))
            target = self._parts / f"{self._count:06}.parquet"
            try:
                with replaced_file(target, durable=False) as file:
                    if self._facts is not None:
                        table = table.replace_schema_metadata(_metadata(self._facts))
                    pq.write_table(table, file, compression="zstd")
            except OSError as error:
                if not self._parts.is_dir():
                    raise ArchiveError(
                        f"{self._parts} was removed during the recording, and the I/Os in it",
                        hint="record again, and do not remove this folder before the end",
                    ) from error
                raise unwritable(target, error) from error
            self._waiting, self._rows = [], 0


def rows_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return rows in the form of a trace from arrays of numbers, and arrays or single texts."""
    count = len(columns["time_ns"])
    arrays = []
    for field in SCHEMA:
        values = columns[field.name]
        if isinstance(values, (str, int)):
            array = pa.repeat(pa.scalar(values, _plain(field.type)), count)
        else:
            array = values if isinstance(values, pa.Array) else pa.array(values)
        arrays.append(array.cast(field.type) if array.type != field.type else array)
    return pa.table(arrays, schema=SCHEMA)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _by_time(table: pa.Table) -> pa.Table:
    table = table.unify_dictionaries().combine_chunks()
    times = table["time_ns"].to_numpy()
    if (np.diff(times) >= 0).all():
        return table
    return table.take(pa.array(np.argsort(times, kind="stable")))


def _parts_folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}-parts")


def _taken_folder(folder: Path) -> int:
    """Make a folder of parts, or empty one that a killed import left; return its lock."""
    try:
        make_private_folder(folder)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        parts = sorted(folder.glob("*.parquet"))
        if any(map(_is_recording, parts)):
            raise InputError(  # noqa: TRY301 - the lock is closed below
                f"{folder} holds a recording that was killed",
                hint=f"turn it into a trace: volbench trace import {quoted(folder.parent)} -o FILE",
            )
        for left in (*parts, *folder.glob(".*.tmp")):
            left.unlink()
    except BlockingIOError as error:
        os.close(lock)
        raise InputError(
            f"{folder} is in use: another volbench writes this trace", hint="choose another name"
        ) from error
    except BaseException:
        os.close(lock)
        raise
    return lock


def _is_recording(part: Path) -> bool:
    try:
        return read_facts(part).source == "tracefs"
    except InputError:  # of an import that was killed, which had no facts yet
        return False


def _metadata(facts: TraceFacts) -> dict[bytes, bytes]:
    return {_KEY: facts.model_dump_json().encode()}


def merge_parts(path: Path, facts: TraceFacts, change: Change | None = None) -> None:
    """Write a trace from the parts beside its file, sorted by time, and remove the parts."""
    folder = _parts_folder(path)
    parts = sorted(folder.glob("*.parquet"))
    schema = SCHEMA.with_metadata(_metadata(facts))
    try:
        with (
            replaced_file(path) as file,
            pq.ParquetWriter(
                file,
                schema,
                compression="zstd",
                compression_level=6,
                use_dictionary=[*_TEXTS, "size_bytes", "kind", "flags", "queue"],
                column_encoding=_DELTAS,
            ) as writer,
        ):
            for table in map(change or _unchanged, _merged(parts)):
                writer.write_table(table.replace_schema_metadata(schema.metadata))
        for part in parts:
            part.unlink()
        folder.rmdir()
    except OSError as error:
        raise unwritable(path, error) from error


def _unchanged(table: pa.Table) -> pa.Table:
    return table


def _merged(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of sorted parts in order, holding a batch of each part that overlaps."""
    waiting = [(_first_time(part), index, _batches(part)) for index, part in enumerate(parts)]
    heapq.heapify(waiting)
    held: list[pa.Table] = []  # rows that are not yet in their place
    ready: list[pa.Table] = []
    while waiting:
        _, index, batches = heapq.heappop(waiting)
        batch = next(batches, None)
        if batch is not None:
            held.append(pa.Table.from_batches([batch]).replace_schema_metadata())
            last = int(batch.column("time_ns")[-1].as_py())
            heapq.heappush(waiting, (last, index, batches))
        until = waiting[0][0] if waiting else None
        ready += _taken(held, until)
        if sum(map(len, ready)) >= PART_ROWS or not waiting:
            yield _by_time(pa.concat_tables(ready or [SCHEMA.empty_table()]))
            ready = []


def _first_time(part: Path) -> int:
    with _opened(part) as file:
        return int(file.metadata.row_group(0).column(0).statistics.min)


def _batches(part: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, which is open only meanwhile: there may be thousands."""
    with _opened(part) as file:
        yield from file.iter_batches(BATCH_ROWS)


def _taken(held: list[pa.Table], until: int | None) -> Iterator[pa.Table]:
    """Take the rows before a time out of tables; all of them without a time."""
    tables, held[:] = list(held), []
    for table in tables:
        times = table["time_ns"].to_numpy()
        count = len(table) if until is None else int(np.searchsorted(times, until))
        if count:
            yield table.slice(0, count)
        if count < len(table):
            held.append(table.slice(count))


def recording_folder(host: str) -> str:
    """Return the folder of a host's trace in a watch of several hosts."""
    return f"trace-{host}"


def trace_path(path: Path) -> Path:
    """Return the file of a trace: the one that a user named, or that in a folder.

    A link that the user named leads to another file. One in a folder, which another user may have
    filled, stays a link, and is refused when it is opened.
    """
    if path.is_dir():
        return path / TRACE
    return path.resolve() if path.is_symlink() else path


def find_trace(path: Path) -> Path:
    """Return the file of a trace that a user named by its path or its folder.

    Raises:
        InputError: there is none, or its recording has not ended.
    """
    file = trace_path(path)
    if not file.exists() and path.is_dir() and _parts_folder(file).is_dir():
        raise unfinished(path)
    if not file.exists():
        raise InputError(
            f"there is no trace {file}",
            hint="record one with volbench watch --trace, or volbench trace import",
        )
    return file


def unfinished(folder: Path) -> InputError:
    """Return the error of a recording that still runs, or ended without writing its trace."""
    if is_locked(_parts_folder(folder / TRACE)):
        return InputError(
            f"the recording in {folder} is still running", hint="its trace is written at its end"
        )
    if parts_of(folder):
        return InputError(
            f"the recording in {folder} ended before its trace was written",
            hint=f"import the I/Os that it saved: volbench trace import {quoted(folder)} -o "
            "trace.parquet",
        )
    return InputError(
        f"the recording in {folder} ended before it saved an I/O",
        hint="I/Os are saved once a minute and at the end; repeat the recording",
    )


def parts_of(path: Path) -> list[Path]:
    """Return the file of a trace, or the parts that a killed recording left in a folder."""
    if not path.is_dir():
        return [trace_path(path)]
    return sorted(_parts_folder(path / TRACE).glob("*.parquet"))


def read_facts(path: Path) -> TraceFacts:
    """Return the facts of a trace.

    Raises:
        InputError: the file is not a trace, or one of another version.
    """
    with _opened(path) as file:
        return _facts_of(path, file)


def row_count(path: Path) -> int:
    """Return the number of I/Os of a trace, without reading them."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def read_span(path: Path) -> tuple[int, int]:
    """Return the time of the last I/O, and an end of the space of all I/Os, without reading them.

    The end is that of the I/O with the highest offset, or of a larger one there.
    """
    end_ns = highest = largest = 0
    places = {name: SCHEMA.get_field_index(name) for name in SCHEMA.names}
    with _opened(path) as file:
        for index in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(index)
            end_ns = max(end_ns, _max(group.column(places["time_ns"])))
            highest = max(highest, _max(group.column(places["offset_bytes"])))
            largest = max(largest, _max(group.column(places["size_bytes"])))
    return end_ns, highest + largest


def _max(column: pq.ColumnChunkMetaData) -> int:
    return int(column.statistics.max) if column.statistics and column.statistics.has_min_max else 0


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a trace in batches, in order of time.

    Args:
        columns: to read; None for all of `SCHEMA`.

    Raises:
        InputError: the file is not a trace, or has values that no trace has.
    """
    count = last_ns = 0
    with _opened(path) as file:
        _facts_of(path, file)
        for batch in file.iter_batches(BATCH_ROWS, columns=columns):
            last_ns = _check_rows(path, batch, count, last_ns)
            count += len(batch)
            yield batch


def _check_rows(path: Path, batch: pa.RecordBatch, before: int, last_ns: int) -> int:
    """Check the rows of a batch; return the time of the last one.

    Args:
        before: number of rows before the batch.
        last_ns: time of the last of them.
    """
    for name in batch.schema.names:
        column = batch.column(name)
        if column.null_count:
            raise _impossible(path, before + _first(column.is_null()), f"{name} is missing")
        if name in _RANGES:
            values, (least, most) = column.to_numpy(), _RANGES[name]
            is_wrong = (values < least) | (values > most)
            if is_wrong.any():
                at = int(is_wrong.argmax())
                reason = f"{name} is {values[at]}, which is not between {least} and {most}"
                raise _impossible(path, before + at, reason)
        if name == "time_ns":
            is_early = np.diff(values, prepend=last_ns) < 0
            if is_early.any():
                reason = "its time_ns is before that of the row above"
                raise _impossible(path, before + int(is_early.argmax()), reason)
            last_ns = int(values[-1]) if len(values) else last_ns
    return last_ns


def _first(mask: pa.BooleanArray) -> int:
    return int(mask.to_numpy(zero_copy_only=False).argmax())


def _impossible(path: Path, index: int, reason: str) -> InputError:
    return InputError(
        f"{path} is damaged: row {index + 1}: {reason}",
        hint="restore the file from a backup, or record or import the trace again",
    )


def read_rows(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all rows of a trace; see `read_batches`.

    Raises:
        InputError: it has none.
    """
    batches = list(read_batches(path, columns))
    if not batches:
        raise without_ios(path)
    return pa.Table.from_batches(batches)


def without_ios(path: Path) -> InputError:
    """Return the error of a trace that has no rows."""
    return InputError(
        f"{path} has no I/Os",
        hint="record it again while something reads from or writes to the disk",
    )


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with open_regular(path, follow=False) as content, pq.ParquetFile(content) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise InputError(
                f"{path} is a symbolic link, which is not followed",
                hint="name the file it points to",
            ) from error
        raise _no_trace(path, getattr(error, "strerror", None) or error) from error


def _facts_of(path: Path, file: pq.ParquetFile) -> TraceFacts:
    content = (file.metadata.metadata or {}).get(_KEY)
    if content is None:
        raise _no_trace(path, "its metadata has no entry volbench.trace")
    if file.schema_arrow.remove_metadata() != SCHEMA:
        raise _no_trace(path, "its columns are not those of a trace")
    try:
        return TraceFacts.model_validate_json(content)
    except ValidationError as error:
        raise _no_trace(path, first_error(error)) from error


def _no_trace(path: Path, reason: object) -> InputError:
    return InputError(
        f"{path} is not a trace: {reason}",
        hint="record one with volbench watch --trace, or volbench trace import",
    )
