"""The device in the report: summary, device and verdicts frames enter, the USE table leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.device.use_method import use_rows
from volbench.present.formatting import Row, number, records, text
from volbench.present.report.results import Cell, DataTable, Heading
from volbench.present.tables.table import Column
from volbench.present.tables.use_table import run_names, use_columns

KIND = "device"
"""The chart that stands beside the table."""


_ORDER: Mapping[str, tuple[str, ...]] = {
    "IOPS": ("read_iops", "write_iops"),
    "bandwidth": ("read_bw_bytes_per_s", "write_bw_bytes_per_s"),
    "active": ("active_percent",),
    "latency": ("read_lat_s", "write_lat_s"),
    "queue": ("queue_depth",),
    "iowait": ("iowait_percent",),
    "pressure": ("io_pressure_some_percent",),
    "dirty": ("dirty_growth_bytes",),
    "tail": ("tail_s",),
    "reached": ("device_share_percent",),
    "errors": ("io_errors",),
}
"""Columns whose sum a heading is sorted by; one that is not here holds words."""


@dataclass(frozen=True)
class UseSection:
    """The table, and what speaks for what binds each Run; without rows there is no such part."""

    table: DataTable
    explanations: Sequence[tuple[str, str]]


def use_section(frames: Mapping[str, pd.DataFrame]) -> UseSection:
    """Return the USE table of a campaign.

    Args:
        frames: frame name to frame; without ``device`` the table is empty.
    """
    if frames.get(KIND, pd.DataFrame()).empty:
        return UseSection(DataTable("use", "", (), ()), ())
    told = frames.get("use")
    if told is None:
        told = use_rows(frames["summary"], frames[KIND], frames.get("verdicts"))
    rows = records(told)
    columns, names = use_columns(rows), run_names(rows)
    table = DataTable(
        name="use",
        caption="A row for each Run that was watched. Shares in brackets are of the declared"
        " limit. Point at a heading for its meaning.",
        headings=(
            Heading("Job"),
            *(Heading(one.heading, one.meaning, numeric=one.heading in _ORDER) for one in columns),
        ),
        rows=tuple(
            (
                Cell(name, title=text(row, "run"), value=name),
                *(_cell(row, column) for column in columns),
            )
            for name, row in zip(names, rows, strict=True)
        ),
    )
    explained = [(name, text(row, "explanation")) for name, row in zip(names, rows, strict=True)]
    return UseSection(table, [pair for pair in explained if pair[1]])


def _cell(row: Row, column: Column[Row]) -> Cell:
    """Return a cell in words that is sorted by the numbers behind them."""
    shown = column.cell(row)
    if column.heading not in _ORDER:
        return Cell(shown, value=shown)
    told = [number(row, name) for name in _ORDER[column.heading]]
    known = [value for value in told if not math.isnan(value)]
    return Cell(shown, value=repr(math.fsum(known)) if known else "")
