"""Numbers of one run out of its rows of the frames; NaN is "unknown"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from volbench.analyse.frames.run_view import RunView, once
from volbench.analyse.time.medians import median, median_step
from volbench.model.campaign.planned_run import Run

Floats = npt.NDArray[np.float64]

_BESIDE = 3  # Intervals on either side of two that lack completions
_LEAST_INTERVALS = 8
# Share of the longest latency that two intervals have to lack for it to be a stall of all I/Os
_LACKING = 0.75
# Share of its completions that an interval beside a stall lacks before noise explains it
_CLEARLY = 0.25
_MOVING = ("read", "write", "trim")


@dataclass(frozen=True)
class Result:
    """Result of fio or dd for one direction of one section."""

    section: str
    direction: str
    row: Mapping[str, object]

    def __getitem__(self, column: str) -> float:
        """Return a number of the summary; NaN when it is unknown."""
        value = self.row[column]
        return float(value) if isinstance(value, int | float) else math.nan


def results_of(view: RunView) -> Iterator[Result]:
    """Yield the rows of the summary that moved data; rows of fsync are left out."""
    for row in view.results:
        if row["direction"] in _MOVING:
            yield Result(str(row["group"]), str(row["direction"]), row)


def total(view: RunView, column: str, *, direction: str | None = None) -> float:
    """Return the sum of a column of the summary over sections; NaN when nothing was reported."""
    values = [
        result[column]
        for result in results_of(view)
        if direction in (None, result.direction) and not math.isnan(result[column])
    ]
    return math.fsum(values) if values else math.nan


def declared(run: Run, column: str) -> tuple[float, float]:
    """Return the declared limit of a rate, sustained and in a burst; 0 for none.

    Args:
        column: ``iops`` or ``bw_bytes_per_s``.
    """
    limits = run.limits
    if column == "iops":
        return limits.iops or 0.0, limits.burst_iops or 0.0
    return limits.bandwidth_bytes_per_s or 0.0, limits.burst_bandwidth_bytes_per_s or 0.0


def directions(view: RunView) -> list[str]:
    """Return the directions in which data moved, in the order of the summary."""
    return list(dict.fromkeys(result.direction for result in results_of(view)))


def runtime_s(view: RunView) -> float:
    """Return the runtime of the I/O; NaN if the tool reported none."""
    return max((result["runtime_s"] for result in results_of(view)), default=math.nan)


@once
def rate_per_s(
    view: RunView, column: str, *, direction: str | None = None
) -> tuple[Floats, Floats]:
    """Return time (end of each interval) and a rate, all sections added.

    Only times at which every direction and section has a row are kept: fio may lose the last one.
    Nor are those kept in which not all parallel jobs of a section ran.

    Args:
        column: of the series, such as ``iops``.
        direction: all of them added when None.
    """
    values = view.series[column].to_numpy(dtype=float)
    intervals = _intervals(view)
    wanted = intervals.is_whole & ~np.isnan(values)
    if direction is not None:
        wanted &= intervals.direction == direction
    lines = len(np.unique(intervals.line[wanted])) if intervals.line.any() else 1
    at_s, values = intervals.t_s[wanted], values[wanted]
    if lines == 1 and (at_s[:-1] < at_s[1:]).all() and not np.isnan(at_s[-1:]).any():
        return at_s, values + 0.0
    order = np.argsort(at_s, kind="stable")
    times, firsts, counts = np.unique(at_s[order], return_index=True, return_counts=True)
    whole = (counts == lines) & ~np.isnan(times)
    places = firsts[whole, np.newaxis] + np.arange(lines)
    return times[whole], _added(values[order][places])


def is_partial(series: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return whether fewer jobs ran through each interval than at other times of its section."""
    jobs = series["jobs_running"].to_numpy(dtype=float, na_value=math.nan)
    known = jobs[~np.isnan(jobs)]
    if not len(known) or known.min() == known.max():
        return np.zeros(len(series), dtype=np.bool_)  # so for nearly all runs, without the groups
    running = pd.Series(jobs, index=series.index)
    most = running.groupby([series["run"], series["group"]], dropna=False).transform("max")
    found: npt.NDArray[np.bool_] = (running < most).to_numpy(dtype=bool)
    return found


@dataclass(frozen=True)
class _Intervals:
    """Rows of a run's series, as arrays of one length."""

    t_s: Floats  # end of each interval
    direction: npt.NDArray[np.object_]  # of its I/O
    line: npt.NDArray[np.int64]  # number of its section and direction
    is_whole: npt.NDArray[np.bool_]  # whether all jobs of its section ran through it


