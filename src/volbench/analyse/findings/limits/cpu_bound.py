"""cpu-bound: the CPU was the limit, or another process had it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import host_rows_in_run, results_of
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity

_FULL_PERCENT = 95.0
_STEAL_PERCENT = 5.0
_LEAST_SAMPLES = 3


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield what speaks for a CPU at its limit: the tool's own time, steal, the whole host."""
    del context
    yield from _tool(view)
    rows = host_rows_in_run(view)
    if len(rows) < _LEAST_SAMPLES:
        return
    steal = float(rows["steal_percent"].mean()) if rows["steal_percent"].notna().any() else 0.0
    if steal >= _STEAL_PERCENT:
        yield RULE.finding(
            view,
            f"The hypervisor gave {steal:.3g} % of the CPU time to others (steal).",
            {"steal_percent": steal, "worst_steal_percent": float(rows["steal_percent"].max())},
        )
    busy = float(rows["cpu_busy_percent"].mean())
    if busy >= _FULL_PERCENT:
        yield RULE.finding(
            view,
            f"All CPUs of the host were {busy:.3g} % busy.",
            {"cpu_busy_percent": busy},
            severity=Severity.NOTE,
        )


def _tool(view: RunView) -> Iterator[Finding]:
    """Yield a finding for each section whose jobs kept a core busy each."""
    seen: set[str] = set()
    for result in results_of(view):
        busy = result["cpu_usr"] + result["cpu_sys"]
        if math.isnan(busy) or busy < _FULL_PERCENT or result.section in seen:
            continue
        seen.add(result.section)
        yield RULE.finding(
            view,
            f"fio needed {busy:.3g} % of a core for each job"
            f" ({result['cpu_usr']:.3g} % user, {result['cpu_sys']:.3g} % system).",
            {
                "cpu_usr_percent": result["cpu_usr"],
                "cpu_sys_percent": result["cpu_sys"],
                "section": result.section,
            },
        )


RULE = Rule(
    id="cpu-bound",
    title="the CPU was the limit",
    severity=Severity.WARNING,
    looks_at=(
        "fio's user and system time for each job: from 95 % of a core on. Steal of at least 5 %"
        " of the host's CPU time, mean over the run. A host whose CPUs are at least 95 % busy is a"
        " note. The thresholds are volbench's own."
    ),
    why="What was measured is how fast the CPU can submit I/O, not how fast the volume answers.",
    advice=(
        "Increase numjobs, larger blocks, or io_uring. With steal, measure on a machine"
        " whose CPUs are its own, or at another time."
    ),
    check=check,
)
