"""fio's logs as one series: the logs of a section go in, a point for each interval comes out.

fio leaves gaps where nothing completed; here the grid from 0 to the end of the run is whole, with
rates of 0 and no latency. Clones are added up: rates are summed, mean latencies are weighted by the
clones' IOPS, histograms are summed before percentiles are taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from volbench.errors import OutputError
from volbench.fio.logclones import CloneSeries, Windows, collect
from volbench.fio.logpoints import points_of
from volbench.fio.logrows import HistogramRow, LogText, Row, read_histogram, read_rows
from volbench.model.result import Direction, SeriesPoint

__all__ = ["LogText", "parse_log_name", "read_series"]

_NAME = re.compile(
    r"(?:.*/)?[^/]*_(clat_hist|bw|iops|lat|clat|slat)\.([1-9]\d{0,8})\.log", re.ASCII
)
_EPOCH_MS = 10**11
"""Times beyond this are absolute: as a duration it would be three years."""
_TOLERANCE = 0.1
"""fio ends a run some milliseconds early: a last window this much short counts as whole."""
_MOST_WINDOWS = 10_000_000
_WRONG_HISTOGRAMS = ((3, 6), (3, 17))
"""Versions from and up to which histogram logs hold zeros or overflown counts (fio issue 974)."""


def parse_log_name(name: str) -> tuple[str, int] | None:
    """Return kind and clone of a name such as ``l_clat_hist.2.log``; None for any other file."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def read_series(
    texts: Sequence[LogText],
    *,
    interval_s: float,
    runtime_s: float | None,
    fio_version: tuple[int, int],
    epoch_start_s: float | None = None,
) -> tuple[SeriesPoint, ...]:
    """Return the series of a section, by direction and then by time.

    The series ends with the last whole interval that fio could report: versions before 3.37 lose
    the last one of bw and iops logs, which is no stall. Histogram logs of 3.6 to 3.16 are wrong
    and left out; those of other versions lack their last interval.

    Args:
        texts: the logs of all clones of the section.
        interval_s: fio's log_avg_msec and log_hist_msec; also the width of the points when the logs
            hold every I/O.
        runtime_s: how long I/O went on; None to end with the last row.
        fio_version: of the fio that wrote them.
        epoch_start_s: when I/O began, in seconds since the epoch, where that is known.

    Raises:
        OutputError: a log is damaged.
    """
    rows: dict[tuple[str, int], list[Row]] = {}
    bins: dict[int, list[HistogramRow]] = {}
    for log in texts:
        if log.kind == "clat_hist":
            if not _WRONG_HISTOGRAMS[0] <= fio_version < _WRONG_HISTOGRAMS[1]:
                bins[log.clone] = list(read_histogram(log, fio2=fio_version[0] < 3))
        else:
            rows[log.kind, log.clone] = list(read_rows(log))
    start_ms, epoch_s = _start(rows, bins, interval_s=interval_s, epoch_start_s=epoch_start_s)
    windows = Windows(interval_s=interval_s, start_ms=start_ms, fio_version=fio_version)
    clones = collect(rows, bins, windows)
    count = _whole_windows(clones, interval_s=interval_s, runtime_s=runtime_s)
    points: list[SeriesPoint] = []
    for direction in Direction:
        members = [clone for clone in clones if clone.direction is direction]
        points += points_of(members, interval_s=interval_s, count=count, epoch_s=epoch_s)
    return tuple(points)


def _start(
    rows: dict[tuple[str, int], list[Row]],
    bins: dict[int, list[HistogramRow]],
    *,
    interval_s: float,
    epoch_start_s: float | None,
) -> tuple[float, float | None]:
    """Return the time in the logs at which I/O began, and the same since the epoch if known.

    With absolute times and no known start, the first row's window tells it.
    """
    firsts = [(part[0].time_ms, part[0].block_bytes != 0) for part in rows.values() if part] + [
        (part[0].time_ms, False) for part in bins.values() if part
    ]
    absolute = bool(firsts) and min(firsts)[0] > _EPOCH_MS
    if not absolute:
        return 0.0, epoch_start_s
    if epoch_start_s is not None:
        return epoch_start_s * 1000, epoch_start_s
    start_ms = min(time if single else time - interval_s * 1000 for time, single in firsts)
    return start_ms, start_ms / 1000


def _whole_windows(
    clones: Sequence[CloneSeries], *, interval_s: float, runtime_s: float | None
) -> int:
    """Return how many whole windows a run has; a last one with single I/Os only began."""
    if runtime_s is not None:
        count = math.floor(runtime_s / interval_s + _TOLERANCE)
    else:
        count = max(
            (slot + (1 if clone.averaged else 0) for clone in clones for slot in clone.used()),
            default=0,
        )
    if count > _MOST_WINDOWS:
        raise OutputError(
            f"fio's logs span {count} intervals of {interval_s:g} s",
            hint="a time in them is wrong, or the interval is too short",
        )
    return count
