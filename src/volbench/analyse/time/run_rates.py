"""Rates of one direction of a run over time, and the times in which nothing completed.

A run in the page cache is judged by the device's rates, where there are any: fio's own are those
of memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from volbench.analyse.frames.disturbed import clean_rate_per_s
from volbench.analyse.frames.resample import Floats, median, median_step
from volbench.analyse.frames.run_view import (
    RunView,
    device_rows,
    once,
    percentiles_of,
    rate_per_s,
    results_of,
    runtime_s,
    total,
    within_run,
)
from volbench.analyse.time.change_points import (
    Change,
    Plateau,
    find_changes,
    place_in_gaps,
    plateaus,
)
from volbench.analyse.time.rate_swings import real_jumps, swing_of, without_swing

# Intervals from which rates say anything about a run.
# Noticed by: test_explain.py::test_a_run_without_series_has_no_explanation
_MIN_INTERVALS = 5
# Active time from which a device has work all the time (iostat: %util).
# Noticed by: test_explain.py::test_an_idle_device_is_not_the_bottleneck
_MIN_BUSY_PERCENT = 90.0
# Share of busy intervals below which a run did not keep its device busy: a majority.
# Noticed by: test_explain.py::test_an_idle_device_is_not_the_bottleneck
_MIN_BUSY_SHARE = 0.5
# Share of a jump of the device's IOPS that its bandwidth has to show, as logarithms.
# Noticed by: test_explain.py::test_larger_requests_are_not_a_drop
_MIN_BANDWIDTH_SHARE = 0.5
_PERCENTILES = {"low": 1.0, "p10": 10.0, "p30": 30.0, "p70": 70.0}
# Intervals on either side of two that lack completions: their median withstands one outlier.
# Noticed by: test_rate_changes.py::test_a_slow_second_beside_a_stall_is_not_a_stall
_SIDE_INTERVALS = 3
# Fewer intervals cannot distinguish a stall shorter than two from noise.
# Noticed by: test_lasting_falls.py::test_a_stall_between_two_seconds_is_found
_MIN_STALL_INTERVALS = 8
# Share of the longest latency that two intervals have to lack for it to be a stall of all I/Os;
# chosen on the even seeds of the truth benchmark.
# Noticed by: test_lasting_falls.py::test_a_stall_between_two_seconds_is_found
_MIN_LACKING = 0.75
# Share of its completions that an interval beside a stall lacks before noise explains it; chosen on
# the even seeds of the truth benchmark.
# Noticed by: test_rate_changes.py::test_each_of_several_equal_stalls_has_its_length
_MIN_CLEARLY_LACKING = 0.25
# Shortest stall: applications time out after seconds.
# Noticed by: test_machine.py::test_a_stall_is_reported_with_its_time
_MIN_STALL_S = 1.0
# Mean I/Os that a stall is as long as: slow volumes have gaps.
# Noticed by: test_machine.py::test_a_slow_volume_does_not_stall
_MIN_STALL_IOS = 10
# Mean latencies that a stall is as long as: a deep queue of large I/Os completes in batches.
# Noticed by: test_machine.py::test_batches_of_a_deep_queue_are_not_stalls
_MIN_STALL_LATENCIES = 4
Span = tuple[float, float]  # Begin and end in seconds since the I/O began


@dataclass(frozen=True)
class Rates:
    """One direction of a run, interval by interval."""

    direction: str  # ``read``, ``write`` or ``trim``
    t_s: Floats  # end of each interval
    iops: Floats  # of each interval
    bw_bytes_per_s: Floats  # of each interval
    at_device: bool  # whether these are the device's rates, because the page cache hid them
    changes: tuple[Change, ...]  # jumps of `iops`
    plateaus: tuple[Plateau, ...]  # stretches between them
    depth: int  # I/Os that the run keeps in flight in this direction at most
    lat_mean_s: float  # of the whole run, as fio saw it; NaN when unknown
    lat_min_s: float  # the same, of the fastest I/O
    # percentile 1 of it, of completion where there is no total; NaN without either
    lat_low_s: float
    lat_p10_s: float = math.nan  # the same, percentile 10
    lat_p30_s: float = math.nan  # the same, percentile 30
    lat_p70_s: float = math.nan  # the same, percentile 70

    @property
    def last(self) -> Plateau:
        """The level at which the run ended."""
        return self.plateaus[-1]

    @property
    def interval_s(self) -> float:
        """Length of an interval."""
        return median_step(self.t_s)

    @property
    def io_bytes(self) -> float:
        """Mean size of an I/O; 0 where nothing moved."""
        ios = float(self.iops.sum())
        return float(self.bw_bytes_per_s.sum()) / ios if ios else 0.0

    def bandwidth_of(self, plateau: Plateau) -> float:
        """Return the median bandwidth of a stretch."""
        inside = (self.t_s > plateau.from_s) & (self.t_s <= plateau.to_s)
        return median(self.bw_bytes_per_s[inside])


@once
def rates_of(view: RunView, direction: str) -> Rates | None:
    """Return the rates of one direction; None when there are too few intervals to say anything."""
    at_device = view.is_cached
    columns = _device_rates(view, direction) if at_device else _fio_rates(view, direction)
    if columns is None:
        return None
    t_s, iops, bandwidth = columns
    swing = swing_of(t_s, iops)
    changes = real_jumps(
        find_changes(*without_swing(t_s, iops, swing)),
        t_s,
        iops,
        least_s=least_level_s(view, direction),
    )
    if at_device:
        changes = _jumps_of_volume(changes, plateaus(t_s, iops, changes=changes), t_s, bandwidth)
    else:
        changes = place_in_gaps(changes, t_s, *rate_per_s(view, "iops", direction=direction))
    moving = [
        load
        for load in view.workloads
        if {"read": load.reads, "write": load.writes}.get(direction, "trim" in load.pattern)
    ]
    return Rates(
        direction=direction,
        t_s=t_s,
        iops=iops,
        bw_bytes_per_s=bandwidth,
        at_device=at_device,
        changes=changes,
        plateaus=plateaus(t_s, iops, changes=changes),
        depth=sum(workload.depth * workload.numjobs for workload in moving) or 1,
        **_latencies(view, direction),
    )


def _jumps_of_volume(
    changes: Sequence[Change], stretches: Sequence[Plateau], t_s: Floats, bandwidth: Floats
) -> tuple[Change, ...]:
    """Return the jumps of IOPS that bandwidth shows too, at least by half.

    Fewer and larger requests at the same bandwidth are the kernel's choice in a buffered run.
    """
    levels = [
        median(bandwidth[(t_s > stretch.from_s) & (t_s <= stretch.to_s)]) for stretch in stretches
    ]
    return tuple(
        change
        for change, (before, after) in zip(changes, pairwise(levels), strict=True)
        if _bandwidth_share(change, before, after) >= _MIN_BANDWIDTH_SHARE
    )


def _bandwidth_share(change: Change, before: float, after: float) -> float:
    """Return the share of a jump of IOPS that bandwidth shows; 1 for all, 0 for nothing."""
    if min(before, after, change.before, change.after) <= 0:
        return 1.0
    return math.log(after / before) / math.log(change.ratio)


def _fio_rates(view: RunView, direction: str) -> tuple[Floats, Floats, Floats] | None:
    t_s, iops = clean_rate_per_s(view, "iops", direction=direction)
    at_s, bandwidth = rate_per_s(view, "bw_bytes_per_s", direction=direction)
    if not len(at_s):  # logs of IOPS alone
        moved, ios = (total(view, name, direction=direction) for name in ("io_bytes", "total_ios"))
        at_s, bandwidth = t_s, iops * (moved / ios if ios > 0 else math.nan)
    if np.array_equal(t_s, at_s):  # as of nearly all runs
        return (t_s, iops, bandwidth) if len(t_s) >= _MIN_INTERVALS else None
    common = np.intersect1d(t_s, at_s)
    if len(common) < _MIN_INTERVALS:
        return None
    return common, iops[np.isin(t_s, common)], bandwidth[np.isin(at_s, common)]


def _device_rates(view: RunView, direction: str) -> tuple[Floats, Floats, Floats] | None:
    if direction not in {"read", "write"}:
        return None
    rows = within_run(device_rows(view), runtime=runtime_s(view))
    rows = rows.dropna(subset=[f"{direction}_iops"])
    if len(rows) < _MIN_INTERVALS:
        return None
    columns = ("t_s", f"{direction}_iops", f"{direction}_bw_bytes_per_s", "active_percent")
    t_s, iops, bandwidth, active = (rows[name].to_numpy(dtype=float) for name in columns)
    busy = ~(active < _MIN_BUSY_PERCENT)
    if busy.mean() < _MIN_BUSY_SHARE:
        return t_s, iops, bandwidth
    return t_s, _held_over(iops, busy), _held_over(bandwidth, busy)


def _held_over(values: Floats, busy: npt.NDArray[np.bool_]) -> Floats:
    """Return values with those of idle intervals replaced by the last busy one's.

    An idle interval, in which the kernel wrote no page, says nothing about the device.
    """
    places = np.where(busy, np.arange(len(values)), -1)
    last = np.maximum.accumulate(places)
    held: Floats = values[np.where(last < 0, int(np.argmax(busy)), last)]
    return held


def _latencies(view: RunView, direction: str) -> dict[str, float]:
    """Return mean, min and percentiles by the names of `Rates`, of the section that did most."""
    results = [result for result in results_of(view) if result.direction == direction]
    if not results:
        return dict.fromkeys(("lat_mean_s", "lat_min_s", "lat_low_s"), math.nan)
    main = max(results, key=lambda row: row["total_ios"] if row["total_ios"] > 0 else 0.0)
    percentiles = percentiles_of(view, direction)

    mine = percentiles.group == main.section
    columns = (
        percentiles.latency[mine],
        percentiles.percentile[mine].round(6),
        percentiles.value_s[mine],
    )
    values = {(kind, number): value for kind, number, value in zip(*columns, strict=True)}

    def percentile(number: float) -> float:
        known = (values.get((kind, number), math.nan) for kind in ("lat", "clat"))
        return float(next((value for value in known if not math.isnan(value)), math.nan))

    reported = {f"lat_{name}_s": percentile(number) for name, number in _PERCENTILES.items()}
    return {"lat_mean_s": main["lat_mean_s"], "lat_min_s": main["lat_min_s"], **reported}


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
        _widen_span(
            span,
            sides,
            slowest_s,
            interval_s=interval_s,
            is_longest=index == lengths.index(max(lengths)),
        )
        for index, (span, sides) in enumerate(zip(spans, beside, strict=True))
    ]
    return sorted([*spans, *_hidden_spans(t_s, iops, lacks, slowest_s, known=spans)])


def least_stall_s(view: RunView, *, direction: str | None = None) -> float:
    """Return the length from which a time without completions is a stall of this run."""
    mean_iops = total(view, "iops", direction=direction)
    gap_s = _MIN_STALL_IOS / mean_iops if mean_iops > 0 else 0.0
    return max(_MIN_STALL_S, gap_s, least_level_s(view, direction))


def least_level_s(view: RunView, direction: str | None) -> float:
    """Return the time from which a rate says anything: some latencies of the slowest section."""
    latencies = (
        result["lat_mean_s"]
        for result in results_of(view)
        if direction in (None, result.direction) and not math.isnan(result["lat_mean_s"])
    )
    return _MIN_STALL_LATENCIES * max(latencies, default=0.0)


def _lacks_beside(span: Span, t_s: Floats, lacks: Floats, *, interval_s: float) -> Span:
    before, after = (np.isclose(t_s, end) for end in (span[0], span[1] + interval_s))
    return float(lacks[before].sum()) * interval_s, float(lacks[after].sum()) * interval_s


def _widen_span(
    span: Span, sides: Span, slowest_s: float, *, interval_s: float, is_longest: bool
) -> Span:
    begin, end = span
    missing_s = slowest_s - (end - begin)
    if not is_longest:
        sides = _only_clear(sides, interval_s)
        missing_s = min(missing_s, sum(sides))
    if not 0 < missing_s <= 2 * interval_s:
        return span
    share = sides[0] / sum(sides) if sum(sides) else 0.5
    ahead_s = min(max(share * missing_s, missing_s - interval_s), interval_s)
    ahead_s = min(ahead_s, max(begin, 0.0))  # nothing stalls before the first I/O
    return begin - ahead_s, end + missing_s - ahead_s


def _only_clear(sides: Span, interval_s: float) -> Span:
    before, after = (side if side >= _MIN_CLEARLY_LACKING * interval_s else 0.0 for side in sides)
    return before, after


def _hidden_spans(
    t_s: Floats, iops: Floats, lacks: Floats, slowest_s: float, *, known: Sequence[Span]
) -> list[Span]:
    """Return the times of slow I/Os in two intervals that lack as many completions.

    They lack them beside the intervals on both sides: a rate that climbs has low intervals too.
    """
    if len(t_s) < _MIN_STALL_INTERVALS:
        return []
    interval_s = median_step(t_s)
    if not interval_s <= slowest_s <= 2 * interval_s:
        return []
    pairs_s = (lacks[:-1] + lacks[1:]) * interval_s
    hidden: list[Span] = []
    for index in np.argsort(-pairs_s, kind="stable"):
        if pairs_s[index] < _MIN_LACKING * slowest_s:
            break
        begin = float(t_s[index]) - float(lacks[index]) * interval_s
        end = begin + (min(slowest_s, float(pairs_s[index])) if hidden else slowest_s)
        is_apart = all(end <= other[0] or begin >= other[1] for other in (*known, *hidden))
        is_next = t_s[index + 1] - t_s[index] <= 1.5 * interval_s
        lacking = _lacking_beside(iops, int(index)) * interval_s >= _MIN_LACKING * slowest_s
        if is_apart and is_next and lacking:
            hidden.append((begin, end))
    return hidden


def _lacking_beside(iops: Floats, index: int) -> float:
    sides = (
        iops[max(0, index - _SIDE_INTERVALS) : index],
        iops[index + 2 : index + 2 + _SIDE_INTERVALS],
    )
    usual = min(median(side) for side in sides if len(side))
    if not usual > 0:
        return 0.0
    return float(np.clip(1 - iops[index : index + 2] / usual, 0, 1).sum())


def _empty_spans(t_s: Floats, iops: Floats, *, interval_s: float) -> list[Span]:
    spans: list[Span] = []
    for end in t_s[~(iops > 0)]:
        start = float(end) - interval_s
        if spans and abs(spans[-1][1] - start) < interval_s / 2:
            spans[-1] = (spans[-1][0], float(end))
        else:
            spans.append((start, float(end)))
    return spans
