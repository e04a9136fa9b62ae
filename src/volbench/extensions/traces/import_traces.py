"""Traces of others: text and CSV to the rows of a trace, in blocks of lines.

Units are those that the sources state: Alibaba in bytes and microseconds (README of
alibaba/block-traces), Tencent in sectors of 512 bytes and seconds (README of the CBS
traces at SNIA), Thesios in bytes and seconds (README of google-research-datasets/thesios),
blkparse in sectors of 512 bytes and seconds (blkparse(1)), and iologs in bytes and microseconds (as
fio 3.33 writes them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from volbench.errors import InputError
from volbench.extensions.traces.anonymiser import Anonymiser
from volbench.extensions.traces.request_pairs import (
    COMPLETION,
    ISSUE,
    RequestPairs,
    decode_rwbs,
    device_number,
)
from volbench.extensions.traces.trace_file import (
    UNKNOWN,
    Kind,
    Source,
    TraceFacts,
    TraceWriter,
    find_trace,
    parts_of,
    read_batches,
    read_facts,
    rows_of,
    without_ios,
)
from volbench.extensions.traces.trace_options import FORMATS
from volbench.store.atomic_files import open_regular
from volbench.store.journal import utc_at
from volbench.units import SECTOR_BYTES

Array = npt.NDArray[Any]

# Lines that are converted at once: some 50 MB. Noticed by:
# tests/extensions/traces/test_import_traces.py::test_memory_does_not_grow_with_the_file
_BLOCK_LINES = 200_000
_LINE_BYTES = 1 << 16  # Longer lines are damaged.
_NS = {"alibaba": 1_000, "tencent": 10**9, "thesios": 10**9}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_MAX_BYTES = np.iinfo(np.int32).max
_INTEGER, _DECIMAL = r"^[0-9]{1,18}$", r"^[0-9]{1,12}(\.[0-9]{1,12})?$"
# dev, CPU, sequence, time, process, action, letters, sector, sectors, name
_BLKPARSE = re.compile(
    r"\s*(\d+,\d+)\s+(\d+)\s+\d+\s+(\d+)\.(\d{9})\s+\d+\s+([A-Z]+)\s+([A-Z]+)\s+"
    r"(?:(\d+)(?: \+ (\d+))? )?\[(.*)\]"
)
_BLKPARSE_LINE = re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d{9}\s+\d+\s+\w+\s")
_IOLOG = re.compile(r"fio version ([23]) iolog\s*")
_IOLOG_KINDS = {
    "read": Kind.READ,
    "write": Kind.WRITE,
    "trim": Kind.DISCARD,
    "sync": Kind.FLUSH,
    "datasync": Kind.FLUSH,
}
_IOLOG_ACTION = re.compile(
    r"(?P<time>)(?P<name>\S+) (?P<action>(?:add|open|close|sync|datasync)(?=$| )|"
    r"(?:read|write|trim)(?= \d+ \d)|wait(?= \d))(?: (?P<a>\d{1,18}))?(?: (?P<b>\d{1,18}))?"
)
_IOLOG_TIMED = re.compile(_IOLOG_ACTION.pattern.replace("(?P<time>)", r"(?P<time>\d{1,15}) "))


@dataclass
class _Import:
    """An import that is under way."""

    damaged: int = 0
    example: str = ""  # the first damaged line
    ends: dict[str, int] = field(default_factory=dict)  # of the last I/O of each device

    def refuse(self, line: str) -> None:
        """Count a damaged line."""
        self.damaged += 1
        self.example = self.example or line.rstrip("\n")[:60]

    def seen(self, table: pa.Table) -> pa.Table:
        """Note how far the I/Os of each device reach."""
        ends = pc.add(table["offset_bytes"], pc.cast(table["size_bytes"], pa.int64()))
        grouped = pa.table({"device": table["device"], "end": ends}).group_by("device")
        for row in grouped.aggregate([("end", "max")]).to_pylist():
            self.ends[row["device"]] = max(self.ends.get(row["device"], 0), row["end_max"])
        return table


@dataclass(frozen=True)
class Imported:
    """What an import read."""

    facts: TraceFacts
    count: int  # of I/Os
    example: str  # the first damaged line; empty for none


def import_trace(
    path: Path, target: Path, *, source: Source | None, is_anonymised: bool
) -> Imported:
    """Write a trace from a file of another tool, or of volbench.

    Args:
        path: text or CSV, which may be compressed (.gz, .bz2, .zst), a trace, or the folder of a
            recording that was killed.
        source: format of the file; None to tell it from the first line.

    Raises:
        InputError: the file cannot be read, its format is unknown, or it has no I/Os.
    """
    work, count, earliest = _Import(), 0, None
    parts = parts_of(path) if path.is_dir() or _is_trace(path) else []
    if path.is_dir() and not parts:
        found = find_trace(path)
        raise InputError(f"{path} holds a whole trace", hint=f"name its file: {found}")
    facts = read_facts(parts[0]) if parts else TraceFacts(source=source or _source_of(path))
    writer = TraceWriter(target, facts)
    try:
        for table in _rows_of_parts(parts) if parts else _tables(path, facts, work):
            if len(table):
                writer.add(work.seen(table))
                count += len(table)
                first = int(pc.min(table["time_ns"]).as_py())
                earliest = first if earliest is None else min(first, earliest)
        if earliest is None:
            raise without_ios(path) if parts else _unrecognised(path, facts)  # noqa: TRY301 - parts are removed below
        sizes = facts.device_bytes or work.ends
        is_early = path.is_dir() or facts.ended_early
        changes = {
            "device_bytes": sizes,
            "ended_early": is_early,
            "damaged_lines": work.damaged or facts.damaged_lines,
        }
        facts = facts.model_copy(update={**changes, "start_utc": _start(facts, earliest)})
        anonymiser = Anonymiser(sizes) if is_anonymised else None
        if anonymiser is not None:
            facts = anonymiser.facts(facts)

        def change(table: pa.Table) -> pa.Table:
            times = pc.subtract(table["time_ns"], earliest)
            moved = table.set_column(0, "time_ns", times)
            return moved if anonymiser is None else anonymiser.rows(moved)

        writer.close(facts, change)
    except BaseException:
        writer.discard()
        raise
    return Imported(facts, count, work.example)


def _unrecognised(path: Path, facts: TraceFacts) -> InputError:
    return InputError(
        f"{path} has no I/Os in the format {facts.source}", hint="name its format with --from"
    )


def _start(facts: TraceFacts, earliest_ns: int) -> str:
    """Return when a trace began, where its times are those of a calendar."""
    if facts.source not in _NS or facts.start_utc:
        return facts.start_utc
    return utc_at(earliest_ns / 1e9)


def _rows_of_parts(parts: Sequence[Path]) -> Iterator[pa.Table]:
    for part in parts:
        for batch in read_batches(part):
            yield pa.Table.from_batches([batch]).replace_schema_metadata()


def _tables(path: Path, facts: TraceFacts, work: _Import) -> Iterator[pa.Table]:
    read: dict[str, Callable[[Iterator[str], _Import], Iterator[pa.Table]]] = {
        "blkparse": _blkparse,
        "iolog2": _iolog,
        "iolog3": _iolog,
        "alibaba": _alibaba,
        "tencent": _tencent,
        "thesios": _thesios,
    }
    yield from read[facts.source](_lines(path), work)


def _is_trace(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise _unreadable(path, error) from error


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, of which the longest are cut."""
    try:
        with (
            open_regular(path) as file,
            pa.input_stream(file, compression=_COMPRESSIONS.get(path.suffix)) as stream,
            TextIOWrapper(stream, encoding="utf-8", errors="replace") as text,
        ):
            while line := text.readline(_LINE_BYTES):
                yield line
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
        hint="name a file of a trace",
    )


