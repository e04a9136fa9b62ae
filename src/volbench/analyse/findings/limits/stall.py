"""stall: for a second or longer nothing completed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule, Window
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import quiet_spans, rate_per_s, results_of, total
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_duration, format_latency

_LEAST_S = 1.0
_EXPECTED_IOS = 10
_LONGEST = 5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield each time in which nothing completed; the longest few when there are many."""
    del context
    mean_iops = total(view, "iops")
    if not mean_iops > 0:
        return
    paused = any(workload.pauses for workload in view.workloads)
    least_s = max(_LEAST_S, _EXPECTED_IOS / mean_iops)
    t_s, iops = rate_per_s(view, "iops")
    spans = [
        (start, end)
        for start, end in quiet_spans(t_s, iops, interval_s=view.run.sample_s)
        if end - start >= least_s - 1e-6
    ]
    longest = sorted(spans, key=lambda span: span[0] - span[1])[:_LONGEST]
    for start, end in sorted(longest):
        more = f" It is one of {len(spans)} such times." if len(spans) > 1 else ""
        more += " The job was asked to pause (thinktime or latency_target)." if paused else ""
        yield RULE.finding(
            view,
            f"No I/O completed for {format_duration(end - start)}.{more}",
            {"stall_s": end - start, "stalls": float(len(spans)), "mean_iops": mean_iops},
            window=Window(start, end),
            severity=Severity.NOTE if paused else None,
        )
    if not spans and not paused:
        yield from _between_samples(view, least_s=least_s)


def _between_samples(view: RunView, *, least_s: float) -> Iterator[Finding]:
    """Yield the longest I/O of a run with one I/O in flight: while it took, nothing completed."""
    if sum(workload.numjobs * workload.depth for workload in view.workloads) > 1:
        return
    for result in results_of(view):
        longest = result["lat_max_s"]
        if not math.isnan(longest) and longest >= least_s:
            yield RULE.finding(
                view,
                f"One {result.direction} took {format_latency(longest)} with no other I/O in"
                " flight.",
                {"stall_s": longest, "mean_iops": result["iops"]},
                direction=result.direction,
            )


RULE = Rule(
    id="stall",
    title="nothing completed for a second or longer",
    severity=Severity.WARNING,
    looks_at=(
        "The series: intervals in which nothing completed, joined, that last at least 1 s and as"
        " long as ten I/Os take on average. With one I/O in flight also the longest latency. Jobs"
        " that were asked to pause (thinktime, latency_target) get a note. The five longest are"
        " reported."
    ),
    why=(
        "A stall hangs everything that uses the volume, and means and most percentiles hide it."
        " A full write-back cache can stall for minutes."
    ),
    advice=(
        "Look at the time series. Measure longer to see whether it repeats, and look at the"
        " host's and the provider's cache settings."
    ),
    check=check,
)
