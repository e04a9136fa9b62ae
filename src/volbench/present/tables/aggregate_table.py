"""Table of the aggregate over clients: a row for each job, repeat and direction."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from volbench.model.frames.columns import LAST_BINS_S
from volbench.present.formatting import Row, job_label, number, shown, skew
from volbench.present.tables.summary_table import (
    RATES,
    differing_columns,
    identifying_column,
    labels_of,
)
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import format_latency

_MAX_CAUSES = 3  # of sums that are missing, below the table
_WITH_DIGITS = re.compile(r"\S*\d\S*,? ?")  # names and times, in which like causes differ


def aggregate_table(rows: Sequence[Row]) -> Table[Row]:
    """Return the aggregate over clients, a row for each job, repeat and direction."""
    visible = set(differing_columns(rows, ["campaign", "profile", "repeat"]))
    columns = [own for own in AGGREGATE_COLUMNS if own.name in visible or not own.is_optional]
    return Table(
        "aggregate",
        [*_label_columns(rows), *columns],
        rows,
        title="aggregate over clients",
        notes=[_sums_note(rows)],
    )


def _label_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    return [
        replace(identifying_column(name), priority=4 if place else IDENTITY)
        for place, name in enumerate(differing_columns(rows, labels_of(rows)))
    ]


def _sums_note(rows: Sequence[Row]) -> str:
    is_known = any(row.get("overlap_s") is not None or row.get("iops") is None for row in rows)
    time = "over the time in which all clients ran" if is_known else "of the rates of whole runs"
    note = f"sums {time}; latencies of all their I/Os"
    alike: dict[str, list[str]] = {}
    for reason in (str(row["no_total"]) for row in rows if row.get("no_total")):
        alike.setdefault(_WITH_DIGITS.sub("", reason), []).append(reason)
    counts = ((own[0], f" (in {len(own)} rows)" if own[1:] else "") for own in alike.values())
    causes = [f"n/a: {reason}{count}" for reason, count in counts]
    more = [f"{len(causes) - _MAX_CAUSES} more causes"] if causes[_MAX_CAUSES:] else []
    return "; ".join([note, *causes[:_MAX_CAUSES], *more])


def _clients(row: Row) -> str:
    clients, planned = row.get("clients"), row.get("clients_planned")
    return f"{clients}" if clients == planned else f"only {clients} of {planned}"


def _merged_p99(row: Row) -> str:
    if math.isnan(number(row, "lat_p99_s")) and not math.isnan(number(row, "lat_p50_s")):
        return f"> {max(LAST_BINS_S):.1f} s"
    return shown(row, "lat_p99_s", format_latency)


AGGREGATE_COLUMNS: tuple[Column[Row], ...] = (
    Column("campaign", priority=IDENTITY, is_optional=True),
    Column("profile", priority=IDENTITY, is_optional=True),
    Column("repeat", priority=IDENTITY, is_optional=True),
    Column("job", job_label, priority=IDENTITY),
    Column("direction", priority=IDENTITY),
    Column("clients", _clients, is_right=True),
    quantity("overlap_s", "overlap", priority=4),
    *(replace(column) for column in RATES),
    Column(
        "fairness", lambda row: shown(row, "fairness", "{:.2f}".format), is_right=True, priority=3
    ),
    quantity("lat_mean_s", "lat mean", priority=4),
    quantity("lat_p99_s", "lat p99", show=_merged_p99, priority=2),
    quantity("lat_max_s", "lat max", priority=5),
    quantity("start_skew_s", "start skew", priority=3, show=skew),
)
