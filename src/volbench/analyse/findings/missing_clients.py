"""missing-clients: fewer clients did a step than were asked to."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.context import Context
from volbench.analyse.findings.rule import Rule
from volbench.analyse.view import RunView
from volbench.model.finding import Finding, Severity

_MOST_NAMED = 5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a Finding for the first Run of a step that some clients did not finish."""
    step = [run for run in view.campaign.runs if run.step == view.run.step]
    if not view.run.step or len(step) == 1:
        return
    finished = {other.run.id for other in context.views if other.is_finished}
    missing = [run for run in step if run.id not in finished]
    first = next(run.id for run in step if run.id in finished)
    if not missing or view.run.id != first:
        return
    names = [f"{run.host} client {run.client}" if run.client else run.host for run in missing]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    yield RULE.finding(
        view,
        f"Only {len(step) - len(missing)} of {len(step)} clients did this step:"
        f" {', '.join(names[:_MOST_NAMED])}{more} did not.",
        {"clients": float(len(step)), "missing": float(len(missing))},
    )


RULE = Rule(
    id="missing-clients",
    title="clients are missing",
    severity=Severity.WARNING,
    looks_at="How many clients finished a step of the campaign, and how many were asked to.",
    why=(
        "A total over the clients that are left looks like one over all of them, and each of those"
        " had more of what they share."
    ),
    advice=(
        "Look at why the others failed, then do the campaign again; volbench resume --retry-failed"
        " runs only the missing ones, without the load of the others."
    ),
    check=check,
)