def _source_of(path: Path) -> Source:
    """Tell the format of a file from its first lines."""
    for line in islice(_lines(path), 100):
        fields = line.strip().split(",")
        if found := _IOLOG.fullmatch(line):
            return "iolog2" if found[1] == "2" else "iolog3"
        if "request_io_size_bytes" in fields:
            return "thesios"
        if len(fields) == 5 and fields[1] in {"R", "W"}:
            return "alibaba"
        if len(fields) == 5 and all(part.isdecimal() for part in fields):
            return "tencent"
        if _BLKPARSE_LINE.match(line):
            return "blkparse"
    raise InputError(
        f"{path} is in no known format of traces",
        hint=f"name it with --from: {', '.join(FORMATS)}",
    )


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    while block := list(islice(lines, _BLOCK_LINES)):
        yield block


# ---- CSV ---------------------------------------------------------------------------------------


def _columns(
    block: Sequence[str], patterns: Sequence[str], work: _Import, *, header: str = ""
) -> list[pa.Array]:
    """Return the columns of the lines of a block that fit; the others are counted.

    Args:
        patterns: of each column, as regular expressions; empty for any text.
        header: name of the first column, by which a line of headers is left out uncounted.
    """
    rows = [(line, line.strip().split(",")) for line in block]
    rows = [(line, parts) for line, parts in rows if parts[0] != header or not header]
    fitting = [(line, parts) for line, parts in rows if len(parts) == len(patterns)]
    columns = [pa.array(column) for column in zip(*(parts for _, parts in fitting), strict=True)]
    is_fine = np.ones(len(fitting), bool)
    for column, pattern in zip(columns, patterns, strict=bool(columns)):
        if pattern:
            is_fine &= pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False)
    for line, parts in rows:
        if len(parts) != len(patterns):
            work.refuse(line)
    for place in np.flatnonzero(~is_fine):
        work.refuse(fitting[place][0])
    return [column.filter(pa.array(is_fine)) for column in columns]


