"""HTML pages of reports, and of the index of a site, with every text from a file escaped.

A page has no script and loads nothing: charts are pictures in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from volbench.model.campaign.planned_run import Run, RunNote, RunState, note_of, unfinished
from volbench.present.formatting import Row, instant, printable, records
from volbench.present.report.content import MultiCampaignContent, ReportContent
from volbench.present.report.report_text import FirstScreen, cautions, first_screen, summary
from volbench.present.tables.audit_table import audit_table
from volbench.present.tables.expectations_table import expectations_page_table
from volbench.present.tables.findings_table import findings_text
from volbench.present.tables.html_table import html_table
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.present.tables.table import Table

METHODS = (
    "Each run is one fio process. fio's output and logs are kept, and every number here is read"
    " from them: rates are I/Os divided by elapsed time, percentiles come from fio's bins (accurate"
    " to 0.8 %), means and extremes are exact. Warm-up and preparation are not part of the headline"
    " numbers. Repeats of a job are pooled by their median, never single seconds of a run."
)
_MAX_LISTED = 60  # Runs without a result, job files, hosts and volumes; the folder has all of them

JobRun = tuple[str, str, RunState]


@dataclass(frozen=True)
class CampaignSection:
    """One campaign on the page."""

    content: ReportContent
    first: FirstScreen
    tables: Sequence[Table[Any]]
    findings: str  # grouped by rule, as a text of several lines; empty for none
    cautions: Sequence[str]
    summary: Sequence[str]
    failures: Sequence[tuple[Run, RunNote]]
    jobs: Sequence[tuple[str, Sequence[JobRun]]]  # job files with the runs that used them
    plan: dict[str, str]
    versions: Sequence[str]


def render_report(content: ReportContent) -> str:
    """Return the report of one campaign as one HTML text that needs no network."""
    return render_section(campaign_section(content))


def render_section(section: CampaignSection) -> str:
    """Return the page of the only campaign."""
    return _page(section.content.title, [section], None)


def render_reports(
    contents: Sequence[ReportContent], *, title: str, together: MultiCampaignContent
) -> str:
    """Return the report of several campaigns: beside each other first, then each by itself.

    Args:
        contents: at least one.
    """
    return _page(title, [campaign_section(content) for content in contents], together)


def campaign_section(content: ReportContent) -> CampaignSection:
    """Return the section of a campaign."""
    names = ("summary", "findings", "verdicts", "aggregate")
    rows = {name: records(content.frames[name]) if name in content.frames else [] for name in names}
    answers: list[Table[Any]] = []
    if content.expected:
        answers.append(expectations_page_table(content.expected))
    if content.audited:
        answers.append(audit_table(content.audited))
    findings = rows["findings"]
    versions = {str(row["fio_version"]) for row in rows["summary"] if row.get("fio_version")}
    return CampaignSection(
        content=content,
        first=first_screen(content, rows),
        tables=[*answers, *content.tables],
        findings=findings_text(findings, runs=_finished(rows["summary"])) if findings else "",
        cautions=[
            *(f"{words}." for words in content.imprecise),
            *cautions(rows["summary"]),
        ],
        summary=summary(content, rows["summary"]),
        failures=unfinished(content.campaign, content.states),
        jobs=_jobs(content),
        plan=_plan_facts(content),
        versions=sorted(versions),
    )


def _finished(rows: Sequence[Row]) -> int:
    return len({row["run"] for row in rows if row.get("status") == RunState.FINISHED.value})


def _jobs(content: ReportContent) -> list[tuple[str, list[JobRun]]]:
    """Return each job file with the runs that used it."""
    runs: dict[str, list[JobRun]] = {}
    for run in content.campaign.runs:
        state = note_of(run, content.states).state
        runs.setdefault(content.jobs.get(run.id, ""), []).append((run.id, run.note, state))
    return list(runs.items())


def _plan_facts(content: ReportContent) -> dict[str, str]:
    """Return the settings of the plan; imported results have none."""
    campaign = content.campaign
    origin = {
        "campaign": campaign.name,
        "imported" if campaign.is_imported else "planned": instant(campaign.created_utc),
        "command line": shlex.join(campaign.command) or "not recorded",
    }
    if campaign.is_imported:
        return origin
    return {
        **origin,
        "seed": str(campaign.seed),
        "order": campaign.order.value,
        **({"design": campaign.design} if campaign.design else {}),
        "after a failed run": campaign.on_error.value,
        "allowed to be overwritten": ", ".join(campaign.allow_destroy) or "nothing",
    }


def _page(
    title: str, sections: Sequence[CampaignSection], together: MultiCampaignContent | None
) -> str:
    tables: list[Table[Any]] = []
    if together and together.comparison:
        from volbench.present.tables.compare_table import (  # noqa: PLC0415 - brings scipy
            comparison_table,
            notes,
        )

        brief = notes(together.comparison)
        # The page begins with what the title says
        verdicts = replace(comparison_table(together.comparison), title="", notes=brief)
        tables = [verdicts]
    first = sections[0].content
    return render_template(
        "report.html.j2",
        title=title,
        version=first.volbench_version,
        generated=instant(first.generated_utc),
        campaigns=sections,
        together=together,
        compared=[table for table in tables if table.rows],
        methods=METHODS,
        most=_MAX_LISTED,
        finished=RunState.FINISHED,
    )


def render_template(template: str, **content: object) -> str:
    """Return a page with the style of reports."""
    loader = PackageLoader(__package__, "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "printable": printable,
        "counted": counted_noun,
        "table": html_table,
    }
    style = loader.get_source(environment, "report.css")[0]
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 - shipped with the package
        **content,
    )


@dataclass(frozen=True)
class SiteEntry:
    """A campaign on the index page."""

    title: str  # of its page
    file: str  # name of its page
    created_utc: str  # ISO 8601
    first: FirstScreen


def site_entry(section: CampaignSection, *, taken: Collection[str] = ()) -> SiteEntry:
    """Return the entry of a campaign."""
    title = section.content.title
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", title).strip("._") or "campaign"
    names = (
        f"{name}{suffix}.html" for suffix in ("", *(f"-{n}" for n in range(2, len(taken) + 3)))
    )
    file = next(page for page in names if page not in {*taken, "index.html"})
    return SiteEntry(title, file, section.content.campaign.created_utc, section.first)


def render_site_index(entries: Sequence[SiteEntry], *, title: str, version: str, utc: str) -> str:
    """Return the index page of a site, newest campaign first.

    Args:
        entries: at least one.
        utc: when the site was made, ISO 8601 with ``Z``.
    """
    newest = sorted(entries, key=lambda entry: entry.created_utc, reverse=True)
    return render_template(
        "site.html.j2",
        title=title,
        version=version,
        generated=instant(utc),
        entries=[(entry, instant(entry.created_utc)) for entry in newest],
    )
