"""Parser of the rows of fio's logs into integer tables.

The columns are ``time_ms, value, direction, block size`` in every version since 2.x; further ones
(offset, priority, issue time) are not used. ``log_window_value=both`` (3.37) puts the maximum of a
window after its value. Histograms have ``time_ms, direction, block size, bins``.

Invalid lines, as a killed fio or a full disk leaves them, are skipped and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import islice
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from volbench.errors import OutputError

Ints = npt.NDArray[np.int64]

PLAIN = (0, 1, 2, 3)  # Columns of time, value, direction and block size
BOTH = (0, 1, 3, 4, 2)  # The same with ``log_window_value=both``, and the column of the maximum
_MAX_VALUE = 10**15  # Upper bound of latencies, sizes and counts; in ns it is eleven days
_MAX_DIGITS = 18
# fio logs reads, writes and trims as 0 to 2, kinds of syncs as higher numbers (``io_ddir.h``)
_MAX_DIRECTION = 7
_HEAD_BYTES = 64 << 10
CHUNK_BYTES = 2 << 20
_MAX_SMALL_BYTES = 64 << 10
# Small blocks that are kept as numbers: those of all logs of a section, as a rule
_KEPT_BLOCKS = 256
# Bytes in which a log has a row. Noticed by: tests/fio/logs/test_log_rows.py
_MAX_HEAD_BYTES = 4 << 20
# Unusable lines, from which on a file is not a log: each takes microseconds.
# Noticed by: tests/fio/logs/test_log_rows.py
_MAX_UNREADABLE = 100_000
_HEAD_ROWS = 64  # Rows that show the format of a log; some may be invalid
MAX_LINE_BYTES = 128 << 10  # Longer than a histogram row of 1856 bins with 20 digits each
NO_ROW = b"\0"

# Time from which a fall back to the start is the end of a ramp, not lines out of order.
# Noticed by: tests/fio/logs/test_log_rows.py::test_a_log_whose_time_restarts_loses_its_ramp
_MIN_RAMP_MS = 1000
_OLD_WINDOW_S = 0.5  # Minimum window of bw and iops logs before 2.21, the default of bwavgtime


@dataclass(frozen=True)
class Log:
    """One log file."""

    kind: str  # ``bw``, ``iops``, ``lat``, ``clat``, ``slat`` or ``clat_hist``
    job_number: int  # in its name; 1 is the first job of the process
    name: str  # path for messages
    # returns the uncompressed log; called more than once
    open: Callable[[], AbstractContextManager[BinaryIO]]
    ramp_lines: int = 0  # lines of the ramp, which `open` leaves out


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines without the last newline, and the number of the first one."""

    lines: bytes
    first_line: int


@dataclass(frozen=True)
class Form:
    """Format of the rows of one log."""

    columns: tuple[int, ...] = PLAIN  # positions of the columns to read; time is the first of them
    direction_at: int = 2  # index of the direction among these
    width: int | None = None  # number of columns in a line; None for any number
    first_ms: float = 0  # rows before this time do not belong to the run
    end_ms: float = float(10**18)  # rows at or after this time do not belong to the run


@dataclass
class Tally:
    """Number of valid and invalid lines of a log, and the first invalid one."""

    name: str
    rows: int = 0
    bad_rows: int = 0
    first_bad_line: int | None = None

    def add(self, good: npt.NDArray[np.bool_], numbers: Ints) -> None:
        """Add the lines of a block: which of them are valid, and their numbers in the log."""
        rows = int(np.count_nonzero(good))
        self.rows += rows
        self.bad_rows += len(good) - rows
        if rows < len(good) and self.first_bad_line is None:
            self.first_bad_line = int(numbers[np.argmin(good)])

    def leave_out(self) -> None:
        """Count the valid lines as invalid, as those of a log within one interval."""
        if self.rows:
            self.bad_rows, self.rows, self.first_bad_line = self.bad_rows + self.rows, 0, 1


@dataclass(frozen=True)
class BadRows:
    """Lines of one log that were left out."""

    log: str  # path of the log
    bad_rows: int  # number of invalid lines, or with a time outside the run
    rows: int  # number of rows that were read
    first_line: int  # number of the first bad one


def read_tables(log: Log, form: Form, tally: Tally) -> Iterator[Ints]:
    """Yield the rows of a log block by block, as arrays with a row for each column."""
    unreadable = 0
    with log.open() as stream:
        for block in blocks_of(stream):
            table, numbers = _table(block, form)
            good = _is_row(table, form)
            tally.add(good, numbers)
            unreadable += int(np.count_nonzero(table[0] < 0))
            if unreadable > _MAX_UNREADABLE:
                raise OutputError(
                    f"{log.name} has more than {_MAX_UNREADABLE:,} lines that are not log lines",
                    hint="another program wrote it: remove it",
                    path=log.name,
                )
            yield table if good.all() else table[:, good]


