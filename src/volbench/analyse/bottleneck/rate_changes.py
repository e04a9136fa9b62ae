"""What made a rate change: steps, stalls and climbs of a run in, Explanations out."""

from __future__ import annotations

import math

import numpy as np

from volbench.analyse.bottleneck.burst_credits import likeliest, predicted_s
from volbench.analyse.bottleneck.cause import Cause, Explanation
from volbench.analyse.frames.observed import host_rows_in_run, quiet_spans
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.change_points import Change
from volbench.analyse.time.run_rates import Rates
from volbench.analyse.time.warmup_curve import cold_level, plateau_of, time_to_level
from volbench.model.campaign.target import VolumeKind
from volbench.units import format_capacity, format_count, format_duration

LEAST_STEP = 0.15
"""Smallest fall that is explained; below it a step is only told as such."""
_FLAT = 0.03
_NEAR_BASE = 0.05
_LEAST_STALL_S = 1.0
_STEAL_PERCENT = 3.0
_HELD_BACK = 0.5
"""Share of the pace of the fastest I/O below which a level is held for a throttle."""
_BACK = 0.9
"""Share of the earlier level at which a rate has recovered."""
_CLIMB = 0.3
"""Penalty from which a rise from the start is held for blocks that get warm."""


def explain_events(view: RunView, rates: Rates) -> tuple[Explanation, ...]:
    """Return what happened during a run, the earliest first."""
    stalls = _stalls(rates)
    cache = _cache(view, rates, stalls)
    found = [] if cache is None else [cache]
    if cache is None:
        found += [_stall(rates, *stall) for stall in stalls]
        found += _steps(view, rates)
    climb = None if found else _climb(rates)
    if climb is not None:
        found.append(climb)
    return tuple(sorted(found, key=lambda event: event.from_s))


def _stalls(rates: Rates) -> list[tuple[float, float]]:
    """Return begin and end of each time in which nothing completed, a second at least."""
    spans = quiet_spans(rates.t_s, rates.iops, interval_s=rates.interval_s)
    return [span for span in spans if span[1] - span[0] >= _LEAST_STALL_S - 1e-6]


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


def _cache(view: RunView, rates: Rates, stalls: list[tuple[float, float]]) -> Explanation | None:
    """Explain writes that were fast until something was full, and then stalled or crawled."""
    if rates.direction != "write" or rates.at_device:
        return None
    full_s = _full_at(rates, stalls)
    if full_s is None:
        return None
    before, after = rates.t_s <= full_s, rates.t_s > full_s
    fast = float(np.median(rates.iops[before]))
    slow = float(np.mean(rates.iops[after]))
    if not slow < 0.7 * fast or _is_declared(view, slow):
        return None
    taken = float(rates.bw_bytes_per_s[before].sum() * rates.interval_s)
    drained = float(rates.bw_bytes_per_s[after].mean())
    reasons = [
        (
            f"{format_count(fast)} IOPS for {format_duration(full_s)}, then "
            f"{format_count(slow)} on average"
        ),
        f"{format_capacity(taken)} written until then",
    ]
    if stalls:
        longest = max(end - begin for begin, end in stalls)
        reasons.append(f"{_times(len(stalls))} of up to {format_duration(longest)}")
    return Explanation(
        cause=Cause.CACHE_FULL,
        direction=rates.direction,
        from_s=full_s,
        to_s=float(rates.t_s[-1]),
        level=slow,
        speaks_for=tuple(reasons),
        speaks_against=_not_seen(view),
        evidence={
            "fast_iops": fast,
            "slow_iops": slow,
            "full_at_s": full_s,
            "cache_bytes": max(0.0, taken - drained * full_s),
            "drain_bytes_per_s": drained,
        },
    )


def _times(count: int) -> str:
    return "1 stall" if count == 1 else f"{count} stalls"


def _full_at(rates: Rates, stalls: list[tuple[float, float]]) -> float | None:
    """Return when a cache was full: before the first of several stalls, or at an uneven fall."""
    falls = [change for change in rates.changes if change.ratio <= 1 - LEAST_STEP]
    repeated = len(stalls) >= 2 or any(end - begin >= 5 for begin, end in stalls)
    if repeated and stalls[0][0] >= 2 * rates.interval_s:
        return stalls[0][0]
    if falls:
        after = rates.iops[rates.t_s > falls[0].t_s]
        level = float(np.median(after)) if len(after) else 0.0
        scatter = 1.4826 * float(np.median(np.abs(after - level))) if len(after) else 0.0
        if level == 0 or scatter > 3 * _FLAT * level:
            return falls[0].t_s
    return None


def _is_declared(view: RunView, iops: float) -> bool:
    base = view.run.limits.iops
    return base is not None and abs(iops / base - 1) <= _NEAR_BASE


def _not_seen(view: RunView) -> tuple[str, ...]:
    if view.run.volume.kind is VolumeKind.NBD or view.device.empty:
        return ("the cache itself cannot be observed",)
    return ()


