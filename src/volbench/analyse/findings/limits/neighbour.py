"""neighbour: another client used a part of the volume for a while."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.cause import Cause
from volbench.analyse.findings.rule import Rule, Window, reasons
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for each fall of the rate that went away again."""
    for cause in context.explanations(view):
        if cause.cause is Cause.NEIGHBOUR:
            yield RULE.finding(
                view,
                f"The rate fell to {format_count(cause.level)} IOPS and came back.{reasons(cause)}",
                cause.evidence,
                direction=cause.direction,
                window=Window(cause.from_s, cause.to_s),
            )


RULE = Rule(
    id="neighbour",
    title="the rate fell for a while and came back",
    severity=Severity.WARNING,
    looks_at=(
        "A fall of the rate of at least 15 % that ends by itself while the job asks for the same,"
        " with the steal of that time."
    ),
    why="Shared hardware was busy with other clients: another hour gives another number.",
    advice="Repeat the run at other times, and quote the spread of the repeats.",
    check=check,
)
