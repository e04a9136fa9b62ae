"""Several campaigns beside each other in the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pandas as pd

from volbench.analyse.compare.comparison import WorkloadMean, means_over_workloads
from volbench.analyse.compare.comparison_result import Compared, change_text
from volbench.analyse.frames.job_frames import key_of, measured, per_job, with_latencies
from volbench.analyse.frames.matched_workloads import named_by_workload
from volbench.present.formatting import (
    MISSING,
    Row,
    number,
    printable,
    records,
    text,
)
from volbench.present.report.content import MultiCampaignContent, ReportFigure
from volbench.present.report.data_tables import Cell, DataTable, Heading, Source, number_cell
from volbench.present.tables.compare_table import MOST_MEANS, measure_name, notes, shown_value
from volbench.present.tables.findings_table import Badge, badges_of
from volbench.units import format_count, format_latency, format_rate

if TYPE_CHECKING:
    from volbench.analyse.compare.comparison import Comparison

# Column to its name, how it is written and the unit of its exact value
METRICS: Mapping[str, tuple[str, Callable[[float], str], str]] = {
    "iops": ("IOPS", format_count, "I/Os per second"),
    "bw_bytes_per_s": ("Bandwidth", format_rate, "bytes per second"),
    "p99": ("p99 latency", format_latency, "s"),
}


@dataclass(frozen=True)
class NamedTable:
    """A table under a heading."""

    title: str
    table: DataTable


@dataclass(frozen=True)
class MultiCampaignSection:
    """Content before the campaigns' own sections; the verdict is empty without a comparison."""

    verdict: str
    sentences: Sequence[str]
    tables: Sequence[NamedTable]
    figures: Sequence[ReportFigure]


def multi_campaign_section(content: MultiCampaignContent) -> MultiCampaignSection:
    """Return the section that compares several campaigns."""
    frames = named_by_workload(content.frames, "campaign")
    campaigns = [str(name) for name in frames["summary"]["campaign"].dropna().unique()]
    rows = pooled_by_campaign(frames)
    shared = sum(len(by_campaign) == len(campaigns) for by_campaign in rows.values())
    sentences = [
        f"{len(campaigns)} campaigns: {', '.join(campaigns)}.",
        f"{shared} of {len(rows)} results are of workloads that all ran; names of jobs are labels.",
    ]
    tables = side_by_side_tables(rows, campaigns, findings=records(frames["findings"]))
    if content.comparison:
        sentences += [f"{remark}." for remark in content.comparison.remarks]
        means = means_over_workloads(content.comparison)
        own = [NamedTable("Verdicts", verdicts_table(content.comparison))]
        own += [NamedTable("Means over workloads", means_table(means))] * (len(means) > MOST_MEANS)
        tables = [*own, *tables]
    sentences += [content.refusal] if content.refusal else []
    return MultiCampaignSection(content.verdict, sentences, tables, content.figures)


def verdicts_table(comparison: Comparison) -> DataTable:
    """Return a verdict for each job, metric and campaign, as `volbench compare` gives them."""
    return DataTable(
        name="verdicts",
        caption=" ".join(notes(comparison, is_brief=True)),
        headings=(
            Heading("Job"),
            Heading("Direction"),
            Heading("Metric"),
            Heading("Campaign"),
            Heading("Base", "median of the repeats of the first campaign", numeric=True),
            Heading("Value", "median of the repeats of this campaign", numeric=True),
            Heading("Repeats", "of the base, and of this campaign"),
            Heading("Verdict", "sorted by the ratio to the base", numeric=True),
        ),
        rows=tuple(tuple(_verdict(row)) for row in comparison.rows),
    )


def means_table(means: Sequence[WorkloadMean]) -> DataTable:
    """Return a row for each metric and campaign without an interval."""
    return DataTable(
        name="means",
        caption="Geometric means of the ratios to the base over workloads, where no interval is "
        "known: the spread is that over workloads and says nothing about chance.",
        headings=(
            Heading("Campaign"),
            Heading("Metric"),
            Heading("Workloads", numeric=True),
            Heading("Mean", "change against the base", numeric=True),
            Heading("Lowest", "of a workload", numeric=True),
            Heading("Highest", "of a workload", numeric=True),
            Heading("No interval because"),
        ),
        rows=tuple(tuple(_mean_cells(mean)) for mean in means),
    )


def _mean_cells(mean: WorkloadMean) -> list[Cell]:
    ratios = (mean.mean, min(mean.ratios), max(mean.ratios))
    count = str(len(mean.ratios))
    return [
        Cell(printable(mean.candidate), value=mean.candidate),
        Cell(mean.metric, value=mean.metric),
        Cell(count, value=count),
        *(Cell(change_text(own), title=f"ratio {own!r}", value=f"{own!r}") for own in ratios),
        Cell(mean.reason, value=mean.reason),
    ]