@once
def _intervals(view: RunView) -> _Intervals:
    direction = view.series["direction"].to_numpy(dtype=object)
    sections, _ = _numbered(view.series["group"].to_numpy(dtype=object))
    ways, names = _numbered(direction)
    return _Intervals(
        t_s=view.series["t_s"].to_numpy(dtype=float),
        direction=direction,
        line=sections * max(1, names) + ways,
        is_whole=~is_partial(view.series),
    )


def _numbered(texts: npt.NDArray[np.object_]) -> tuple[npt.NDArray[np.int64], int]:
    """Return a number from 0 for each text, in order of appearance, and the number of texts."""
    if len(texts) and (texts == texts[0]).all():
        return np.zeros(len(texts), dtype=np.int64), 1
    codes, names = pd.factorize(texts, use_na_sentinel=False)
    return codes.astype(np.int64), len(names)


def _added(table: Floats) -> Floats:
    """Return the sum of each row, compensated (Kahan), so that the order hardly matters."""
    total = np.zeros(len(table))
    lost = np.zeros(len(table))
    for column in table.T:
        part = column - lost
        grown = total + part
        lost = grown - total - part
        total = grown
    return total


@dataclass(frozen=True)
class Percentiles:
    """Latency percentiles of one direction of a run, as arrays of one length."""

    group: npt.NDArray[np.object_]  # section of the job file
    latency: npt.NDArray[np.object_]  # ``lat``, ``clat`` or ``slat``
    percentile: Floats  # from 0 to 100
    value_s: Floats  # latency at that percentile


@once
def percentiles_of(view: RunView, direction: str) -> Percentiles:
    """Return the latency percentiles that were reported for one direction."""
    rows = view.percentiles
    mine = rows["direction"].to_numpy(dtype=object) == direction
    return Percentiles(
        group=rows["group"].to_numpy(dtype=object)[mine],
        latency=rows["latency"].to_numpy(dtype=object)[mine],
        percentile=rows["percentile"].to_numpy(dtype=float)[mine],
        value_s=rows["value_s"].to_numpy(dtype=float)[mine],
    )


@once
def device_rows(view: RunView, *, level: str = "volume") -> pd.DataFrame:
    """Return the samples of the volume's device, or of its backing disks, in order of time.

    There are none for a volume without a device, such as an NBD export or a network filesystem.
    """
    if view.device.empty:
        return view.device
    rows = view.device[(view.device["level"] == level) & view.device["device"].notna()]
    return rows.sort_values("t_s", ignore_index=True)


@once
def host_rows(view: RunView) -> pd.DataFrame:
    """Return one sample of the host's own numbers (CPU, memory) for each time, in order."""
    if view.device.empty:
        return view.device
    rows = view.device.drop_duplicates("t_s")
    return rows.sort_values("t_s", ignore_index=True)


@once
def host_rows_in_run(view: RunView) -> pd.DataFrame:
    """Return the host's samples whose whole interval is within the run's I/O."""
    return within_run(host_rows(view), runtime=runtime_s(view))


def within_run(rows: pd.DataFrame, *, runtime: float) -> pd.DataFrame:
    """Return the samples whose whole interval is within the run's I/O."""
    if rows.empty:
        return rows
    inside = (rows["t_s"] - rows["interval_s"] >= -0.05) & (rows["t_s"] <= runtime + 0.05)
    return rows[inside & ~rows["after_fio"].fillna(value=False).astype(bool)]


Span = tuple[float, float]  # Begin and end in seconds since the I/O began


def stall_spans(view: RunView, t_s: Floats, iops: Floats, *, direction: str | None) -> list[Span]:
    """Return begin and end of each time in which nothing completed.

    A series shows whole empty intervals only. The slowest I/O gives the rest: it was submitted
    right before the last completion, and is itself the next one. So the longest span is as long as
    the maximum latency, where that adds at most one interval at either end. The completions that
    these two intervals lack say where the span begins, and how long another one is. A span of less
    than two intervals may leave none empty: it is in two that lack as many completions.

    Args:
        direction: of the rates; None for all of them together.
    """
    interval_s = median_step(t_s) if len(t_s) > 1 else view.run.sample_s
    spans = _empty_spans(t_s, iops, interval_s=interval_s)
    if not (iops > 0).any():
        return spans
    slowest_s = max(
        (
            result["lat_max_s"]
            for result in results_of(view)
            if direction in (None, result.direction) and not math.isnan(result["lat_max_s"])
        ),
        default=math.nan,
    )
    lacks = np.clip(1 - iops / median(iops[iops > 0]), 0, 1)
    beside = [_lacks_beside(span, t_s, lacks, interval_s=interval_s) for span in spans]
    lengths = [end - begin + sum(sides) for (begin, end), sides in zip(spans, beside, strict=True)]
    spans = [
        _widened(
            span,
            sides,
            slowest_s,
            interval_s=interval_s,
            is_longest=place == lengths.index(max(lengths)),
        )
        for place, (span, sides) in enumerate(zip(spans, beside, strict=True))
    ]
    return sorted([*spans, *_hidden_spans(t_s, iops, lacks, slowest_s, known=spans)])


