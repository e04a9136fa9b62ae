"""Events that change the rate of a run, with their causes: falls, stalls, climbs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from volbench.analyse.bottleneck.hypotheses import MAX_FLAT_SPREAD, Fall, explain_fall, is_near
from volbench.analyse.bottleneck.volume_context import (
    FLASH,
    LOCAL,
    REMOTE,
    DeviceKind,
    Earlier,
    device_kind,
)
from volbench.analyse.frames.disturbed import disturbed
from volbench.analyse.frames.resample import median
from volbench.analyse.frames.run_view import RunView, host_rows_in_run
from volbench.analyse.time.change_points import Change, inflation_of
from volbench.analyse.time.run_rates import Rates, least_stall_s, rates_of, stall_spans
from volbench.analyse.time.warmup_curve import cold_level, plateau_of, time_to_level
from volbench.model.results.finding import WORDS, Cause, Explanation
from volbench.units import format_capacity, format_count, format_duration

# Smallest fall that is explained; smaller steps are only reported; chosen on the even seeds of the
# truth benchmark.
# Noticed by: benchmarks/truth.py
MIN_FALL = 0.15
# Stalls that are explained one by one; more make one sentence.
# Noticed by: test_rate_changes.py::test_many_stalls_are_one_explanation
_MAX_SINGLE_STALLS = 5
# Mean steal from which it is named as evidence of a dip.
# Noticed by: test_explain.py::test_a_neighbour_explains_a_temporary_drop
_MIN_DIP_STEAL_PERCENT = 3.0
# Share of the earlier level from which a rate has recovered; chosen on the even seeds of the truth
# benchmark.
# Noticed by: benchmarks/truth.py
_MIN_BACK = 0.9
# Penalty at the start from which a rise is explained; chosen on the even seeds of the truth
# benchmark.
# Noticed by: test_explain.py::test_warming_blocks_explain_a_climb
_MIN_CLIMB = 0.3
# Shortest climb: what is shorter is the start of fio, of a disk or of a connection.
# Noticed by: test_rate_changes.py::test_the_first_second_is_not_a_ramp_up
_MIN_CLIMB_S = 2.0
# Share of the first rate below which a run has become slow; chosen on the even seeds of the truth
# benchmark.
# Noticed by: benchmarks/truth.py
_MAX_SLOW = 0.7
# Share of disturbed intervals from which the host caused a dip: a majority.
# Noticed by: test_explain.py::test_cpu_steal_is_not_a_neighbour_on_the_volume
_MIN_DISTURBED = 0.5
# Share of the plateau from which an interval has reached it: 1 less the spread of a throttle.
# Noticed by: benchmarks/truth.py
_MIN_REACHED = 0.97
# Share of the intervals of a climb that may be at the plateau already; chosen on the even seeds of
# the truth benchmark.
# Noticed by: test_sustained_level.py::test_dips_in_the_first_seconds_are_not_a_ramp_up
_MAX_REACHED_SHARE = 0.3
# Distance of the mean of a climb from the plateau, in standard errors; chosen on the even seeds of
# the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_CLIMB_ERRORS = 2.5
# Intervals that both levels of a single step last at least; chosen on the even seeds of the truth
# benchmark.
# Noticed by: test_rate_changes.py::test_a_rise_in_one_step_may_have_another_cause_than_warm_blocks
_MIN_STEP_INTERVALS = 4
# A rise that ends by then may be the ramp-up of a drive, whose power states and queues take
# seconds.
# Noticed by: test_rate_changes.py::test_a_short_climb_of_a_volume_may_be_a_ramp_up
_MAX_RAMP_S = 15.0


def explain_events(view: RunView, rates: Rates, earlier: Earlier) -> tuple[Explanation, ...]:
    """Return the events of a run in order of time."""
    stalls = _stalls(view, rates)
    cache = _cache(view, rates, stalls, earlier)
    events = [] if cache is None else [cache]
    if cache is None:
        events += _stalled(rates, stalls)
        events += _steps(view, rates, stalls, earlier)
    climb = None if events else _climb(view, rates, earlier)
    if climb is not None:
        events.append(climb)
    return tuple(sorted(events, key=lambda event: event.from_s))


def _stalls(view: RunView, rates: Rates) -> list[tuple[float, float]]:
    """Return begin and end of each stall."""
    spans = stall_spans(view, rates.t_s, rates.iops, direction=rates.direction)
    least_s = least_stall_s(view, direction=rates.direction)
    return [span for span in spans if span[1] - span[0] >= least_s - 1e-6]


def _stalled(rates: Rates, stalls: list[tuple[float, float]]) -> list[Explanation]:
    """Explain each stall, or many of them together."""
    if len(stalls) <= _MAX_SINGLE_STALLS:
        return [_stall(rates, *stall) for stall in stalls]
    shortest, *_, longest = sorted(end - begin for begin, end in stalls)
    whole = _stall(rates, stalls[0][0], stalls[-1][1])
    reason = (
        f"no {rates.direction} completed in {len(stalls)} stalls of {format_duration(shortest)} to"
        f" {format_duration(longest)}"
    )
    return [
        replace(whole, speaks_for=(reason,), evidence={"stall_s": longest, "stalls": len(stalls)})
    ]


def _stall(rates: Rates, from_s: float, to_s: float) -> Explanation:
    return Explanation(
        cause=Cause.STALL,
        direction=rates.direction,
        from_s=from_s,
        to_s=to_s,
        level=0.0,
        speaks_for=(f"no {rates.direction} completed for {format_duration(to_s - from_s)}",),
        speaks_against=("the cause of the stall is unknown",),
        evidence={"stall_s": to_s - from_s},
    )


def _cache(
    view: RunView, rates: Rates, stalls: list[tuple[float, float]], earlier: Earlier
) -> Explanation | None:
    """Explain writes that were fast until a cache was full, and then stalled or crawled."""
    full_s = _full_at(rates, stalls)
    if rates.direction != "write" or rates.at_device or full_s is None:
        return None
    before, after = rates.t_s <= full_s, rates.t_s > full_s
    fast = median(rates.iops[before])
    slow = float(np.mean(rates.iops[after]))
    if not slow < _MAX_SLOW * fast or is_near(slow, view.run.limits.iops):
        return None
    fall = Fall(view, rates, Change(full_s, fast, slow), earlier, stalls)
    ranking = explain_fall(fall)
    if ranking.best is None or ranking.best.cause is not Cause.CACHE_FULL:
        return None
    drained = float(rates.bw_bytes_per_s[after].mean())
    reasons = (
        (
            f"{format_count(fast)} IOPS for {format_duration(full_s)}, then "
            f"{format_count(slow)} on average"
        ),
        f"{format_capacity(fall.moved_bytes)} written until then",
    )
    return Explanation(
        cause=Cause.CACHE_FULL,
        direction=rates.direction,
        from_s=full_s,
        to_s=float(rates.t_s[-1]),
        level=slow,
        speaks_for=(*reasons, *ranking.best.speaks_for),
        speaks_against=ranking.best.speaks_against,
        evidence={
            "fast_iops": fast,
            "slow_iops": slow,
            "full_at_s": full_s,
            "cache_bytes": max(0.0, fall.moved_bytes - drained * full_s),
            "drain_bytes_per_s": drained,
        },
        is_certain=ranking.is_alone,
    )


def _full_at(rates: Rates, stalls: list[tuple[float, float]]) -> float | None:
    """Return the time a cache filled up: before repeated stalls, or at an uneven fall."""
    if stalls and not (rates.iops[rates.t_s > stalls[0][1]] > 0).any():
        return None  # a hang to the end: nothing shows that a cache drained
    repeated = len(stalls) >= 2 or any(end - begin >= 5 for begin, end in stalls)
    if repeated and stalls[0][0] >= 2 * rates.interval_s:
        return stalls[0][0]
    falls = [change for change in rates.changes if change.ratio <= 1 - MIN_FALL]
    if falls:
        after = rates.iops[rates.t_s > falls[0].t_s]
        level = median(after) if len(after) else 0.0
        scatter = 1.4826 * median(np.abs(after - level)) if len(after) else 0.0
        if level == 0 or scatter > 3 * MAX_FLAT_SPREAD * level:
            return falls[0].t_s
    return None


def _steps(
    view: RunView, rates: Rates, stalls: list[tuple[float, float]], earlier: Earlier
) -> list[Explanation]:
    """Explain falls of the level; a rise that ends one belongs to it."""
    events = []
    for index, change in enumerate(rates.changes):
        if change.ratio > 1 - MIN_FALL or change.after == 0 or change.before == 0:
            continue
        later = rates.changes[index + 1 :]
        back = next((rise for rise in later if rise.after >= _MIN_BACK * change.before), None)
        if back is not None:
            if not _is_stalled(change, back, stalls):
                events.append(_dip(view, rates, change, back))
        else:
            fall = Fall(view, rates, change, earlier, stalls)
            events.append(_fall(fall))
            if not fall.is_flat(after=True):
                break  # what follows is part of an uneven level
    return events


def _is_stalled(change: Change, back: Change, stalls: list[tuple[float, float]]) -> bool:
    """Return whether most of a temporary fall is stalls, which are explained on their own."""
    inside = (max(0.0, min(end, back.t_s) - max(begin, change.t_s - 1)) for begin, end in stalls)
    return sum(inside) > (back.t_s - change.t_s) / 2


def _fall(fall: Fall) -> Explanation:
    """Explain a fall that lasted by the best hypothesis, or name the two best."""
    rates, change, ranking = fall.rates, fall.change, explain_fall(fall)
    evidence = {
        "at_s": change.t_s,
        "before_iops": change.before,
        "after_iops": change.after,
        "moved_bytes": fall.moved_bytes,
        "predicted_s": math.nan if fall.predicted_s is None else fall.predicted_s,
        "passes": fall.passes,
    }
    step = f"from {format_count(change.before)} to {format_count(change.after)} IOPS"
    seen = f"a fall {step} at {format_duration(change.t_s)}"
    best = ranking.best
    ranked = ranking.candidates if best is None else ()
    return Explanation(
        cause=Cause.UNKNOWN if best is None else best.cause,
        direction=rates.direction,
        from_s=change.t_s,
        to_s=float(rates.t_s[-1]),
        level=change.after,
        speaks_for=(seen, *(best.speaks_for if best else (each.words for each in ranked))),
        speaks_against=() if best is None else best.speaks_against,
        evidence={name: value for name, value in evidence.items() if math.isfinite(value)},
        is_certain=ranking.is_alone,
        candidates=tuple(WORDS[each.cause] for each in ranked),
    )


def _dip(view: RunView, rates: Rates, change: Change, back: Change) -> Explanation:
    """Explain a temporary fall under a constant load."""
    rows = host_rows_in_run(view)
    inside = rows[(rows["t_s"] > change.t_s) & (rows["t_s"] <= back.t_s)]
    steal = float(inside["steal_percent"].mean()) if len(inside) else math.nan
    length = format_duration(back.t_s - change.t_s)
    step = f"from {format_count(change.before)} to {format_count(change.after)} for {length}"
    reasons = [f"IOPS fell {step} and recovered under the same load"]
    against = []
    if steal >= _MIN_DIP_STEAL_PERCENT:
        reasons.append(f"{steal:.0f} % steal during the drop")
    elif not math.isnan(steal):
        against.append("no steal during the drop")
    kind = device_kind(view)
    inside_dip = (rates.t_s > change.t_s) & (rates.t_s <= back.t_s)
    is_noise = bool(disturbed(view).at(rates.t_s)[inside_dip].mean() >= _MIN_DISTURBED)
    is_shared = kind in REMOTE
    if is_noise:
        reasons.append("the host was busy during the drop")
    elif kind in LOCAL or kind in FLASH:
        against.append(f"{kind.value} has no other tenants")
    cliff = [WORDS[Cause.WRITE_CLIFF]] if rates.direction == "write" and kind in FLASH else []
    return Explanation(
        cause=Cause.HOST_NOISE if is_noise else (Cause.NEIGHBOUR if is_shared else Cause.UNKNOWN),
        direction=rates.direction,
        from_s=change.t_s,
        to_s=back.t_s,
        level=change.after,
        speaks_for=tuple(reasons),
        speaks_against=tuple(against),
        evidence={"before_iops": change.before, "after_iops": change.after},
        is_certain=False,
        candidates=() if is_shared or is_noise else (*cliff, "other load on this host"),
    )


def _climb(view: RunView, rates: Rates, earlier: Earlier) -> Explanation | None:
    """Explain a rise from the start to a plateau."""
    if len(rates.iops) < 10:
        return None
    plateau = plateau_of(rates.iops)
    cold = cold_level(rates.t_s, rates.iops, plateau=plateau)
    to_90_s = time_to_level(rates.t_s, rates.iops, level=0.9 * plateau)
    third = len(rates.iops) // 3
    rises = float(np.mean(rates.iops[:third])) < float(np.mean(rates.iops[-third:]))
    if to_90_s is None or plateau <= 0 or 1 - cold / plateau < _MIN_CLIMB or not rises:
        return None
    if to_90_s < max(_MIN_CLIMB_S, 3 * rates.interval_s) or not _is_climb(rates, plateau, to_90_s):
        return None
    half = median(rates.iops[len(rates.iops) // 2 :])
    early_s = time_to_level(rates.t_s, rates.iops, level=0.9 * min(plateau, half))
    cause, reasons, against = _why_it_rose(view, rates, earlier, early_s or to_90_s)
    is_step = cause is Cause.WARMING and _rose_at_once(rates)
    # Of published results nothing is known of the host and of what was done before: five of six
    # such rises were not those of blocks that warmed up. A host that is busy all the time may rest.
    is_busy = disturbed(view).at(rates.t_s).mean() >= _MIN_DISTURBED
    is_unknown = view.run.imported is not None or is_busy
    is_open = is_step or (cause is Cause.WARMING and is_unknown)
    return Explanation(
        cause=Cause.UNKNOWN if is_open else cause,
        direction=rates.direction,
        from_s=0.0,
        to_s=to_90_s,
        level=cold,
        speaks_for=(
            f"IOPS rose from {format_count(cold)} to {format_count(plateau)}",
            f"90 % of that after {format_duration(to_90_s)}",
            *reasons,
        ),
        speaks_against=(
            *against,
            "the rate rose in one step" if is_step else "other load that ended would look the same",
        ),
        evidence={"cold_iops": cold, "plateau_iops": plateau, "to_90_s": to_90_s},
        is_certain=False,
        candidates=(WORDS[Cause.WARMING], WORDS[Cause.NEIGHBOUR]) if is_open else (),
    )


def _rose_at_once(rates: Rates) -> bool:
    """Return whether a rate is flat before and after one step, as it is not while blocks warm."""
    return len(rates.plateaus) == 2 and all(
        level.spread <= MAX_FLAT_SPREAD
        and level.to_s - level.from_s >= _MIN_STEP_INTERVALS * rates.interval_s
        for level in rates.plateaus
    )


def _is_climb(rates: Rates, plateau: float, to_90_s: float) -> bool:
    """Return whether the rates before a time are lower than noise after it makes them.

    A constant rate with dips at its begin reaches its plateau right away.
    """
    early, late = rates.iops[rates.t_s <= to_90_s], rates.iops[rates.t_s > to_90_s]
    if not len(late) or float(np.mean(early >= _MIN_REACHED * plateau)) > _MAX_REACHED_SHARE:
        return False
    off = np.log(np.maximum(late, 0.01 * plateau) / median(late))
    spread = 1.4826 * median(np.abs(off))
    if not spread:
        return True
    error = spread * inflation_of(off / spread) / math.sqrt(len(early))
    below = float(np.log(median(late) / max(float(early.mean()), 0.01 * plateau)))
    return below >= _MIN_CLIMB_ERRORS * error


def _why_it_rose(
    view: RunView, rates: Rates, earlier: Earlier, to_90_s: float
) -> tuple[Cause, list[str], list[str]]:
    """Return the cause of a rise from the start, with the evidence for and against it.

    Blocks written before are not cold, nor are those of a local drive.
    """
    kind, before = device_kind(view), earlier.previous
    is_filled = earlier.has_filled(view)
    is_early = to_90_s <= _MAX_RAMP_S
    if is_early and kind is DeviceKind.UNKNOWN and view.run.imported is not None:
        return Cause.RAMP_UP, ["it took only seconds"], ["blocks that warm up would look the same"]
    if not (is_filled or kind in LOCAL or kind in FLASH):
        other = ["a ramp-up of the first seconds would look the same"] if is_early else []
        return Cause.WARMING, ["no earlier run is known to have written all its blocks"], other
    if before is not None and before.writes:
        slowed = rates_of(before, rates.direction)
        reasons, has_slowed = ["the previous run wrote to the same volume"], False
        if slowed is not None and slowed.last.level < _MAX_SLOW * slowed.plateaus[0].level:
            share, has_slowed = 100 * slowed.last.level / slowed.plateaus[0].level, True
            reasons.append(f"it ended at {share:.0f} % of its first rate")
        if has_slowed or kind not in REMOTE:
            return Cause.RECOVERY, reasons, []
    written = ["earlier runs had written its blocks"] if is_filled else [f"it is {kind.value}"]
    if to_90_s <= _MAX_RAMP_S:
        return Cause.RAMP_UP, written, []
    return Cause.UNKNOWN, [], [*written, "so its blocks were not cold"]
