"""too-short: too few I/Os for the percentiles that are shown, or too little time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import several
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import percentiles_of, runtime_s, total
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_duration

_SAMPLES_BEYOND = 10
_USUAL_TAIL = 99.0
_LEAST_S = 30.0


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield which percentiles are not to be trusted, and a note on a run of few seconds."""
    del context
    for direction in dict.fromkeys(view.percentiles["direction"]):
        if direction != "sync":
            reported = np.unique(percentiles_of(view, direction).percentile)
            yield from _percentiles(view, direction, reported.tolist())
    runtime = runtime_s(view)
    if runtime < _LEAST_S and any(workload.is_time_based for workload in view.workloads):
        yield RULE.finding(
            view,
            f"It ran for {format_duration(runtime)}: caches and credits of a cloud volume last"
            " longer.",
            {"runtime_s": runtime, "least_s": _LEAST_S},
            severity=Severity.NOTE,
        )


def needed_samples(percentile: float) -> float:
    """Return how many samples a percentile needs: 10 / (1 - p), so that ten lie beyond it."""
    return math.inf if percentile >= 100 else _SAMPLES_BEYOND / (1 - percentile / 100)


def _percentiles(view: RunView, direction: str, percentiles: list[float]) -> Iterator[Finding]:
    ios = total(view, "total_ios", direction=direction)
    weak = [p for p in percentiles if 50 <= p < 100 and ios < needed_samples(p) * (1 - 1e-9)]
    if not weak:
        return
    names = several([f"p{p:g}" for p in weak])
    verb = "is" if len(weak) == 1 else "are"
    yield RULE.finding(
        view,
        f"{ios:.0f} {direction}s are too few for {names}, which {verb} decided by fewer than ten"
        f" of them; {names.split(',')[0].split(' ')[0]} needs {needed_samples(weak[0]):.0f}.",
        {"ios": ios, "least_percentile": weak[0], "needed_ios": needed_samples(weak[0])},
        direction=direction,
        severity=Severity.WARNING if weak[0] <= _USUAL_TAIL else Severity.NOTE,
    )


RULE = Rule(
    id="too-short",
    title="too short for what is shown",
    severity=Severity.WARNING,
    looks_at=(
        "I/Os of a direction against 10 / (1 - p) for each percentile p that was reported (1,000"
        " for p99, 100,000 for p99.99), so that ten samples lie beyond it. It is a warning when"
        " p99 or a lower one lacks them, else a note. A time-based run of less than 30 s is a"
        " note (volbench's own choice)."
    ),
    why=(
        "A percentile of a few samples is chance: another run gives another one. A short run shows"
        " caches and bursts, not the volume."
    ),
    advice="Make runtime longer, and do not quote the percentiles that are named here.",
    check=check,
)
