"""Tables of the report whose cells carry exact values: results, and shares of declared limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import (
    MISSING,
    Row,
    flag,
    job_label,
    latency,
    number,
    pattern,
    skew,
    text,
)
from volbench.present.report.outcomes import AgainstLimit
from volbench.present.tables.findings_table import Badge, badges_of, by_run
from volbench.units import format_count, format_duration, format_latency, format_rate, format_size

# Latency statistics shown, by their name in the column, with their name for people
STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "p50": "p50",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}


@dataclass(frozen=True)
class Heading:
    """A column heading; `numeric` columns are aligned right and sorted as numbers."""

    text: str
    title: str = ""
    numeric: bool = False


# Columns that are shown only where they differ
_EXTRA: Mapping[str, Heading] = {
    "host": Heading("Host"),
    "client": Heading("Client", "number of the client within its step", numeric=True),
    "profile": Heading("Profile"),
    "phase": Heading("Phase", "precondition, warmup or measured"),
    "repeat": Heading("Repeat", numeric=True),
    "numjobs": Heading("numjobs", "jobs in parallel", numeric=True),
}


@dataclass(frozen=True)
class Cell:
    """A cell."""

    text: str  # for people
    title: str = ""  # the exact value with its unit; empty for text
    value: str = ""  # to sort by, a number in full precision or text; empty when it is missing
    badges: tuple[Badge, ...] = ()  # warnings about the row; in its first cell only


@dataclass(frozen=True)
class Source:
    """Runs behind a row of a table, by which the page filters it; no direction stands for all."""

    runs: tuple[str, ...] = ()
    direction: str = ""


@dataclass(frozen=True)
class DataTable:
    """A table that can be sorted, filtered and saved; each row's first cell is its heading."""

    name: str  # also of its file
    caption: str  # meaning of a row
    headings: tuple[Heading, ...]  # one for each cell of a row
    rows: tuple[tuple[Cell, ...], ...]  # in their first order
    sources: tuple[Source, ...] = ()  # of each row; empty where filters leave the table alone


def results_table(rows: Sequence[Row], findings: Sequence[Row] = ()) -> DataTable:
    """Return the results table of all rows of the summary, in their order."""
    labels = dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    candidates = ("host", *labels, "client", "profile", "phase", "repeat")
    extra = [name for name in candidates if _differs(rows, name)]
    if any(number(row, "numjobs") != 1 for row in rows):
        extra.append("numjobs")
    findings_of = by_run(findings)
    is_starred = any(latency(row, name).is_completion for row in rows for name in STATISTICS)
    return DataTable(
        name="results",
        caption="A row for each run and direction. Point at a number for its exact value."
        + " * is completion latency: the tool reported no total latency." * is_starred,
        headings=tuple(_headings(extra)),
        rows=tuple(tuple(_cells(row, extra, badges_of(findings_of, row))) for row in rows),
        sources=tuple(Source((text(row, "run"),), text(row, "direction")) for row in rows),
    )


def _differs(rows: Sequence[Row], column: str) -> bool:
    return len({str(row.get(column)) for row in rows}) > 1


def _label_heading(column: str) -> Heading:
    name = column.removeprefix(LABEL_PREFIX)
    return Heading(name, f"label {name} of the host")


def _headings(extra: Sequence[str]) -> list[Heading]:
    """Return the headings in the order of `_cells`."""
    return [
        Heading("Job", "name of the job in the profile"),
        *(_EXTRA.get(name) or _label_heading(name) for name in extra),
        Heading("Volume", "role of the volume"),
        Heading("Pattern", "access pattern as fio names it"),
        Heading("Block", "block size, in powers of 1024", numeric=True),
        Heading("Queue depth", "I/Os kept in flight by each job (iodepth)", numeric=True),
        Heading("Direct", "whether the page cache was bypassed"),
        Heading("IOPS", "I/Os a second", numeric=True),
        Heading("Bandwidth", "bytes a second, in powers of 1000", numeric=True),
        *(Heading(f"Latency {name}", numeric=True) for name in STATISTICS.values()),
        Heading("Status"),
    ]


