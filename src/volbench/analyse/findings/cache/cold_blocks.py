"""cold-blocks: blocks were touched for the first time while the run went on."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.bottleneck.cause import Cause
from volbench.analyse.findings.rule import Rule, Window, reasons
from volbench.analyse.findings.wording import percent
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.cold_volume import ColdProbe
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_count, format_duration, format_latency


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when a probe found the volume cold, or when its rate rose from the start."""
    if view.cold is not None and view.cold.cold and not context.earlier(view).is_prepared:
        yield _probed(view, view.cold)
    for cause in context.explanations(view):
        if cause.cause is not Cause.WARMING:
            continue
        plateau = cause.evidence.get("plateau_iops", 0.0)
        below = f", {percent(1 - cause.level / plateau)} below its plateau" if plateau else ""
        yield RULE.finding(
            view,
            f"The rate began at {format_count(cause.level)} IOPS{below}, and rose for"
            f" {format_duration(cause.to_s)}.{reasons(cause)}",
            cause.evidence,
            direction=cause.direction,
            window=Window(cause.from_s, cause.to_s),
        )


def _probed(view: RunView, probe: ColdProbe) -> Finding:
    return RULE.finding(
        view,
        f"Before the campaign, first reads of {probe.pairs} blocks took"
        f" {format_latency(probe.first_median_s)} and second reads"
        f" {format_latency(probe.second_median_s)} in the median ({probe.median_ratio:.3g} times;"
        f" p99 {probe.p99_ratio:.3g} times), and nothing warmed the volume up since.",
        {
            "pairs": float(probe.pairs),
            "median_ratio": probe.median_ratio,
            "p99_ratio": probe.p99_ratio,
            "p_value": probe.p_value,
            "first_median_s": probe.first_median_s,
            "second_median_s": probe.second_median_s,
        },
    )


RULE = Rule(
    id="cold-blocks",
    title="the volume was cold",
    severity=Severity.WARNING,
    looks_at=(
        "The cold-volume probe (`cold_probe`), if there was one and nothing prepared the volume"
        " after it: paired 4 KiB reads whose first pass takes more than 1.5 times as long as the"
        " second in the median, or 3 times in p99, beyond chance (Wilcoxon, p < 0.01). And a rate"
        " that starts at least 30 % below the plateau that it reaches over three intervals or"
        " more."
    ),
    why=(
        "A fresh volume allocates at the first write, one from a snapshot fetches at the first"
        " read: up to 95 % slower than it will be. The mean tells neither speed."
    ),
    advice="Warm it up first: volbench warmup VOLUME, or a warmup phase in the profile.",
    check=check,
)
