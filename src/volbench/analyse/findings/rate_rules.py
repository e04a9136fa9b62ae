"""Rules on rates that changed: during a run, between repeats or rounds, and to nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings.rule import DECLARED, Observation, rule, several
from volbench.analyse.frames.design import MIN_REPEAT_RATIO
from volbench.analyse.frames.disturbed import clean_rate_per_s, disturbed
from volbench.analyse.frames.resample import median, median_step
from volbench.analyse.frames.run_view import (
    RunView,
    directions,
    rate_per_s,
    results_of,
    runtime_s,
    total,
)
from volbench.analyse.frames.workload_spec import SYNCHRONOUS
from volbench.analyse.time.rate_swings import Swing
from volbench.analyse.time.run_rates import least_stall_s, stall_spans
from volbench.analyse.time.steady_state import (
    MAX_DRIFT,
    MAX_RANGE,
    MAX_SLOPE,
    ROUNDS,
    Determination,
    Steadiness,
    Variable,
    determination,
    judge_last,
)
from volbench.model.profile.profile_settings import Until
from volbench.model.results.finding import Cause, Severity
from volbench.model.results.steadiness import State
from volbench.units import format_count, format_duration, format_latency, format_percent

# Length from which a drift is judged; chosen on the even seeds of the truth benchmark.
# Noticed by: benchmarks/truth.py
_MIN_DRIFT_S = 20.0
# The same of a step, which shows in fewer seconds, and so does noise that hides both; chosen on the
# even seeds of the truth benchmark. Noticed by: test_steady.py::test_a_short_run_is_not_judged
_MIN_STEP_S = 12.0
# Estimated drift that noise alone rarely shows: one in ten runs of 30 s that scatter by 20 %.
# Noticed by: test_steady.py::test_a_noisy_decline_is_warned_of_with_its_bound
_MIN_LARGE_DRIFT = 0.2
# Distance of a noisy drift from none, over the reach of its 95 % interval; chosen on the even seeds
# of the truth benchmark. Noticed by: benchmarks/truth.py
_MIN_DRIFT_OVER_REACH = 1.1
# Length of begin and end in which a step hardly moves the mean.
# Noticed by: test_steady.py::test_a_slow_start_is_a_note
_EDGE_S = 2.0
# The same as a share of the run. Noticed by: test_steady.py::test_a_slow_start_is_a_note
_EDGE_SHARE = 0.05
# Share of the run from which its slowest I/O matters, whatever else completed.
# Noticed by: test_machine.py::test_the_slowest_io_without_a_series_is_a_note
_MIN_RUN_SHARE = 0.05
# The same over the mean latency, which that of syncs raises.
# Noticed by: test_machine.py::test_the_slowest_io_without_a_series_is_a_note
_MIN_OVER_MEAN = 4.0
# Share of the allowed time from which a run reached its deadline, as fio rounds.
# Noticed by: test_steady.py::test_a_deadline_before_a_steady_rate_is_reported
_MIN_DEADLINE_SHARE = 0.95
# Upper over lower level of a swing from which it is a warning: the mean is neither of them.
# Noticed by: test_steady.py::test_a_rate_that_alternates_is_not_steady
_MIN_SWING = 2.0
# Intervals of a period in which a stall is an exception.
# Noticed by: test_steady.py::test_periodic_stalls_are_named
_MIN_STALL_PERIODS = 3
# Longest latency over a time without completions, from which I/Os of a replay waited for the
# volume. Noticed by: test_steady.py::test_a_replay_is_idle_or_stalls
_MIN_STALLED_SHARE = 0.7
# Longest latency over what an interval lacks, up to which a stall explains both.
# Noticed by: test_steady.py::test_periodic_stalls_are_named
_MAX_OF_LACK = 1.5
# Last over first quarter from which a short or noisy run has moved, whatever noise adds.
# Noticed by: test_steady.py::test_a_rise_by_nineteen_is_a_warning_in_a_short_run_too
_MIN_FAR = 3.0
# I/Os of an interval from which its rate is no counting noise (14 % at 50).
# Noticed by: test_steady.py::test_a_rise_by_nineteen_is_a_warning_in_a_short_run_too
_MIN_COUNTED_IOS = 50
# Upper over lower end of an interval that is worth its numbers.
# Noticed by: test_steady.py::test_no_sentence_holds_an_invalid_number
_MAX_KNOWN = 10.0
# Drift from which a percentage of the median is no longer understood.
# Noticed by: test_steady.py::test_no_sentence_holds_an_invalid_number
_MAX_PERCENT = 1.0
_MOVES = frozenset(
    {
        *(Cause.CREDITS, Cause.SLOWER, Cause.NEIGHBOUR, Cause.HOST_NOISE),
        *(Cause.WARMING, Cause.RAMP_UP, Cause.STALL),
    }
)
_MAX_STALLS = 5
# Clients of a step whose median is a rate, and how many times slower than it a client is named.
# Noticed by: test_clients.py::test_a_client_far_slower_than_its_peers_is_named
_MIN_CLIENTS, _SLOW_CLIENT = 3, 5


@rule(
    "the rate was not steady",
    looks_at=(
        "IOPS over time of each direction, as in the verdicts frame: medians of blocks without a"
        " change point, and an upper 95 % bound of the Theil-Sen drift over the run within 10 % of"
        " the median. Runs of less than 12 s are not judged, nor is a drift in less than 20 s,"
        " unless it is threefold. A series that is only noisy is a note with the interval of its"
        " level; it is a warning if its estimated drift exceeds 20 % and 1.1 times its uncertainty"
        " in 20 s or more, or if the last quarter is three times the first or a third of it. A"
        " rate that alternates between two levels, the upper at least twice the lower, is a"
        " warning, unless the run lasts 500 times as long as it takes to return. It is named as"
        " stalls if the slowest I/O took about as long as the lower level lacks. A note is also a"
        " series that moved by at most 10 %, that stepped only within 5 % (at least 2 s) of its"
        " begin or end and has its usual level as its mean, whose host was disturbed for more than"
        " half of the time, or that the CPU limited. Jobs with `thinktime` or `latency_target` are"
        " left out. Jobs with `until: steady` are judged by their last window if they reached"
        " their deadline. Of a profile with `rounds`, the tracking variables are judged at the last"
        " run of a tracked job, as in `volbench show --rounds`, by the criterion of SNIA's"
        " Performance Test Specification 2.0.2 (2.1.24): over five rounds the range is at most"
        f" {format_percent(MAX_RANGE)} of the mean, and the fitted line changes by at most"
        f" {format_percent(MAX_SLOPE)}."
    ),
    why="The mean of a changing rate depends on the length of the run.",
    advice=(
        "Look at the time series. Run longer, use until: steady, or warm the volume up first,"
        " and report the level after the last step. Rounds that still fall need more"
        " preconditioning or a larger rounds.max."
    ),
)
def not_steady(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each direction that was long enough to be judged and is not steady, and rounds."""
    yield from _unsteady_rounds(view, context)
    if any(workload.pauses for workload in view.workloads):
        return
    for direction in directions(view):
        if view.run.until is not None:
            yield from _missed_deadline(view, direction, view.run.until)
            continue
        judged = context.steadiness(view, direction)
        length_s = judged.to_s - judged.from_s
        ends = _ends(view, direction)
        is_far = ends is not None and max(ends) >= _MIN_FAR * min(ends)
        is_slow = judged.state is State.DRIFTING and not is_far
        least_s = _MIN_DRIFT_S if is_slow else _MIN_STEP_S
        if judged.state in {State.STEADY, State.TOO_SHORT} or length_s < least_s:
            continue
        if (swing := context.swing(view, direction)) and judged.state is State.NOISY:
            message = (
                f"IOPS alternate between {format_count(swing.low)} and {format_count(swing.high)},"
                f" every {format_duration(swing.period_s)} on average"
                f"{_stall_words(view, direction, swing)}."
            )
            severity = None if swing.high >= _MIN_SWING * swing.low else Severity.NOTE
        elif judged.state is not State.NOISY:
            message = (
                f"{_change_words(judged, ends)}{_cause_words(view, direction, context)}."
                f"{_candidates(view, direction, context)}"
            )
            _, iops = rate_per_s(view, "iops", direction=direction)
            is_near = judged.median > 0 and abs(iops.mean() / judged.median - 1) <= MAX_DRIFT
            is_brief = _is_start_or_end(judged) and is_near
            severity = Severity.NOTE if is_brief or _is_small(judged) else None
        else:
            message = f"{_change_words(judged, ends)}{_level_words(view, direction, context)}."
            is_long = length_s >= _MIN_DRIFT_S
            has_moved = (is_long and _declines(judged)) or is_far
            severity = Severity.WARNING if has_moved else Severity.NOTE
        if by_host := _host_words(view, direction, context):
            message, severity = f"{message} {by_host}", Severity.NOTE
        yield _steadiness_observation(judged, message, direction, severity)


