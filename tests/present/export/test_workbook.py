"""Workbooks are opened with openpyxl, as a spreadsheet would read them."""

from __future__ import annotations

import io
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook

import volbench
from tests.labelled_campaigns import HOSTS, make
from volbench.present.export.workbook import render_xlsx


@pytest.fixture(scope="module", name="summary")
def _summary(tmp_path_factory: pytest.TempPathFactory) -> volbench.CampaignData:
    """Return a campaign with results."""
    return volbench.open_campaign(make(tmp_path_factory.mktemp("made"), HOSTS).root)


@pytest.fixture(scope="module", name="workbook")
def _workbook(summary: volbench.CampaignData) -> Workbook:
    content = render_xlsx({"summary": summary.summary(), "series": summary.series()})
    return openpyxl.load_workbook(io.BytesIO(content))


def test_charts_show_iops_bandwidth_and_latency(workbook: Workbook) -> None:
    """Three native charts, whose numbers stand in the sheet beside them."""
    sheet = workbook["charts"]
    headings = [cell.value for cell in sheet[1]]
    assert headings[:4] == ["job", "repeats", "IOPS", "bandwidth MB/s"]
    charts = vars(sheet)["_charts"]  # openpyxl has no other way to list them
    assert len(charts) == 3
    for chart, columns in zip(charts, (["C"], ["D"], ["E", "F", "G"]), strict=True):
        drawn = [series.val.numRef.f for series in chart.series]
        assert drawn == [f"'charts'!${column}$2:${column}${sheet.max_row}" for column in columns]
        assert {series.cat.numRef.f for series in chart.series} == {
            f"'charts'!$A$2:$A${sheet.max_row}"
        }


def test_charted_numbers_are_those_of_the_summary(
    workbook: Workbook, summary: volbench.CampaignData
) -> None:
    """A job's bar is its median, in the unit that the heading tells."""
    rows = summary.summary()
    own = rows[(rows["host"] == "vm3") & (rows["direction"] == "read")]
    charted = {str(row[0]): row for row in workbook["charts"].iter_rows(values_only=True)}
    [name] = [name for name in charted if "vm3" in name and "read" in name]
    assert charted[name][2] == pytest.approx(own["iops"].median())
    assert charted[name][3] == pytest.approx(own["bw_bytes_per_s"].median() / 1e6)
    assert charted[name][6] == pytest.approx(own["clat_p99_s"].median() * 1e3)


def test_charts_leave_invalid_results_out(summary: volbench.CampaignData) -> None:
    """The sheet of numbers has them; of invalid results alone nothing is charted."""
    rows = summary.summary()
    first, every = rows["run"].iloc[:1], rows["run"]
    sheets = []
    for runs in (first, every):
        findings = pd.DataFrame({"run": runs, "severity": "invalid"})
        content = render_xlsx({"summary": rows}, findings=findings)
        sheets.append(openpyxl.load_workbook(io.BytesIO(content)))
    charted = sheets[0]["charts"].iter_rows(min_row=2, values_only=True)
    repeats = [int(str(row[1])) for row in charted]
    results = len(rows[rows["status"].eq("finished") & rows["phase"].eq("measured")])
    assert sum(repeats) < results
    assert "charts" not in sheets[1].sheetnames


def test_numbers_have_formats_and_headers_stay(workbook: Workbook) -> None:
    """Columns are wide enough, numbers are grouped, and a filter leaves units where they are."""
    sheet = workbook["summary"]
    places = {cell.value: get_column_letter(at) for at, cell in enumerate(sheet[1], start=1)}
    assert sheet[f"{places['iops']}3"].number_format == "#,##0.0"
    assert sheet[f"{places['clat_p99_s']}3"].number_format == "0.000000"
    assert sheet[f"{places['clat_p99_s']}2"].value == "s"
    assert sheet.freeze_panes == "A3"
    assert str(sheet.auto_filter.ref).startswith("A2:")
    assert sheet.column_dimensions[places["bw_bytes_per_s"]].width >= len("bw_bytes_per_s")


def test_without_results_there_are_no_charts(tmp_path: Path) -> None:
    """A campaign that did not run yet gives sheets with headers alone."""
    frame = volbench.open_campaign(make(tmp_path, HOSTS, finished=False).root).summary()
    names = openpyxl.load_workbook(io.BytesIO(render_xlsx({"summary": frame}))).sheetnames
    assert names == ["summary", "columns"]
