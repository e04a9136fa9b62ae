"""credits-ran-out: a burst ended while the run went on."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.cause import Cause
from volbench.analyse.findings.rule import Rule, Window, reasons
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_duration


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each fall of the rate that burst credits explain."""
    for cause in context.explanations(view):
        if cause.cause is not Cause.CREDITS:
            continue
        before = cause.evidence.get("before_iops")
        fell = f" from {format_count(before)}" if before is not None else ""
        yield RULE.finding(
            view,
            f"After {format_duration(cause.from_s)} the rate fell{fell} to"
            f" {format_count(cause.level)} IOPS, as it does when burst credits are used up."
            f"{reasons(cause)}",
            dict(cause.evidence) | {"level": cause.level},
            direction=cause.direction,
            window=Window(cause.from_s, cause.to_s),
        )


RULE = Rule(
    id="credits-ran-out",
    title="burst credits ran out",
    severity=Severity.WARNING,
    looks_at=(
        "A fall of the rate of at least 15 % that lasts, to within 5 % of the declared baseline or"
        " between two flat levels, and the time at which a full bucket would have been empty (20 %"
        " either way)."
    ),
    why="The mean of burst and baseline is a speed that the volume never has.",
    advice=(
        "Quote both levels and the time between. Wait until the credits are back before the next"
        " run, and declare limits.burst_iops and limits.burst_ios, or limits.burst_bandwidth and"
        " limits.burst_bytes, to have it predicted."
    ),
    check=check,
)
