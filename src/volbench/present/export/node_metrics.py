"""The node exporter's metrics, made of the device frame: names and what a row adds to each.

Names and units are those of its collectors diskstats, cpu, meminfo and pressure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

Amount = Callable[[pd.DataFrame], "pd.Series[float]"]


@dataclass(frozen=True)
class Family:
    """A metric: its name without ``_total``, its type, its unit (a suffix of it) and meaning."""

    name: str
    kind: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Counter:
    """A counter of the device frame: what a row adds to it."""

    family: Family
    amount: Amount
    more: Mapping[str, str]


def _counter(name: str, meaning: str, amount: Amount, **more: str) -> Counter:
    """Return a counter; its unit is the last word of its name where that is one."""
    unit = name.rpartition("_")[2]
    known = unit if unit in {"seconds", "bytes"} else ""
    return Counter(Family(name, "counter", known, meaning), amount, more)


def _over_time(column: str, *, scale: float = 1.0) -> Amount:
    """Return what a rate, or a percentage, comes to in the new part of each interval."""
    return lambda rows: rows[column].astype("float64") * rows["new_s"] * scale


def _time_of(kind: str) -> Amount:
    """Return seconds that requests took: their number and mean latency; none took none."""

    def amount(rows: pd.DataFrame) -> pd.Series[float]:
        each = rows[f"{kind}_lat_s"].where(rows[f"{kind}_iops"] > 0, 0.0)
        return rows[f"{kind}_iops"] * rows["new_s"] * each

    return amount


def _errors(rows: pd.DataFrame) -> pd.Series[float]:
    return rows["io_errors"].astype("float64") * rows["new_s"] / rows["interval_s"]


def _cpu(kind: str) -> Amount:
    """Return seconds of a mode, as if the host had one CPU: shares are of all of them."""

    def amount(rows: pd.DataFrame) -> pd.Series[float]:
        busy, wait, steal = (rows[f"{n}_percent"] for n in ("cpu_busy", "iowait", "steal"))
        idle = 100.0 - busy - wait
        shares = {"busy": busy - steal, "iowait": wait, "steal": steal, "idle": idle}
        return shares[kind].clip(lower=0) * rows["new_s"] / 100.0

    return amount


ON_DEVICE = (
    _counter("node_disk_reads_completed", "Reads completed.", _over_time("read_iops")),
    _counter("node_disk_writes_completed", "Writes completed.", _over_time("write_iops")),
    _counter("node_disk_read_bytes", "Bytes read.", _over_time("read_bw_bytes_per_s")),
    _counter("node_disk_written_bytes", "Bytes written.", _over_time("write_bw_bytes_per_s")),
    _counter("node_disk_read_time_seconds", "Time that reads took.", _time_of("read")),
    _counter("node_disk_write_time_seconds", "Time that writes took.", _time_of("write")),
    _counter(
        "node_disk_io_time_seconds",
        "Time with a request in flight.",
        _over_time("active_percent", scale=0.01),
    ),
    _counter(
        "node_disk_io_time_weighted_seconds",
        "Time of every request in flight, added up.",
        _over_time("queue_depth"),
    ),
    _counter("volbench_disk_io_errors", "Requests that ended in an error.", _errors),
)
_CPU = "CPU time by mode, as a share of all CPUs; busy is all but idle, iowait and steal."
ON_HOST = (
    *(
        _counter("node_cpu_seconds", _CPU, _cpu(mode), cpu="all", mode=mode)
        for mode in ("busy", "iowait", "steal", "idle")
    ),
    _counter(
        "node_pressure_io_waiting_seconds",
        "Time in which some task waited for I/O.",
        _over_time("io_pressure_some_percent", scale=0.01),
    ),
    _counter(
        "node_pressure_io_stalled_seconds",
        "Time in which all tasks waited for I/O.",
        _over_time("io_pressure_full_percent", scale=0.01),
    ),
    _counter("volbench_swap_bytes", "Swapped in and out.", _over_time("swap_bytes_per_s")),
)
MEMORY = (
    ("dirty_bytes", Family("node_memory_Dirty_bytes", "gauge", "bytes", "Waiting to be written.")),
    ("writeback_bytes", Family("node_memory_Writeback_bytes", "gauge", "bytes", "Being written.")),
)
