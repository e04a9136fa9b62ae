"""Events that change the rate of a run, with their causes: falls, stalls, climbs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from volbench.analyse.bottleneck.lasting_falls import MAX_FLAT_SPREAD, Fall, explain_fall, is_near
from volbench.analyse.bottleneck.volume_context import (
    FLASH,
    LOCAL,
    REMOTE,
    DeviceKind,
    Earlier,
    device_kind,
)
from volbench.analyse.frames.disturbed import LOST_CPU, disturbed
from volbench.analyse.frames.resample import median
from volbench.analyse.frames.run_view import RunView, host_rows_in_run
from volbench.analyse.time.change_points import Change, inflation_of
from volbench.analyse.time.run_rates import Rates, least_stall_s, stall_spans
from volbench.analyse.time.warmup_curve import cold_level, plateau_of, time_to_level
from volbench.model.results.finding import WORDS, Cause, Explanation
from volbench.units import counted_noun, format_capacity, format_count, format_duration

# Smallest fall that is explained; smaller steps are only reported; chosen on the even seeds of the
# truth benchmark. Noticed by: benchmarks/truth.py
MIN_FALL = 0.15
# Stalls that are explained one by one; more make one sentence.
# Noticed by: test_rate_changes.py::test_many_stalls_are_one_explanation
_MAX_SINGLE_STALLS = 5
# Mean steal from which it is named as evidence of a dip.
# Noticed by: test_explain.py::test_a_neighbour_explains_a_temporary_drop
_MIN_DIP_STEAL_PERCENT = 3.0
# Share of the earlier level from which a rate has recovered; chosen on the even seeds of the truth
# benchmark. Noticed by: benchmarks/truth.py
_MIN_BACK = 0.9
# Penalty at the start from which a rise is explained; chosen on the even seeds of the truth
# benchmark. Noticed by: test_explain.py::test_warming_blocks_explain_a_climb
_MIN_CLIMB = 0.3
# Shortest climb: what is shorter is the start of fio, of a disk or of a connection.
# Noticed by: test_rate_changes.py::test_the_first_second_is_not_a_ramp_up
_MIN_CLIMB_S = 2.0
# Share of the first rate below which a run that stalls again and again has become slow; chosen on
# the even seeds of the truth benchmark. Noticed by: benchmarks/truth.py
_MAX_SLOW = 0.7
# A single stall from which the rest of a run may be slow because of it.
# Noticed by: test_lasting_falls.py::test_writes_that_stall_repeatedly_have_become_slow
_MIN_LONG_STALL_S = 5.0
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
# the truth benchmark. Noticed by: benchmarks/truth.py
_MIN_CLIMB_ERRORS = 2.5
# Intervals that both levels of a single step last at least; chosen on the even seeds of the truth
# benchmark.
# Noticed by: test_rate_changes.py::test_a_rise_in_one_step_may_have_another_cause_than_warm_blocks
_MIN_STEP_INTERVALS = 4
# A rise that ends by then may be the ramp-up of a drive, whose power states and queues take
# seconds. Noticed by: test_rate_changes.py::test_a_short_climb_of_a_volume_may_be_a_ramp_up
_MAX_RAMP_S = 15.0
_DIPS_OF_DRIVES = WORDS[Cause.HOST_NOISE], "background work of the drive"


def explain_events(view: RunView, rates: Rates, earlier: Earlier) -> tuple[Explanation, ...]:
    """Return the events of a run in order of time."""
    least_s = least_stall_s(view, direction=rates.direction)
    spans = stall_spans(view, rates.t_s, rates.iops, direction=rates.direction)
    stalls = [(begin, end) for begin, end in spans if end - begin >= least_s - 1e-6]
    if slowdown := _slowdown(view, rates, stalls):
        return (slowdown,)
    events = [*_stall_events(rates, stalls), *_fall_events(view, rates, stalls)]
    if not events and (climb := _climb(view, rates, earlier)):
        return (climb,)
    return tuple(sorted(events, key=lambda event: event.from_s))


def _stall_events(rates: Rates, stalls: list[tuple[float, float]]) -> list[Explanation]:
    if len(stalls) <= _MAX_SINGLE_STALLS:
        return [_stall_event(rates, *stall) for stall in stalls]
    shortest, *_, longest = sorted(end - begin for begin, end in stalls)
    whole = _stall_event(rates, stalls[0][0], stalls[-1][1])
    reason = (
        f"no {rates.direction} completed in {len(stalls)} stalls of {format_duration(shortest)} to"
        f" {format_duration(longest)}"
    )
    return [
        replace(whole, speaks_for=(reason,), evidence={"stall_s": longest, "stalls": len(stalls)})
    ]


def _stall_event(rates: Rates, from_s: float, to_s: float) -> Explanation:
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


def _slowdown(view: RunView, rates: Rates, stalls: list[tuple[float, float]]) -> Explanation | None:
    """Explain writes that were fast at first and then stalled again and again."""
    if rates.direction != "write" or rates.at_device or not stalls:
        return None
    begin_s, end_s = stalls[0]
    is_repeated = len(stalls) >= 2 or end_s - begin_s >= _MIN_LONG_STALL_S
    has_resumed = bool((rates.iops[rates.t_s > end_s] > 0).any())  # else the run hung to its end
    if not (is_repeated and has_resumed) or begin_s < 2 * rates.interval_s:
        return None
    before, after = rates.t_s <= begin_s, rates.t_s > begin_s
    fast, slow = median(rates.iops[before]), float(np.mean(rates.iops[after]))
    if not slow < _MAX_SLOW * fast or is_near(slow, view.run.limits.iops):
        return None
    moved_bytes = float(rates.bw_bytes_per_s[before].sum() * rates.interval_s)
    longest = format_duration(max(end - begin for begin, end in stalls))
    return Explanation(
        cause=Cause.SLOWER,
        direction=rates.direction,
        from_s=begin_s,
        to_s=float(rates.t_s[-1]),
        level=slow,
        speaks_for=(
            (
                f"{format_count(fast)} IOPS for {format_duration(begin_s)}, then"
                f" {format_count(slow)} on average"
            ),
            f"{format_capacity(moved_bytes)} written until then",
            f"{counted_noun(len(stalls), 'stall')} of up to {longest}",
        ),
        evidence={
            "at_s": begin_s,
            "before_iops": fast,
            "after_iops": slow,
            "moved_bytes": moved_bytes,
            "stalls": float(len(stalls)),
        },
    )


def _fall_events(
    view: RunView, rates: Rates, stalls: list[tuple[float, float]]
) -> list[Explanation]:
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
            fall = Fall(view, rates, change, has_stalled=bool(stalls))
            events.append(explain_fall(fall))
            if not fall.is_flat(after=True):
                break  # what follows is part of an uneven level
    return events


def _is_stalled(change: Change, back: Change, stalls: list[tuple[float, float]]) -> bool:
    inside = (max(0.0, min(end, back.t_s) - max(begin, change.t_s - 1)) for begin, end in stalls)
    return sum(inside) > (back.t_s - change.t_s) / 2


def _dip(view: RunView, rates: Rates, change: Change, back: Change) -> Explanation:
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
        candidates=() if is_shared or is_noise else _DIPS_OF_DRIVES,
    )


def _climb(view: RunView, rates: Rates, earlier: Earlier) -> Explanation | None:
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
    cause, reasons, against = _why_it_rose(view, earlier, early_s or to_90_s)
    is_step = cause is Cause.WARMING and _rose_at_once(rates)
    # Of published results nothing is known of the host and of what was done before: five of six
    # such rises were not those of blocks that warmed up.
    has_rested = _has_rested(view, rates, to_90_s)
    is_unknown = view.run.imported is not None or has_rested
    is_open = is_step or (cause is Cause.WARMING and is_unknown)
    other = Cause.HOST_NOISE if has_rested else Cause.NEIGHBOUR
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
        candidates=(WORDS[Cause.WARMING], WORDS[other]) if is_open else (),
    )


def _has_rested(view: RunView, rates: Rates, to_90_s: float) -> bool:
    """Return whether a host disturbed most of a run, and less of it after a climb than in it."""
    noise = disturbed(view)
    if noise.at(rates.t_s).mean() < _MIN_DISTURBED:
        return False
    if any(flags.mean() >= _MIN_DISTURBED for by, flags in noise.by.items() if by not in LOST_CPU):
        return True
    rows = host_rows_in_run(view)
    lost = rows["steal_percent"].fillna(0) + rows["tool_wait_percent"].fillna(0)
    is_early = rows["t_s"] <= to_90_s
    return bool(lost[is_early].mean() > lost[~is_early].mean())


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
    view: RunView, earlier: Earlier, to_90_s: float
) -> tuple[Cause, list[str], list[str]]:
    """Return the cause of a rise from the start, with the evidence for and against it.

    Blocks written before are not cold, nor are those of a local drive.
    """
    kind = device_kind(view)
    is_filled = earlier.has_filled(view)
    is_early = to_90_s <= _MAX_RAMP_S
    if is_early and kind is DeviceKind.UNKNOWN and view.run.imported is not None:
        return Cause.RAMP_UP, ["it took only seconds"], ["blocks that warm up would look the same"]
    if not (is_filled or kind in LOCAL or kind in FLASH):
        other = ["a ramp-up of the first seconds would look the same"] if is_early else []
        return Cause.WARMING, ["no earlier run is known to have written all its blocks"], other
    written = ["earlier runs had written its blocks"] if is_filled else [f"it is {kind.value}"]
    if to_90_s <= _MAX_RAMP_S:
        return Cause.RAMP_UP, written, []
    return Cause.UNKNOWN, [], [*written, "so its blocks were not cold"]
