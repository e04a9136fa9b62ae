"""Latencies over time: the logs of a section go in, counts by stretch of time and latency come out.

Only logs of single I/Os and histogram logs hold latencies one by one; averaged logs hold means,
from which no distribution can be made. Neighbouring windows and bins are added up, so that cells
for one picture are left of a log of any length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from volbench.fio.logs.log_rows import Ints, read_head
from volbench.fio.logs.log_stream import Log
from volbench.fio.logs.per_io_logs import WAYS
from volbench.fio.logs.section_logs import LogSection
from volbench.fio.logs.section_series import are_histograms_wrong
from volbench.fio.logs.series_points import Gathered, Span
from volbench.fio.logs.time_grid import Recording
from volbench.fio.results.latency_bins import GROUP_BINS
from volbench.model.results.result import Direction

MOST_STRETCHES = 400
"""Of time, for one Run."""
_BINS_AS_ONE = 8
"""fio has 64 bins for each doubling of the latency; 8 are as many as a picture can show."""


@dataclass(frozen=True)
class MapCell:
    """I/Os of one direction that ended in a stretch of time with about the same latency.

    Attributes:
        direction: of the I/Os.
        from_s: start of the stretch, since I/O began.
        to_s: its end.
        low_s: least latency, inclusive.
        high_s: greatest latency, exclusive.
        count: how many.
    """

    direction: Direction
    from_s: float
    to_s: float
    low_s: float
    high_s: float
    count: int


def read_latency_map(logs: Sequence[Log], recording: Recording) -> list[MapCell]:
    """Return the cells of a section, by direction, time and latency; none without such logs.

    Raises:
        OutputError: a log has lines but no row at all, or the run spans too many intervals.
    """
    sound = [log for log in logs if log.kind != "clat_hist" or not are_histograms_wrong(recording)]
    section = LogSection([(log, head) for log in sound if (head := read_head(log))], recording)
    if not section.holds_latencies:
        return []
    gathered = section.gather()
    span = section.span(gathered)
    width = -(-max(1, span.count) // MOST_STRETCHES)
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
    """Yield the cells of one direction."""
    shown = max(0, span.count - span.shift)
    for first in range(0, shown, width):
        sums: Counter[int] = Counter()
        for slot in range(first, min(first + width, shown)):
            bins, counts = _told(gathered, slot * len(WAYS) + way)
            for bin_, count in zip((bins // _BINS_AS_ONE).tolist(), counts.tolist(), strict=True):
                sums[bin_] += count
        end = min(first + width, shown)
        for group, count in sorted(sums.items()):
            yield MapCell(
                direction=WAYS[way],
                from_s=(first + span.shift) * interval_s,
                to_s=(end + span.shift) * interval_s,
                low_s=_low(group * _BINS_AS_ONE) / unit,
                high_s=_low((group + 1) * _BINS_AS_ONE) / unit,
                count=count,
            )


def _told(gathered: Gathered, cell: int) -> tuple[Ints, Ints]:
    """Return bins and counts of a window: of single I/Os where there are any."""
    none = np.zeros(0, dtype=np.int64)
    found = gathered.counts.bins.counts(cell) or gathered.histograms.counts(cell)
    return found if found is not None else (none, none)


def _low(bin_: int) -> int:
    """Return the least value in a bin, in the unit of the log."""
    shift = max(bin_ // GROUP_BINS - 1, 0)
    return (bin_ - shift * GROUP_BINS) << shift
