"""not-steady: one number stands for a run whose rate moved."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.cause import WORDS, Cause
from volbench.analyse.findings.rule import Rule, Window
from volbench.analyse.findings.wording import percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import directions, rate_per_s, runtime_s
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.steady_state import State, Steadiness, judge_last
from volbench.model.profile.profile_settings import Until
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_duration

_LEAST_S = 20.0
_NOISY_FROM_S = 60.0
_EDGE_S = 2.0
_EDGE_SHARE = 0.05
_AT_DEADLINE = 0.95
_MOVES = frozenset(
    {
        *(Cause.CREDITS, Cause.CACHE_FULL, Cause.WRITE_CLIFF, Cause.NEIGHBOUR),
        *(Cause.WARMING, Cause.STALL),
    }
)


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each direction that was long enough to be judged and is not steady."""
    if any(workload.pauses for workload in view.workloads):
        return
    for direction in directions(view):
        if view.run.until is not None:
            yield from _at_deadline(view, direction, view.run.until)
            continue
        judged = context.steadiness(view, direction)
        length_s = judged.to_s - judged.from_s
        if judged.state in {State.STEADY, State.TOO_SHORT} or length_s < _LEAST_S:
            continue
        if judged.state is not State.NOISY:
            known = _explained(view, direction, context)
            weight = Severity.NOTE if _at_edges(judged) else None
            yield _finding(view, direction, judged, known=known, severity=weight)
        elif length_s >= _NOISY_FROM_S:
            yield _finding(view, direction, judged, severity=Severity.NOTE)


def _at_edges(judged: Steadiness) -> bool:
    """Return whether it only stepped while it started or ended, which hardly moves the mean."""
    edge_s = max(_EDGE_S, _EDGE_SHARE * (judged.to_s - judged.from_s))
    return judged.state is State.STEPPED and all(
        change.t_s <= judged.from_s + edge_s or change.t_s >= judged.to_s - edge_s
        for change in judged.changes
    )


def _at_deadline(view: RunView, direction: str, until: Until) -> Iterator[Finding]:
    """Yield a finding when a job that was to run until it is steady ran out of time."""
    allowed_s = max((workload.runtime_s for workload in view.workloads), default=0.0)
    if runtime_s(view) < _AT_DEADLINE * allowed_s:
        return
    t_s, iops = rate_per_s(view, "iops", direction=direction)
    judged = judge_last(t_s, iops, window_s=until.window_s, block_s=until.block_s)
    if judged.state is not State.STEADY:
        yield _finding(view, direction, judged, deadline_s=allowed_s)


def _finding(
    view: RunView,
    direction: str,
    judged: Steadiness,
    *,
    severity: Severity | None = None,
    deadline_s: float | None = None,
    known: str = "",
) -> Finding:
    message = f"{_words(judged)}{known}."
    if deadline_s is not None:
        message = (
            f"It was to run until steady and was not after {format_duration(deadline_s)}: "
            + message
        )
    return RULE.finding(
        view,
        message,
        {
            "verdict": judged.state.value,
            "median_iops": judged.median,
            "drift_percent": 100 * judged.drift,
            "drift_bound_percent": 100 * judged.drift_bound,
            "spread_percent": 100 * judged.spread,
            "changes": float(len(judged.changes)),
        },
        direction=direction,
        window=Window(judged.from_s, judged.to_s),
        severity=severity,
    )


def _explained(view: RunView, direction: str, context: Context) -> str:
    """Return what explains that the rate moved, if anything does."""
    causes = [
        WORDS[explanation.cause]
        for explanation in context.explanations(view)
        if explanation.direction == direction and explanation.cause in _MOVES
    ]
    return f" ({'; '.join(dict.fromkeys(causes))})" if causes else ""


def _words(judged: Steadiness) -> str:
    """Return what the series did."""
    around = f"around a median of {format_count(judged.median)} IOPS"
    match judged.state:
        case State.STEPPED:
            steps = [
                f"from {format_count(change.before)} to {format_count(change.after)} at"
                f" {format_duration(change.t_s)}"
                for change in judged.changes[:3]
            ]
            more = len(judged.changes) - len(steps)
            return f"IOPS stepped {', '.join(steps)}" + (f" and {more} times more" if more else "")
        case State.DRIFTING:
            return f"IOPS drifted by {percent(abs(judged.drift))} {_way(judged)} {around}"
        case State.TOO_SHORT:
            return f"The last {judged.to_s - judged.from_s:.0f} s are too few to tell"
        case _:
            return (
                f"IOPS were too restless {around} to call them steady: they may have drifted by up"
                f" to {percent(judged.drift_bound)}"
            )


def _way(judged: Steadiness) -> str:
    return "upwards" if judged.drift > 0 else "downwards"


RULE = Rule(
    id="not-steady",
    title="the rate was not steady",
    severity=Severity.WARNING,
    looks_at=(
        "IOPS over time of each direction, as the verdicts frame judges them: medians of blocks,"
        " no change point, and the upper 95 % bound of the Theil-Sen drift over the run within"
        " 10 % of the median. Runs of less than 20 s are not judged. A series that is only"
        " restless is a note, from 60 s on, and so is one that stepped only within 5 % (at least"
        " 2 s) of its begin or end. Jobs with `thinktime` or `latency_target` are left"
        " out. Jobs with `until: steady` are judged by their last window, when they ran into their"
        " deadline."
    ),
    why=(
        "The mean of a rate that moves depends on how long one looks. Another runtime gives another"
        " number."
    ),
    advice=(
        "Look at the time series. Run longer, use until: steady, or warm the volume up first, and"
        " quote the level after the last step."
    ),
    check=check,
)
