"""USE table of devices: utilization, saturation and errors beside each run."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import MISSING, Row, number, shown, text
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import (
    format_count,
    format_duration,
    format_latency,
    format_percent,
    format_rate,
)

_NOTE = "Means over the measured time."
_SHORT = "Too short a run for device samples has no rates: --set device_sample=100ms takes more."
_UNJUDGED = "No bottleneck is named of a run that is too short, or whose rate was not recorded."
_NO_DEVICE = "NBD volumes have no device here whose requests could be counted."
# Less than this in memory is background noise of the host, whose log files are dirty at any time.
# Noticed by: tests/present/tables/test_use_table.py
_NOISE_BYTES = 1e6
_NOISE_SHARE = 0.02  # Of the bytes of the tool, likewise. Noticed by: test_use_table.py
_LIMIT = "in brackets the share of the declared limit"


def use_columns(rows: Sequence[Row]) -> tuple[Column[Row], ...]:
    """Return the columns after the name of the run, without empty ones but the bottleneck."""
    known = [each for each in _COLUMNS[:-1] if any(each.cell(row) != MISSING for row in rows)]
    return (*known, _COLUMNS[-1])


def run_names(rows: Sequence[Row]) -> list[str]:
    """Return the job of each run, with repeat and phase if needed to identify it."""
    has_repeats = any(number(row, "repeat") > 1 for row in rows)
    return [
        text(row, "label")
        + (f" #{number(row, 'repeat'):.0f}" if has_repeats else "")
        + (f" ({phase})" if phase != Phase.MEASURED.value else "")
        for row in rows
        for phase in (text(row, "phase", missing=Phase.MEASURED.value),)
    ]


def use_table(rows: Sequence[Row]) -> Table[Row]:
    """Return the table for a terminal, a row for each run."""
    named: list[Row] = [
        {**row, "name": name} for row, name in zip(rows, run_names(rows), strict=True)
    ]
    job: Column[Row] = Column("name", header="job", priority=IDENTITY)

    def record(row: Row) -> Row:
        return {key: value for key, value in row.items() if key != "name"}

    without = [text(row, "volume").startswith("nbd") for row in rows if _BW(row) == MISSING]
    why = [note for is_nbd, note in ((True, _NO_DEVICE), (False, _SHORT)) if is_nbd in without]
    why += [_UNJUDGED] if any(_bottleneck(row) == MISSING for row in rows) else []
    return Table("use", [job, *use_columns(rows)], named, record=record, notes=(_NOTE, *why))


def _rate(column: str, share: str, format_value: Callable[[float], str], row: Row) -> str:
    values = [number(row, f"{direction}_{column}") for direction in ("read", "write")]
    if all(math.isnan(value) for value in values):
        return MISSING
    total = format_value(math.fsum(value for value in values if not math.isnan(value)))
    of_limit = number(row, share)
    return total if math.isnan(of_limit) else f"{total} ({format_percent(of_limit / 100)})"


_IOPS = partial(_rate, "iops", "iops_percent", format_count)
_BW = partial(_rate, "bw_bytes_per_s", "bw_percent", format_rate)


def _latency(row: Row) -> str:
    """Return the latency of the active direction, or of both.

    The kernel counts milliseconds: a few requests that were faster add up to none.
    """
    latencies = {
        name: format_latency(number(row, f"{name}_lat_s"))
        for name in ("read", "write")
        if number(row, f"{name}_lat_s") > 0
    }
    if len(latencies) == 1:
        return next(iter(latencies.values()))
    return ", ".join(f"{value} {name[0]}" for name, value in latencies.items()) or MISSING


def _queue(row: Row) -> str:
    return shown(row, "queue_depth", "{:.3g}".format)


def _amount(value: float) -> str:
    return format_rate(value).removesuffix("/s")


def _dirty(row: Row) -> str:
    return shown(row, "dirty_growth_bytes", _amount)


def _tail(row: Row) -> str:
    left, lasted = number(row, "dirty_remaining_bytes"), shown(row, "tail_s", format_duration)
    is_cut = left >= _NOISE_BYTES and left >= _NOISE_SHARE * number(row, "tool_bytes")
    return f"{lasted}, {_amount(left)} left" if is_cut else lasted


def _errors(row: Row) -> str:
    failed, code = number(row, "io_errors"), number(row, "error")
    if math.isnan(code) or (code == 0 and not math.isnan(failed)):
        return shown(row, "io_errors", "{:.0f}".format)
    by_fio = f"fio {errno.errorcode.get(int(code), int(code)) if code else 0}"
    return by_fio if math.isnan(failed) else f"{failed:.0f}, {by_fio}"


def _bottleneck(row: Row) -> str:
    word, level = text(row, "bottleneck", missing=MISSING), number(row, "bottleneck_level")
    if math.isnan(level) or not word.endswith("-limit"):
        return word
    return f"{word} {format_rate(level) if word == 'bandwidth-limit' else format_count(level)}"


def _usage(
    name: str, header: str, priority: int, meaning: str, show: Callable[[Row], str] | None = None
) -> Column[Row]:
    column = quantity(name, header, priority=priority, meaning=meaning)
    return replace(column, show=show or column.show)


_COLUMNS: tuple[Column[Row], ...] = (
    _usage("device_iops", "IOPS", 1, f"Utilization: I/Os of the device, {_LIMIT}", _IOPS),
    _usage(
        "device_bw_bytes_per_s", "bandwidth", 2, f"Utilization: bytes of the device, {_LIMIT}", _BW
    ),
    _usage("active_percent", "active", 3, "Utilization: time with a request in flight"),
    _usage("device_lat_s", "latency", 2, "Mean time in queue and device", _latency),
    _usage("queue_depth", "queue", 3, "Saturation: mean requests in queue and device", _queue),
    _usage("iowait_percent", "iowait", 7, "Saturation: idle CPU time with I/O pending"),
    _usage("io_pressure_some_percent", "pressure", 6, "Saturation: time some task waited for I/O"),
    _usage("dirty_growth_bytes", "dirty", 5, "Saturation: growth of dirty pages", _dirty),
    _usage(
        "tail_s", "tail", 5, "Saturation: write-back after fio, and what was left in memory", _tail
    ),
    _usage("device_share_percent", "reached", 4, "Bytes that reached the device, of those of fio"),
    _usage("errors", "errors", 3, "Errors: failed requests, and fio's error", _errors),
    Column("bottleneck", _bottleneck, meaning="What limited the run"),
)
