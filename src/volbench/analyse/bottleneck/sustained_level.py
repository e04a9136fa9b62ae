"""Limits that nobody declared: on IOPS or on bandwidth, and runs that went beyond them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from volbench.analyse.frames.resample import Floats, median
from volbench.analyse.time.change_points import inflation_of
from volbench.analyse.time.run_rates import Rates
from volbench.model.results.finding import WORDS, Cause, Explanation
from volbench.units import format_count, format_rate

# Relative distance of two levels that count as equal: doubling the queue depth gains more without a
# limit. Noticed by: test_explain.py::test_a_second_queue_depth_shows_a_limit
MAX_SAME_DISTANCE = 0.05
# Block size from which a limit is that of bandwidth, if nothing else says which: providers convert
# at 16 to 256 KiB. Noticed by: test_explain.py::test_limits_of_large_blocks_are_those_of_bandwidth
_MIN_LARGE_BYTES = 64 * 1024
_MIB = 2**20
_ROUND_IOPS = 100.0
# Relative distance from a multiple of 5 within which a level is a limit that is sold; chosen on the
# even seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MAX_ROUND_DISTANCE = 0.005
LIMITS = frozenset({Cause.IOPS_LIMIT, Cause.BANDWIDTH_LIMIT, Cause.CREDITS})
# Causes that a limit is part of, or that often end at one
_MAY_BE_LIMITED = LIMITS | {Cause.WARMING}
_CLIMBS = frozenset({Cause.WARMING, Cause.RAMP_UP})
# Events after which the level is the one before: their seconds are left out, not what precedes
_TEMPORARY = frozenset({Cause.STALL, Cause.NEIGHBOUR, Cause.HOST_NOISE})
# Relative distance of the levels before and after a temporary event to be taken as one; chosen on
# the even seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MAX_LEVEL_CHANGE = 0.2
# Scatter of the mean of the middle half over that of a mean, for normal noise.
# Noticed by: test_sustained_level.py::test_the_interval_has_the_true_level_nineteen_times_in_twenty
_MIDDLE_LOSS = 1.1
# Standard errors on either side of a 95 % interval, before the correction for few intervals.
# Noticed by: test_sustained_level.py::test_the_interval_has_the_true_level_nineteen_times_in_twenty
_ERRORS = 2.0
# Correction of these for few intervals, as Student 1908 has it, simplified.
# Noticed by: benchmarks/truth.py
_FEW_INTERVALS = 3.0
# Share by which an interval is wider than its noise: rates of one second count whole I/Os.
# Noticed by: benchmarks/truth.py
_ROUNDING = 0.005
# Intervals that a level is made of at least; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_INTERVALS = 5


def which_limit(rates: Rates, others: Sequence[Rates]) -> tuple[Cause, float]:
    """Return the kind of limit that a level is, and its value.

    Args:
        others: of more runs on the same volume; those with other block sizes tell the kinds apart.
    """
    iops, bandwidth = rates.last.level, rates.bandwidth_of(rates.last)
    size = bandwidth / iops if iops else 0.0
    for other in others:
        other_size = other.bandwidth_of(other.last) / other.last.level if other.last.level else 0.0
        if other_size and not 0.8 <= other_size / size <= 1.25:
            if abs(other.bandwidth_of(other.last) / bandwidth - 1) <= MAX_SAME_DISTANCE:
                return Cause.BANDWIDTH_LIMIT, bandwidth
            if abs(other.last.level / iops - 1) <= MAX_SAME_DISTANCE:
                return Cause.IOPS_LIMIT, iops
    is_bandwidth = _is_round(bandwidth / _MIB) or _is_round(bandwidth / 1e6)
    if size >= _MIN_LARGE_BYTES or (is_bandwidth and not _is_round(iops / _ROUND_IOPS)):
        return Cause.BANDWIDTH_LIMIT, bandwidth
    return Cause.IOPS_LIMIT, iops


def reached_more(cause: Cause, level: float, others: Sequence[tuple[str, Rates]]) -> str:
    """Return the run that went furthest beyond a limit of its volume; empty if none did."""
    reached = {
        job: rates.last.level if cause is Cause.IOPS_LIMIT else rates.bandwidth_of(rates.last)
        for job, rates in others
    }
    most = max(reached, key=reached.__getitem__, default="")
    if not most or reached[most] <= (1 + MAX_SAME_DISTANCE) * level:
        return ""
    is_iops = cause is Cause.IOPS_LIMIT
    rate = f"{format_count(reached[most])} IOPS" if is_iops else format_rate(reached[most])
    return f"{most} reached {rate} on the same volume"


def _is_round(value: float) -> bool:
    nearest = 5 * round(value / 5)
    return nearest > 0 and abs(value / nearest - 1) <= _MAX_ROUND_DISTANCE


@dataclass(frozen=True)
class Level:
    """A sustained level."""

    iops: float  # the level
    low_iops: float  # lower end of its 95 % interval
    high_iops: float  # upper end

    @property
    def reach(self) -> float:
        """Distance of the farther end of the interval, as a share of the level."""
        reach_iops = max(self.high_iops - self.iops, self.iops - self.low_iops)
        return reach_iops / self.iops if self.iops > 0 else math.inf


def sustained_level(rates: Rates, explanations: Sequence[Explanation]) -> Level:
    """Return the level at which a direction of a run ended."""
    causes = {each.cause: each for each in explanations}
    slower = causes.get(Cause.SLOWER)
    if slower is not None and "stalls" in slower.evidence:
        after = rates.iops[rates.t_s > slower.from_s]
        if (after == 0).any():
            return _cycle_mean(after)
    last = rates.last
    climbed_s = max((each.to_s for name, each in causes.items() if name in _CLIMBS), default=0.0)
    values = _level_rates(rates, explanations, climbed_s=climbed_s)
    candidates = {candidate for each in explanations for candidate in each.candidates}
    may_be_limited = causes.keys() & _MAY_BE_LIMITED or WORDS[Cause.CREDITS] in candidates
    if may_be_limited and not math.isnan(last.ceiling):
        return _edge_level(values, last.ceiling)
    return around(values)


def _level_rates(rates: Rates, explanations: Sequence[Explanation], *, climbed_s: float) -> Floats:
    last, interval_s = rates.last, rates.interval_s
    latest_s = last.to_s - _MIN_INTERVALS * interval_s
    from_s = max(last.from_s, min(2 * climbed_s, latest_s))
    events = [
        each
        for each in explanations
        if (each.cause in _TEMPORARY and "stalls" not in each.evidence) or _has_recovered(each)
    ]
    inside = rates.t_s <= last.to_s
    for event in sorted(events, key=lambda each: -each.to_s):
        if abs(event.to_s - from_s) <= 2 * interval_s:
            earlier = [
                level for level in rates.plateaus if level.from_s < event.from_s - interval_s
            ]
            if earlier and abs(earlier[-1].level - last.level) <= _MAX_LEVEL_CHANGE * last.level:
                from_s = earlier[-1].from_s
        inside &= (rates.t_s <= event.from_s) | (rates.t_s - interval_s >= event.to_s)
    chosen = inside & (rates.t_s > from_s)
    if chosen.sum() < _MIN_INTERVALS:
        chosen = (rates.t_s > from_s) & (rates.t_s <= last.to_s)
    values: Floats = rates.iops[chosen]
    return values


def _has_recovered(event: Explanation) -> bool:
    """Return whether an event of unknown cause is a dip, which has no instant at which it fell."""
    names = event.evidence.keys()
    return event.cause is Cause.UNKNOWN and "before_iops" in names and "at_s" not in names


def at_upper_edge(limit: Explanation, rates: Rates) -> Explanation:
    """Return the explanation of a limit with the upper edge of the last rates as its level."""
    last = rates.last
    is_unknown = math.isnan(last.ceiling) or not last.level > 0
    if limit.cause not in LIMITS or is_unknown or limit.to_s < last.to_s:
        return limit
    above = f"{100 * last.ceiling / last.level - 100:.1f} %"
    return replace(
        limit,
        level=limit.level * last.ceiling / last.level,
        speaks_for=(*limit.speaks_for, f"rates never exceed their median by more than {above}"),
    )


def _cycle_mean(values: Floats) -> Level:
    """Return the mean over whole cycles of a stall and what follows it, with that of its halves."""
    is_empty = values == 0
    begins = np.flatnonzero(is_empty & ~np.roll(is_empty, 1))
    if len(begins) > 1:
        values = values[begins[0] : begins[-1]]
    mean, half = float(values.mean()), len(values) // 2
    parts = (values[:half], values[half:]) if half else ()
    off = max((abs(float(period.mean()) - mean) for period in parts), default=0.0)
    return Level(mean, mean - off, mean + off)


def _edge_level(values: Floats, edge: float) -> Level:
    """Return an upper edge; the limit may be a little above it, where it was hardly reached."""
    low, high = np.quantile(values, [0.75, 0.98])
    margin = _ROUNDING * edge
    return Level(edge, min(edge, float(low)) - margin, max(edge, float(2 * high - low)) + margin)


def around(values: Floats) -> Level:
    """Return the level of rates that noise moves to both sides.

    It is the mean of the middle half; autocorrelation widens its interval.
    """
    beyond = len(values) // 4
    level = float(np.sort(values)[beyond : len(values) - beyond].mean())
    if level <= 0:
        return Level(level, level, level)
    off = np.log(np.maximum(values, 0.01 * level) / level)
    spread = 1.4826 * median(np.abs(off))
    inflation = inflation_of(off / spread) if spread else 1.0
    error = _MIDDLE_LOSS * spread * inflation / math.sqrt(len(values))
    # Where noise is short, a second holds its mean; that of its factors is above their median.
    reach = _ERRORS * (1 + _FEW_INTERVALS / len(values)) * error + spread**2 / 2 + _ROUNDING
    return Level(level, level * math.exp(-reach), level * math.exp(reach))
