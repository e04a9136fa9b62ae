"""The USE table as text in columns.

The terminal and the report show the same columns.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import MISSING, Row, number, shown, text
from volbench.present.tables.result_tables import text_table
from volbench.units import format_count, format_duration, format_latency, format_rate

CAPTION = (
    "means while fio did I/O; in brackets the share of the declared limit\n"
    "dirty: growth of dirty pages; tail: writing after fio had ended; left: in memory still\n"
    "reached: bytes of the device, of the bytes that fio counted\n"
    "errors: failed requests of the device; fio's own error where nobody counts them"
)


@dataclass(frozen=True)
class UseColumn:
    """A column.

    Attributes:
        heading: short.
        title: what it shows, with its letter of USE.
        show: a row to its text, ``n/a`` when it was not told.
    """

    heading: str
    title: str
    show: Callable[[Row], str]


def use_columns(rows: Sequence[Row]) -> tuple[UseColumn, ...]:
    """Return the columns behind the name of the Run; a column that nobody told is left out."""
    return tuple(column for column in _COLUMNS if any(column.show(row) != MISSING for row in rows))


def run_name(row: Row, rows: Sequence[Row]) -> str:
    """Return the job of a Run, with repeat and phase where they tell Runs apart."""
    phase = text(row, "phase", missing=Phase.MEASURED.value)
    repeat = (
        f" #{number(row, 'repeat'):.0f}" if any(number(one, "repeat") > 1 for one in rows) else ""
    )
    return text(row, "label") + repeat + (f" ({phase})" if phase != Phase.MEASURED.value else "")


def use_table(rows: Sequence[Row]) -> Table:
    """Return the table for a terminal, a row per Run.

    Args:
        rows: of `volbench.analyse.device.use_method.use_rows`.
    """
    columns = use_columns(rows)
    return text_table(
        ["job", *(column.heading for column in columns)],
        [[run_name(row, rows), *(column.show(row) for column in columns)] for row in rows],
        words={"job", "bound by"},
        caption=CAPTION,
    )


def _rate(row: Row, column: str, share: str, format_value: Callable[[float], str]) -> str:
    """Return reads and writes of the device, with their share of the limit."""
    values = [number(row, f"{direction}_{column}") for direction in ("read", "write")]
    if all(math.isnan(value) for value in values):
        return MISSING
    told = format_value(math.fsum(value for value in values if not math.isnan(value)))
    of_limit = number(row, share)
    return told if math.isnan(of_limit) else f"{told} ({_percent(of_limit)})"


def _percent(value: float) -> str:
    return f"{value:.1f} %" if 0.05 <= value < 9.95 else f"{value:.0f} %"


def _latency(row: Row) -> str:
    """Return the latency of the direction that moved, or of both."""
    told = {
        name: format_latency(number(row, f"{name}_lat_s"))
        for name in ("read", "write")
        if not math.isnan(number(row, f"{name}_lat_s"))
    }
    if len(told) == 1:
        return next(iter(told.values()))
    return ", ".join(f"{value} {name[0]}" for name, value in told.items()) or MISSING


def _amount(value: float) -> str:
    return format_rate(value).removesuffix("/s")


def _tail(row: Row) -> str:
    """Return the tail, marked when the device had not written everything by its end."""
    left, told = number(row, "dirty_remaining_bytes"), shown(row, "tail_s", format_duration)
    is_cut = left >= _LEFT_BYTES and left >= _LEFT_SHARE * number(row, "tool_bytes")
    return f"{told}, {_amount(left)} left" if is_cut else told


_LEFT_BYTES, _LEFT_SHARE = 1e6, 0.02
"""Less than this in memory is the host's own coming and going."""


def _errors(row: Row) -> str:
    """Return failed requests of the device, and fio's error; fio's alone where nobody counts."""
    failed, code = number(row, "io_errors"), number(row, "error")
    if math.isnan(code) or (code == 0 and not math.isnan(failed)):
        return shown(row, "io_errors", "{:.0f}".format)
    by_fio = f"fio {errno.errorcode.get(int(code), int(code)) if code else 0}"
    return by_fio if math.isnan(failed) else f"{failed:.0f}, {by_fio}"


def _bound(row: Row) -> str:
    """Return what binds a Run, and where."""
    word, level = text(row, "bottleneck", missing=MISSING), number(row, "bottleneck_level")
    if math.isnan(level) or not word.endswith("-limit"):
        return word
    return f"{word} {format_rate(level) if word == 'bandwidth-limit' else format_count(level)}"


_COLUMNS = (
    UseColumn(
        "IOPS",
        "Utilization: I/Os that the device completed, with the share of the declared limit",
        lambda row: _rate(row, "iops", "iops_percent", format_count),
    ),
    UseColumn(
        "bandwidth",
        "Utilization: bytes that the device moved, with the share of the declared limit",
        lambda row: _rate(row, "bw_bytes_per_s", "bw_percent", format_rate),
    ),
    UseColumn(
        "active",
        "Utilization: share of the time with a request in flight",
        lambda row: shown(row, "active_percent", _percent),
    ),
    UseColumn("latency", "Mean time of a request in queue and device", _latency),
    UseColumn(
        "queue",
        "Saturation: mean number of requests in queue and device",
        lambda row: shown(row, "queue_depth", "{:.3g}".format),
    ),
    UseColumn(
        "iowait",
        "Saturation: CPU time that was idle while I/O was pending",
        lambda row: shown(row, "iowait_percent", _percent),
    ),
    UseColumn(
        "pressure",
        "Saturation: time in which some task waited for I/O",
        lambda row: shown(row, "io_pressure_some_percent", _percent),
    ),
    UseColumn(
        "dirty",
        "Saturation: growth of dirty pages while fio ran",
        lambda row: shown(row, "dirty_growth_bytes", _amount),
    ),
    UseColumn(
        "tail",
        "Saturation: how long the device wrote after fio had ended",
        _tail,
    ),
    UseColumn(
        "reached",
        "Bytes that the device moved until fio ended, of the bytes that fio counted",
        lambda row: shown(row, "device_share_percent", _percent),
    ),
    UseColumn("errors", "Errors: failed requests of the device, and fio's error", _errors),
    UseColumn("bound by", "What binds the Run", _bound),
)
