"""Rows for tables, and what a pipe gets of them."""

from typing import Any

from volbench.model.frames.columns import SUMMARY
from volbench.present.formatting import Row
from volbench.present.tables.render_table import render_table
from volbench.present.tables.table import Table

ROW: dict[str, object] = (
    {"label": "test4", "repeat": 1, "phase": "measured", "io_errors": 0, "error": 0}
    | {"read_iops": 0.0, "write_iops": 1100.0, "iops_percent": 100.0, "bw_percent": 3.6}
    | {"read_bw_bytes_per_s": 0.0, "write_bw_bytes_per_s": 4.5e6, "active_percent": 99.96}
    | {"write_lat_s": 0.0145, "queue_depth": 15.98, "iowait_percent": 0.0, "tail_s": 38.0}
    | {"dirty_growth_bytes": 3.7e9, "device_share_percent": 38.2}
    | {"bottleneck": "iops-limit", "bottleneck_level": 1100.0}
)


def printed(table: Table[Any]) -> str:
    """Return what a pipe gets."""
    return render_table(table, "table")


def summary(**values: object) -> list[Row]:
    """Return one row with the columns of the contract."""
    row = {"run": "001-a-r1", "job": "a", "group": "a", "direction": "write", "rw": "write"}
    row["status"] = "finished"
    return [dict.fromkeys((column.name for column in SUMMARY), None) | row | values]
