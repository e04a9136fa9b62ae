"""Time series of a section from its logs, with a point for every interval.

fio leaves gaps where nothing completed; here the series is complete from 0 to the end of the run,
with rates of 0 and no latency. Parallel jobs are aggregated: rates are summed, mean latencies
weighted by IOPS, histograms added before percentiles are taken. Rates, means and maxima are exact,
percentiles are midpoints of fio's bins. Logs are streamed: memory depends on the length of the run,
not on the number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.fio.logs.log_rows import BadRows, read_head
from volbench.fio.logs.log_stream import Log
from volbench.fio.logs.section_logs import LogSection
from volbench.fio.logs.series_points import points_of
from volbench.fio.logs.time_grid import Recording
from volbench.model.results.result import SeriesPoint

__all__ = ["BadRows", "Log", "Recording", "SeriesReading", "parse_log_name", "read_series"]

_NAME = re.compile(
    r"(?:.*/)?[^/]*_(clat_hist|bw|iops|lat|clat|slat)\.([1-9]\d{0,8})\.log", re.ASCII
)
_BROKEN_HISTOGRAMS = ((3, 6), (3, 17))
"""First and last version whose histogram logs have zeros or overflowed counts (fio issue 974)."""


@dataclass(frozen=True)
class SeriesReading:
    """A series and what was left out of it."""

    points: tuple[SeriesPoint, ...]
    bad_rows: tuple[BadRows, ...] = ()


def parse_log_name(name: str) -> tuple[str, int] | None:
    """Return kind and job number of a name like ``l_clat_hist.2.log``; None for other files."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def read_series(logs: Sequence[Log], recording: Recording) -> SeriesReading:
    """Return the series of a section, by direction and then by time.

    The series ends with the last whole interval that fio could report: versions before 3.37 lose
    the last one of bw and iops logs, which is not a stall. Histogram logs of 3.6 to 3.16 are wrong
    and left out; those of other versions lack their last interval. Invalid lines, as a killed fio
    leaves them, are left out and reported.

    Raises:
        OutputError: a log has lines but no valid row, or the run has too many intervals.
    """
    sound = [log for log in logs if log.kind != "clat_hist" or not are_histograms_wrong(recording)]
    section = LogSection([(log, head) for log in sound if (head := read_head(log))], recording)
    gathered = section.gather()
    span = section.span(gathered)
    points = [
        point
        for way in gathered.directions()
        for point in points_of(gathered, way, section.windows, span)
    ]
    return SeriesReading(tuple(points), section.bad_rows())


def are_histograms_wrong(recording: Recording) -> bool:
    """Return whether this version of fio writes wrong histogram logs."""
    return _BROKEN_HISTOGRAMS[0] <= recording.fio_version < _BROKEN_HISTOGRAMS[1]