def held(log: Log) -> Log:
    """Return a log that is in memory if it is short: it takes as long to open as to parse."""
    with log.open() as stream:
        content = stream.read(_HEAD_BYTES)
    return log if len(content) == _HEAD_BYTES else replace(log, open=lambda: BytesIO(content))


def without_ramp(log: Log) -> Log:
    """Return a log from where its time restarts: before is the ramp of fio 2, or an earlier run."""
    start = offset = latest_ms = lines = 0
    with log.open() as stream:
        for number, line in enumerate(stream):
            digits = line.partition(b",")[0].strip()
            time_ms = int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else latest_ms
            if time_ms < latest_ms // 2 and latest_ms >= _MIN_RAMP_MS:
                start, lines, latest_ms = offset, number, time_ms
            latest_ms = max(latest_ms, time_ms)
            offset += len(line)

    @contextmanager
    def rest() -> Iterator[BinaryIO]:
        with log.open() as stream:
            stream.read(start)
            yield stream

    return replace(log, open=rest, ramp_lines=lines) if start else log


def read_head(log: Log) -> list[list[int]]:
    """Return the first rows of a log, each up to the first column that is not an integer."""
    least = len(PLAIN)
    head: list[list[int]] = []
    blank = True
    with log.open() as stream:
        for block in _head_blocks(stream):
            whole = _plain_rows(block.lines)
            if whole is not None:
                blank = False
                rows: list[list[int]] = whole[:_HEAD_ROWS].tolist()
            else:
                lines = [line for line in block.lines.split(b"\n") if line.strip()]
                blank = blank and not lines
                rows = [_leading_numbers(line) for line in lines]
            head = [row for row in rows if len(row) >= least]
            if head:
                break
    if not head and not blank:
        raise _no_row(log)
    return head


def require_rows(log: Log) -> None:
    """Check that a log is empty, or has a valid row."""
    blank = True
    with log.open() as stream:
        for block in _head_blocks(stream):
            for line in block.lines.split(b"\n"):
                if len(_leading_numbers(line)) >= len(PLAIN):
                    return
                blank = blank and not line.strip()
    if not blank:
        raise _no_row(log)


