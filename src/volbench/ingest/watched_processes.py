"""Processes of a watched host: bytes that each caused at the block layer, interval by interval.

The log of a host is in the folder of the run of its first disk. In a long watch neighbouring
intervals are joined: all bytes of the busiest processes stay.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from volbench.analyse.frames.kernel_counters import MAX_TIME_S, is_count
from volbench.execute.agent.observation.process_io import TOP
from volbench.model.frames.columns import Row
from volbench.store.journal import utc_at
from volbench.store.layout import RunFolder
from volbench.store.log_files import log_path, open_log

# Intervals of a run that are kept, an even number: 50,000 rows in the frame. Noticed by:
# tests/extensions/watching/test_processes.py::test_intervals_of_a_long_watch_are_joined
MAX_INTERVALS = 5_000
_HEAD_FIELDS, _FIELDS, _COUNTS = 4, 5, 4
_MAX_NAME = 64  # The kernel's own limit is 15 bytes

Counts = tuple[int, int, int]  # bytes read, written, and cancelled before write-back


class Process(NamedTuple):
    """A process in an interval; its name is empty if unknown."""

    pid: int
    name: str


@dataclass(frozen=True)
class Interval:
    """The processes with the most bytes in an interval."""

    utc_s: float  # its end, by the host's clock
    interval_s: float
    counts: dict[Process, Counts] = field(default_factory=dict)


def parse_intervals(lines: Iterable[str]) -> Iterator[Interval]:
    """Yield whole intervals; see `volbench.execute.agent.observation.process_io` for the lines."""
    interval = None
    for line in lines:
        fields = line.split()
        if fields[:1] == ["P"]:
            interval = _empty_interval(fields)
        elif interval is None:
            continue
        elif fields == ["."]:
            yield interval
            interval = None
        elif len(fields) == _FIELDS and all(map(is_count, fields[:_COUNTS])):
            pid, read, written, cancelled = map(int, fields[:_COUNTS])
            name = "" if fields[_COUNTS] == "-" else " ".join(unquote(fields[_COUNTS]).split())
            if len(interval.counts) < TOP:
                interval.counts[Process(pid, name[:_MAX_NAME])] = read, written, cancelled


def _empty_interval(fields: list[str]) -> Interval | None:
    try:
        utc_s, interval_s = float(fields[1]), float(fields[2])
    except (IndexError, ValueError):
        return None  # cut off
    is_whole = len(fields) == _HEAD_FIELDS and 0 <= utc_s < MAX_TIME_S
    return Interval(utc_s, interval_s) if is_whole and 0 < interval_s < MAX_TIME_S else None


def read_intervals(folder: RunFolder, *, max_bytes: int) -> list[Interval]:
    """Return the intervals in the log of a run, at most `MAX_INTERVALS`; empty without a log."""
    path = log_path(folder.processes)
    if path is None:
        return []
    kept: list[Interval] = []
    stride = 1
    with open_log(path, max_bytes=max_bytes) as stream:
        lines = (line.decode("utf-8", errors="replace") for line in stream)
        for count, interval in enumerate(parse_intervals(lines)):
            if count == MAX_INTERVALS * stride:
                kept = [_interval_of(*pair) for pair in zip(kept[::2], kept[1::2], strict=True)]
                stride *= 2
            if count % stride:
                kept[-1] = _interval_of(kept[-1], interval)
            else:
                kept.append(interval)
    return kept


def _interval_of(first: Interval, second: Interval) -> Interval:
    counts = dict(first.counts)
    for process, (read, written, cancelled) in second.counts.items():
        known = counts.get(process, (0, 0, 0))
        counts[process] = known[0] + read, known[1] + written, known[2] + cancelled
    busiest = heapq.nlargest(TOP, counts.items(), key=lambda each: each[1][0] + each[1][1])
    return Interval(second.utc_s, first.interval_s + second.interval_s, dict(busiest))


def process_rows(intervals: Iterable[Interval], *, begun_utc_s: float) -> Iterator[Row]:
    """Yield a row for each process in each interval, without the identity of the run."""
    for interval in intervals:
        for process, (read, written, cancelled) in interval.counts.items():
            yield {
                "t_s": interval.utc_s - begun_utc_s,
                "utc": utc_at(interval.utc_s),
                "interval_s": interval.interval_s,
                "pid": process.pid,
                "process": process.name or None,
                "read_bytes": read,
                "write_bytes": written,
                "cancelled_write_bytes": cancelled,
            }
