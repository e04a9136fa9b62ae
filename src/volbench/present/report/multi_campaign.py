"""Several campaigns beside each other in the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from volbench.analyse.frames.job_frames import key_of, measured, per_job, with_latencies
from volbench.analyse.frames.matched_workloads import named_by_workload
from volbench.present.formatting import MISSING, Row, number, records, shown, text
from volbench.present.plots.charts.comparison_charts import MAX_FOREST_ROWS
from volbench.present.plots.metrics import LATENCY_KINDS
from volbench.present.plots.selection import invalid_in
from volbench.present.report.content import MultiCampaignContent, ReportFigure
from volbench.present.tables.compare_table import (
    comparison_table,
    notes,
    patterns_table,
)
from volbench.present.tables.findings_table import badges_of
from volbench.present.tables.table import Badge, Column, Source, Table, quantity
from volbench.units import counted_noun, format_count, format_latency, format_rate

if TYPE_CHECKING:
    from volbench.analyse.compare.comparison import Comparison
    from volbench.analyse.compare.comparison_result import Compared

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
    table: Table[Any]


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
    rows, kind = pooled_by_campaign(frames)
    shared = sum(len(by_campaign) == len(campaigns) for by_campaign in rows.values())
    sentences = [
        f"{len(campaigns)} campaigns: {', '.join(campaigns)}.",
        f"{shared} of {counted_noun(len(rows), 'workload')} ran in all campaigns.",
        "Names of jobs serve only as labels.",
    ]
    tables = side_by_side_tables(rows, campaigns, kind, findings=records(frames["findings"]))
    if content.comparison:
        sentences += [f"{remark}." for remark in content.comparison.remarks]
        patterns = patterns_table(content.comparison)
        verdict_tables = [NamedTable("Verdicts", verdicts_table(content.comparison))]
        if patterns.rows:  # Where the forest leaves rows out, patterns say more than one verdict.
            is_first = len(content.comparison.rows) > MAX_FOREST_ROWS
            verdict_tables.insert(0 if is_first else 1, NamedTable("Ratios by pattern", patterns))
        tables = [*verdict_tables, *tables]
    sentences += [content.refusal] if content.refusal else []
    return MultiCampaignSection(content.verdict, sentences, tables, content.figures)


def verdicts_table(comparison: Comparison) -> Table[Compared]:
    """Return the table of `volbench compare`, under its notes alone."""
    title = " ".join(notes(comparison, is_brief=True))
    return replace(comparison_table(comparison), name="verdicts", title=title)


def pooled_by_campaign(
    frames: Mapping[str, pd.DataFrame],
) -> tuple[dict[str, dict[str, Row]], str]:
    """Return job and direction to campaign to what its valid repeats are pooled to.

    Beside it the kind of latency that all campaigns have, ``lat`` or ``clat``.
    """
    with_p99, kind = with_latencies(frames["summary"], ("p99",))
    with_p99.loc[with_p99["run"].isin(invalid_in(frames["findings"])), [*METRICS]] = math.nan
    by_job: dict[str, dict[str, Row]] = {}
    for campaign, rows in with_p99[with_p99["direction"] != "sync"].groupby("campaign", sort=False):
        runs = measured(rows).groupby(key_of(rows), sort=False, dropna=False)["run"].agg(list)
        pooled = per_job(rows, list(METRICS))
        for row, run_numbers in zip(records(pooled), runs, strict=True):
            name = f"{text(row, 'label')}, {text(row, 'direction')}"
            by_job.setdefault(name, {})[str(campaign)] = {**row, "runs": run_numbers}
    return by_job, kind


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
    by_job: dict[str, tuple[Badge, ...]] = {}
    for job, by_campaign in rows.items():
        badges: list[Badge] = []
        for index, campaign in enumerate(campaigns, start=1):
            if campaign in by_campaign:
                key = (campaign, *(text(by_campaign[campaign], name) for name in _JOB_KEY))
                result = {**by_campaign[campaign], "run": campaign}
                badges += [
                    replace(badge, place=f"c{index}-", message=f"{campaign}: {badge.message}")
                    for badge in badges_of({campaign: by_key.get(key, [])}, result)
                ]
        by_job[job] = tuple(badges)
    return by_job


# Columns that say which job a finding is about, beside the campaign and the direction
_JOB_KEY = ("profile", "host", "volume", "job")


def side_by_side_tables(
    rows: Mapping[str, Mapping[str, Row]],
    campaigns: Sequence[str],
    kind: str = "lat",
    *,
    findings: Sequence[Row] = (),
) -> list[NamedTable]:
    """Return a table for each metric: a row for each job, a column for each campaign.

    Args:
        campaigns: their names, in order; the first is the base of the others.
        kind: of the latency, ``lat`` or ``clat``.
    """
    badges = _badges_by_job(findings, rows, campaigns)
    return [
        NamedTable(
            title if column != "p99" else f"p99 {LATENCY_KINDS[kind]}",
            _metric_table(column, rows, campaigns, badges),
        )
        for column, (title, _, _) in METRICS.items()
        if any(
            not math.isnan(number(row, column))
            for by_campaign in rows.values()
            for row in by_campaign.values()
        )
    ]


ByCampaign = Mapping[str, Row]
JobRow = tuple[str, ByCampaign]  # name of a job, and its rows by campaign


def _metric_table(
    column: str,
    rows: Mapping[str, ByCampaign],
    campaigns: Sequence[str],
    badges: Mapping[str, tuple[Badge, ...]],
) -> Table[JobRow]:
    title = METRICS[column][0]
    base, *others = campaigns
    return Table(
        f"side-by-side-{title.lower().replace(' ', '-')}",
        [
            Column("job", lambda row: row[0], label="Job"),
            *(_value_column(column, name) for name in campaigns),
            *(_ratio_column(column, base, name) for name in others),
        ],
        list(rows.items()),
        title=f"{title}: the median of the valid repeats of each job. Ratios are to {base};"
        " the verdicts say whether a difference is significant.",
        badges=lambda row: badges[row[0]],
        source=lambda row: _source(row[1], campaigns),
    )


def _value_column(column: str, campaign: str) -> Column[JobRow]:
    _, show, unit = METRICS[column]
    value = quantity(column)

    def in_campaign(row: JobRow) -> Row:
        return row[1].get(campaign, {})

    return Column(
        campaign,
        lambda row: shown(in_campaign(row), column, show) if campaign in row[1] else "not run",
        is_right=True,
        header=campaign,
        value=lambda row: in_campaign(row).get(column),
        tooltip=lambda row: (
            replace(value, unit=unit).hint(in_campaign(row)) if campaign in row[1] else ""
        ),
    )


def _ratio_column(column: str, base: str, campaign: str) -> Column[JobRow]:
    """Return the ratios of a campaign's values to the base's."""

    def ratio(row: JobRow) -> float:
        first, second = (number(row[1].get(name, {}), column) for name in (base, campaign))
        return math.nan if first == 0 else second / first

    return Column(
        f"{campaign}: ratio",
        lambda row: MISSING if math.isnan(ratio(row)) else f"{ratio(row):.2f} x",
        header=f"{campaign}: ratio",
        is_right=True,
        value=ratio,
        tooltip=lambda row: "" if math.isnan(ratio(row)) else repr(ratio(row)),
    )


def _source(by_campaign: Mapping[str, Row], campaigns: Sequence[str]) -> Source:
    """Return the runs behind the values of a row, as the page numbers them."""
    return Source(
        tuple(
            f"c{index}-{run.removeprefix(f'{campaign}/')}"
            for index, campaign in enumerate(campaigns, start=1)
            if campaign in by_campaign
            for run in cast("list[str]", by_campaign[campaign].get("runs", []))
        )
    )
