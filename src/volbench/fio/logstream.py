"""Logs of single I/Os, read as a stream: a binary file goes in, sums by window come out.

Memory grows with the number of windows, not with that of the rows: each window keeps its counts,
its sums and a histogram on fio's own bins, of which only those in use are stored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from volbench.fio.histogram import BINS, GROUP_BINS

_CHUNK_BYTES = 4 << 20
_ROW = re.compile(rb"[ \t]*(\d{1,18}),[ \t]*(\d{1,18}),[ \t]*(\d{1,18}),[ \t]*(\d{1,18})(?:,.*)?")
_WIDEST = 10**18
_EXACT = 2**53
"""Sums below this are exact in float64, which is how numpy adds weights."""
_Ints = npt.NDArray[np.int64]


@dataclass
class Window:
    """What one direction did in one window; ``bins`` counts by the number of fio's bin."""

    ios: int = 0
    moved_bytes: int = 0
    value_sum: int = 0
    value_max: int = 0
    bins: Counter[int] = field(default_factory=Counter)


@dataclass
class Counted:
    """A whole log: windows by number and fio's direction, rows read and rows skipped."""

    windows: dict[tuple[int, int], Window] = field(default_factory=dict)
    rows: int = 0
    bad_rows: int = 0


def count_stream(stream: BinaryIO, *, interval_ms: int, start_ms: int = 0) -> Counted:
    """Count the rows of a log that holds every I/O; what is no whole row is skipped and counted.

    Args:
        stream: the log, not compressed.
        interval_ms: the width of a window.
        start_ms: the time in the log at which I/O began; earlier rows fall into the first window.
    """
    counted = Counted()
    for block in _blocks(stream):
        table, bad = _columns(block)
        counted.bad_rows += bad
        table = table[:, table[2] < 3]  # newer versions log syncs as direction 3
        if table.shape[1]:
            counted.rows += table.shape[1]
            _add(counted, table, np.maximum(table[0] - start_ms, 0) // interval_ms)
    return counted


def bin_of(values: _Ints) -> _Ints:
    """Return the number of fio's bin for each value, as ``plat_val_to_idx`` in its ``stat.c``."""
    shift = np.zeros_like(values)
    for step in (32, 16, 8, 4, 2, 1):
        shift += step * ((values >> shift) >= 2 * GROUP_BINS << (step - 1))
    bins: _Ints = np.where(shift > 0, shift * GROUP_BINS + (values >> shift), values)
    return np.minimum(bins, BINS - 1)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield blocks of whole lines; a last one without an end comes with a mark that no row has."""
    rest = b""
    while chunk := stream.read(_CHUNK_BYTES):
        lines, end, tail = chunk.rpartition(b"\n")
        if end:
            yield rest + lines
            rest = tail
        else:
            rest += tail
    if rest.strip():
        yield rest + b"\0cut"


def _columns(block: bytes) -> tuple[_Ints, int]:
    """Return the first four columns and how many lines were bad; one bad line costs speed only."""
    first = block.lstrip(b"\n").partition(b"\n")[0]
    names = [str(n) for n in range(first.count(b",") + 1)]
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(quote_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=names[:4],
                column_types=dict.fromkeys(names[:4], pa.int64()),
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return _line_by_line(block)
    if table.num_columns < 4 or b"\0" in block or b"\r" in block:
        return _line_by_line(block)
    found: _Ints = np.stack([column.to_numpy() for column in table.columns])
    if found.size and (found.min() < 0 or found.max() >= _WIDEST):
        return _line_by_line(block)
    return found, 0


def _line_by_line(block: bytes) -> tuple[_Ints, int]:
    lines = [line for line in block.split(b"\n") if line.strip()]
    matches = [None if b"\0" in line else _ROW.fullmatch(line.rstrip(b"\r")) for line in lines]
    rows = [[int(cell) for cell in match.groups()] for match in matches if match is not None]
    return np.array(rows, dtype=np.int64).reshape(-1, 4).T, len(lines) - len(rows)


def _add(counted: Counted, table: _Ints, slots: _Ints) -> None:
    """Add the rows of one block to their windows."""
    keys, where = np.unique(slots * 3 + table[2], return_inverse=True)
    value, size, places = table[1], table[3], len(keys)
    ios = np.bincount(where, minlength=places)
    values, moved = _sums(where, value, places), _sums(where, size, places)
    highest = np.zeros(places, dtype=np.int64)
    np.maximum.at(highest, where, value)
    cells, counts = np.unique(where * BINS + bin_of(value), return_counts=True)
    ends = np.searchsorted(cells // BINS, np.arange(places + 1))
    for n, key in enumerate(keys.tolist()):
        window = counted.windows.setdefault((key // 3, key % 3), Window())
        window.ios += int(ios[n])
        window.moved_bytes += moved[n]
        window.value_sum += values[n]
        window.value_max = max(window.value_max, int(highest[n]))
        mine = slice(ends[n], ends[n + 1])
        for cell, count in zip((cells[mine] % BINS).tolist(), counts[mine].tolist(), strict=True):
            window.bins[cell] += count


def _sums(where: npt.NDArray[np.intp], values: _Ints, places: int) -> list[int]:
    """Return exact sums by place, in whole numbers of Python where float64 would round."""
    if int(values.max()) * len(values) < _EXACT:
        return [int(total) for total in np.bincount(where, weights=values, minlength=places)]
    totals = [0] * places
    for place, value in zip(where.tolist(), values.tolist(), strict=True):
        totals[place] += value
    return totals