def _steps(view: RunView, rates: Rates) -> list[Explanation]:
    """Explain falls of the level; a rise that ends one belongs to it."""
    found = []
    for place, change in enumerate(rates.changes):
        if change.ratio > 1 - LEAST_STEP or change.after == 0 or change.before == 0:
            continue
        later = rates.changes[place + 1 :]
        back = next((rise for rise in later if rise.after >= _BACK * change.before), None)
        if back is not None:
            found.append(_neighbour(view, rates, change, back))
        else:
            found.append(_fall(view, rates, change))
    return found


def _fall(view: RunView, rates: Rates, change: Change) -> Explanation:
    """Explain a fall that lasted: credits, the flash of the drive, or nothing known."""
    reasons: list[str] = []
    against: list[str] = []
    moved = float(rates.bw_bytes_per_s[rates.t_s <= change.t_s].sum() * rates.interval_s)
    evidence = {
        "at_s": change.t_s,
        "before_iops": change.before,
        "after_iops": change.after,
        "moved_bytes": moved,
    }
    flat = all(part.spread <= _FLAT for part in rates.plateaus)
    cause = Cause.UNKNOWN
    bucket = likeliest(view.run.limits, rates, change)
    if bucket is not None:
        cause = Cause.CREDITS
        reasons, against = bucket.tell()
    elif flat and _was_throttled(rates, change):
        cause = Cause.CREDITS
        reasons.append(f"both levels are flat to {100 * _FLAT:.0f} %, as throttles are")
        reasons.append("I/Os queued before the fall as well")
        against.append("no baseline was declared")
    predicted = predicted_s(view.run.limits, rates, change)
    if predicted is not None:
        evidence["predicted_s"] = predicted
    capacity = view.volume.size_bytes if view.volume is not None else None
    if cause is Cause.UNKNOWN and rates.direction == "write" and capacity:
        passes = moved / capacity
        evidence["passes"] = passes
        if not flat and passes >= 0.8:
            cause = Cause.WRITE_CLIFF
            reasons.append(f"it came after {passes:.1f} times the capacity had been written")
    step = f"from {format_count(change.before)} to {format_count(change.after)} IOPS"
    reasons.insert(0, f"a fall {step} at {format_duration(change.t_s)}")
    return Explanation(
        cause=cause,
        direction=rates.direction,
        from_s=change.t_s,
        to_s=float(rates.t_s[-1]),
        level=change.after,
        speaks_for=tuple(reasons),
        speaks_against=tuple(against) or _nothing_known(cause),
        evidence=evidence,
    )


def _was_throttled(rates: Rates, change: Change) -> bool:
    """Return whether I/Os waited before a fall: at the fastest I/O's pace there were far more."""
    unhindered = rates.depth / rates.lat_min_s if rates.lat_min_s > 0 else 0.0
    return rates.depth > 1 and change.before < _HELD_BACK * unhindered


def _nothing_known(cause: Cause) -> tuple[str, ...]:
    if cause is not Cause.UNKNOWN:
        return ()
    return ("no declared limit, no burst credits and no cache explain it",)


def _neighbour(view: RunView, rates: Rates, change: Change, back: Change) -> Explanation:
    """Explain a fall that went away again without any change of what was asked."""
    rows = host_rows_in_run(view)
    inside = rows[(rows["t_s"] > change.t_s) & (rows["t_s"] <= back.t_s)]
    steal = float(inside["steal_percent"].mean()) if len(inside) else math.nan
    length = format_duration(back.t_s - change.t_s)
    reasons = [
        (
            f"{format_count(change.before)} IOPS fell to {format_count(change.after)} for {length} "
            "and came back, while the job asked for the same"
        )
    ]
    against = []
    if steal >= _STEAL_PERCENT:
        reasons.append(f"{steal:.0f} % steal meanwhile")
    elif not math.isnan(steal):
        against.append("no steal meanwhile")
    return Explanation(
        cause=Cause.NEIGHBOUR,
        direction=rates.direction,
        from_s=change.t_s,
        to_s=back.t_s,
        level=change.after,
        speaks_for=tuple(reasons),
        speaks_against=tuple(against),
        evidence={"before_iops": change.before, "after_iops": change.after},
    )


def _climb(rates: Rates) -> Explanation | None:
    """Explain a rise from the start to a plateau by blocks that were touched for the first time."""
    if len(rates.iops) < 10:
        return None
    plateau = plateau_of(rates.iops)
    cold = cold_level(rates.t_s, rates.iops, plateau=plateau)
    to_90_s = time_to_level(rates.t_s, rates.iops, level=0.9 * plateau)
    third = len(rates.iops) // 3
    rises = float(np.mean(rates.iops[:third])) < float(np.mean(rates.iops[-third:]))
    if to_90_s is None or plateau <= 0 or 1 - cold / plateau < _CLIMB or not rises:
        return None
    if to_90_s < 3 * rates.interval_s:
        return None
    return Explanation(
        cause=Cause.WARMING,
        direction=rates.direction,
        from_s=0.0,
        to_s=to_90_s,
        level=cold,
        speaks_for=(
            f"IOPS rose from {format_count(cold)} to {format_count(plateau)}",
            f"90 % of that after {format_duration(to_90_s)}",
        ),
        speaks_against=("a burst that builds up or a neighbour that left would look the same",),
        evidence={"cold_iops": cold, "plateau_iops": plateau, "to_90_s": to_90_s},
    )
