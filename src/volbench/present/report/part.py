"""One campaign's part of the page: its content enters, everything the template shows leaves."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.model.campaign.planned_run import Run, RunState
from volbench.present.formatting import Row, instant, records
from volbench.present.report.content import ReportContent, ReportFigure
from volbench.present.report.device import KIND, UseSection, use_section
from volbench.present.report.doubts import RuleDoubts, invalid_runs, told_by_rule, verdict
from volbench.present.report.packed import Download, downloads
from volbench.present.report.results import DataTable, limits_table, results
from volbench.present.report.summary import (
    KeyNumber,
    against_limits,
    cautions,
    declared,
    ending,
    key_numbers,
    outcomes,
    what_ran,
)
from volbench.present.report.together import aggregate_table
from volbench.present.report.words import Distrust, asked, distrusted, found
from volbench.present.terminal.outcome import StateNote, note_of, unfinished

METHODS = (
    "Each Run is one fio process. Its own output and logs are kept, and every number here is read"
    " from them: rates are I/Os divided by the time they took, percentiles come from fio's bins"
    " (0.8 % exact), means and extremes are exact. Warm-up and preparation stay out of the main"
    " numbers. Repeats of a job are pooled by their median, never seconds of one Run."
)

JobRun = tuple[str, str, RunState]


@dataclass(frozen=True)
class Part:
    """Everything the template shows of one campaign; `id` begins the ids, `level` the headings."""

    id: str
    level: int
    content: ReportContent
    ran: Sequence[str]
    asked: Sequence[str]
    found: Sequence[str]
    key_numbers: Sequence[KeyNumber]
    cautions: Sequence[str]
    declared: Sequence[str]
    limits: DataTable
    results: DataTable
    aggregate: DataTable
    distrusted: Sequence[Distrust]
    doubts: Sequence[RuleDoubts]
    doubted: str
    failures: Sequence[tuple[Run, StateNote]]
    charts: Sequence[ReportFigure]
    device: Sequence[ReportFigure]
    use: UseSection
    jobs: Sequence[tuple[str, Sequence[JobRun]]]
    plan: dict[str, str]
    versions: Sequence[str]
    downloads: Sequence[Download]
    methods: str = METHODS

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Anchor and name of each section there is."""
        wanted = (
            ("summary", "Summary", True),
            ("results", "Results", True),
            ("findings", "Findings", self.doubts),
            ("charts", "Charts", self.charts),
            ("device", "Device", self.use.table.rows),
            ("unfinished", "Runs without a result", self.failures),
            ("jobs", "Job files", True),
            ("provenance", "Methods and provenance", True),
            ("downloads", "Downloads", self.downloads),
        )
        return [(f"{self.id}{anchor}", name) for anchor, name, there in wanted if there]


def part_of(content: ReportContent, *, prefix: str, level: int, room_chars: int) -> Part:
    """Arrange what is shown of a campaign.

    Args:
        content: all that is known of it.
        prefix: of its ids, so that those of two campaigns don't meet.
        level: of its headings.
        room_chars: that its downloads may take.
    """
    rows, findings, verdicts, aggregate = (
        records(content.frames.get(name, pd.DataFrame()))
        for name in ("summary", "findings", "verdicts", "aggregate")
    )
    outcome = outcomes(rows)
    limits = against_limits(outcome)
    return Part(
        id=prefix,
        level=level,
        content=content,
        ran=what_ran(content, rows),
        asked=asked(content, rows),
        found=[ending(content), *found(verdicts, limits)],
        key_numbers=key_numbers(outcome, invalid=invalid_runs(findings)),
        cautions=cautions(outcome),
        declared=declared(outcome),
        limits=limits_table(limits),
        results=results(rows, findings),
        aggregate=aggregate_table(aggregate),
        distrusted=distrusted(findings),
        doubts=told_by_rule(findings),
        doubted=verdict(findings),
        failures=unfinished(content.campaign, content.states),
        charts=[one for one in content.figures if one.kind != KIND],
        device=[one for one in content.figures if one.kind == KIND],
        use=use_section(content.frames),
        jobs=_jobs(content),
        plan=_plan_facts(content),
        versions=_versions(rows),
        downloads=downloads(content.frames, campaign=content.campaign.name, room_chars=room_chars),
    )


def _jobs(content: ReportContent) -> list[tuple[str, list[JobRun]]]:
    """Return each job file with the Runs that used it."""
    found: dict[str, list[JobRun]] = {}
    for run in content.campaign.runs:
        state = note_of(run, content.states).state
        found.setdefault(content.jobs.get(run.id, ""), []).append((run.id, run.note, state))
    return list(found.items())


def _versions(rows: Sequence[Row]) -> list[str]:
    return sorted({str(row["fio_version"]) for row in rows if row.get("fio_version")})


def _plan_facts(content: ReportContent) -> dict[str, str]:
    """Return what was decided before the campaign started."""
    campaign = content.campaign
    return {
        "campaign": campaign.name,
        "imported" if campaign.is_imported else "planned": instant(campaign.created_utc),
        "command line": shlex.join(campaign.command) or "not recorded",
        "seed": str(campaign.seed),
        "order": campaign.order.value,
        "after a failed Run": campaign.on_error.value,
        "allowed to be overwritten": ", ".join(campaign.allow_destroy) or "nothing",
    }