def _nanoseconds(column: pa.Array) -> Array:
    """Return decimal seconds as whole nanoseconds, exactly."""
    split = pc.split_pattern(column, ".")
    whole = pc.list_element(split, 0).cast(pa.int64()).to_numpy()
    has_rest = pc.greater(pc.list_value_length(split), 1)
    padded = pc.utf8_rpad(pc.replace_substring_regex(column, r"^[0-9]+\.?", ""), 9, padding="0")
    rest = pc.utf8_slice_codeunits(padded, 0, 9).cast(pa.int64()).to_numpy()
    return np.asarray(whole * 10**9 + np.where(has_rest, rest, 0))


def _integers(column: pa.Array) -> Array:
    return np.asarray(column.cast(pa.int64()))


def _rows(work: _Import, **columns: Any) -> pa.Table:  # noqa: ANN401 - arrays and single values
    """Return rows; those larger than a trace can hold are counted as damaged."""
    sizes = columns["size_bytes"]
    is_fine = (sizes <= _MAX_BYTES) & (columns["offset_bytes"] >= 0)
    work.damaged += int((~is_fine).sum())
    usual = {"flags": 0, "queue": UNKNOWN, "latency_ns": UNKNOWN, "process": ""}
    table = {**usual, **columns}
    kept = {
        name: value.filter(pa.array(is_fine)) if isinstance(value, pa.Array) else value[is_fine]
        for name, value in table.items()
        if not isinstance(value, str | int)
    }
    return rows_of({**table, **kept})


def _alibaba(lines: Iterator[str], work: _Import) -> Iterator[pa.Table]:
    for block in _blocks(lines):
        patterns = [_INTEGER, "^[RW]$", _INTEGER, _INTEGER, r"^[0-9]{1,16}$"]
        columns = _columns(block, patterns, work, header="device_id")
        if columns:
            device, opcode, offset, length, time = columns
            yield _rows(
                work,
                time_ns=_integers(time) * _NS["alibaba"],
                offset_bytes=_integers(offset),
                size_bytes=_integers(length),
                kind=pc.equal(opcode, "W").cast(pa.uint8()),
                device=device,
            )


def _tencent(lines: Iterator[str], work: _Import) -> Iterator[pa.Table]:
    for block in _blocks(lines):
        patterns = [r"^[0-9]{1,10}$", r"^[0-9]{1,16}$", r"^[0-9]{1,16}$", "^[01]$", _INTEGER]
        columns = _columns(block, patterns, work, header="Timestamp")
        if columns:
            time, offset, size, kind, volume = columns
            yield _rows(
                work,
                time_ns=_integers(time) * _NS["tencent"],
                offset_bytes=_integers(offset) * SECTOR_BYTES,
                size_bytes=_integers(size) * SECTOR_BYTES,
                kind=kind.cast(pa.uint8()),
                device=volume,
            )


_THESIOS = (
    *("filename", "file_offset", "application", "c_time", "io_zone", "redundancy_type", "op_type"),
    *("service_class", "from_flash_cache", "cache_hit", "request_io_size_bytes"),
    *("disk_io_size_bytes", "response_io_size_bytes", "start_time", "disk_time"),
    *("simulated_disk_start_time", "simulated_latency"),
)


def _thesios(lines: Iterator[str], work: _Import) -> Iterator[pa.Table]:
    numbers = {"file_offset": _INTEGER, "request_io_size_bytes": _INTEGER, "start_time": _DECIMAL}
    patterns = {**numbers, "simulated_latency": _DECIMAL, "op_type": "^(READ|WRITE)$"}
    for block in _blocks(lines):
        expected = [patterns.get(name, "") for name in _THESIOS]
        columns = dict(
            zip(_THESIOS, _columns(block, expected, work, header=_THESIOS[0]), strict=False)
        )
        if columns:
            yield _rows(
                work,
                time_ns=_nanoseconds(columns["start_time"]),
                offset_bytes=_integers(columns["file_offset"]),
                size_bytes=_integers(columns["request_io_size_bytes"]),
                kind=pc.equal(columns["op_type"], "WRITE").cast(pa.uint8()),
                latency_ns=_nanoseconds(columns["simulated_latency"]),
                process=columns["application"],
                device=columns["filename"],
            )


