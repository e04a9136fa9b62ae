"""Runs that a report's page filters and draws by itself, and rows of tables that it makes."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pandas as pd

from tests.present.report.small_reports import content_of, parsed, row_of, run_of
from volbench.model.frames.columns import FINDINGS
from volbench.present.formatting import records
from volbench.present.report import ReportContent, render_report
from volbench.present.report.embedded_runs import packed_rows, run_columns
from volbench.present.tables.results_table import results_page_table


def unpacked(payload: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a page carries compressed."""
    return json.loads(gzip.decompress(base64.b64decode(payload)))


def texts(column: dict[str, Any]) -> list[str]:
    """Return the texts of a column of the JSON form."""
    return [column["texts"][place] for place in column["places"]]


def content(count: int, **values: object) -> ReportContent:
    """Return a report on some runs of one job each."""
    runs = tuple(run_of(number, f"job{number}") for number in range(count))
    rows = [row_of(run, iops=float(100 + n), **values) for n, run in enumerate(runs)]
    return content_of(runs, rows)


def with_finding(own: ReportContent, severity: str) -> ReportContent:
    """Return a report with a finding about the writes of its second run."""
    row = {"run": "001-job1-r1", "rule": "cold-blocks", "severity": severity, "direction": "write"}
    findings = pd.DataFrame([row], columns=[column.name for column in FINDINGS])
    return ReportContent(
        **{**vars(own), "frames": {**own.frames, "findings": findings.astype(object)}}
    )


def test_each_campaign_has_runs_of_its_own() -> None:
    """Equal run ids of two campaigns are two runs."""
    runs = run_columns([("c1-", content(2)), ("c2-", content(2))])
    assert runs.numbered("c2-", ["000-job0-r1", "001-job1-r1", "unknown"]) == "2 3"
    form = unpacked(runs.payload)
    assert texts(form["key"])[::2] == ["c1-000-job0-r1", "c2-000-job0-r1"]
    assert form["iops"]["values"] == [100.0, 101.0, 100.0, 101.0]


def test_notes_do_not_make_a_run_affected() -> None:
    """A warning does, a note gives context."""
    for severity, expected in (("warning", ["", "warning"]), ("note", ["", ""])):
        form = unpacked(run_columns([("", with_finding(content(2), severity))]).payload)
        assert texts(form["severity"]) == expected


def test_percentiles_fall_back_on_completion_latency() -> None:
    """As everywhere, where fio reported no total latency."""
    form = unpacked(run_columns([("", content(1, clat_p99_s=0.25))]).payload)
    assert form["lat_p99_s"]["values"] == [0.25]


def test_rows_beyond_the_first_are_compressed() -> None:
    """They carry text, exact value and title of each cell, and the runs that filters go by."""
    own = content(5)
    runs = run_columns([("", own)])
    table = results_page_table(records(own.frames["summary"]))
    found = unpacked(packed_rows(table, "", runs=runs, first=3))
    assert [(numbers, direction) for numbers, direction, _ in found] == [
        ([3], "write"),
        ([4], "write"),
    ]
    assert ["103", "103.0", "103.0 I/Os per second"] in found[0][2]


def test_a_page_holds_the_first_rows_of_a_large_table() -> None:
    """Others are made when they are shown, so that thousands of runs open at once."""
    page = parsed(render_report(content(70)))
    rows = [attributes for attributes in page.all("tr") if "data-runs" in attributes]
    assert len(rows) == 60
    assert rows[59]["data-runs"] == "59"
    templates = {attributes["id"]: attributes for attributes in page.all("template")}
    assert templates["results-rows"]["data-total"] == "70"