def _lacks_beside(span: Span, t_s: Floats, lacks: Floats, *, interval_s: float) -> Span:
    """Return for how long the intervals before and after an empty span lack completions."""
    before, after = (np.isclose(t_s, end) for end in (span[0], span[1] + interval_s))
    return float(lacks[before].sum()) * interval_s, float(lacks[after].sum()) * interval_s


def _widened(
    span: Span, sides: Span, slowest_s: float, *, interval_s: float, is_longest: bool
) -> Span:
    """Return an empty span with what belongs to it of the intervals beside it."""
    begin, end = span
    missing_s = slowest_s - (end - begin)
    if not is_longest:
        sides = _only_clear(sides, interval_s)
        missing_s = min(missing_s, sum(sides))
    if not 0 < missing_s <= 2 * interval_s:
        return span
    share = sides[0] / sum(sides) if sum(sides) else 0.5
    ahead_s = min(max(share * missing_s, missing_s - interval_s), interval_s)
    return begin - ahead_s, end + missing_s - ahead_s


def _only_clear(sides: Span, interval_s: float) -> Span:
    before, after = (side if side >= _CLEARLY * interval_s else 0.0 for side in sides)
    return before, after


def _hidden_spans(
    t_s: Floats, iops: Floats, lacks: Floats, slowest_s: float, *, known: Sequence[Span]
) -> list[Span]:
    """Return the times of slow I/Os in two intervals that lack as many completions.

    They lack them beside the intervals on both sides: a rate that climbs has low intervals too.
    """
    if len(t_s) < _LEAST_INTERVALS:
        return []
    interval_s = median_step(t_s)
    if not interval_s <= slowest_s <= 2 * interval_s:
        return []
    pairs_s = (lacks[:-1] + lacks[1:]) * interval_s
    found: list[Span] = []
    for place in np.argsort(-pairs_s, kind="stable"):
        if pairs_s[place] < _LACKING * slowest_s:
            break
        begin = float(t_s[place]) - float(lacks[place]) * interval_s
        end = begin + (min(slowest_s, float(pairs_s[place])) if found else slowest_s)
        is_apart = all(end <= other[0] or begin >= other[1] for other in (*known, *found))
        is_next = t_s[place + 1] - t_s[place] <= 1.5 * interval_s
        lacking = _lacking_beside(iops, int(place)) * interval_s >= _LACKING * slowest_s
        if is_apart and is_next and lacking:
            found.append((begin, end))
    return found


def _lacking_beside(iops: Floats, place: int) -> float:
    """Return what two intervals lack of the rate beside them, in intervals."""
    sides = (iops[max(0, place - _BESIDE) : place], iops[place + 2 : place + 2 + _BESIDE])
    usual = min(median(side) for side in sides if len(side))
    if not usual > 0:
        return 0.0
    return float(np.clip(1 - iops[place : place + 2] / usual, 0, 1).sum())


def _empty_spans(t_s: Floats, iops: Floats, *, interval_s: float) -> list[Span]:
    """Return begin and end of each unbroken row of empty intervals."""
    spans: list[Span] = []
    for end in t_s[~(iops > 0)]:
        start = float(end) - interval_s
        if spans and abs(spans[-1][1] - start) < interval_s / 2:
            spans[-1] = (spans[-1][0], float(end))
        else:
            spans.append((start, float(end)))
    return spans


def clock_bounds_s(summaries: Iterable[pd.DataFrame]) -> float:
    """Return how far the distance of two instants on different hosts may be wrong, in seconds.

    Each instant may be wrong by the bound of its host's clock offset; the two largest add up.

    Args:
        summaries: rows of the summary frame; the first of a run counts.
    """
    bounds = pd.concat(
        [
            rows.drop_duplicates("run").get("clock_bound_s", pd.Series(dtype=float))
            for rows in summaries
        ]
    )
    return float(bounds.fillna(0.0).nlargest(2).sum())
