"""Rows of logs on a grid: rows by kind and clone go in, series by clone and direction come out.

Both kinds of log end in the same form: averaged rows, which fio writes when a window closes, and
rows of single I/Os, which are counted here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from volbench.fio.histogram import merge_bins
from volbench.fio.logrows import HistogramRow, Row
from volbench.model.result import Direction

_RATES = ("iops", "bw")
_ANY_IO = ("iops", "bw", "lat", "clat", "slat")
_LATENCIES = ("lat", "clat")
_OLD_WINDOW_S = 0.5
"""Before 2.21 the windows of bw and iops were never shorter than their default, bwavgtime=500."""


@dataclass(frozen=True)
class Windows:
    """The grid of a run: windows of one width from its start.

    Attributes:
        interval_s: the width.
        start_ms: the time in the logs at which I/O began.
        fio_version: of the fio that wrote them.
    """

    interval_s: float
    start_ms: float
    fio_version: tuple[int, int]

    def at(self, time_ms: float) -> float:
        """Return a time of the logs in windows since the start."""
        width_ms = round(self.interval_s * 1000, 6)
        return max(0.0, (time_ms - self.start_ms) / width_ms)

    @property
    def per_second(self) -> float:
        """Return how many of the logs' units of latency make a second."""
        return 1e6 if self.fio_version[0] < 3 else 1e9

    @property
    def rate_span(self) -> int:
        """Return how many windows one row of an averaged rate covers."""
        if self.fio_version >= (2, 21):
            return 1
        return max(1, round(_OLD_WINDOW_S / self.interval_s))


@dataclass
class CloneSeries:
    """What one clone did in one direction, by the number of the window.

    Attributes:
        averaged: whether fio averaged its rows, and so may have lost the last window.
        loses_edges: whether fio may have lost any window before the first and after the last row.
        iops: None where no log tells.
        bw: bytes per second; None where no log tells.
        lat_s: mean latency.
        samples_s: every latency, of logs that hold every I/O.
        bins: counts by latency, of histogram logs.
    """

    clone: int
    direction: Direction
    averaged: bool = False
    loses_edges: bool = False
    iops: dict[int, float] | None = None
    bw: dict[int, float] | None = None
    lat_s: dict[int, float] = field(default_factory=dict)
    samples_s: dict[int, list[float]] = field(default_factory=dict)
    bins: dict[int, dict[int, int]] = field(default_factory=dict)

    def used(self) -> Iterator[int]:
        """Yield every window that holds something."""
        for part in (self.iops or {}, self.bw or {}, self.lat_s, self.samples_s, self.bins):
            yield from part


def collect(
    rows: Mapping[tuple[str, int], Sequence[Row]],
    bins: Mapping[int, Sequence[HistogramRow]],
    windows: Windows,
) -> list[CloneSeries]:
    """Return the series of every clone and direction that has rows."""
    found: list[CloneSeries] = []
    for clone in sorted({number for _, number in rows} | set(bins)):
        mine = {kind: part for (kind, number), part in rows.items() if number == clone}
        for direction in Direction:
            of = {k: [r for r in part if r.direction is direction] for k, part in mine.items()}
            histogram = [row for row in bins.get(clone, ()) if row.direction is direction]
            if not histogram and not any(of.values()):
                continue
            found.append(_series(CloneSeries(clone, direction), of, windows))
            _add_histogram(found[-1], histogram, windows)
    return found


def _series(series: CloneSeries, of: Mapping[str, list[Row]], windows: Windows) -> CloneSeries:
    """Fill in a series from its logs of values; averaged rows have no block size."""
    series.averaged = not any(row.block_bytes for part in of.values() for row in part)
    latencies = next((of[kind] for kind in _LATENCIES if of.get(kind)), [])
    if not series.averaged:
        _count(series, next(of[kind] for kind in _ANY_IO if of.get(kind)), windows)
        for row in latencies:
            slot = math.floor(windows.at(row.time_ms))
            series.samples_s.setdefault(slot, []).append(row.value / windows.per_second)
        series.lat_s = {n: math.fsum(part) / len(part) for n, part in series.samples_s.items()}
        return series
    series.loses_edges = windows.fio_version[0] < 3
    if "iops" in of:
        series.iops = _averaged(of["iops"], windows, span=windows.rate_span)
    if "bw" in of:
        kib = _averaged(of["bw"], windows, span=windows.rate_span)
        series.bw = {slot: value * 1024 for slot, value in kib.items()}
    lat = _averaged(latencies, windows, span=1)
    series.lat_s = {slot: value / windows.per_second for slot, value in lat.items()}
    return series


def _count(series: CloneSeries, rows: Iterable[Row], windows: Windows) -> None:
    """Count single I/Os and their bytes; fio's own rate of one I/O says nothing of a window."""
    ios: dict[int, int] = {}
    moved: dict[int, int] = {}
    for row in rows:
        slot = math.floor(windows.at(row.time_ms))
        ios[slot] = ios.get(slot, 0) + 1
        moved[slot] = moved.get(slot, 0) + row.block_bytes
    series.iops = {slot: count / windows.interval_s for slot, count in ios.items()}
    series.bw = {slot: count / windows.interval_s for slot, count in moved.items()}


def _averaged(rows: Sequence[Row], windows: Windows, *, span: int) -> dict[int, float]:
    """Return averaged rows by window; rows that share one are averaged by the time they cover."""
    sums: dict[int, tuple[float, float]] = {}
    at, last = 0.0, -1
    for row in rows:
        step, at = windows.at(row.time_ms) - at, windows.at(row.time_ms)
        slot = _closing(at, step=step / span, next_slot=last + span)
        weight = min(max(step, 1e-3), 1.0)
        for covered in range(max(last + 1, slot - span + 1), slot + 1) or (slot,):
            weighted, weights = sums.get(covered, (0.0, 0.0))
            sums[covered] = weighted + row.value * weight, weights + weight
        last = slot
    return {slot: weighted / weights for slot, (weighted, weights) in sums.items()}


def _closing(at: float, *, step: float, next_slot: int) -> int:
    """Return the window that a row closes: rows come late, by much on a loaded host.

    A row about one window after the last closes the next one, unless that strays from the clock.
    """
    nearest = max(0, math.floor(at + 0.5) - 1)
    return next_slot if 0.5 < step < 1.5 and abs(next_slot - nearest) <= 1 else nearest


def _add_histogram(series: CloneSeries, rows: Iterable[HistogramRow], windows: Windows) -> None:
    for row in rows:
        slot = max(0, math.floor(windows.at(row.time_ms) + 0.5) - 1)
        if row.bins:
            series.bins[slot] = merge_bins([series.bins.get(slot, {}), row.bins])
