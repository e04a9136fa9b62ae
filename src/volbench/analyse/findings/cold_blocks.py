"""cold-blocks: blocks were touched for the first time while the Run went on."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.cause import Cause
from volbench.analyse.findings.rule import Context, Rule, Window, reasons
from volbench.analyse.findings.words import percent
from volbench.analyse.view import RunView
from volbench.model.finding import Finding, Severity
from volbench.units import format_count, format_duration


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a Finding when the rate rose as it does while blocks get warm."""
    for one in context.explanations(view):
        if one.cause is not Cause.WARMING:
            continue
        plateau = one.evidence.get("plateau_iops", 0.0)
        below = f", {percent(1 - one.level / plateau)} below its plateau" if plateau else ""
        yield RULE.finding(
            view,
            f"The rate began at {format_count(one.level)} IOPS{below}, and rose for"
            f" {format_duration(one.to_s)}.{reasons(one)}",
            one.evidence,
            direction=one.direction,
            window=Window(one.from_s, one.to_s),
        )


RULE = Rule(
    id="cold-blocks",
    title="the volume was cold",
    severity=Severity.WARNING,
    looks_at=(
        "A rate that rises from the start to a plateau at least 30 % higher, over three intervals"
        " or more."
    ),
    why=(
        "A fresh volume allocates at the first write, one from a snapshot fetches at the first"
        " read: up to 95 % slower than it will be. The mean tells neither speed."
    ),
    advice="Warm it up first: volbench warmup VOLUME, or a warmup phase in the profile.",
    check=check,
)