def _verdict(row: Compared) -> list[Cell]:
    ratio = "" if math.isnan(row.ratio) else f"{row.ratio!r}"
    job = ", ".join([row.label, *row.by.values()])
    name = measure_name(row.measure)
    repeats = f"{row.base_group.repeats} and {row.candidate_group.repeats}"
    mark = "! " if row.warnings else ""
    return [
        Cell(printable(job), value=job),
        Cell(row.direction, value=row.direction),
        Cell(name, value=name),
        Cell(printable(row.candidate), value=row.candidate),
        *(
            Cell(shown_value(row.measure, value), title=f"{value!r}", value=f"{value!r}")
            for value in (row.base_group.median, row.candidate_group.median)
        ),
        Cell(repeats, value=repeats),
        Cell(mark + row.words, title=f"ratio {ratio}" if ratio else "", value=ratio),
    ]


def pooled_by_campaign(frames: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, Row]]:
    """Return job and direction to campaign to what its repeats are pooled to."""
    with_p99, kind = with_latencies(frames["summary"], ("p99",))
    bins = frames.get("histogram")
    found: dict[str, dict[str, Row]] = {}
    for campaign, rows in with_p99[with_p99["direction"] != "sync"].groupby("campaign", sort=False):
        runs = measured(rows).groupby(key_of(rows), sort=False, dropna=False)["run"].agg(list)
        pooled = per_job(rows, list(METRICS), histogram=bins, kind=kind)
        for row, own in zip(records(pooled), runs, strict=True):
            name = f"{text(row, 'label')}, {text(row, 'direction')}"
            found.setdefault(name, {})[str(campaign)] = {**row, "runs": own}
    return found


def _badges_by_job(
    findings: Sequence[Row], rows: Mapping[str, Mapping[str, Row]], campaigns: Sequence[str]
) -> dict[str, tuple[Badge, ...]]:
    """Return job and direction to a badge for each rule and campaign that warns about it.

    Args:
        campaigns: their names, in the order of the page.
    """
    by_key: dict[tuple[str, ...], list[Row]] = {}
    for finding in findings:
        key = (text(finding, "campaign"), *(text(finding, name) for name in _JOB_KEY))
        by_key.setdefault(key, []).append(finding)
    found = {}
    for job, by_campaign in rows.items():
        badges: list[Badge] = []
        for place, campaign in enumerate(campaigns, start=1):
            if campaign in by_campaign:
                key = (campaign, *(text(by_campaign[campaign], name) for name in _JOB_KEY))
                result = {**by_campaign[campaign], "run": campaign}
                badges += [
                    replace(badge, place=f"c{place}-", message=f"{campaign}: {badge.message}")
                    for badge in badges_of({campaign: by_key.get(key, [])}, result)
                ]
        found[job] = tuple(badges)
    return found


# Columns that say which job a finding is about, beside the campaign and the direction
_JOB_KEY = ("profile", "host", "volume", "job")


def side_by_side_tables(
    rows: Mapping[str, Mapping[str, Row]],
    campaigns: Sequence[str],
    *,
    findings: Sequence[Row] = (),
) -> list[NamedTable]:
    """Return a table for each metric: a row for each job, a column for each campaign.

    Args:
        campaigns: their names, in order; the first is the base of the others.
    """
    badges = _badges_by_job(findings, rows, campaigns)
    return [
        NamedTable(title, _metric_table(column, rows, campaigns, badges))
        for column, (title, _, _) in METRICS.items()
        if any(
            not math.isnan(number(row, column))
            for by_campaign in rows.values()
            for row in by_campaign.values()
        )
    ]


def _metric_table(
    column: str,
    rows: Mapping[str, Mapping[str, Row]],
    campaigns: Sequence[str],
    badges: Mapping[str, tuple[Badge, ...]],
) -> DataTable:
    title, show, unit = METRICS[column]
    base, *others = campaigns
    return DataTable(
        name=f"side-by-side-{title.lower().replace(' ', '-')}",
        caption=f"{title}: the median of the repeats of each job. Ratios are to {base};"
        " the verdicts say whether a difference is significant.",
        headings=(
            Heading("Job"),
            *(Heading(name, numeric=True) for name in campaigns),
            *(Heading(f"{name}: ratio", numeric=True) for name in others),
        ),
        rows=tuple(
            (
                Cell(job, value=job, badges=badges[job]),
                *(_value(own.get(name), column, show, unit=unit) for name in campaigns),
                *(_ratio(own, column, base, name) for name in others),
            )
            for job, own in rows.items()
        ),
        sources=tuple(_source(own, campaigns) for own in rows.values()),
    )


def _source(by_campaign: Mapping[str, Row], campaigns: Sequence[str]) -> Source:
    """Return the runs behind the values of a row, as the page numbers them."""
    return Source(
        tuple(
            f"c{place}-{run.removeprefix(f'{campaign}/')}"
            for place, campaign in enumerate(campaigns, start=1)
            if campaign in by_campaign
            for run in cast("list[str]", by_campaign[campaign].get("runs", []))
        )
    )


def _value(row: Row | None, column: str, show: Callable[[float], str], *, unit: str) -> Cell:
    return Cell("not run") if row is None else number_cell(row, column, show, unit=unit)


def _ratio(by_campaign: Mapping[str, Row], column: str, base: str, name: str) -> Cell:
    """Return the ratio of a campaign's value to the base's."""
    first, second = (number(by_campaign.get(own, {}), column) for own in (base, name))
    if math.isnan(first) or math.isnan(second) or first == 0:
        return Cell(MISSING)
    return Cell(f"{second / first:.2f} x", title=repr(second / first), value=repr(second / first))
