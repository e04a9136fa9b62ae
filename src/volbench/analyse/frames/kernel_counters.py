"""Kernel counters beside a run: samples read from their log, and the rates between two of them.

A log of samples is lines copied from /proc: ``T <UTC> <uptime>`` opens a sample, ``.`` closes it, a
sample that was cut off counts for nothing. Lines with ``!`` are volbench's own marks. Meanings of
the fields: Documentation/admin-guide/iostats.rst and proc.rst, accounting/psi.rst of Linux.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from volbench.units import SECTOR_BYTES

# Mark: the measured process was started; samples before it show the host at rest
STARTED = "started"
ENDED = "ended"  # Mark: the measured process had ended; samples after it show the write-back tail

_DISK_FIELDS = 14
_ERROR_FIELDS = 3
_MAX_COUNT_DIGITS = 18
MAX_TIME_S = 253_402_300_800.0  # Year 10000, beyond which no date can be written
_EBS_FIELDS = 7


_PERCENTILES = {"p50": 50, "p99": 99}  # In columns for the latencies that an EBS volume counts
# Columns of the device frame for the load of the other disks of the machine
OTHERS = ("other_disks_iops", "other_disks_bw_bytes_per_s")
# Columns of the device frame for the first four counters of an EBS volume, in their order
EXCEEDED = (
    "volume_iops_exceeded_percent",
    "volume_bw_exceeded_percent",
    "instance_iops_exceeded_percent",
    "instance_bw_exceeded_percent",
)
# Kinds of CPU time that add up to all of it: time of guests is in user and nice already
_USER_TO_STEAL = 8
_IDLE, _IOWAIT, _STEAL = 3, 4, 7
_TICKS_WRAP = 2**32  # Tick counts of a device are 32 bits wide and start over after 49 days


@dataclass(frozen=True)
class Disk:
    """Counters of one block device since it appeared; ticks are milliseconds."""

    reads: int
    read_sectors: int
    read_ticks: int
    writes: int
    write_sectors: int
    write_ticks: int
    busy_ticks: int  # time with a request in flight
    queue_ticks: int  # time of every request in flight, added up
    read_merges: int = 0  # requests that the kernel joined to others before it issued them
    write_merges: int = 0


@dataclass
class Sample:
    """One sample of the counters."""

    utc_s: float  # seconds since the epoch, by the host's clock
    uptime_s: float  # seconds since boot, by the monotonic clock
    disks: dict[str, Disk] = field(default_factory=dict)  # counters by kernel name
    # ticks by kind: user, nice, system, idle, iowait, irq, softirq, steal
    cpu: tuple[int, ...] = ()
    memory: dict[str, int] = field(default_factory=dict)  # bytes by the name in /proc/meminfo
    swapped_pages: int | None = None  # in and out since boot; None when unknown
    # microseconds of I/O pressure, by ``some`` and ``full``, and of CPU pressure as ``cpu-some``
    pressure_us: dict[str, int] = field(default_factory=dict)
    # nanoseconds that the tool's tasks ran and waited for a CPU; None when unknown
    tool_ns: tuple[int, int] | None = None
    io_errors: dict[str, int] = field(default_factory=dict)  # failed requests by kernel name
    # microseconds above the limits of an EBS volume and of the instance, by kernel name
    exceeded_us: dict[str, tuple[int, ...]] = field(default_factory=dict)
    # reads and writes, and their sectors, of the other disks of the machine; None when unknown
    others: tuple[int, int] | None = None
    # I/Os by the upper end of their latency in microseconds, by kernel name and direction
    latencies: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)
    # for each CPU limit of the sampler's cgroup and its parents: enforcement periods, those in
    # which it throttled, and microseconds throttled, of all CPUs together
    throttling: list[tuple[int, int, int]] = field(default_factory=list)
    after_start: bool = False  # whether the measured process had been started
    after_end: bool = False  # whether it had ended

    @property
    def unwritten_bytes(self) -> float:
        """Return bytes that are in memory only; NaN if the host does not report them."""
        if not {"Dirty", "Writeback"} <= self.memory.keys():
            return math.nan
        return float(self.memory["Dirty"] + self.memory["Writeback"])


class SampleReader:
    """Reads a log of samples as it grows."""

    def __init__(self) -> None:
        self.page_bytes = 4096  # size of a page of the host's memory
        self.marks: list[str] = []  # volbench's own lines, in order
        self._open: Sample | None = None
        self._rest = ""

    def feed(self, text: str) -> list[Sample]:
        """Return the samples that this text completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        return self.feed_lines(lines)

    def feed_lines(self, lines: Iterable[str]) -> list[Sample]:
        """Return the samples that these lines complete."""
        whole = []
        for line in lines:
            fields = line.split()
            if not fields:
                continue
            if fields == ["."]:
                whole += [] if self._open is None else [self._open]
                self._open = None
            elif fields[0] == "!":
                self.marks.append(" ".join(fields[1:]))
            elif fields[0] == "volbench-samples":
                self.page_bytes = _page_bytes(fields)
            elif fields[0] == "T":
                self._open = self._begin_of(fields)
            elif self._open is not None:
                _take_counters(self._open, fields)
        return whole

    def _begin_of(self, fields: list[str]) -> Sample | None:
        try:
            utc_s, uptime_s = float(fields[1]), float(fields[2])
        except (IndexError, ValueError):
            return None  # cut off in its first line
        if not (0 <= utc_s < MAX_TIME_S and 0 <= uptime_s < MAX_TIME_S):
            return None
        kinds = {mark.partition(" ")[0] for mark in self.marks}
        return Sample(utc_s, uptime_s, after_start=STARTED in kinds, after_end=ENDED in kinds)