def _cells(row: Row, extra: Sequence[str], badges: tuple[Badge, ...]) -> list[Cell]:
    return [
        Cell(job_label(row), title=text(row, "run"), value=job_label(row), badges=badges),
        *(word_cell(row, name) for name in extra),
        Cell(
            text(row, "role", missing=MISSING), title=text(row, "volume"), value=text(row, "role")
        ),
        Cell(pattern(row), value=pattern(row)),
        number_cell(row, "block_bytes", format_size, unit="bytes"),
        number_cell(row, "iodepth", "{:.0f}".format),
        Cell(flag(row, "direct"), value=flag(row, "direct")),
        number_cell(row, "iops", format_count, unit="I/Os per second"),
        number_cell(row, "bw_bytes_per_s", format_rate, unit="bytes per second"),
        *(_latency_cell(row, statistic) for statistic in STATISTICS),
        word_cell(row, "status"),
    ]


def word_cell(row: Row, column: str) -> Cell:
    """Return a text that is sorted as it reads."""
    return Cell(text(row, column, missing=MISSING), value=text(row, column))


def number_cell(row: Row, column: str, show: Callable[[float], str], *, unit: str = "") -> Cell:
    """Return a number for people that carries its exact value."""
    value = number(row, column)
    if math.isnan(value):
        return Cell(
            MISSING, title="not reported by the tool" if column != "block_bytes" else "varies"
        )
    exact = str(row[column])
    return Cell(show(value), title=f"{exact} {unit}".strip() if unit else "", value=exact)


def _latency_cell(row: Row, statistic: str) -> Cell:
    """Return a latency; a star marks completion latency standing in for total latency."""
    found = latency(row, statistic)
    if not found.column:
        return Cell(MISSING, title="not reported by the tool")
    exact, kind = str(row[found.column]), found.column.partition("_")[0]
    star = "*" if found.is_completion else ""
    return Cell(format_latency(found.seconds) + star, title=f"{exact} s ({kind})", value=exact)


def limits_table(limits: Sequence[AgainstLimit]) -> DataTable:
    """Return the results of jobs as shares of the declared limits of their volumes."""
    return DataTable(
        name="limits",
        caption="Measured rates as shares of the declared limits. Within 5 % counts as reached.",
        headings=(
            Heading("Job"),
            Heading("Volume"),
            Heading("Of declared IOPS", numeric=True),
            Heading("Of declared bandwidth", numeric=True),
            Heading("Reading"),
        ),
        rows=tuple(
            (
                Cell(limit.job, value=limit.job),
                Cell(limit.role, value=limit.role),
                _share(limit.iops_share, limit.iops),
                _share(limit.bw_share, limit.bw),
                Cell(limit.reading, value=limit.reading),
            )
            for limit in limits
        ),
        sources=tuple(Source(limit.runs) for limit in limits),
    )


def _share(shown: str, share: float) -> Cell:
    if math.isnan(share):
        return Cell("none declared")
    return Cell(shown, title=f"{share!r} of the limit", value=repr(share))


def aggregate_table(rows: Sequence[Row]) -> DataTable:
    """Return the aggregate over clients, a row for each step and direction."""
    return DataTable(
        name="aggregate",
        caption="Sums over the time in which all clients ran; latencies are of all their I/Os.",
        headings=(
            Heading("Job"),
            Heading("Repeat", numeric=True),
            Heading("Direction"),
            Heading("Clients", "that finished, of those planned", numeric=True),
            Heading("Overlap", "time in which all of them ran", numeric=True),
            Heading("IOPS", numeric=True),
            Heading("Bandwidth", numeric=True),
            Heading("Latency mean", numeric=True),
            Heading("Latency p99", numeric=True),
            Heading("Latency max", numeric=True),
            Heading(
                "Start skew", "from the first client's first I/O to the last one's", numeric=True
            ),
        ),
        rows=tuple(tuple(_total(row)) for row in rows),
    )


def _total(row: Row) -> list[Cell]:
    clients, planned = number(row, "clients"), number(row, "clients_planned")
    count = f"{clients:.0f}" if clients == planned else f"only {clients:.0f} of {planned:.0f}"
    return [
        Cell(job_label(row), value=job_label(row)),
        number_cell(row, "repeat", "{:.0f}".format),
        Cell(text(row, "direction"), value=text(row, "direction")),
        Cell(count, value=f"{clients:.0f}"),
        number_cell(row, "overlap_s", format_duration, unit="s"),
        number_cell(row, "iops", format_count, unit="I/Os per second"),
        number_cell(row, "bw_bytes_per_s", format_rate, unit="bytes per second"),
        number_cell(row, "lat_mean_s", format_latency, unit="s"),
        number_cell(row, "lat_p99_s", format_latency, unit="s"),
        number_cell(row, "lat_max_s", format_latency, unit="s"),
        number_cell(row, "start_skew_s", lambda _seconds: skew(row), unit="s"),
    ]
