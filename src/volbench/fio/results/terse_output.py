"""Parser of lines of fio's terse output (``--minimal``), which has no options and no histograms.

Format: fio HOWTO, "Terse output", and `show_thread_status_terse_all` of stat.c in fio 2.1 to 3.36.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency, RunOutput

_DEPTH_CLASSES = (1, 2, 4, 8, 16, 32, 64)
_TRANSFERS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_LINE = re.compile(
    r"(?:[345];(?P<version>fio-[^;]+)|2);(?P<name>[^;]*);(\d{1,9});(\d{1,9});\d+;\d+;"
)
_ROUNDING_BYTES = 2 * 1024  # of two directions, which have whole KiB


def terse_output(line: str, *, number: int) -> RunOutput | None:
    """Return the result in a line of terse output; None for any other line."""
    match = _LINE.match(line)
    if match is None or not (match["version"] or "%=" in line):
        return None
    job = JobResult(match["name"], groupid=int(match[3]), error=int(match[4]), directions=())
    values = iter(line.strip().split(";")[5 if match["version"] else 4 :])
    try:
        job = _filled(job, values, is_v5=line.startswith("5"))
    except (StopIteration, ValueError, IndexError):
        job = replace(job, error=0, damage=f"line {number} of fio's terse output is not complete")
    return RunOutput(match["version"] or "", (job,), form="terse")


def _filled(job: JobResult, values: Iterator[str], *, is_v5: bool) -> JobResult:
    """Return a job with its numbers; versions 2 and 3 have no trims before the CPU time."""
    done = {}
    first = next(values)
    for direction in _TRANSFERS:
        if "%" not in first:
            done[direction] = _direction(direction, first, values, is_v5=is_v5)
            first = next(values)
    read, write, trim = (done[each].io_bytes if each in done else 0 for each in _TRANSFERS)
    if read and write and abs(trim - read - write) <= _ROUNDING_BYTES:
        done.pop(Direction.TRIM, None)  # the sum of unified_rw_reporting=both has their place
    rest = [first, *values]
    shares = [_number(share.rstrip("%")) for share in rest[5 : 5 + len(_DEPTH_CLASSES)]]
    return replace(
        job,
        directions=tuple(each for each in done.values() if each.io_bytes),
        cpu_usr=_number(rest[0].rstrip("%")),
        cpu_sys=_number(rest[1].rstrip("%")),
        depth_shares=dict(zip(_DEPTH_CLASSES, shares, strict=True)),
    )


def _direction(
    direction: Direction, kib: str, values: Iterator[str], *, is_v5: bool
) -> DirectionResult:
    """Return one direction; latencies are in microseconds, and in whole ones but for means."""
    bandwidth_kib, iops, runtime_ms = [_number(next(values)) for _ in range(3)]
    slat, clat = _latency(values), _latency(values)
    named = [next(values).split("%=") for _ in range(20)]
    percentiles = {float(name): int(value) / 1e6 for name, value in named if float(name)}
    lat = _latency(values)
    # of windows: five of bandwidth, and in version 5 their number and six of IOPS
    windows = [next(values) for _ in range(11 if is_v5 else 5)]
    return DirectionResult(
        direction=direction,
        io_bytes=int(kib) * 1024,
        total_ios=None,
        runtime_s=runtime_ms / 1000,
        iops=iops,
        bw_bytes_per_s=bandwidth_kib * 1024,
        iops_min=_number(windows[6]) if is_v5 else None,
        iops_max=_number(windows[7]) if is_v5 else None,
        iops_stddev=_number(windows[9]) if is_v5 else None,
        lat=lat,
        clat=replace(clat, percentiles=percentiles) if clat else None,
        slat=slat,
    )


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{text} is not a measurement")
    return value


def _latency(values: Iterator[str]) -> Latency | None:
    low, high, mean, spread = [_number(next(values)) / 1e6 for _ in range(4)]
    return Latency(None, low, high, mean, spread) if high or mean else None