def _page_bytes(fields: list[str]) -> int:
    size = dict(zip(fields[2::2], fields[3::2], strict=False)).get("page", "")
    return int(size) if is_count(size) else 4096


def is_count(word: str) -> bool:
    """Return whether a word is a counter of the kernel; longer numbers fit in no table."""
    return word.isdecimal() and len(word) <= _MAX_COUNT_DIGITS


def _take_counters(sample: Sample, fields: list[str]) -> None:
    """Add one line of the kernel to a sample; a line that is not of interest changes nothing."""
    if len(fields) >= _DISK_FIELDS and fields[0].isdecimal():
        _take_disk(sample, fields)
        return
    name, numbers = fields[0].rstrip(":"), [word for word in fields[1:] if is_count(word)]
    if name == "cpu":
        sample.cpu = tuple(int(number) for number in numbers)
    elif name in {"Dirty", "Writeback"} and numbers:
        sample.memory[name] = int(numbers[0]) * 1024
    elif name in {"pswpin", "pswpout"} and numbers:
        sample.swapped_pages = (sample.swapped_pages or 0) + int(numbers[0])
    elif name in {"some", "full", "cpu-some"} and is_count(
        total := dict(word.split("=", 1) for word in fields if "=" in word).get("total", "")
    ):
        sample.pressure_us[name] = int(total)
    else:
        _take_own(sample, name, fields, [int(number) for number in numbers])


def _take_own(sample: Sample, name: str, fields: list[str], counts: list[int]) -> None:
    match name, len(counts):
        case "wait", 3:
            sample.tool_ns = counts[1], counts[2]
        case "throttle", 3:
            sample.throttling.append((counts[0], counts[1], counts[2]))
        case "others", 2:
            sample.others = counts[0], counts[1]
        case "ebs", 5 if len(fields) == _EBS_FIELDS:
            sample.exceeded_us[fields[1]] = tuple(counts[: len(EXCEEDED)])
        case "ebs-read" | "ebs-write", 0 if len(fields) > 1:
            pairs = [word.partition(":")[::2] for word in fields[2:]]
            if all(is_count(word) for pair in pairs for word in pair):
                bins = {int(upper): int(ios) for upper, ios in pairs}
                sample.latencies[fields[1], name.removeprefix("ebs-")] = bins
        case "ioerr", _ if len(fields) == _ERROR_FIELDS:
            _take_errors(sample, fields)