def _stall_words(view: RunView, direction: str, swing: Swing) -> str:
    """Return that the lower level is that of stalls, if the slowest I/O took what it lacks."""
    t_s, _ = rate_per_s(view, "iops", direction=direction)
    lacks_s = (1 - swing.low / swing.high) * median_step(t_s)
    slowest_s = max(row["lat_max_s"] for row in results_of(view) if row.direction == direction)
    if swing.intervals < _MIN_STALL_PERIODS or not lacks_s <= slowest_s <= _MAX_OF_LACK * lacks_s:
        return ""
    return f", as if nothing completed for {format_duration(lacks_s)} each time"


def _ends(view: RunView, direction: str) -> tuple[float, float] | None:
    """Return the medians of the first and last quarter; None where they are counting noise."""
    t_s, iops = rate_per_s(view, "iops", direction=direction)
    quarter = len(iops) // 4
    if not quarter:
        return None
    first, last = median(iops[:quarter]), median(iops[-quarter:])
    is_counted = max(first, last) * median_step(t_s) >= _MIN_COUNTED_IOS
    return (first, last) if is_counted else None


def _host_words(view: RunView, direction: str, context: Context) -> str:
    """Return why the host, not the volume, moved the rate; empty if it did not."""
    t_s, _ = rate_per_s(view, "iops", direction=direction)
    share = float(disturbed(view).at(t_s).mean()) if len(t_s) else 0.0
    if share and disturbed(view).leaves_few(t_s):
        return f"The host disturbed {format_percent(share)} of the intervals: see host-noise."
    causes = (each.cause for each in context.explanations(view) if each.direction == direction)
    return "The CPU limited the run, not the volume." if next(causes, None) is Cause.CPU else ""


