"""The node exporter's metrics: their names, and their values in the device frame and in samples.

Names and units are those of its collectors diskstats, cpu, meminfo and pressure; fio's own view is
called ``volbench_*``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
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
_CPU = "CPU time by mode, as a share of all CPUs; busy is all but idle, iowait and steal."
_PRESSURE = {
    ("waiting", "some"): "Time in which some task waited for I/O.",
    ("stalled", "full"): "Time in which all tasks waited for I/O.",
}


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


# Column of the frame, name in /proc/meminfo, and metric
MEMORY = tuple(
    (f"{name.lower()}_bytes", name, Family(f"node_memory_{name}_bytes", "gauge", "bytes", meaning))
    for name, meaning in (
        ("Dirty", "Memory that waits to be written."),
        ("Writeback", "Memory that is being written."),
    )
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


def _metric(name: str, meaning: str, amount: Amount, total: Total, **more: str) -> Counter:
    """Return a counter; its unit is the last word of its name where that is one."""
    unit = name.rpartition("_")[2]
    known = unit if unit in {"seconds", "bytes"} else ""
    return Counter(Family(name, "counter", known, meaning), amount, total, more)


def _rate(column: str, *, scale: float = 1.0) -> Amount:
    """Return what a rate comes to in the new part of each interval."""
    return lambda rows: rows[column].astype("float64") * rows["new_s"] * scale


def _share(name: str) -> Amount:
    return _rate(f"{name}_percent", scale=0.01)


def _time_of(kind: str) -> Amount:
    """Return seconds that requests took: their number and mean latency; none took none."""

    def amount(rows: pd.DataFrame) -> pd.Series[float]:
        each = rows[f"{kind}_lat_s"].where(rows[f"{kind}_iops"] > 0, 0.0)
        return rows[f"{kind}_iops"] * rows["new_s"] * each

    return amount


def _cpu(kind: str) -> Amount:
    """Return seconds of a mode, as if the host had one CPU: shares are of all of them."""

    def amount(rows: pd.DataFrame) -> pd.Series[float]:
        busy, wait, steal = (rows[f"{n}_percent"] for n in ("cpu_busy", "iowait", "steal"))
        idle = 100.0 - busy - wait
        shares = {"busy": busy - steal, "iowait": wait, "steal": steal, "idle": idle}
        return shares[kind].clip(lower=0) * rows["new_s"] / 100.0

    return amount


def _count(name: str, *, scale: float = 1.0) -> Total:
    """Return a count of the kernel for a device, in the unit of its metric."""
    return lambda reading: float(getattr(reading.disk, name)) * scale


_sectors = partial(_count, scale=SECTOR_BYTES)
_ticks = partial(_count, scale=0.001)  # of a millisecond


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


_DISK: tuple[tuple[str, str, Amount, Total], ...] = (
    ("reads_completed", "Reads completed.", _rate("read_iops"), _count("reads")),
    ("writes_completed", "Writes completed.", _rate("write_iops"), _count("writes")),
    ("read_bytes", "Bytes read.", _rate("read_bw_bytes_per_s"), _sectors("read_sectors")),
    ("written_bytes", "Bytes written.", _rate("write_bw_bytes_per_s"), _sectors("write_sectors")),
    ("read_time_seconds", "Time that reads took.", _time_of("read"), _ticks("read_ticks")),
    ("write_time_seconds", "Time that writes took.", _time_of("write"), _ticks("write_ticks")),
    ("io_time_seconds", "Time with a request in flight.", _share("active"), _ticks("busy_ticks")),
    (
        "io_time_weighted_seconds",
        "Time of all requests in flight, summed up.",
        _rate("queue_depth"),
        _ticks("queue_ticks"),
    ),
)
ON_DEVICE = (
    *(_metric(f"node_disk_{name}", what, amount, total) for name, what, amount, total in _DISK),
    _metric(
        "volbench_disk_io_errors",
        "Requests that ended in an error.",
        lambda rows: rows["io_errors"].astype("float64") * rows["new_s"] / rows["interval_s"],
        lambda reading: float(reading.sample.io_errors.get(reading.device, math.nan)),
    ),
)
ON_HOST = (
    *(
        _metric("node_cpu_seconds", _CPU, _cpu(mode), _cpu_time(mode), cpu="all", mode=mode)
        for mode in ("busy", "iowait", "steal", "idle")
    ),
    *(
        _metric(
            f"node_pressure_io_{name}_seconds",
            meaning,
            _share(f"io_pressure_{kind}"),
            _pressure(kind),
        )
        for (name, kind), meaning in _PRESSURE.items()
    ),
    _metric(
        "volbench_swap_bytes",
        "Bytes swapped in and out.",
        _rate("swap_bytes_per_s"),
        _swapped_bytes,
    ),
)


def fit_label(name: str, taken: Container[str]) -> str:
    """Return the name of a label as Prometheus accepts it, and that is not taken yet."""
    fit = re.sub(r"[^A-Za-z0-9_]", "_", name)
    while fit in taken:
        fit += "_"
    return fit
