"""Table of the processes of watched hosts: their bytes over the whole watch, the busiest first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from volbench.present.formatting import Row, records, shown, text
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import format_capacity

if TYPE_CHECKING:
    import pandas as pd

NOTES = (
    "Bytes that each process caused at the block layer, on all disks of its host.",
    "A write through the page cache counts when the process makes the page dirty.",
)
_ABSENT = (
    "No I/O of any process was recorded.",
    "volbench watch records it as root, or with sudo: yes in the inventory.",
)
_KEYS = ["campaign", "host", "process"]
_BYTES = ["read_bytes", "write_bytes", "cancelled_write_bytes"]


def processes_table(frame: pd.DataFrame) -> Table[Row]:
    """Return a row for each name of a process in the frame `processes`."""
    if frame.empty:
        return Table("processes", [Column("process", priority=IDENTITY)], [], notes=_ABSENT)
    unnamed = "pid " + frame["pid"].astype("string")
    named = frame.assign(process=frame["process"].fillna(unnamed))
    at_once = named.groupby([*_KEYS, "run", "t_s", "interval_s"], dropna=False)
    each = at_once[_BYTES].sum().reset_index()
    each["peak_bytes_per_s"] = (each["read_bytes"] + each["write_bytes"]) / each["interval_s"]
    whole = each.groupby(_KEYS, dropna=False)
    totals = whole[[*_BYTES, "interval_s"]].sum().rename(columns={"interval_s": "active_s"})
    totals["peak_bytes_per_s"] = whole["peak_bytes_per_s"].max()
    totals["pids"] = named.groupby(_KEYS, dropna=False)["pid"].nunique()
    order = (totals["read_bytes"] + totals["write_bytes"]).sort_values(ascending=False).index
    rows = records(totals.loc[order].reset_index())
    several = [key for key in ("campaign", "host") if len({row[key] for row in rows}) > 1]
    columns: list[Column[Row]] = [
        *(Column(key, priority=IDENTITY) for key in several),
        Column("process", lambda row: text(row, "process"), priority=IDENTITY),
        _capacity("read_bytes", "read", priority=1),
        _capacity("write_bytes", "written", priority=1),
        _capacity("cancelled_write_bytes", "cancelled", priority=5),
        quantity("peak_bytes_per_s", "peak", priority=3),
        quantity("active_s", "active", priority=4),
        Column("pids", priority=6, is_right=True),
    ]
    return Table("processes", columns, rows, notes=NOTES)


def _capacity(name: str, header: str, *, priority: int) -> Column[Row]:
    show = partial(shown, column=name, format_value=format_capacity)
    return quantity(name, header, priority=priority, show=show)
