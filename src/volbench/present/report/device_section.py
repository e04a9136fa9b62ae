"""Device section of the report: the USE table, and the evidence for each run's bottleneck."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.bottleneck.use_method import use_rows
from volbench.present.formatting import Row, number, records, text
from volbench.present.report.data_tables import Cell, DataTable, Heading, Source
from volbench.present.tables.table import Column
from volbench.present.tables.use_table import run_names, use_columns

KIND = "device"  # Kind of the chart beside the table

# Heading to the columns whose sum it is sorted by; the others are sorted as texts
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


@dataclass(frozen=True)
class DeviceSection:
    """The table, and the evidence by run; there is no such section without rows."""

    table: DataTable
    explanations: Sequence[tuple[str, str]]


def device_section(frames: Mapping[str, pd.DataFrame]) -> DeviceSection:
    """Return the USE table of a campaign.

    Args:
        frames: frame name to frame; without ``device`` the table is empty.
    """
    if frames.get(KIND, pd.DataFrame()).empty:
        return DeviceSection(DataTable("use", "", (), ()), ())
    use = frames.get("use")
    if use is None:
        use = use_rows(frames["summary"], frames[KIND], frames.get("verdicts"))
    rows = records(use)
    columns, names = use_columns(rows), run_names(rows)
    table = DataTable(
        name="use",
        caption="A row for each run with samples of the device. Shares in brackets are of the"
        " declared limit. Point at a heading for its meaning.",
        headings=(
            Heading("Job"),
            *(Heading(own.heading, own.meaning, numeric=own.heading in _ORDER) for own in columns),
        ),
        rows=tuple(
            (
                Cell(name, title=text(row, "run"), value=name),
                *(_cell(row, column) for column in columns),
            )
            for name, row in zip(names, rows, strict=True)
        ),
        sources=tuple(Source((text(row, "run"),)) for row in rows),
    )
    explained = [(name, text(row, "explanation")) for name, row in zip(names, rows, strict=True)]
    return DeviceSection(table, [pair for pair in explained if pair[1]])


def _cell(row: Row, column: Column[Row]) -> Cell:
    """Return a cell for people that is sorted by the numbers behind it."""
    shown = column.cell(row)
    if column.heading not in _ORDER:
        return Cell(shown, value=shown)
    values = [number(row, name) for name in _ORDER[column.heading]]
    known = [value for value in values if not math.isnan(value)]
    return Cell(shown, value=repr(math.fsum(known)) if known else "")