def _level_words(view: RunView, direction: str, context: Context) -> str:
    level = context.level(view, direction)
    if level is None or not math.isfinite(level.reach):
        return ""
    if not level.high_iops <= _MAX_KNOWN * level.low_iops:
        return "; the level is uncertain by more than 10x"
    return (
        f"; the level is {format_count(level.iops)} ({format_count(level.low_iops)} to"
        f" {format_count(level.high_iops)})"
    )


def _is_small(judged: Steadiness) -> bool:
    """Return whether all levels, or both ends of a drift, lie within 10 % of each other."""
    if judged.state is State.DRIFTING:
        return abs(judged.drift) <= MAX_DRIFT
    levels = [judged.changes[0].before, *(change.after for change in judged.changes)]
    return min(levels) > 0 and max(levels) / min(levels) - 1 <= MAX_DRIFT


def _declines(judged: Steadiness) -> bool:
    """Return whether a noisy series moved by more than 20 %, which noise alone rarely shows."""
    reach = judged.drift_bound - abs(judged.drift)
    return abs(judged.drift) > max(_MIN_LARGE_DRIFT, _MIN_DRIFT_OVER_REACH * reach)


def _is_start_or_end(judged: Steadiness) -> bool:
    """Return whether it only stepped while it started or ended, which hardly moves the mean."""
    edge_s = max(_EDGE_S, _EDGE_SHARE * (judged.to_s - judged.from_s))
    return judged.state is State.STEPPED and all(
        change.t_s <= judged.from_s + edge_s or change.t_s >= judged.to_s - edge_s
        for change in judged.changes
    )


