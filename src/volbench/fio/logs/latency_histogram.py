"""Latency histograms over time of a section, for the latency heatmap.

Only per-I/O logs and histogram logs have individual latencies; averaged logs have means, from which
no distribution can be derived. Adjacent windows and bins are merged, so that a log of any length
gives no more cells than a chart can show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from volbench.fio.logs.direction_series import Gathered, Span
from volbench.fio.logs.log_rows import Ints, Log, read_head
from volbench.fio.logs.per_io_logs import WAYS
from volbench.fio.logs.section_logs import LogSection, are_histograms_wrong
from volbench.fio.logs.time_grid import Recording
from volbench.fio.results.latency_bins import GROUP_BINS
from volbench.model.results.result import Direction

MAX_INTERVALS = 400  # Time intervals of one run
_MERGED_BINS = 8  # fio has 64 bins per doubling of the latency; 8 are as many as a chart can show


@dataclass(frozen=True)
class MapCell:
    """I/Os of one direction that completed in one time interval within one range of latency."""

    direction: Direction  # of the I/Os
    from_s: float  # start of the interval, since the start of I/O
    to_s: float  # its end
    low_s: float  # lower bound of the latency, inclusive
    high_s: float  # upper bound, exclusive
    count: int  # number of I/Os


def read_latency_map(logs: Sequence[Log], recording: Recording) -> list[MapCell]:
    """Return the cells of a section, by direction, time and latency; none without such logs."""
    sound = [log for log in logs if log.kind != "clat_hist" or not are_histograms_wrong(recording)]
    section = LogSection([(log, head) for log in sound if (head := read_head(log))], recording)
    if not section.holds_latencies:
        return []
    gathered = section.gather()
    span = section.span(gathered)
    width = -(-max(1, span.count) // MAX_INTERVALS)
    return [
        cell
        for way in gathered.directions()
        for cell in _cells(
            gathered,
            way,
            section.windows.interval_s,
            span,
            width=width,
            unit=section.windows.per_second,
        )
    ]


def _cells(
    gathered: Gathered, way: int, interval_s: float, span: Span, *, width: int, unit: float
) -> Iterator[MapCell]:
    shown = max(0, span.count - span.shift)
    for first in range(0, shown, width):
        sums: Counter[int] = Counter()
        for slot in range(first, min(first + width, shown)):
            bins, counts = _counts(gathered, slot * len(WAYS) + way)
            for bin_, count in zip((bins // _MERGED_BINS).tolist(), counts.tolist(), strict=True):
                sums[bin_] += count
        end = min(first + width, shown)
        for group, count in sorted(sums.items()):
            yield MapCell(
                direction=WAYS[way],
                from_s=(first + span.shift) * interval_s,
                to_s=(end + span.shift) * interval_s,
                low_s=_low(group * _MERGED_BINS) / unit,
                high_s=_low((group + 1) * _MERGED_BINS) / unit,
                count=count,
            )


def _counts(gathered: Gathered, cell: int) -> tuple[Ints, Ints]:
    """Return bins and counts of a window, from per-I/O logs if there are any."""
    empty = np.zeros(0, dtype=np.int64)
    found = gathered.counts.bins.counts(cell) or gathered.histograms.counts(cell)
    return found if found is not None else (empty, empty)


def _low(bin_: int) -> int:
    """Return the lower bound of a bin, in the unit of the log."""
    shift = max(bin_ // GROUP_BINS - 1, 0)
    return (bin_ - shift * GROUP_BINS) << shift
