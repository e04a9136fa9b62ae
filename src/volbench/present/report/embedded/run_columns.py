"""Runs of a report as columns: what its page filters, pools and draws by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.results.finding import Severity
from volbench.present.formatting import Row, latency, number, records, text
from volbench.present.renderers.interactive import pack
from volbench.present.renderers.interactive.plot_json import columns_form
from volbench.present.report.content import ReportContent
from volbench.present.report.data_tables import Cell, DataTable, Source
from volbench.present.report.findings_section import badges_of, by_run

_TEXTS = ("campaign", "run", "host", "job", "group", "volume", "direction", "rw", "phase", "status")
_NUMBERS = (
    *("block_bytes", "iodepth", "numjobs", "repeat", "direct", "iops", "bw_bytes_per_s"),
    *("cpu_usr", "cpu_sys", "limit_iops", "limit_bw_bytes_per_s", "runtime_s"),
)
_LATENCIES = ("mean", "p50", "p90", "p99", "p999", "max")


@dataclass(frozen=True)
class RunColumns:
    """Every run of a page."""

    payload: str  # base64 of the compressed columns, a row for each run, section and direction
    # prefix of a campaign's ids with the id of a run, to the number of the run
    numbers: Mapping[str, int]

    def numbered(self, prefix: str, runs: Iterable[str]) -> str:
        """Return the numbers of some runs of a campaign, as an attribute of an element."""
        found = (self.numbers.get(f"{prefix}{run}") for run in runs)
        return " ".join(str(own) for own in found if own is not None)


def run_columns(campaigns: Sequence[tuple[str, ReportContent]]) -> RunColumns:
    """Return the runs of all campaigns of a page."""
    numbers: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for prefix, content in campaigns:
        findings = by_run(records(content.frames.get("findings", pd.DataFrame())))
        for row in records(content.frames.get("summary", pd.DataFrame())):
            key = f"{prefix}{text(row, 'run')}"
            place = numbers.setdefault(key, len(numbers))
            rows.append({"number": place, "key": key} | _values(row, findings))
    return RunColumns(_packed(columns_form(pd.DataFrame(rows))) if rows else "", numbers)


def packed_rows(table: DataTable, prefix: str, *, runs: RunColumns, first: int) -> str:
    """Return the rows of a table from the `first` on, compressed for the page to show on demand."""
    sources = table.sources or (Source(),) * len(table.rows)
    return _packed(
        [
            (
                [runs.numbers[prefix + run] for run in source.runs if prefix + run in runs.numbers],
                source.direction,
                [_cell(cell, prefix) for cell in row],
            )
            for row, source in list(zip(table.rows, sources, strict=True))[first:]
        ]
    )


def _cell(cell: Cell, prefix: str) -> tuple[object, ...]:
    """Return text, value, title and badges, without what is empty at the end."""
    badges = [
        (own.rule, own.severity, own.message, f"#{prefix}{own.place}finding-{own.rule}")
        for own in cell.badges
    ]
    parts: tuple[object, ...] = (cell.text, cell.value, cell.title, badges)
    while not parts[-1]:
        parts = parts[:-1]
    return parts


def _packed(form: object) -> str:
    return pack(json.dumps(form, separators=(",", ":"), ensure_ascii=False))


def _values(row: Row, findings: Mapping[str, Sequence[Row]]) -> dict[str, object]:
    severities = {badge.severity for badge in badges_of(findings, row)}
    worst = next((own.value for own in _WORST if own.value in severities), "")
    return {
        **{name: text(row, name) for name in (*_TEXTS, *_labels(row))},
        **{name: number(row, name) for name in _NUMBERS},
        **{f"lat_{name}_s": latency(row, name).seconds for name in _LATENCIES},
        "severity": worst,
    }


_WORST = (Severity.INVALID, Severity.WARNING)


def _labels(row: Row) -> list[str]:
    return [name for name in row if name.startswith(LABEL_PREFIX)]
