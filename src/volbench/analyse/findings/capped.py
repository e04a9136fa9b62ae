"""capped: the provider's limit was measured, and perhaps not the one that was declared."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.cause import Cause, Explanation
from volbench.analyse.findings.rule import Context, Rule, Window, reasons
from volbench.analyse.findings.words import percent
from volbench.analyse.seen import directions, total
from volbench.analyse.view import RunView
from volbench.model.finding import Finding, Severity
from volbench.units import format_count, format_rate

_NEAR = 0.05
_COLUMNS = {Cause.IOPS_CAP: "iops", Cause.BANDWIDTH_CAP: "bw_bytes_per_s"}


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a note for each cap that held a Run; a warning when it is below what is declared."""
    for one in context.explanations(view):
        if one.cause in _COLUMNS:
            yield _finding(view, one)


def _finding(view: RunView, one: Explanation) -> Finding:
    column, limits = _COLUMNS[one.cause], view.run.limits
    mixed = len(directions(view)) > 1
    level = total(view, column) if mixed else one.level
    sustained, burst = limits.iops, limits.burst_iops
    if one.cause is Cause.BANDWIDTH_CAP:
        sustained, burst = limits.bandwidth_bytes_per_s, limits.burst_bandwidth_bytes_per_s
    evidence: dict[str, float | str] = {"level": level, "of": column}
    severity, words = Severity.NOTE, "no limit is declared"
    if sustained:
        evidence["declared"] = sustained
        nearest = min((sustained, burst or sustained), key=lambda limit: abs(level - limit))
        words = f"{percent(level / nearest)} of the declared {_words(one.cause, nearest)}"
        if level < (1 - _NEAR) * sustained:
            severity, words = Severity.WARNING, f"only {words}"
    return RULE.finding(
        view,
        f"A cap held it at {_words(one.cause, level)}, {words}.{reasons(one)}",
        evidence,
        direction=None if mixed else one.direction,
        window=Window(one.from_s, one.to_s),
        severity=severity,
    )


def _words(cause: Cause, level: float) -> str:
    return f"{format_count(level)} IOPS" if cause is Cause.IOPS_CAP else format_rate(level)


RULE = Rule(
    id="capped",
    title="a cap held the rate",
    severity=Severity.NOTE,
    looks_at=(
        "What explains the level at which the Run ended, as the verdicts frame tells it: a cap on"
        " IOPS or on bandwidth, declared or inferred. Below 95 % of the declared limit it is a"
        " warning: you get less than promised, or another limit (that of the machine) binds."
    ),
    why="At a cap the number is a price list, not the speed of the hardware; all I/Os wait alike.",
    advice=(
        "Quote it as the cap. If it is below what is declared, look at the limits of the machine"
        " type and of other disks on it, and declare the limit that binds."
    ),
    check=check,
)
