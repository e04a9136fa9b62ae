"""Logs of one section, read into a time series with a point for every interval."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from volbench.errors import OutputError
from volbench.fio.logs.direction_series import DirectionSeries, Gathered, Span, series_of
from volbench.fio.logs.log_rows import (
    BOTH,
    PLAIN,
    BadRows,
    Form,
    Ints,
    Log,
    Recording,
    Tally,
    Windows,
    held,
    read_head,
    read_tables,
    without_ramp,
)
from volbench.fio.logs.log_windows import (
    LATENCIES,
    WAYS,
    Averages,
    BinStore,
    Counts,
    SeenWindows,
    Totals,
    add_histograms,
    add_single_latencies,
    by_direction,
    histogram_columns,
    span_of,
    wrong_histogram,
)
from volbench.fio.results.merge_jobs import GROUP_BINS
from volbench.model.results.result import Direction

__all__ = ["BadRows", "Log", "Recording", "SeriesReading", "parse_log_name", "read_series"]

_NAME = re.compile(
    r"(?:.*/)?[^/]*_(clat_hist|bw|iops|lat|clat|slat)\.([1-9]\d{0,8})\.log", re.ASCII
)
# Versions, the last one excluded, whose histogram logs have zeros or overflowed counts (fio issue
# 974)
_BROKEN_HISTOGRAMS = ((3, 6), (3, 17))
_EPOCH_MS = 10**11  # Times beyond this are absolute; as a duration it would be three years
# A last window short by this share counts as whole: fio ends a run some milliseconds early.
# Noticed by: test_section_series.py::test_the_last_window_is_kept_when_fio_wrote_it
_MAX_SHORT_END = 0.1
# How far, besides two windows, a time may lie outside the run on a loaded host.
# Noticed by: test_log_rows.py::test_rows_outside_the_run_are_reported
_SLACK_MS = 2000
MAX_WINDOWS = 2_000_000
# Every per-I/O log has all I/Os, so one is enough, best one with latencies
_PER_IO_PREFERENCE = ("lat", "clat", "iops", "bw", "slat")
_BOTH_SINCE = (3, 37)
_MIN_BOTH_COLUMNS = 6
_SYNCS = 3

Head = list[list[int]]
_Key = tuple[str, int]

MAX_INTERVALS = 400  # Time intervals of one run
_MERGED_BINS = 8  # fio has 64 bins per doubling of the latency; 8 are as many as a chart can show


@dataclass(frozen=True)
class SeriesReading:
    """Series by direction, and the log lines that were omitted."""

    directions: tuple[DirectionSeries, ...]
    bad_rows: tuple[BadRows, ...] = ()
    empty: tuple[str, ...] = ()  # names of logs without a row; fio writes no slat of some engines
    ramp_lines: int = 0  # lines before the time of logs restarted


class LogSection:
    """Logs of one section that are not empty, with the formats that their first rows reveal."""

    def __init__(self, heads: Sequence[tuple[Log, Head]], recording: Recording) -> None:
        self._recording = recording
        self._logs: dict[_Key, Log] = {}
        self._heads: dict[_Key, Head] = {}
        self._columns: dict[_Key, tuple[int, ...]] = {}
        self._single: dict[_Key, bool] = {}
        self._tallies: list[Tally] = []
        for log, head in heads:
            key = log.kind, log.job_number
            self._logs[key], self._heads[key] = log, head
            if log.kind != "clat_hist":
                self._columns[key] = _columns_of_values(head, recording)
                self._single[key] = _is_single(head, self._columns[key])
        start_ms, self._epoch_s = self._log_start()
        # the windows of the run
        self.windows = Windows(recording.interval_s, start_ms, recording.fio_version)

    def gather(self, *, latencies: Sequence[str] = LATENCIES) -> Gathered:
        """Return the sums over all logs; redundant ones are not read.

        Args:
            latencies: the kinds of mean latencies to read; ``lat`` is ``clat`` where it is missing.
        """
        gathered = Gathered(Counts(), BinStore(), {})
        for job_number in sorted({job_number for _, job_number in self._logs}):
            single = [kind for kind in _PER_IO_PREFERENCE if self._single.get((kind, job_number))]
            if single:
                seen = SeenWindows(self.windows)
                tables = seen.watched(self._tables((single[0], job_number)))
                gathered.counts.add(tables, self.windows, kind=single[0])
                gathered.jobs[job_number] = seen.span()
                for kind in {"clat", "slat"} & {*latencies}:
                    if (kind, job_number) in self._logs:
                        tables = self._tables((kind, job_number))
                        add_single_latencies(gathered.averaged, tables, self.windows, kind=kind)
            else:
                self._add_averaged(gathered, job_number, latencies)
            if ("clat_hist", job_number) in self._logs:
                self._add_histogram(gathered, job_number)
        return gathered

    @property
    def holds_latencies(self) -> bool:
        """Whether a log has individual latencies or histograms."""
        kinds = {kind for kind, _ in self._logs}
        single = any(self._single.get(key) for key in self._logs if key[0] in {"lat", "clat"})
        return single or "clat_hist" in kinds

    def span(self, gathered: Gathered) -> Span:
        """Return the windows of the series."""
        last = gathered.last()
        count = self._whole_windows()
        shift = 0
        if count is None:
            count = last + 1
        elif self._epoch_s is not None and self._recording.begun_by_s is not None:
            interval_s = self._recording.interval_s
            quiet_s = self.windows.start_ms / 1000 - self._recording.begun_by_s
            shift = max(0, min(round(quiet_s / interval_s), count - 1 - last))
        epoch_s = self._epoch_s
        if epoch_s is not None:
            epoch_s -= shift * self._recording.interval_s
        return Span(count, shift, epoch_s, self._recording.flushes_at_end)

    def bad_rows(self, *, has_series: bool) -> tuple[BadRows, ...]:
        """Return the lines that were left out of the logs that were read: all without a series."""
        tallies = {tally.name: tally for tally in self._tallies}.values()  # some are read twice
        for tally in tallies if not has_series else ():
            tally.leave_out()
        return tuple(
            BadRows(tally.name, tally.bad_rows, tally.rows, tally.first_bad_line)
            for tally in tallies
            if tally.first_bad_line is not None
        )

    def _add_averaged(self, gathered: Gathered, job_number: int, latencies: Sequence[str]) -> None:
        by_role: dict[str, dict[int, Averages]] = {}
        for kind in ("iops", "bw", *latencies):
            if (kind, job_number) not in self._logs:
                continue
            span = 1 if kind in LATENCIES else self.windows.rate_span
            tables = self._tables((kind, job_number))
            by_role[kind] = by_direction(tables, self.windows, ways=len(WAYS), span=span)
        if "clat" in by_role:
            by_role.setdefault("lat", by_role["clat"])
        for way in {way for parts in by_role.values() for way in parts}:
            # A log without rows of this direction means that there was no I/O.
            logs = {role: of.get(way, Averages(self.windows)) for role, of in by_role.items()}
            gathered.averaged.setdefault(way, Totals()).add_job(logs)
        if "iops" in by_role or "bw" in by_role:
            rates = by_role.get("iops") or by_role.get("bw") or {}
            gathered.jobs[job_number] = span_of([rate.means()[1] for rate in rates.values()])

    def _add_histogram(self, gathered: Gathered, job_number: int) -> None:
        head = self._heads["clat_hist", job_number]
        fio2 = self._recording.fio_version[0] < 3
        known = (histogram_columns(len(row), fio2=fio2) for row in head)
        layout = next((form for form in known if form is not None), None)
        if layout is None:
            raise wrong_histogram(self._logs["clat_hist", job_number].name, len(head[0]))
        columns, bins = layout
        tables = self._tables(("clat_hist", job_number), columns)
        add_histograms(gathered.histograms, tables, self.windows, bins=bins)

    def _tables(self, key: _Key, columns: tuple[int, ...] | None = None) -> Iterator[Ints]:
        first_ms, end_ms = self._bounds_ms()
        form = Form(
            columns=columns or self._columns[key],
            direction_at=2 if columns is None else 1,
            width=None if columns is None else len(columns),
            first_ms=first_ms,
            end_ms=end_ms,
        )
        self._tallies.append(Tally(self._logs[key].name))
        return read_tables(self._logs[key], form, self._tallies[-1])

    def _bounds_ms(self) -> tuple[float, float]:
        width_ms = self._recording.interval_s * 1000
        slack_ms = 2 * width_ms + _SLACK_MS
        count = self._whole_windows()
        if count is None:
            return self.windows.start_ms - slack_ms, (
                self.windows.start_ms + MAX_WINDOWS * width_ms
            )
        end_ms = self.windows.start_ms + count * width_ms
        return self.windows.start_ms - slack_ms, end_ms + slack_ms

    def _whole_windows(self) -> int | None:
        """Return the number of whole windows of the run, None when its length is unknown."""
        recording = self._recording
        if recording.runtime_s is None:
            return None
        count = math.floor(recording.runtime_s / recording.interval_s + _MAX_SHORT_END)
        if count > MAX_WINDOWS:
            raise OutputError(
                f"a run of {recording.runtime_s:g} s has {count} intervals of "
                f"{recording.interval_s:g} s",
                hint="the runtime reported by fio is wrong, or the interval is too short",
            )
        return count

    def _log_start(self) -> tuple[float, float | None]:
        """Return the start of I/O in the time of the logs, and since the epoch if known.

        With absolute times and an unknown start it is the start of the first row's window.
        """
        known_s = self._recording.epoch_start_s
        times = [row[0] for head in self._heads.values() for row in head]
        if not times or median_low(times) <= _EPOCH_MS:
            return 0.0, known_s
        if known_s is not None:
            return known_s * 1000, known_s
        width_ms = self._recording.interval_s * 1000
        start_ms = min(
            row[0] if self._single.get(key) else row[0] - width_ms
            for key, head in self._heads.items()
            for row in head
            if row[0] > _EPOCH_MS
        )
        return start_ms, start_ms / 1000


def _is_single(head: Head, columns: tuple[int, ...]) -> bool:
    """Return whether a log is per I/O; averaged rows have no block size, except invalid ones."""
    _, _, direction, size, *_ = columns
    last = max(columns)
    sizes = [row[size] for row in head if len(row) > last and row[direction] < _SYNCS]
    return bool(sizes) and median_low(sizes) > 0


def _columns_of_values(head: Head, recording: Recording) -> tuple[int, ...]:
    """Return the columns of a log of values.

    With ``log_window_value=both`` the direction, a small number, is in the place of the block size;
    the maximum before it exceeds any direction, or the block size follows.
    """
    if recording.window_values is not None:
        return BOTH if recording.window_values == "both" else PLAIN
    rows = [row for row in head if len(row) >= _MIN_BOTH_COLUMNS - 1]
    if recording.fio_version < _BOTH_SINCE or len(rows) < len(head):
        return PLAIN
    maxima, directions, sizes = (max(row[n] for row in rows) for n in (2, 3, 4))
    return BOTH if directions <= _SYNCS < max(maxima, sizes) else PLAIN


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
    """
    sound = _sound(logs, recording)
    heads = [(log, read_head(log)) for log in sound]
    section = LogSection([(log, head) for log, head in heads if head], recording)
    gathered = section.gather()
    span = section.span(gathered)
    all_series = [series_of(gathered, way, section.windows, span) for way in gathered.directions()]
    filled = tuple(series for series in all_series if len(series.t_s))
    return SeriesReading(
        filled,
        section.bad_rows(has_series=bool(filled)),
        tuple(log.name for log, head in heads if not head and log.kind != "slat"),
        sum(log.ramp_lines for log in sound),
    )


