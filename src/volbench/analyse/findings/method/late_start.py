"""late-start: a client did not start when it was to start."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_latency

LATE_S = 0.5
"""Starts of thirty hosts that share two cores were within 0.1 s; half a second is no chance."""


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when a run began away from its instant, by more than its clock may be off."""
    del context
    late = view.summary["start_late_s"].dropna()
    if late.empty:
        return
    bound_s = float(view.summary["clock_bound_s"].fillna(0.0).iloc[0])
    late_s = float(late.iloc[0])
    if abs(late_s) - bound_s <= LATE_S:
        return
    word = "after" if late_s > 0 else "before"
    yield RULE.finding(
        view,
        f"Started {format_latency(abs(late_s))} {word} the planned start.",
        {"late_s": late_s, "clock_bound_s": bound_s},
    )


RULE = Rule(
    id="late-start",
    title="the client did not start with the others",
    severity=Severity.WARNING,
    looks_at=(
        "Planned start and start of I/O by the host's clock: more than 0.5 s apart, beyond the"
        " uncertainty of the clock offset."
    ),
    why=(
        "Clients that run at different times do not load shared storage at the same time, so their"
        " aggregate is lower than under the planned load."
    ),
    advice="Compare only the time in which all clients ran. Check the host's load, then run again.",
    check=check,
)
