"""HTML pages of reports, with every text from a file escaped.

A page has no script and loads nothing: charts are pictures in it.
"""

from __future__ import annotations

import shlex

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench.model.campaign.planned_run import RunState, note_of
from volbench.present.formatting import instant, printable
from volbench.present.report.content import CampaignPart, ReportContent
from volbench.present.report.report_text import ending
from volbench.present.tables.html_table import html_table
from volbench.present.terminal.campaign_text import came_from, sources
from volbench.units import counted_noun

METHODS = (
    "Each run is one fio process. fio's output and logs are kept, and every number here is read"
    " from them: rates are I/Os divided by elapsed time, percentiles come from fio's bins (accurate"
    " to 0.8 %), means and extremes are exact. Warm-up and preparation are not part of the headline"
    " numbers. Repeats are pooled by their median, never single seconds of a run."
)
_MAX_LISTED = 60  # Failed runs, job files, hosts and volumes; the folder has all of them
_MAX_PARTS = 12  # Campaigns whose environment and job files are on the page


def render_report(content: ReportContent) -> str:
    """Return the report as one HTML text that needs no network."""
    failures = [failure for part in content.parts for failure in part.failures]
    return _rendered(
        "report.html.j2",
        title=content.title,
        version=content.volbench_version,
        generated=instant(content.generated_utc),
        content=content,
        failures=failures,
        parts=content.parts[:_MAX_PARTS],
        origins=[(part, _origin(part)) for part in content.parts[:_MAX_PARTS]],
        jobs=[(text, runs) for part in content.parts[:_MAX_PARTS] for text, runs in _jobs(part)],
        methods=METHODS,
        most=_MAX_LISTED,
    )


def _jobs(part: CampaignPart) -> list[tuple[str, list[tuple[str, str, str]]]]:
    runs: dict[str, list[tuple[str, str, str]]] = {}
    has_none = part.campaign.is_imported or part.campaign.is_watched
    for run in () if has_none else part.campaign.runs:
        state = note_of(run, part.states).state
        word = "" if state is RunState.FINISHED else state.value
        runs.setdefault(part.jobs.get(run.id, ""), []).append((run.id, run.note, word))
    return list(runs.items())


def _origin(part: CampaignPart) -> dict[str, str]:
    campaign = part.campaign
    origin = {
        "runs": ending(part),
        "imported" if campaign.is_imported else "planned": instant(campaign.created_utc),
        "command line": shlex.join(campaign.command) or "not recorded",
    }
    if campaign.is_imported:
        return {**origin, "source": f"{came_from(campaign)} {sources(campaign)}"}
    return {
        **origin,
        "seed": str(campaign.seed),
        "order": campaign.order.value,
        **({"design": campaign.design} if campaign.design else {}),
        "after a failed run": campaign.on_error.value,
        "allowed to be overwritten": ", ".join(campaign.allow_destroy) or "nothing",
    }


def _rendered(template: str, **content: object) -> str:
    loader = PackageLoader(__package__, "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"printable": printable, "counted": counted_noun, "table": html_table}
    style = loader.get_source(environment, "report.css")[0]
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 - shipped with the package
        **content,
    )
