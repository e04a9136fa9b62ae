"""Live table of concurrent runs, a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from volbench.model.campaign.event import Progress
from volbench.model.campaign.planned_run import Run
from volbench.present.formatting import printable
from volbench.units import format_count, format_duration, format_latency, format_rate

SILENT_S = 5.0
"""A client that reports nothing for so long is marked; it is polled about every second."""

_UNKNOWN = "-"
_HEADINGS = ("client", "Run", "state", "IOPS", "bandwidth", "device", "left", "heard")


@dataclass(frozen=True)
class Row:
    """One run under way.

    Attributes:
        run: of the plan.
        state: in words.
        progress: as reported last.
        left_s: until its end; None if it is not known.
        silent_s: since its machine last reported anything.
    """

    run: Run
    state: str
    progress: Progress
    left_s: float | None
    silent_s: float


def live_table(rows: Sequence[Row], *, most: int) -> Table:
    """Return the rows, those that have been silent first, as far as there is room.

    Args:
        rows: in the order of the plan.
        most: rows that fit.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        words = heading in {"client", "Run", "state"}
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    ordered = sorted(rows, key=lambda row: row.silent_s < SILENT_S)
    for row in ordered[:most]:
        table.add_row(*_cells(row), style="yellow" if row.silent_s >= SILENT_S else "")
    if len(rows) > most:
        table.add_row(Text(f"and {len(rows) - most} more"))
    return table


def client_name(run: Run) -> str:
    """Return what a client is called: its host, its number, or both."""
    return f"{run.host} {run.client}" if run.client else run.host


def _cells(row: Row) -> tuple[Text, ...]:
    progress = row.progress
    latency_s = progress.lat_mean_s
    heard = "now" if row.silent_s < SILENT_S else f"{format_duration(int(row.silent_s))} ago"
    words = (
        client_name(row.run),
        row.run.job,
        row.state,
        _sum(progress.read_iops, progress.write_iops, progress.trim_iops, rate=False),
        _sum(
            progress.read_bw_bytes_per_s,
            progress.write_bw_bytes_per_s,
            progress.trim_bw_bytes_per_s,
            rate=True,
        ),
        _UNKNOWN if latency_s is None else format_latency(latency_s),
        _UNKNOWN if row.left_s is None else format_duration(int(row.left_s)),
        heard,
    )
    return tuple(Text(printable(word)) for word in words)


def _sum(*parts: float | None, rate: bool) -> str:
    known = [part for part in parts if part is not None]
    if not known:
        return _UNKNOWN
    return format_rate(sum(known)) if rate else format_count(sum(known))