def _take_disk(sample: Sample, fields: list[str]) -> None:
    counts = [int(word) for word in fields[3:_DISK_FIELDS] if is_count(word)]
    if len(counts) == _DISK_FIELDS - 3:
        # What is in flight (field 9) is not used.
        name = fields[2].replace("/", "!")
        sample.disks[name] = Disk(
            *(counts[0], counts[2], counts[3]),
            *(counts[4], counts[6], counts[7]),
            *(counts[9], counts[10], counts[1], counts[5]),
        )


def _take_errors(sample: Sample, fields: list[str]) -> None:
    try:
        errors = int(fields[2][:_MAX_COUNT_DIGITS], 0)
    except ValueError:
        return  # not a number: the driver does not count errors
    if errors >= 0:
        sample.io_errors[fields[1]] = errors


def disk_rates(before: Disk, now: Disk, *, interval_s: float) -> dict[str, float] | None:
    """Return rates, latencies, sizes and use of a device between two samples.

    Args:
        interval_s: time between them, above 0.

    Returns:
        Columns of the device frame, or None when the counters were reset in between.
    """
    grown = [
        _grown(getattr(before, name), getattr(now, name), wraps=name.endswith("_ticks"))
        for name in Disk.__dataclass_fields__
    ]
    whole = [value for value in grown if value is not None]
    if len(whole) < len(grown):
        return None
    reads, read_sectors, read_ticks, writes, write_sectors, write_ticks = whole[:6]
    busy, queue, read_merges, write_merges = whole[6:]
    return {
        "read_iops": reads / interval_s,
        "write_iops": writes / interval_s,
        "read_bw_bytes_per_s": read_sectors * SECTOR_BYTES / interval_s,
        "write_bw_bytes_per_s": write_sectors * SECTOR_BYTES / interval_s,
        "read_lat_s": _each(read_ticks / 1000, reads),
        "write_lat_s": _each(write_ticks / 1000, writes),
        "read_request_bytes": _each(read_sectors * SECTOR_BYTES, reads),
        "write_request_bytes": _each(write_sectors * SECTOR_BYTES, writes),
        "read_merges_per_s": read_merges / interval_s,
        "write_merges_per_s": write_merges / interval_s,
        "queue_depth": queue / 1000 / interval_s,
        "active_percent": min(100.0, busy / 10 / interval_s),
    }


def exceeded_shares(
    before: Sample, now: Sample, device: str, *, interval_s: float
) -> dict[str, float]:
    """Return the time above each limit of an EBS volume, in percent; empty if not reported."""
    pairs = zip(before.exceeded_us.get(device, ()), now.exceeded_us.get(device, ()), strict=False)
    shares = (min(100.0, _since(*pair) / 1e4 / interval_s) for pair in pairs)
    return dict(zip(EXCEEDED, shares, strict=False))


def device_latencies(before: Sample, now: Sample, device: str) -> dict[str, float]:
    """Return percentiles of the latencies that an EBS volume itself counts; none without I/O.

    They are upper ends of its bins, in seconds; empty where a counter was reset.
    """
    found = {}
    for direction in ("read", "write"):
        earlier = before.latencies.get((device, direction))
        later = now.latencies.get((device, direction))
        if earlier is None or later is None:
            continue
        grown = {upper: ios - earlier.get(upper, 0) for upper, ios in sorted(later.items())}
        total = sum(grown.values())
        if not total or min(grown.values()) < 0 or earlier.keys() - later.keys():
            continue
        for name, percent in _PERCENTILES.items():
            reached = zip(grown, accumulate(grown.values()), strict=True)
            upper = next(upper for upper, ios in reached if 100 * ios >= percent * total)
            found[f"ebs_{direction}_{name}_s"] = upper / 1e6
    return found