# ---- iolog of fio ------------------------------------------------------------------------------


def _iolog(lines: Iterator[str], work: _Import) -> Iterator[pa.Table]:
    """Yield the I/Os of a fio iolog; one of version 2 has no times but those of its waits."""
    found = _IOLOG.fullmatch(next(lines, ""))
    if found is None:
        raise InputError(
            "the first line is not that of an iolog", hint="it reads: fio version 3 iolog"
        )
    pattern = _IOLOG_TIMED if found[1] == "3" else _IOLOG_ACTION
    waited_us = 0
    for block in _blocks(lines):
        rows = []
        for line in block:
            match = pattern.fullmatch(line.rstrip())
            if match is None:
                work.refuse(line)
                continue
            time, name, action, offset, size = match.group("time", "name", "action", "a", "b")
            if action == "wait":  # relative to the wait before it
                waited_us += int(offset or 0)
            elif action in _IOLOG_KINDS:
                time_ns = 1000 * (int(time) if time else waited_us)
                rows.append((time_ns, int(offset or 0), int(size or 0), _IOLOG_KINDS[action], name))
        if rows:
            times, offsets, sizes, kinds, names = zip(*rows, strict=True)
            yield _rows(
                work,
                time_ns=np.array(times, np.int64),
                offset_bytes=np.array(offsets, np.int64),
                size_bytes=np.array(sizes, np.int64),
                kind=np.array(kinds, np.uint8),
                device=pa.array(names),
            )


# ---- blkparse ----------------------------------------------------------------------------------


def _blkparse(lines: Iterator[str], work: _Import) -> Iterator[pa.Table]:
    """Yield the requests of blkparse's default output, by its events D and C.

    Devices of bios, such as dm, have no requests: their events Q stand for those.
    """
    first = list(islice(lines, _BLOCK_LINES))
    found = [match for line in first if (match := _BLKPARSE.match(line))]
    issued = "D" if any(match[5] == "D" for match in found) else "Q"
    pairs = None
    for block in _blocks(chain(first, lines)):
        issues: list[tuple[object, ...]] = []
        completions: list[tuple[object, ...]] = []
        numbers: dict[int, str] = {}
        is_summary = False
        for line in block:
            is_summary = line.startswith(("CPU", "Total"))  # after the events
            if is_summary:
                break
            match = _BLKPARSE.match(line)
            if match is None:
                _check_blkparse(line, work)
                continue
            name, cpu, seconds, rest, action, letters, sector, sectors, process = match.groups()
            time_ns = int(seconds) * 10**9 + int(rest)
            number = device_number(name.replace(",", ":"))
            numbers[number] = name.replace(",", ":")
            rwbs = letters.encode()[:10].ljust(10, b"\0")
            if action == issued:
                place = (int(sector or 0), int(sectors or 0))  # of a flush there are none
                issues.append((time_ns, *place, number, int(cpu), rwbs, process))
            elif action == "C":
                completions.append((time_ns, int(sector or 0), number, rwbs))
        if pairs is None:
            pairs = RequestPairs(numbers)
        yield pairs.add(_issued(issues), _completed(completions), names=numbers)
        if is_summary:
            break
    if pairs is not None:
        yield pairs.rest()


def _check_blkparse(line: str, work: _Import) -> None:
    """Count a line without a request, unless it is an event of another kind, or blank."""
    if line.strip() and not _BLKPARSE_LINE.match(line):
        work.refuse(line)


def _issued(rows: Sequence[tuple[object, ...]]) -> Array:
    result = np.zeros(len(rows), ISSUE)
    for name, values in zip(
        ("time", "sector", "bytes", "dev", "queue"), zip(*rows, strict=True), strict=False
    ):
        result[name] = values
    result["bytes"] *= SECTOR_BYTES
    result["kind"], result["flags"] = _decoded([row[5] for row in rows])
    result["comm"] = [str(row[6]).encode() for row in rows]
    return result


def _completed(rows: Sequence[tuple[object, ...]]) -> Array:
    result = np.zeros(len(rows), COMPLETION)
    for name, values in zip(("time", "sector", "dev"), zip(*rows, strict=True), strict=False):
        result[name] = values
    result["is_flush"] = _decoded([row[3] for row in rows])[0] == Kind.FLUSH
    return result


def _decoded(rwbs: Sequence[object]) -> tuple[Array, Array]:
    letters = np.frombuffer(b"".join(map(bytes, rwbs)), np.uint8)  # type: ignore[arg-type]  # bytes
    return decode_rwbs(letters.reshape(-1, 10))
