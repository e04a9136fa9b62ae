"""What belongs together: frames of fleets and of several campaigns enter, tables leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, middle
from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.present.formatting import MISSING, Row, job_label, number, printable, records, text
from volbench.present.report.doubts import Badge, badges_of
from volbench.present.report.results import Cell, DataTable, Heading, number_cell
from volbench.present.tables.compare_table import measure_name, notes, shown_value
from volbench.units import format_count, format_duration, format_latency, format_rate

METRICS: Mapping[str, tuple[str, Callable[[float], str], str]] = {
    "iops": ("IOPS", format_count, "I/Os per second"),
    "bw_bytes_per_s": ("Bandwidth", format_rate, "bytes per second"),
    "p99": ("p99 latency", format_latency, "s"),
}
"""Column to its name, its words for people and the unit of its exact value."""


def verdicts_table(comparison: Comparison) -> DataTable:
    """Return a verdict for each job, metric and campaign, as `volbench compare` tells them."""
    return DataTable(
        name="verdicts",
        caption=" ".join(notes(comparison)),
        headings=(
            Heading("Job"),
            Heading("Direction"),
            Heading("Metric"),
            Heading("Campaign"),
            Heading("Base", "middle of the repeats of the first campaign", numeric=True),
            Heading("Value", "middle of the repeats of this campaign", numeric=True),
            Heading("Repeats", "of the base, and of this campaign"),
            Heading("Verdict", "sorted by the ratio to the base", numeric=True),
        ),
        rows=tuple(tuple(_verdict(one)) for one in comparison.rows),
    )


def _verdict(one: Compared) -> list[Cell]:
    ratio = f"{one.interval.estimate!r}" if one.interval else ""
    job = ", ".join([one.label, *one.by.values()])
    name = measure_name(one.measure)
    repeats = f"{one.base_group.repeats} and {one.candidate_group.repeats}"
    doubted = "! " if one.doubts else ""
    return [
        Cell(printable(job), value=job),
        Cell(one.direction, value=one.direction),
        Cell(name, value=name),
        Cell(printable(one.candidate), value=one.candidate),
        *(
            Cell(shown_value(one.measure, value), title=f"{value!r}", value=f"{value!r}")
            for value in (middle(one.base_group), middle(one.candidate_group))
        ),
        Cell(repeats, value=repeats),
        Cell(doubted + one.words, title=f"ratio {ratio}" if ratio else "", value=ratio),
    ]


def aggregate_table(rows: Sequence[Row]) -> DataTable:
    """Return what clients did together, a row for each step and direction."""
    return DataTable(
        name="aggregate",
        caption="Sums over the time in which all clients ran; latencies are of all their I/Os.",
        headings=(
            Heading("Job"),
            Heading("Repeat", numeric=True),
            Heading("Direction"),
            Heading("Clients", "that finished, of those that were asked to", numeric=True),
            Heading("Together", "time in which all of them ran", numeric=True),
            Heading("IOPS", numeric=True),
            Heading("Bandwidth", numeric=True),
            Heading("Latency mean", numeric=True),
            Heading("Latency p99", numeric=True),
            Heading("Latency max", numeric=True),
            Heading(
                "Start skew", "from the first client's first I/O to the last one's", numeric=True
            ),
        ),
        rows=tuple(tuple(_total(row)) for row in rows),
    )


def _total(row: Row) -> list[Cell]:
    clients, planned = number(row, "clients"), number(row, "clients_planned")
    count = f"{clients:.0f}" if clients == planned else f"only {clients:.0f} of {planned:.0f}"
    return [
        Cell(job_label(row), value=job_label(row)),
        number_cell(row, "repeat", "{:.0f}".format),
        Cell(text(row, "direction"), value=text(row, "direction")),
        Cell(count, value=f"{clients:.0f}"),
        number_cell(row, "overlap_s", format_duration, unit="s"),
        number_cell(row, "iops", format_count, unit="I/Os per second"),
        number_cell(row, "bw_bytes_per_s", format_rate, unit="bytes per second"),
        number_cell(row, "lat_mean_s", format_latency, unit="s"),
        number_cell(row, "lat_p99_s", format_latency, unit="s"),
        number_cell(row, "lat_max_s", format_latency, unit="s"),
        number_cell(row, "start_skew_s", format_latency, unit="s"),
    ]


def pooled(summary: pd.DataFrame) -> dict[str, dict[str, Row]]:
    """Return job and direction to campaign to the median of its repeats.

    Args:
        summary: with the rows of several campaigns.
    """
    told, _ = with_latencies(summary, ("p99",))
    found: dict[str, dict[str, Row]] = {}
    for campaign, rows in told[told["direction"] != "sync"].groupby("campaign", sort=False):
        for row in records(per_job(rows, list(METRICS))):
            name = f"{text(row, 'label')}, {text(row, 'direction')}"
            found.setdefault(name, {})[str(campaign)] = row
    return found


def doubts_of(
    findings: Sequence[Row], rows: Mapping[str, Mapping[str, Row]], campaigns: Sequence[str]
) -> dict[str, tuple[Badge, ...]]:
    """Return job and direction to a badge for each rule and campaign that doubts its numbers.

    Args:
        findings: of all campaigns.
        rows: as `pooled` returns them.
        campaigns: their names, in the order in which they stand in the page.
    """
    by_job: dict[tuple[str, ...], list[Row]] = {}
    for one in findings:
        by_job.setdefault(tuple(text(one, name) for name in ("campaign", *_DOUBTED)), []).append(
            one
        )
    found = {}
    for job, told in rows.items():
        badges: list[Badge] = []
        for place, campaign in enumerate(campaigns, start=1):
            if campaign in told:
                own = (campaign, *(text(told[campaign], name) for name in _DOUBTED))
                result = {**told[campaign], "run": campaign}
                marks = badges_of({campaign: by_job.get(own, [])}, result)
                badges += [
                    replace(mark, place=f"c{place}-", message=f"{campaign}: {mark.message}")
                    for mark in marks
                ]
        found[job] = tuple(badges)
    return found


_DOUBTED = ("profile", "host", "volume", "job")
"""What tells whose Finding it is, beside the campaign and the direction."""


def side_by_side_tables(
    summary: pd.DataFrame, campaigns: Sequence[str], *, findings: Sequence[Row] = ()
) -> list[DataTable]:
    """Return a table for each metric: a row for each job, a column for each campaign.

    Args:
        summary: with the rows of all campaigns.
        campaigns: their names, in order; the first is what the others are held against.
        findings: of all campaigns.
    """
    rows = pooled(summary)
    doubts = doubts_of(findings, rows, campaigns)
    return [
        DataTable(
            name=f"side-by-side-{title.lower().replace(' ', '-')}",
            caption=f"{title}: the median of the repeats of each job. Ratios are to {campaigns[0]};"
            " whether a difference is more than chance is another question.",
            headings=(
                Heading("Job"),
                *(Heading(name, numeric=True) for name in campaigns),
                *(Heading(f"{name}: ratio", numeric=True) for name in campaigns[1:]),
            ),
            rows=tuple(
                (
                    Cell(job, value=job, badges=doubts[job]),
                    *(_value(told.get(name), column, show, unit=unit) for name in campaigns),
                    *(_ratio(told, column, campaigns[0], name) for name in campaigns[1:]),
                )
                for job, told in rows.items()
            ),
        )
        for column, (title, show, unit) in METRICS.items()
        if any(
            not math.isnan(number(row, column)) for told in rows.values() for row in told.values()
        )
    ]


def _value(row: Row | None, column: str, show: Callable[[float], str], *, unit: str) -> Cell:
    return Cell("not run") if row is None else number_cell(row, column, show, unit=unit)


def _ratio(told: Mapping[str, Row], column: str, base: str, name: str) -> Cell:
    """Return a campaign's value as a multiple of the first one's."""
    first, second = (number(told.get(one, {}), column) for one in (base, name))
    if math.isnan(first) or math.isnan(second) or first == 0:
        return Cell(MISSING)
    return Cell(f"{second / first:.2f} x", title=repr(second / first), value=repr(second / first))
