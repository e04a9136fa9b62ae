"""Table of the aggregate frame: sums over clients, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from volbench.present.formatting import Row, shown, text
from volbench.present.tables.result_tables import text_table
from volbench.units import format_count, format_duration, format_latency, format_rate

_HEADINGS = (
    *("job", "direction", "clients", "together", "IOPS", "bandwidth"),
    *("lat mean", "lat p99", "lat max", "start skew"),
)


def aggregate_table(rows: Sequence[Row]) -> Table:
    """Return the sums over clients; fewer of them than were asked to are told as such."""
    return text_table(
        _HEADINGS,
        [_cells(row) for row in rows],
        words=("job", "direction"),
        caption="sums over the time in which all clients ran; latencies of all their I/Os",
    )


def _cells(row: Row) -> tuple[str, ...]:
    clients, planned = row.get("clients"), row.get("clients_planned")
    count = f"{clients}" if clients == planned else f"only {clients} of {planned}"
    job, group = text(row, "job"), text(row, "group")
    return (
        job if group == job else f"{job}/{group}",
        text(row, "direction"),
        count,
        shown(row, "overlap_s", format_duration),
        shown(row, "iops", format_count),
        shown(row, "bw_bytes_per_s", format_rate),
        shown(row, "lat_mean_s", format_latency),
        shown(row, "lat_p99_s", format_latency),
        shown(row, "lat_max_s", format_latency),
        shown(row, "start_skew_s", format_latency),
    )
