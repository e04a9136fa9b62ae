"""missing-clients: fewer clients finished a step than planned."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity

_MOST_NAMED = 5


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding for the first run of a step that some clients did not finish."""
    campaign = view.campaign
    step = context.step(view)
    planned = len(step) + campaign.clients_absent
    first = next(run.id for run in step if run.id in context.finished)
    if not view.run.step or planned == 1 or view.run.id != first:
        return
    missing = [run for run in step if run.id not in context.finished]
    if not (missing or campaign.absent):
        return
    names = [f"{run.host} client {run.client}" if run.client else run.host for run in missing]
    names += [absent.host for absent in campaign.absent]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    did = len(step) - len(missing)
    yield RULE.finding(
        view,
        f"Only {did} of {planned} clients finished this step:"
        f" {', '.join(names[:_MOST_NAMED])}{more} did not.",
        {"clients": float(planned), "missing": float(planned - did)},
    )


RULE = Rule(
    id="missing-clients",
    title="clients are missing",
    severity=Severity.WARNING,
    looks_at="How many clients finished a step of the campaign, and how many were planned.",
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