def host_rates(
    before: Sample, now: Sample, *, interval_s: float, page_bytes: int
) -> dict[str, float]:
    """Return CPU, memory and pressure of the host between two samples, NaN for unknown."""
    return {
        **_cpu_shares(before.cpu, now.cpu),
        "dirty_bytes": float(now.memory.get("Dirty", math.nan)),
        "writeback_bytes": float(now.memory.get("Writeback", math.nan)),
        "io_pressure_some_percent": _pressure(before, now, "some", interval_s),
        "io_pressure_full_percent": _pressure(before, now, "full", interval_s),
        "cpu_pressure_percent": _pressure(before, now, "cpu-some", interval_s),
        **_tool_shares(before.tool_ns, now.tool_ns, interval_s),
        **_throttling(before, now),
        "swap_bytes_per_s": _since(before.swapped_pages, now.swapped_pages)
        * page_bytes
        / interval_s,
        **_others(before.others, now.others, interval_s),
    }


def _others(
    before: tuple[int, int] | None, now: tuple[int, int] | None, interval_s: float
) -> dict[str, float]:
    """Return the load of the machine's other disks; NaN if a counter was reset."""
    if before is None or now is None:
        return dict.fromkeys(OTHERS, math.nan)
    ios, sectors = (_since(*pair) / interval_s for pair in zip(before, now, strict=True))
    return dict(zip(OTHERS, (ios, sectors * SECTOR_BYTES), strict=True))


def _grown(before: int, now: int, *, wraps: bool) -> int | None:
    if now >= before:
        return now - before
    if wraps and before < _TICKS_WRAP and before - now > _TICKS_WRAP // 2:
        return now - before + _TICKS_WRAP
    return None


def _each(total: float, count: int) -> float:
    return total / count if count else math.nan


def _since(before: int | None, now: int | None) -> float:
    return math.nan if before is None or now is None or now < before else float(now - before)


def _pressure(before: Sample, now: Sample, kind: str, interval_s: float) -> float:
    stalled_us = _since(before.pressure_us.get(kind), now.pressure_us.get(kind))
    return min(100.0, stalled_us / 1e4 / interval_s) if stalled_us >= 0 else math.nan


def _tool_shares(
    before: tuple[int, int] | None, now: tuple[int, int] | None, interval_s: float
) -> dict[str, float]:
    """Return percents of the interval; NaN when a task ended in it."""
    names = ("tool_cpu_percent", "tool_wait_percent")
    if before is None or now is None:
        return dict.fromkeys(names, math.nan)
    shares = (_since(*pair) / 1e7 / interval_s for pair in zip(before, now, strict=True))
    return dict(zip(names, shares, strict=True))


def _throttling(before: Sample, now: Sample) -> dict[str, float]:
    """Return how the CPU limit that throttled most did so; NaN without a limit.

    A period without a running task is not counted by the kernel (sched-bwc.rst).
    """
    shares = []
    for earlier, later in zip(before.throttling, now.throttling, strict=False):
        periods, throttled, us = (_since(*pair) for pair in zip(earlier, later, strict=True))
        if not math.isnan(periods + throttled + us):
            share = min(100.0, 100 * throttled / periods) if periods else 0.0
            shares.append((share, us / 1e6))
    percent, seconds = max(shares, default=(math.nan, math.nan))
    return {"cpu_throttled_percent": percent, "cpu_throttled_s": seconds}


def _cpu_shares(before: tuple[int, ...], now: tuple[int, ...]) -> dict[str, float]:
    """Return percents of all CPU time; idle and iowait may run backwards a little (proc.rst)."""
    names = ("cpu_busy_percent", "iowait_percent", "steal_percent")
    if len(before) < _USER_TO_STEAL or len(now) < _USER_TO_STEAL:
        return dict.fromkeys(names, math.nan)
    pairs = zip(before[:_USER_TO_STEAL], now[:_USER_TO_STEAL], strict=True)
    spent = [max(0, later - earlier) for earlier, later in pairs]
    total = sum(spent)
    busy = total - spent[_IDLE] - spent[_IOWAIT]
    values = (busy, spent[_IOWAIT], spent[_STEAL])
    return {name: _each(100.0 * value, total) for name, value in zip(names, values, strict=True)}
