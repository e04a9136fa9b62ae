"""Two samples of the kernel's counters in, what happened between them out, as rates and means."""

from __future__ import annotations

import math

from volbench.analyse.device.kernel_counters import Disk, Sample

SECTOR_BYTES = 512
"""Unit of the sector counts, whatever the device's own is."""

_USER_TO_STEAL = 8
"""Kinds of CPU time that add up to all of it: time of guests is in user and nice already."""
_IDLE, _IOWAIT, _STEAL = 3, 4, 7
_WRAP = 2**32
"""Tick counts of a device are 32 bits wide and start over after 49 days."""


def disk_rates(before: Disk, now: Disk, *, interval_s: float) -> dict[str, float] | None:
    """Return rates, latencies, sizes and use of a device between two samples.

    Args:
        before: the earlier counters.
        now: the later ones.
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
    reads, read_sectors, read_ticks, writes, write_sectors, write_ticks, busy, queue = whole
    return {
        "read_iops": reads / interval_s,
        "write_iops": writes / interval_s,
        "read_bw_bytes_per_s": read_sectors * SECTOR_BYTES / interval_s,
        "write_bw_bytes_per_s": write_sectors * SECTOR_BYTES / interval_s,
        "read_lat_s": _each(read_ticks / 1000, reads),
        "write_lat_s": _each(write_ticks / 1000, writes),
        "read_request_bytes": _each(read_sectors * SECTOR_BYTES, reads),
        "write_request_bytes": _each(write_sectors * SECTOR_BYTES, writes),
        "queue_depth": queue / 1000 / interval_s,
        "active_percent": min(100.0, busy / 10 / interval_s),
    }


def host_rates(
    before: Sample, now: Sample, *, interval_s: float, page_bytes: int
) -> dict[str, float]:
    """Return what the host's CPU, memory and pressure were between two samples, NaN for unknown."""
    return {
        **_cpu_shares(before.cpu, now.cpu),
        "dirty_bytes": float(now.memory.get("Dirty", math.nan)),
        "writeback_bytes": float(now.memory.get("Writeback", math.nan)),
        "io_pressure_some_percent": _pressure(before, now, "some", interval_s),
        "io_pressure_full_percent": _pressure(before, now, "full", interval_s),
        "swap_bytes_per_s": _since(before.swapped_pages, now.swapped_pages)
        * page_bytes
        / interval_s,
    }


def _grown(before: int, now: int, *, wraps: bool) -> int | None:
    """Return how far a counter went; None when it was reset."""
    if now >= before:
        return now - before
    if wraps and before < _WRAP and before - now > _WRAP // 2:
        return now - before + _WRAP
    return None


def _each(total: float, count: int) -> float:
    return total / count if count else math.nan


def _since(before: int | None, now: int | None) -> float:
    return math.nan if before is None or now is None or now < before else float(now - before)


def _pressure(before: Sample, now: Sample, kind: str, interval_s: float) -> float:
    stalled_us = _since(before.pressure_us.get(kind), now.pressure_us.get(kind))
    return min(100.0, stalled_us / 1e4 / interval_s) if stalled_us >= 0 else math.nan


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
