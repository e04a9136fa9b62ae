"""One campaign's section of the report: everything that the template shows of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.bottleneck.use_method import use_rows
from volbench.model.campaign.planned_run import Run, RunNote, RunState, note_of, unfinished
from volbench.present.formatting import Row, instant, records, text
from volbench.present.report.content import ReportContent, ReportFigure
from volbench.present.report.embedded_runs import Download, downloads
from volbench.present.report.outcomes import (
    AgainstLimit,
    KeyNumber,
    against_limits,
    client_outcomes,
    job_outcomes,
    key_numbers,
    limits_table,
)
from volbench.present.report.report_text import (
    FirstScreen,
    cautions,
    first_screen,
    summary,
)
from volbench.present.tables.findings_table import (
    RuleFindings,
    findings_by_rule,
    findings_count,
    invalid_runs,
)
from volbench.present.tables.results_table import aggregate_page_table, results_page_table
from volbench.present.tables.table import Table
from volbench.present.tables.use_table import run_names, use_page_table

METHODS = (
    "Each run is one fio process. fio's output and logs are kept, and every number here is read"
    " from them: rates are I/Os divided by elapsed time, percentiles come from fio's bins (accurate"
    " to 0.8 %), means and extremes are exact. Warm-up and preparation are not part of the headline"
    " numbers. Repeats of a job are pooled by their median, never single seconds of a run."
)

JobRun = tuple[str, str, RunState]


@dataclass(frozen=True)
class CampaignSection:
    """Template context of one campaign."""

    id: str  # begins the ids in the page, so that those of two campaigns differ
    level: int  # of its headings
    content: ReportContent
    first: FirstScreen
    summary: Sequence[str]
    key_numbers: Sequence[KeyNumber]
    cautions: Sequence[str]
    limits: Table[AgainstLimit]
    results: Table[Row]
    aggregate: Table[Row]
    findings: Sequence[RuleFindings]
    findings_count: str
    failures: Sequence[tuple[Run, RunNote]]
    device: DeviceSection
    jobs: Sequence[tuple[str, Sequence[JobRun]]]
    plan: dict[str, str]
    versions: Sequence[str]
    downloads: Sequence[Download]
    methods: str = METHODS

    @property
    def charts(self) -> list[ReportFigure]:
        """Figures of the section with charts."""
        return [figure for figure in self.content.figures if figure.kind != DEVICE]

    @property
    def device_charts(self) -> list[ReportFigure]:
        """Figures beside the table of the device."""
        return [figure for figure in self.content.figures if figure.kind == DEVICE]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Anchor and name of each section there is."""
        wanted = (
            ("findings", "Data quality", True),
            ("charts", "Charts", self.charts),
            ("results", "Results", True),
            ("summary", "Summary", True),
            ("device", "Device", self.device.table.rows),
            ("unfinished", "Runs without a result", self.failures),
            ("jobs", "Job files", True),
            ("provenance", "Methods and provenance", True),
            ("downloads", "Downloads", self.downloads),
        )
        return [(f"{self.id}{anchor}", name) for anchor, name, there in wanted if there]


def campaign_section(
    content: ReportContent, *, prefix: str, level: int, room_chars: int
) -> CampaignSection:
    """Return the section of a campaign."""
    of_frame = {
        name: records(content.frames.get(name, pd.DataFrame()))
        for name in ("summary", "findings", "verdicts", "aggregate")
    }
    rows, findings, _, aggregate = of_frame.values()
    outcomes = job_outcomes(rows, invalid=invalid_runs(findings))
    limits = against_limits(outcomes)
    outcomes = client_outcomes(outcomes, aggregate)
    key = key_numbers(outcomes)
    first = first_screen(content, of_frame, key, limits)
    return CampaignSection(
        id=prefix,
        level=level,
        content=content,
        first=first,
        summary=summary(content, rows),
        key_numbers=[] if first.is_collection else key,
        cautions=[*(f"{words}." for words in content.imprecise), *cautions(outcomes)],
        limits=limits_table(limits),
        results=results_page_table(rows, findings),
        aggregate=aggregate_page_table(aggregate),
        findings=findings_by_rule(findings),
        findings_count=findings_count(findings),
        failures=unfinished(content.campaign, content.states),
        device=device_section(content.frames),
        jobs=_jobs(content),
        plan=_plan_facts(content),
        versions=sorted({str(row["fio_version"]) for row in rows if row.get("fio_version")}),
        downloads=downloads(content, room_chars=room_chars),
    )


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


DEVICE = "device"  # Kind of the chart beside the table


@dataclass(frozen=True)
class DeviceSection:
    """The table, and the evidence by run; there is no such section without rows."""

    table: Table[Row]
    explanations: Sequence[tuple[str, str]]


def device_section(frames: Mapping[str, pd.DataFrame]) -> DeviceSection:
    """Return the USE table of a campaign; it is empty without samples of the device."""
    if frames.get(DEVICE, pd.DataFrame()).empty:
        return DeviceSection(Table("use", (), ()), ())
    use = frames.get("use")
    if use is None:
        use = use_rows(frames["summary"], frames[DEVICE], frames.get("verdicts"))
    rows = records(use)
    explained = zip(run_names(rows), (text(row, "explanation") for row in rows), strict=True)
    return DeviceSection(use_page_table(rows), [pair for pair in explained if pair[1]])
