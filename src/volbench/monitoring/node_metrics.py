"""The node exporter's metrics: their names, and their values in the device frame and in samples.

Names and units are those of its collectors diskstats, cpu, meminfo and pressure; fio's own view is
called ``volbench_*``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volbench.analyse.frames.kernel_counters import Disk, Sample
from volbench.units import SECTOR_BYTES

if TYPE_CHECKING:
    import pandas as pd

    Amount = Callable[[pd.DataFrame], pd.Series[float]]

JOB = "volbench"  # The label ``job``: where a scrape would have the name of its configuration

# Unit of the CPU times in /proc/stat (USER_HZ), the same on all architectures of Linux today
_TICKS_PER_S = 100
_USER_TO_STEAL = 8
_IDLE, _IOWAIT, _STEAL = 3, 4, 7


@dataclass(frozen=True)
class Family:
    """A metric: its name without ``_total``, its type, its unit (a suffix of it) and meaning."""

    name: str
    kind: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Reading:
    """A sample of a host, and what is needed to read its counters."""

    sample: Sample  # the counters
    disk: Disk | None = None  # of the device in question; None for metrics of the whole host
    device: str = ""  # kernel name of that device
    cpus: int = 1  # CPUs of the host
    page_bytes: int = 4096  # size of a page of the host's memory


Total = Callable[[Reading], float]


@dataclass(frozen=True)
class Counter:
    """Counter: the increment of a row of the device frame, and the value since boot."""

    family: Family  # its name and meaning
    amount: Amount  # of each row of the frame
    total: Total  # of a sample; NaN if the host does not report it
    more: Mapping[str, str]  # its own labels


def _counter(name: str, meaning: str, amount: Amount, total: Total, **more: str) -> Counter:
    """Return a counter; its unit is the last word of its name where that is one."""
    unit = name.rpartition("_")[2]
    known = unit if unit in {"seconds", "bytes"} else ""
    return Counter(Family(name, "counter", known, meaning), amount, total, more)


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


def _disk_count(name: str, *, scale: float = 1.0) -> Total:
    """Return a count of the kernel for a device, in the unit of its metric."""
    return lambda reading: float(getattr(reading.disk, name)) * scale


def _error_count(reading: Reading) -> float:
    return float(reading.sample.io_errors.get(reading.device, math.nan))


def _cpu_time(kind: str) -> Total:
    """Return seconds of a mode since boot, as if the host had one CPU."""

    def total(reading: Reading) -> float:
        ticks = reading.sample.cpu[:_USER_TO_STEAL]
        if len(ticks) < _USER_TO_STEAL:
            return math.nan
        apart = {"idle": ticks[_IDLE], "iowait": ticks[_IOWAIT], "steal": ticks[_STEAL]}
        spent = apart.get(kind, sum(ticks) - sum(apart.values()))
        return spent / _TICKS_PER_S / reading.cpus

    return total


def _pressure(kind: str) -> Total:
    return lambda reading: reading.sample.pressure_us.get(kind, math.nan) / 1e6


def _swapped_bytes(reading: Reading) -> float:
    pages = reading.sample.swapped_pages
    return math.nan if pages is None else float(pages * reading.page_bytes)


_MS = 0.001
ON_DEVICE = (
    _counter(
        "node_disk_reads_completed",
        "Reads completed.",
        _over_time("read_iops"),
        _disk_count("reads"),
    ),
    _counter(
        "node_disk_writes_completed",
        "Writes completed.",
        _over_time("write_iops"),
        _disk_count("writes"),
    ),
    _counter(
        "node_disk_read_bytes",
        "Bytes read.",
        _over_time("read_bw_bytes_per_s"),
        _disk_count("read_sectors", scale=SECTOR_BYTES),
    ),
    _counter(
        "node_disk_written_bytes",
        "Bytes written.",
        _over_time("write_bw_bytes_per_s"),
        _disk_count("write_sectors", scale=SECTOR_BYTES),
    ),
    _counter(
        "node_disk_read_time_seconds",
        "Time that reads took.",
        _time_of("read"),
        _disk_count("read_ticks", scale=_MS),
    ),
    _counter(
        "node_disk_write_time_seconds",
        "Time that writes took.",
        _time_of("write"),
        _disk_count("write_ticks", scale=_MS),
    ),
    _counter(
        "node_disk_io_time_seconds",
        "Time with a request in flight.",
        _over_time("active_percent", scale=0.01),
        _disk_count("busy_ticks", scale=_MS),
    ),
    _counter(
        "node_disk_io_time_weighted_seconds",
        "Time of all requests in flight, summed up.",
        _over_time("queue_depth"),
        _disk_count("queue_ticks", scale=_MS),
    ),
    _counter("volbench_disk_io_errors", "Requests that ended in an error.", _errors, _error_count),
)
_CPU = "CPU time by mode, as a share of all CPUs; busy is all but idle, iowait and steal."
ON_HOST = (
    *(
        _counter("node_cpu_seconds", _CPU, _cpu(mode), _cpu_time(mode), cpu="all", mode=mode)
        for mode in ("busy", "iowait", "steal", "idle")
    ),
    _counter(
        "node_pressure_io_waiting_seconds",
        "Time in which some task waited for I/O.",
        _over_time("io_pressure_some_percent", scale=0.01),
        _pressure("some"),
    ),
    _counter(
        "node_pressure_io_stalled_seconds",
        "Time in which all tasks waited for I/O.",
        _over_time("io_pressure_full_percent", scale=0.01),
        _pressure("full"),
    ),
    _counter(
        "volbench_swap_bytes",
        "Bytes swapped in and out.",
        _over_time("swap_bytes_per_s"),
        _swapped_bytes,
    ),
)
# Column of the frame, name in /proc/meminfo, and metric
MEMORY = (
    (
        "dirty_bytes",
        "Dirty",
        Family("node_memory_Dirty_bytes", "gauge", "bytes", "Memory that waits to be written."),
    ),
    (
        "writeback_bytes",
        "Writeback",
        Family("node_memory_Writeback_bytes", "gauge", "bytes", "Memory that is being written."),
    ),
)

IOPS = Family("volbench_iops", "gauge", "", "I/Os completed per second, as reported by fio.")
BANDWIDTH = Family(
    "volbench_bandwidth_bytes_per_second",
    "gauge",
    "bytes_per_second",
    "Bytes per second, as reported by fio.",
)
LATENCY = Family(
    "volbench_latency_seconds", "gauge", "seconds", "Total latency of I/Os, as reported by fio."
)
RUN = Family("volbench_run", "info", "", "Facts of a run, from its start to its end.")


def fit_label(name: str, taken: Container[str]) -> str:
    """Return the name of a label as Prometheus accepts it, and that is not taken yet."""
    fit = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while fit in taken:
        fit += "_"
    return fit