def _missed_deadline(view: RunView, direction: str, until: Until) -> Iterator[Observation]:
    """Yield that a job that was to run until it is steady ran out of time."""
    allowed_s = max((workload.runtime_s for workload in view.workloads), default=0.0)
    if runtime_s(view) < _MIN_DEADLINE_SHARE * allowed_s:
        return
    t_s, iops = clean_rate_per_s(view, "iops", direction=direction)
    judged = judge_last(t_s, iops, window_s=until.window_s, block_s=until.block_s)
    if judged.state is not State.STEADY:
        message = f"Not steady after {format_duration(allowed_s)}, the deadline of until: steady"
        yield _steadiness_observation(judged, f"{message}. {_change_words(judged)}.", direction)


def _steadiness_observation(
    judged: Steadiness, message: str, direction: str, severity: Severity | None = None
) -> Observation:
    return Observation(
        message,
        {
            "verdict": judged.state.value,
            "median_iops": judged.median,
            "drift_percent": 100 * judged.drift,
            "drift_bound_percent": 100 * judged.drift_bound,
            "spread_percent": 100 * judged.spread,
            "changes": float(len(judged.changes)),
        },
        direction,
        (judged.from_s, judged.to_s),
        severity,
    )


def _cause_words(view: RunView, direction: str, context: Context) -> str:
    causes = [
        explanation.words
        for explanation in context.explanations(view)
        if explanation.direction == direction
        and (explanation.cause in _MOVES or explanation.candidates)
    ]
    return f" ({'; '.join(dict.fromkeys(causes))})" if causes else ""


def _candidates(view: RunView, direction: str, context: Context) -> str:
    """Return what may have made the rate fall between two flat levels, and what would decide."""
    for each in context.explanations(view):
        if each.direction == direction and each.cause is Cause.SLOWER and each.candidates:
            return f" It may be {'; '.join(each.candidates)}."
    return ""


def _change_words(judged: Steadiness, ends: tuple[float, float] | None = None) -> str:
    """Return the verdict in words: rates of both ends say more than a large percentage."""
    around = f"(median {format_count(judged.median)})"
    way = "up" if judged.drift > 0 else "down"
    match judged.state:
        case State.STEPPED:
            steps = [
                f"from {format_count(change.before)} to {format_count(change.after)} at"
                f" {format_duration(change.t_s)}"
                for change in judged.changes[:3]
            ]
            more = len(judged.changes) - len(steps)
            sentence = f"IOPS stepped {', '.join(steps)}" + (f" and {more} more" if more else "")
        case State.DRIFTING if ends is not None and (ends[1] > ends[0]) == (judged.drift > 0):
            first, last = map(format_count, ends)
            change = abs(ends[1] / ends[0] - 1) if ends[0] else math.inf
            by = f" by {format_percent(change)}" if change < _MAX_PERCENT else ""
            sentence = f"IOPS drifted {way}{by}, from {first} in the first quarter to {last} in the"
            sentence += " last"
        case State.DRIFTING if abs(judged.drift) < _MAX_PERCENT:
            # The line of the drift has the median in its middle.
            change = abs(judged.drift / (1 - judged.drift / 2))
            by = f" by {format_percent(change)}" if change < _MAX_PERCENT else ""
            sentence = f"IOPS drifted {way}{by} {around}"
        case State.DRIFTING:
            sentence = f"IOPS drifted {way} {around}"
        case State.TOO_SHORT:
            sentence = f"The last {judged.to_s - judged.from_s:.0f} s are too short to judge"
        case _ if not judged.median > 0:
            sentence = "Most intervals are empty: they are too short to judge so low a rate"
        case _ if judged.drift_bound < _MAX_PERCENT:
            sentence = (
                f"IOPS were too noisy {around} to call them steady: a drift of up to"
                f" {format_percent(judged.drift_bound)} cannot be excluded"
            )
        case _:
            sentence = f"IOPS were too noisy {around} to say how far they drifted"
    return sentence


