"""The results table of the report: rows of the summary enter, cells with exact values leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.present.cells import (
    MISSING,
    Row,
    flag,
    job_label,
    latency,
    number,
    pattern,
    text,
)
from volbench.present.report.doubts import Badge, badges_of, by_run
from volbench.units import format_count, format_latency, format_rate, format_size

STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "p50": "p50",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}
"""Latency statistics shown, by their name in the column, with their name for people."""


@dataclass(frozen=True)
class Heading:
    """A column heading; `numeric` columns are aligned right and sorted as numbers."""

    text: str
    title: str = ""
    numeric: bool = False


_EXTRA: Mapping[str, Heading] = {
    "host": Heading("Host"),
    "profile": Heading("Profile"),
    "phase": Heading("Phase", "precondition, warmup or measured"),
    "repeat": Heading("Repeat", numeric=True),
    "numjobs": Heading("Clones", "clones of the job (numjobs)", numeric=True),
}
"""Columns that are shown only where they tell rows apart."""


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        text: for people.
        title: the exact value with its unit; empty for text.
        value: to sort by, a number in full precision or text; empty when not told.
        badges: what puts the row in doubt; in its first cell only.
    """

    text: str
    title: str = ""
    value: str = ""
    badges: tuple[Badge, ...] = ()


@dataclass(frozen=True)
class Results:
    """A table; the first cell of each row is its heading."""

    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    completion_only: bool


def results(rows: Sequence[Row], findings: Sequence[Row] = ()) -> Results:
    """Return the results table of all rows of the summary, in their order.

    Args:
        rows: of the summary frame.
        findings: rows of the findings frame.
    """
    extra = [name for name in ("host", "profile", "phase", "repeat") if _differs(rows, name)]
    if any(number(row, "numjobs") != 1 for row in rows):
        extra.append("numjobs")
    doubts = by_run(findings)
    return Results(
        headings=(*_headings(extra),),
        rows=tuple(tuple(_cells(row, extra, badges_of(doubts, row))) for row in rows),
        completion_only=any(
            latency(row, name).is_completion for row in rows for name in STATISTICS
        ),
    )


def _differs(rows: Sequence[Row], column: str) -> bool:
    return len({row.get(column) for row in rows}) > 1


def _headings(extra: Sequence[str]) -> list[Heading]:
    """Return the headings in the order of `_cells`."""
    return [
        Heading("Job", "name of the job in the profile"),
        *(_EXTRA[name] for name in extra),
        Heading("Volume", "role of the volume"),
        Heading("Pattern", "access pattern as fio names it"),
        Heading("Block", "block size, in powers of 1024", numeric=True),
        Heading("Depth", "I/Os kept in flight by each clone", numeric=True),
        Heading("Direct", "whether the page cache was bypassed"),
        Heading("IOPS", "I/Os a second", numeric=True),
        Heading("Bandwidth", "bytes a second, in powers of 1000", numeric=True),
        *(Heading(f"Latency {name}", numeric=True) for name in STATISTICS.values()),
        Heading("Status"),
    ]


def _cells(row: Row, extra: Sequence[str], badges: tuple[Badge, ...]) -> list[Cell]:
    """Return the cells of one row."""
    return [
        Cell(job_label(row), title=text(row, "run"), value=job_label(row), badges=badges),
        *(_word(row, name) for name in extra),
        Cell(
            text(row, "role", missing=MISSING), title=text(row, "volume"), value=text(row, "role")
        ),
        Cell(pattern(row), value=pattern(row)),
        _number(row, "block_bytes", format_size, unit="bytes"),
        _number(row, "iodepth", "{:.0f}".format),
        Cell(flag(row, "direct"), value=flag(row, "direct")),
        _number(row, "iops", format_count, unit="I/Os per second"),
        _number(row, "bw_bytes_per_s", format_rate, unit="bytes per second"),
        *(_latency(row, statistic) for statistic in STATISTICS),
        _word(row, "status"),
    ]


def _word(row: Row, column: str) -> Cell:
    return Cell(text(row, column, missing=MISSING), value=text(row, column))


def _number(row: Row, column: str, show: Callable[[float], str], *, unit: str = "") -> Cell:
    """Return a number for people that carries its exact value."""
    value = number(row, column)
    if math.isnan(value):
        return Cell(MISSING, title="not told by the tool" if column != "block_bytes" else "varies")
    exact = str(row[column])
    return Cell(show(value), title=f"{exact} {unit}".strip() if unit else "", value=exact)


def _latency(row: Row, statistic: str) -> Cell:
    """Return a latency; a star marks completion latency standing in for total latency."""
    found = latency(row, statistic)
    if not found.column:
        return Cell(MISSING, title="not told by the tool")
    exact, kind = str(row[found.column]), found.column.partition("_")[0]
    star = "*" if found.is_completion else ""
    return Cell(format_latency(found.seconds) + star, title=f"{exact} s ({kind})", value=exact)
