"""Lines of fio's logs: the text of one log goes in, typed rows come out.

The columns are ``time_ms, value, direction, block size`` in every version since 2.x; what follows
(offset, priority, issue time) differs and is not needed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from volbench.errors import OutputError
from volbench.fio.histogram import BINS, BINS_FIO2, bin_range_ns
from volbench.model.result import Direction

_DIRECTIONS = {0: Direction.READ, 1: Direction.WRITE, 2: Direction.TRIM}
_BEYOND_FIO = 2**64


@dataclass(frozen=True)
class LogText:
    """One log file.

    Attributes:
        kind: ``bw``, ``iops``, ``lat``, ``clat``, ``slat`` or ``clat_hist``.
        clone: the number in its name: 1 is the first job or clone of the process.
        text: what it holds.
    """

    kind: str
    clone: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a log of values; an averaged one has no block size."""

    time_ms: int
    value: int
    direction: Direction
    block_bytes: int


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """One line of a histogram log: counts by midpoint in nanoseconds."""

    time_ms: int
    direction: Direction
    bins: dict[int, int]


def read_rows(log: LogText) -> Iterator[Row]:
    """Yield the rows of a log of values; syncs, which newer versions log too, are left out.

    Raises:
        OutputError: a line is not one of such a log, or the last one is cut off.
    """
    for number, line in _lines(log):
        time_ms, value, direction, block_bytes = _integers(log, number, line.split(",")[:4], 4)
        known = _DIRECTIONS.get(direction)
        if known is not None:
            yield Row(time_ms, value, known, block_bytes)


def read_histogram(log: LogText, *, fio2: bool) -> Iterator[HistogramRow]:
    """Yield the rows of a histogram log.

    Args:
        log: the log.
        fio2: whether fio 2 wrote it, which counts microseconds in fewer bins.

    Raises:
        OutputError: a line is not one of such a log, or the last one is cut off.
    """
    mids: list[int] = []
    for number, line in _lines(log):
        cells = line.split(",")
        time_ms, direction, _, *counts = _integers(log, number, cells, 4)
        if len(counts) != len(mids):
            mids = _midpoints(len(counts), fio2=fio2)
        if not mids:
            raise _wrong(log, number, f"{len(counts)} bins, which no version of fio writes")
        known = _DIRECTIONS.get(direction)
        if known is not None:
            found = {mids[n]: count for n, count in enumerate(counts) if count}
            yield HistogramRow(time_ms, known, found)


def _midpoints(bins: int, *, fio2: bool) -> list[int]:
    """Return the midpoints of a log's bins; log_hist_coarseness halves their number each time."""
    whole, unit_ns = (BINS_FIO2, 1000) if fio2 else (BINS, 1)
    step = whole // bins if bins else 0
    if step == 0 or step * bins != whole or step & (step - 1):
        return []
    edges = ((bin_range_ns(n)[0], bin_range_ns(n + step - 1)[1]) for n in range(0, whole, step))
    return [(low + (high - low) // 2) * unit_ns for low, high in edges]


def _lines(log: LogText) -> Iterator[tuple[int, str]]:
    lines = log.text.split("\n")
    if lines[-1].strip():
        raise _wrong(log, len(lines), "a line without an end: the log is cut off")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line


def _integers(log: LogText, number: int, cells: list[str], least: int) -> list[int]:
    try:
        values = [int(cell) for cell in cells]
    except ValueError:
        raise _wrong(log, number, "a cell that is not a whole number") from None
    if len(values) < least:
        raise _wrong(log, number, f"{len(values)} columns")
    if min(values) < 0 or max(values) >= _BEYOND_FIO:
        raise _wrong(log, number, "a number out of range")
    return values


def _wrong(log: LogText, number: int, found: str) -> OutputError:
    return OutputError(
        f"fio's {log.kind} log of clone {log.clone} has {found}, at line {number}",
        hint="fio was killed, or the disk that holds its logs was full",
        context={"kind": log.kind, "clone": log.clone, "line": number},
    )
