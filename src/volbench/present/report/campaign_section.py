"""One campaign's section of the report: everything that the template shows of it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.bottleneck.use_method import use_rows
from volbench.model.campaign.planned_run import Run, RunNote, RunState, note_of, unfinished
from volbench.present.formatting import Row, instant, number, records, text
from volbench.present.report.content import ReportContent, ReportFigure
from volbench.present.report.data_tables import (
    Cell,
    DataTable,
    Heading,
    Source,
    aggregate_table,
    limits_table,
    results_table,
)
from volbench.present.report.embedded_runs import Download, downloads
from volbench.present.report.outcomes import KeyNumber, against_limits, job_outcomes, key_numbers
from volbench.present.report.report_text import (
    FirstScreen,
    cautions,
    declared_limits,
    ending,
    first_screen,
    found,
    requested,
    what_ran,
)
from volbench.present.tables.findings_table import (
    RuleFindings,
    findings_by_rule,
    findings_count,
    invalid_runs,
)
from volbench.present.tables.table import Column
from volbench.present.tables.use_table import run_names, use_columns

METHODS = (
    "Each run is one fio process. Its own output and logs are kept, and every number here is read"
    " from them: rates are I/Os divided by the time they took, percentiles come from fio's bins"
    " (0.8 % exact), means and extremes are exact. Warm-up and preparation are not part of the"
    " headline numbers. Repeats of a job are pooled by their median, never seconds of one run."
)

JobRun = tuple[str, str, RunState]


@dataclass(frozen=True)
class CampaignSection:
    """Template context of one campaign."""

    id: str  # begins the ids in the page, so that those of two campaigns differ
    level: int  # of its headings
    content: ReportContent
    first: FirstScreen
    ran: Sequence[str]
    requested: Sequence[str]
    found: Sequence[str]
    key_numbers: Sequence[KeyNumber]
    cautions: Sequence[str]
    declared: Sequence[str]
    limits: DataTable
    results: DataTable
    aggregate: DataTable
    findings: Sequence[RuleFindings]
    findings_count: str
    failures: Sequence[tuple[Run, RunNote]]
    figures: Sequence[ReportFigure]
    device: DeviceSection
    jobs: Sequence[tuple[str, Sequence[JobRun]]]
    plan: dict[str, str]
    versions: Sequence[str]
    downloads: Sequence[Download]
    methods: str = METHODS

    @property
    def charts(self) -> list[ReportFigure]:
        """Figures of the section with charts."""
        return [figure for figure in self.figures if figure.kind != KIND]

    @property
    def device_charts(self) -> list[ReportFigure]:
        """Figures beside the table of the device."""
        return [figure for figure in self.figures if figure.kind == KIND]

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
    rows, findings, verdicts, aggregate = of_frame.values()
    outcomes = job_outcomes(rows)
    limits = against_limits(outcomes)
    key = key_numbers(outcomes, invalid=invalid_runs(findings))
    return CampaignSection(
        id=prefix,
        level=level,
        content=content,
        first=first_screen(content, of_frame, key, limits),
        ran=what_ran(content, rows),
        requested=requested(content, rows),
        found=[ending(content), *found(verdicts, limits)],
        key_numbers=key,
        cautions=cautions(outcomes),
        declared=declared_limits(outcomes),
        limits=limits_table(limits),
        results=results_table(rows, findings),
        aggregate=aggregate_table(aggregate),
        findings=findings_by_rule(findings),
        findings_count=findings_count(findings),
        failures=unfinished(content.campaign, content.states),
        figures=content.figures,
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
        "after a failed run": campaign.on_error.value,
        "allowed to be overwritten": ", ".join(campaign.allow_destroy) or "nothing",
    }


KIND = "device"  # Kind of the chart beside the table

# Heading to the columns whose sum it is sorted by; the others are sorted as texts
_ORDER: Mapping[str, tuple[str, ...]] = {
    "IOPS": ("read_iops", "write_iops"),
    "bandwidth": ("read_bw_bytes_per_s", "write_bw_bytes_per_s"),
    "active": ("active_percent",),
    "latency": ("read_lat_s", "write_lat_s"),
    "queue": ("queue_depth",),
    "iowait": ("iowait_percent",),
    "pressure": ("io_pressure_some_percent",),
    "dirty": ("dirty_growth_bytes",),
    "tail": ("tail_s",),
    "reached": ("device_share_percent",),
    "errors": ("io_errors",),
}


@dataclass(frozen=True)
class DeviceSection:
    """The table, and the evidence by run; there is no such section without rows."""

    table: DataTable
    explanations: Sequence[tuple[str, str]]


def device_section(frames: Mapping[str, pd.DataFrame]) -> DeviceSection:
    """Return the USE table of a campaign.

    Args:
        frames: frame name to frame; without ``device`` the table is empty.
    """
    if frames.get(KIND, pd.DataFrame()).empty:
        return DeviceSection(DataTable("use", "", (), ()), ())
    use = frames.get("use")
    if use is None:
        use = use_rows(frames["summary"], frames[KIND], frames.get("verdicts"))
    rows = records(use)
    columns, names = use_columns(rows), run_names(rows)
    table = DataTable(
        name="use",
        caption="A row for each run with samples of the device. Shares in brackets are of the"
        " declared limit. Point at a heading for its meaning.",
        headings=(
            Heading("Job"),
            *(Heading(own.heading, own.meaning, numeric=own.heading in _ORDER) for own in columns),
        ),
        rows=tuple(
            (
                Cell(name, title=text(row, "run"), value=name),
                *(_device_cell(row, column) for column in columns),
            )
            for name, row in zip(names, rows, strict=True)
        ),
        sources=tuple(Source((text(row, "run"),)) for row in rows),
    )
    explained = [(name, text(row, "explanation")) for name, row in zip(names, rows, strict=True)]
    return DeviceSection(table, [pair for pair in explained if pair[1]])


def _device_cell(row: Row, column: Column[Row]) -> Cell:
    """Return a cell for people that is sorted by the numbers behind it."""
    shown = column.cell(row)
    if column.heading not in _ORDER:
        return Cell(shown, value=shown)
    values = [number(row, name) for name in _ORDER[column.heading]]
    known = [value for value in values if not math.isnan(value)]
    return Cell(shown, value=repr(math.fsum(known)) if known else "")