def _sound(logs: Sequence[Log], recording: Recording) -> list[Log]:
    is_wrong = _BROKEN_HISTOGRAMS[0] <= recording.fio_version < _BROKEN_HISTOGRAMS[1]
    may_restart = recording.fio_version[0] < 3 or recording.runtime_s is None
    sound = [held(log) for log in logs if log.kind != "clat_hist" or not is_wrong]
    return [without_ramp(log) for log in sound] if may_restart else sound


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
    sound = _sound(logs, recording)
    section = LogSection([(log, head) for log in sound if (head := read_head(log))], recording)
    if not section.holds_latencies:
        return []
    gathered = section.gather(latencies=("lat",))
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
    slots = max(0, span.count - span.shift)
    for first in range(0, slots, width):
        sums: Counter[int] = Counter()
        for slot in range(first, min(first + width, slots)):
            bins, counts = _counts(gathered, slot * len(WAYS) + way)
            for bin_, count in zip((bins // _MERGED_BINS).tolist(), counts.tolist(), strict=True):
                sums[bin_] += count
        end = min(first + width, slots)
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
    empty = np.zeros(0, dtype=np.int64)
    bins = gathered.counts.bins.counts(cell) or gathered.histograms.counts(cell)
    return bins if bins is not None else (empty, empty)


def _low(bin_: int) -> int:
    shift = max(bin_ // GROUP_BINS - 1, 0)
    return (bin_ - shift * GROUP_BINS) << shift