@rule(
    "repeats of a workload, or clients of a step, differ",
    looks_at=(
        "Valid repeats of a job on one volume (rounds of a profile are left out): the IOPS of"
        " the fastest over those of the slowest, from 2 on (volbench's own choice). One finding,"
        " at the repeat farthest from the median; of two repeats, at the second. Of three or more"
        " clients of a step, each with at most a fifth of the median."
    ),
    why="A mean or median of such repeats is a rate that no run had, and intervals are wide.",
    advice=(
        "Look at the runs over time: credits, caches, a warm-up or other load on the volume or"
        " host differed between them. Remove the cause, and repeat them."
    ),
)
def uneven_repeats(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each direction whose repeats differ twofold, at the one farthest from their median."""
    yield from _slow_clients(view, context)
    repeats = context.repeats.get(view.run.id, ())
    for direction in directions(view):
        rates = [(total(each, "iops", direction=direction), each) for each in repeats]
        known = [(rate, each) for rate, each in rates if rate > 0]
        if _ratio([rate for rate, _ in known]) < MIN_REPEAT_RATIO:
            continue
        kept = [(rate, each) for rate, each in known if _is_valid(each, context)]
        valid = [rate for rate, _ in kept]
        if (ratio := _ratio(valid)) >= MIN_REPEAT_RATIO:
            logs = np.log(valid)
            apart = np.abs(logs - median(logs)).round(9)
            odd = kept[len(kept) - 1 - int(np.argmax(apart[::-1]))][1]
            yield Observation(
                f"IOPS of the {len(valid)} repeats differ by a factor of {ratio:.2g}:"
                f" {format_count(min(valid))} to {format_count(max(valid))}.",
                {"repeats": float(len(valid)), "min_iops": min(valid), "max_iops": max(valid)},
                direction,
                run=odd.run.id,
            )


def _slow_clients(view: RunView, context: Context) -> Iterator[Observation]:
    """Yield each client that is far slower than those of its step, at the step's first run."""
    if not view.run.step:
        return
    step = [context.by_id[run.id] for run in context.step(view) if run.id in context.finished]
    if len(step) < _MIN_CLIENTS or view.run.id != step[0].run.id:
        return
    rates = [total(peer, "iops") for peer in step]
    middle = float(median(np.array(rates)))
    for run, rate in zip((peer.run for peer in step), rates, strict=True):
        if rate * _SLOW_CLIENT <= middle:
            yield Observation(
                f"{run.client_name} did {format_count(rate)} IOPS, and the median of the"
                f" {len(step)} clients of its step is {format_count(middle)}.",
                {"iops": rate, "median_iops": middle},
                run=run.id,
            )


def _ratio(rates: Sequence[float]) -> float:
    return max(rates) / min(rates) if rates else 0.0


def _is_valid(view: RunView, context: Context) -> bool:
    others = [
        one
        for one in DECLARED.values()
        if one is not uneven_repeats and view.run.phase in one.phases
    ]
    found = (finding for one in others for finding in one.findings(view, context))
    return not any(finding.severity is Severity.INVALID for finding in found)


def _unsteady_rounds(view: RunView, context: Context) -> Iterator[Observation]:
    rounds = view.campaign.rounds.get(view.run.profile)
    tracked = context.tracked.get(view.run.profile)
    if rounds is None or not tracked or tracked[-1].run.id != view.run.id:
        return
    summary = pd.concat([tracked_view.summary for tracked_view in tracked], ignore_index=True)
    determined = determination(summary, rounds, profile=view.run.profile)
    if not determined.is_steady:
        yield _not_determined(view.run.profile, determined)


def _not_determined(profile: str, determined: Determination) -> Observation:
    moving = [variable for variable in determined.variables if not variable.judged.steady]
    if determined.window is None:
        why = f"the criterion needs {ROUNDS} rounds"
    else:
        why = f"over the last {ROUNDS} rounds {several([_variable_words(each) for each in moving])}"
    return Observation(
        f"Profile {profile}: {determined.words}: {why}.",
        {
            "rounds": float(determined.rounds),
            "most_rounds": float(determined.max_rounds),
            "not_steady": ", ".join(variable.track.name for variable in moving),
            "range_percent": _largest_percent(variable.judged.range_ratio for variable in moving),
            "slope_percent": _largest_percent(variable.judged.slope_ratio for variable in moving),
        },
    )


def _variable_words(variable: Variable) -> str:
    judged, name = variable.judged, variable.track.name
    if math.isnan(judged.range_ratio):
        return f"{name} lacks a value"
    spread, change = format_percent(judged.range_ratio), format_percent(judged.slope_ratio)
    return f"{name} ranged over {spread} of its mean and changed by {change}"


def _largest_percent(ratios: Iterable[float]) -> float:
    return max((100 * ratio for ratio in ratios if not math.isnan(ratio)), default=math.nan)


@rule(
    "no I/O completed for a second or longer",
    looks_at=(
        "Intervals without completions, together at least 1 s, as long as ten I/Os take on "
        "average, and four times the mean latency. With one I/O in flight, also the longest "
        "latency. With more and without a series, the longest latency is a note if it is 5 % "
        "of the runtime. Jobs with pauses (thinktime, latency_target) get a note. The five "
        "longest stalls are reported."
    ),
    why=(
        "A stall blocks everything that uses the volume, and means and most percentiles hide"
        " it. A full write-back cache can stall for minutes."
    ),
    advice=(
        "Look at the time series. Measure longer to see whether it repeats, and check the cache"
        " settings of the host and the provider."
    ),
)
def stall(view: RunView, _: Context) -> Iterator[Observation]:
    """Yield the stalls; of many, the longest."""
    t_s, iops = rate_per_s(view, "iops")
    mean_iops = total(view, "iops")
    if math.isnan(mean_iops) and len(iops):  # logs without a result
        mean_iops = float(iops.mean())
    if not mean_iops > 0:
        return
    paused = any(workload.pauses for workload in view.workloads)
    least_s = least_stall_s(view)
    spans = [
        (start, end)
        for start, end in stall_spans(view, t_s, iops, direction=None)
        if end - start >= least_s - 1e-6 and not _is_idle(view, end - start)
    ]
    longest = sorted(spans, key=lambda span: span[0] - span[1])[:_MAX_STALLS]
    for start, end in sorted(longest):
        more = f" (one of {len(spans)} stalls)" if len(spans) > 1 else ""
        more += ". The job was asked to pause (thinktime or latency_target)" if paused else ""
        yield Observation(
            f"No I/O completed for {format_duration(end - start)}, from {format_duration(start)} on"
            f"{more}.",
            {"stall_s": end - start, "stalls": float(len(spans)), "mean_iops": mean_iops},
            window=(start, end),
            severity=Severity.NOTE if paused else None,
        )
    if not spans and not paused:
        yield from _slowest_io(view, least_s=least_s)


def _is_idle(view: RunView, span_s: float) -> bool:
    """Return whether a replay had nothing to do: no I/O took as long as nothing completed."""
    if not any("read_iolog" in workload.options for workload in view.workloads):
        return False
    latencies = (result["lat_max_s"] for result in results_of(view, with_syncs=True))
    known = [latency for latency in latencies if not math.isnan(latency)]
    return bool(known) and max(known) < _MIN_STALLED_SHARE * span_s


def _slowest_io(view: RunView, *, least_s: float) -> Iterator[Observation]:
    """Yield the longest I/O or sync: with one in flight nothing completed while it took."""
    in_flight = sum(
        workload.numjobs * (1 if workload.engine in SYNCHRONOUS else workload.depth)
        for workload in view.workloads
    )
    if in_flight == 1:
        end, severity = " with no other I/O in flight", None
    elif view.series.empty:
        least_s = max(least_s, _MIN_RUN_SHARE * runtime_s(view))
        end, severity = (
            "; without a time series it is unknown whether others completed meanwhile",
            Severity.NOTE,
        )
    else:
        return
    for result in results_of(view, with_syncs=True):
        longest = result["lat_max_s"]
        if longest >= max(least_s, _MIN_OVER_MEAN * result["lat_mean_s"]):  # never true for NaN
            yield Observation(
                f"One {result.direction} took {format_latency(longest)}{end}.",
                {"stall_s": longest, "mean_iops": total(view, "iops")},
                result.direction,
                severity=severity,
            )
