"""A survey of hosts enters, a table leaves: one row a host, what is wrong with it last."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table

from volbench.model.results.provenance import VolumeFacts
from volbench.present.tables.result_tables import text_table
from volbench.units import format_latency, format_size

_HEADINGS = ("host", "fio", "kernel", "CPUs", "memory", "clock", "volumes", "problem")


def survey_table(rows: Sequence[Sequence[str]]) -> Table:
    """Return the table of rows made by `survey_row`."""
    good = sum(not row[-1] for row in rows)
    return text_table(
        _HEADINGS, rows, words=_HEADINGS, caption=f"{good} of {len(rows)} hosts can take part"
    )


def volume_words(role: str, facts: VolumeFacts) -> str:
    """Return what a volume is, and what would be lost on it."""
    size = "" if facts.size_bytes is None else f" {format_size(facts.size_bytes)}"
    free = "" if facts.free_bytes is None else f", {format_size(facts.free_bytes)} free"
    holds = f", holds {facts.content}" if facts.content else ""
    mounted = f", {facts.filesystem} on {facts.mount_point}" if facts.mount_point else ""
    return f"{role}: {facts.target}{size}{mounted}{free}{holds}"


def clock_words(offset_s: float, bound_s: float) -> str:
    """Return how far a clock is off, with its bound."""
    if math.isinf(bound_s):
        return "unknown"
    sign = "-" if offset_s < 0 else "+"
    return f"{sign}{format_latency(abs(offset_s))} ± {format_latency(bound_s)}"
