"""throttled: the provider's limit was measured, and perhaps not the one that was declared."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.cause import Cause, Explanation
from volbench.analyse.findings.rule import Rule, Window, reasons
from volbench.analyse.findings.wording import percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import directions, total
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_rate

_NEAR = 0.05
_COLUMNS = {Cause.IOPS_LIMIT: "iops", Cause.BANDWIDTH_LIMIT: "bw_bytes_per_s"}


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a note for each limit that throttled a run; a warning for one below the declared."""
    throttled = [limit for limit in context.explanations(view) if limit.cause in _COLUMNS]
    if len(directions(view)) > 1:
        yield from _together(view, throttled)
        return
    for limit in throttled:
        yield _finding(view, limit)


def _together(view: RunView, throttled: list[Explanation]) -> Iterator[Finding]:
    """Yield one finding for all directions of a run: providers count them together."""
    for cause, column in _COLUMNS.items():
        limit = _limits(view, cause)[0]
        reached = limit and abs(total(view, column) / limit - 1) <= _NEAR
        explained = next(
            (explanation for explanation in throttled if explanation.cause is cause), None
        )
        if reached and not any(workload.is_paced for workload in view.workloads):
            level = total(view, column)
            yield RULE.finding(
                view,
                f"All directions together came to {_words(cause, level)},"
                f" {percent(level / limit)} of the declared {_words(cause, limit)}.",
                {"level": level, "of": column, "declared": limit},
            )
        elif explained is not None:
            yield _finding(view, explained)


def _finding(view: RunView, explanation: Explanation) -> Finding:
    column = _COLUMNS[explanation.cause]
    mixed = len(directions(view)) > 1
    level = total(view, column) if mixed else explanation.level
    sustained, burst = _limits(view, explanation.cause)
    evidence: dict[str, float | str] = {"level": level, "of": column}
    severity, words = Severity.NOTE, "no limit is declared"
    if sustained:
        evidence["declared"] = sustained
        nearest = min((sustained, burst or sustained), key=lambda limit: abs(level - limit))
        words = f"{percent(level / nearest)} of the declared {_words(explanation.cause, nearest)}"
        if level < (1 - _NEAR) * sustained:
            severity, words = Severity.WARNING, f"only {words}"
    return RULE.finding(
        view,
        f"Throttled at {_words(explanation.cause, level)}, {words}.{reasons(explanation)}",
        evidence,
        direction=None if mixed else explanation.direction,
        window=Window(explanation.from_s, explanation.to_s),
        severity=severity,
    )


def _limits(view: RunView, cause: Cause) -> tuple[float, float]:
    """Return the declared limit of a kind, sustained and in a burst; 0 for none."""
    limits = view.run.limits
    if cause is Cause.IOPS_LIMIT:
        return limits.iops or 0.0, limits.burst_iops or 0.0
    return limits.bandwidth_bytes_per_s or 0.0, limits.burst_bandwidth_bytes_per_s or 0.0


def _words(cause: Cause, level: float) -> str:
    return f"{format_count(level)} IOPS" if cause is Cause.IOPS_LIMIT else format_rate(level)


RULE = Rule(
    id="throttled",
    title="the volume was throttled at a limit",
    severity=Severity.NOTE,
    looks_at=(
        "What explains the level at which the run ended, as the verdicts frame tells it: a limit on"
        " IOPS or on bandwidth, declared or inferred. Below 95 % of the declared limit it is a"
        " warning: you get less than promised, or another limit (that of the machine) applies."
    ),
    why="At a limit the number is a price list, not the speed of the hardware: all I/Os queue.",
    advice=(
        "Quote it as the limit. If it is below the declared one, look at the limits of the machine"
        " type and of other disks on it, and declare the limit that binds."
    ),
    check=check,
)
