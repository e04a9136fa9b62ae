"""start-skew: the clients of a step did not start together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from volbench.analyse.findings.method.late_start import LATE_S
from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import several
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.observed import clock_bounds_s
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Start
from volbench.model.results.finding import Finding, Severity
from volbench.units import format_latency

_MOST_NAMED = 5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for the first run of a step whose clients started apart."""
    if not view.run.step or view.run.start is Start.SEQUENTIAL:
        return
    step = [run for run in context.step(view) if run.id in context.finished]
    if len(step) < 2 or view.run.id != step[0].id:
        return
    starts = [(_start_s(context.by_id[run.id]), run) for run in step]
    known = {run.id: start_s for start_s, run in starts if start_s is not None}
    if len(known) < 2:
        return
    skew_s = max(known.values()) - min(known.values())
    bound_s = clock_bounds_s(context.by_id[run_id].summary for run_id in known)
    if skew_s - bound_s <= LATE_S:
        return
    yield RULE.finding(
        view,
        f"The clients of this step started {format_latency(skew_s)} ± {format_latency(bound_s)}"
        f" apart: {_late_names(step, known)} after the others.",
        {"start_skew_s": skew_s, "start_skew_bound_s": bound_s},
    )


def _start_s(view: RunView) -> float | None:
    """Return when a run passed its start, less the delay that was planned for it."""
    starts = view.summary["step_start_s"].dropna()
    return None if starts.empty else float(starts.iloc[0]) - view.run.start_offset_s


def _late_names(step: Sequence[Run], starts_s: Mapping[str, float]) -> str:
    """Return the clients that started later than the first by more than can be by chance."""
    first_s = min(starts_s.values())
    late = [
        f"{run.host} client {run.client}" if run.client else run.host
        for run in step
        if starts_s.get(run.id, first_s) - first_s > LATE_S
    ]
    more = [f"{len(late) - _MOST_NAMED} more"] if len(late) > _MOST_NAMED else []
    return several([*late[:_MOST_NAMED], *more])


RULE = Rule(
    id="start-skew",
    title="the clients did not start together",
    severity=Severity.WARNING,
    looks_at=(
        "When the clients of a step passed their start, by one clock: more than 0.5 s apart, beyond"
        " the uncertainty of the clock offsets and the planned delays."
    ),
    why=(
        "A client that ran before or after the others did not share the storage with them. A run"
        " that was repeated alone, after a failure, has had all of it to itself."
    ),
    advice="Run the whole step again on all clients: volbench resume DIR --redo-step STEP.",
    check=check,
)