def _head_blocks(stream: BinaryIO) -> Iterator[Block]:
    blocks = blocks_of(stream, chunk_bytes=_HEAD_BYTES)
    return islice(blocks, _MAX_HEAD_BYTES // _HEAD_BYTES)


def _no_row(log: Log) -> OutputError:
    return OutputError(
        f"{log.name} contains no line of a {log.kind} log, from line 1 on",
        hint="fio was killed, the disk that holds its logs was full, or it is not a log of fio",
        path=str(log.name),
        line=1,
    )


def _is_row(table: Ints, form: Form) -> npt.NDArray[np.bool_]:
    times, rest = table[0], table[1:]
    good: npt.NDArray[np.bool_] = (times >= max(0.0, form.first_ms)) & (times < form.end_ms)
    good &= table[form.direction_at] <= _MAX_DIRECTION
    if rest.size and (rest.min() < 0 or rest.max() >= _MAX_VALUE):
        good &= ((rest >= 0) & (rest < _MAX_VALUE)).all(axis=0)
    return good


def _table(block: Block, form: Form) -> tuple[Ints, Ints]:
    """Return the columns and the number of each line; unusual lines are parsed one by one."""
    lines = block.lines
    width = lines.partition(b"\n")[0].count(b",") + 1
    is_irregular = NO_ROW in lines or b"\r" in lines or width <= max(form.columns)
    if is_irregular or form.width not in {None, width}:
        return _line_by_line(block, form)
    if len(lines) <= _MAX_SMALL_BYTES and (rows := _plain_rows(lines)) is not None:
        short: Ints = rows[:, form.columns].T
        return short, np.arange(block.first_line, block.first_line + len(rows))
    names = [str(n) for n in range(width)]
    wanted = [names[n] for n in form.columns]
    try:
        parsed = csv.read_csv(
            pa.BufferReader(lines),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.int64()),
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return _line_by_line(block, form)
    table: Ints = np.stack([column.to_numpy() for column in parsed.columns])
    return table, np.arange(block.first_line, block.first_line + table.shape[1])


@lru_cache(maxsize=_KEPT_BLOCKS)
def _plain_rows(lines: bytes) -> Ints | None:
    """Return the cells of lines, a row each; None if lines have other cells than numbers.

    A CSV reader takes longer to start. The head of a short log is all of it, so it is kept.
    """
    width = lines.partition(b"\n")[0].count(b",") + 1
    if not _plain_lines(width).fullmatch(lines):
        return None
    cells = np.fromstring(lines.replace(b"\n", b","), dtype=np.int64, sep=",")
    cells.flags.writeable = False
    return cells.reshape(-1, width)


@lru_cache(maxsize=_KEPT_BLOCKS)
def _plain_lines(width: int) -> re.Pattern[bytes]:
    """Return the pattern of lines that have so many cells, each a number that fits in 64 bits."""
    cell = rb" *+[0-9]{1,%d}+ *+" % _MAX_DIGITS
    line = b",".join([cell] * width)
    return re.compile(rb"(?:%b\n)*+%b" % (line, line))


def _line_by_line(block: Block, form: Form) -> tuple[Ints, Ints]:
    """Parse a block line by line: invalid lines become rows of -1, blank lines are left out."""
    no_row = [-1] * len(form.columns)
    rows: list[list[int]] = []
    numbers: list[int] = []
    for number, line in enumerate(block.lines.split(b"\n"), start=block.first_line):
        if not line.strip():
            continue
        cells = [] if NO_ROW in line else _leading_numbers(line)
        fits = len(cells) > max(form.columns)
        if form.width is not None:
            fits = len(cells) == form.width == line.count(b",") + 1
        rows.append([cells[n] for n in form.columns] if fits else no_row)
        numbers.append(number)
    table = np.array(rows, dtype=np.int64).reshape(-1, len(form.columns)).T
    return table, np.array(numbers, dtype=np.int64)


def _leading_numbers(line: bytes) -> list[int]:
    numbers: list[int] = []
    for cell in line.split(b","):
        digits = cell.strip(b" \t\r")
        if not digits.isdigit() or len(digits) > _MAX_DIGITS:
            break
        numbers.append(int(digits))
    return numbers


def blocks_of(stream: BinaryIO, *, chunk_bytes: int | None = None) -> Iterator[Block]:
    """Yield blocks of complete lines, using memory in proportion to the chunk size.

    Args:
        chunk_bytes: bytes to read at once.
    """
    number = 1
    for lines in _line_blocks(stream, chunk_bytes or CHUNK_BYTES):
        yield Block(lines, number)
        number += lines.count(b"\n") + 1


def _line_blocks(stream: BinaryIO, chunk_bytes: int) -> Iterator[bytes]:
    rest, endless = b"", False
    while chunk := stream.read(chunk_bytes):
        lines, end, tail = chunk.rpartition(b"\n")
        if end:
            if endless:
                lines = NO_ROW + lines[lines.find(b"\n") :] if b"\n" in lines else NO_ROW
            yield rest + lines
            rest, endless = tail, False
        elif not endless:
            rest += tail
        if len(rest) > MAX_LINE_BYTES:
            rest, endless = b"", True
    if endless:
        yield NO_ROW
    elif rest.strip():
        yield rest + NO_ROW


Floats = npt.NDArray[np.float64]
_Array = TypeVar("_Array", Ints, Floats)


@dataclass(frozen=True)
class Recording:
    """How the logs of a section were recorded."""

    # fio's log_avg_msec and log_hist_msec; for per-I/O logs the width of the points
    interval_s: float
    fio_version: tuple[int, int]  # of the fio that wrote them
    runtime_s: float | None = None  # duration of I/O; None to end with the last row
    epoch_start_s: float | None = None  # start of I/O in seconds since the epoch, if known
    # an instant by which I/O had started: if rows with absolute times are missing at the end of the
    # run, then it stalled at the start
    begun_by_s: float | None = None
    # fio's log_window_value; None when unknown; the rows usually reveal it
    window_values: str | None = None
    flushes_at_end: bool = False  # whether the runtime includes a flush after the last I/O


@dataclass(frozen=True)
class Windows:
    """Windows of equal width from the start of a run."""

    interval_s: float  # their width
    start_ms: float  # start of I/O in the time of the logs
    fio_version: tuple[int, int]  # of the fio that wrote them

    def at(self, times_ms: Ints) -> Floats:
        """Return times of the logs as fractional windows since the start."""
        width_ms = round(self.interval_s * 1000, 6)
        at: Floats = np.maximum(0.0, (times_ms - self.start_ms) / width_ms)
        return at

    def holding(self, times_ms: Ints) -> Ints:
        """Return the window in which each I/O completed."""
        return self.at(times_ms).astype(np.int64)

    def nearest(self, at: Floats) -> Ints:
        """Return the window whose end is nearest to each time in windows."""
        return np.maximum(0, np.floor(at + 0.5).astype(np.int64) - 1)

    @property
    def per_second(self) -> float:
        """Return the number of latency units of the logs in a second."""
        return 1e6 if self.fio_version[0] < 3 else 1e9

    @property
    def rate_span(self) -> int:
        """Return the number of windows that a row of an averaged rate covers."""
        if self.fio_version >= (2, 21):
            return 1
        return max(1, round(_OLD_WINDOW_S / self.interval_s))


def grown(values: _Array, count: int) -> _Array:
    """Return an array extended to at least `count` windows, with zeros in new ones."""
    if count <= len(values):
        return values
    room = np.zeros(max(count, 2 * len(values)), dtype=values.dtype)
    room[: len(values)] = values
    return room


def fitted(values: _Array, count: int) -> _Array:
    """Return exactly `count` windows, with zeros in missing ones."""
    return grown(values, count)[:count]
