"""Tables of the frames of a trace."""

from __future__ import annotations

import math
from collections.abc import Callable

from volbench.extensions.traces.recorder import lost_sentence
from volbench.extensions.traces.trace_frames import TraceSummary
from volbench.present.formatting import MISSING, Row, printable
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import (
    counted_noun,
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_percent,
    format_rate,
)

# Ending of a column to the text of its values, the first that fits
_TEXTS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("t_s", format_duration),
    ("bytes_per_s", format_rate),
    ("_bytes", format_capacity),
    ("_share", format_percent),
    ("share", format_percent),
    ("_s", format_latency),
    ("ios", format_count),
    ("iops", format_count),
)
_HEADERS = {
    "bw_bytes_per_s": "bandwidth",
    "iops": "IOPS",
    "ios": "I/Os",
    "io_bytes": "bytes",
    "size_p50_bytes": "size p50",
    "sequential_share": "sequential",
    "far_share": "over 1 GiB",
    "read_iops": "read IOPS",
    "write_iops": "write IOPS",
    "discard_iops": "discard IOPS",
    "read_bw_bytes_per_s": "read bw",
    "write_bw_bytes_per_s": "write bw",
    "hottest_1_percent_share": "on 1 %",
    "hottest_10_percent_share": "on 10 %",
    "hottest_50_percent_share": "on 50 %",
    "t_s": "time",
}
_NAMES = {"device", "kind"}


def frame_table_of(summary: TraceSummary, frame: str) -> Table[Row]:
    """Return the table of a frame of a trace."""
    rows = summary.rows(frame)
    names = list(rows[0]) if rows else ["device"]
    return Table(f"trace-{frame}", [_column(name, place) for place, name in enumerate(names)], rows)


def _column(name: str, place: int) -> Column[Row]:
    if name in _NAMES:
        return Column(name, lambda row: printable(str(row[name])), priority=IDENTITY)
    write = next(text for ending, text in _TEXTS if name.endswith(ending))
    header = _HEADERS.get(name, name.removesuffix("_bytes").removesuffix("_s").replace("_", " "))
    return Column(
        name, lambda row: _text(row[name], write), header=header, priority=place, is_right=True
    )


def _text(value: object, write: Callable[[float], str]) -> str:
    number = float(str(value))
    return MISSING if math.isnan(number) else write(number)


def facts_sentence(summary: TraceSummary) -> str:
    """Return source, length and losses of a trace in one line."""
    facts = summary.facts
    count = sum(int(str(row["ios"])) for row in summary.rows("load"))
    parts = [
        f"{counted_noun(count, 'I/O')} in {format_duration(summary.duration_s)}",
        f"source: {facts.source}",
        f"start: {facts.start_utc}" if facts.start_utc else "",
        lost_sentence(facts) if facts.source == "tracefs" or facts.lost_events else "",
        counted_noun(facts.damaged_lines, "damaged line") if facts.damaged_lines else "",
        "anonymised" if facts.anonymised else "",
    ]
    return "; ".join(filter(None, parts))
