"""Tables of the duration of each step in the life of volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from volbench.extensions.kubernetes.lifecycle import STEPS, VolumeLife
from volbench.present.formatting import MISSING, Row
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import format_latency

_FEW = 100  # Of fewer volumes the 99th percentile is the slowest: a definition.
_RESOLUTION = "Steps are seen every 0.1 s; the first I/O is timed in the pod."


def steps_table(lives: Sequence[VolumeLife]) -> Table[Row]:
    """Return median, 99th percentile and maximum of each step, a row a class and step."""
    rows: list[Row] = []
    for name, step, durations_s in _by_step(lives):
        ranked = sorted(durations_s)
        rows.append(
            {
                "storage_class": name,
                "step": step,
                "volumes": len(ranked),
                "p50_s": median(ranked),
                "p99_s": ranked[math.ceil(0.99 * len(ranked)) - 1],
                "max_s": ranked[-1],
            }
        )
    columns: tuple[Column[Row], ...] = (
        Column("storage_class", header="storage class", priority=IDENTITY),
        Column("step", priority=IDENTITY),
        Column("volumes", is_right=True),
        *(_seconds(f"{name}_s", name) for name in ("p50", "p99", "max")),
    )
    is_few = any(len(durations_s) < _FEW for _, _, durations_s in _by_step(lives))
    few = f"Of fewer than {_FEW} volumes, p99 is the slowest." if is_few else ""
    return Table("lifecycle", columns, rows, notes=[note for note in (few, _RESOLUTION) if note])


def _seconds(name: str, header: str) -> Column[Row]:
    """Return a column of durations, from microseconds to minutes."""

    def show(row: Row) -> str:
        seconds = row[name]
        return format_latency(seconds) if isinstance(seconds, float) else MISSING

    return quantity(name, header, show=show)


def _by_step(lives: Sequence[VolumeLife]) -> list[tuple[str, str, list[float]]]:
    """Return the durations of each class and step that the cluster has."""
    found = []
    for name in dict.fromkeys(sorted(life.storage_class for life in lives)):
        durations = [life.durations_s() for life in lives if life.storage_class == name]
        for step in STEPS:
            known = [seconds for each in durations if (seconds := each[step]) is not None]
            found += [(name, step, known)] if known else []
    return found
