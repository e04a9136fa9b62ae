"""Tables of the report: what distinguishes rows has a column."""

from __future__ import annotations

from dataclasses import replace

from tests.present.report.small_reports import content_of, parsed, row_of, run_of
from volbench.present.report import render_report


def test_labels_and_clients_distinguish_rows() -> None:
    """A label has a column where hosts differ in it; one that all have in common has none."""
    runs = (run_of(1, "boot"), run_of(2, "boot"))
    rows = [row_of(run, iops=1.0, client=number) for number, run in enumerate(runs, start=1)]
    content = content_of(runs, rows)
    labelled = content.frames["summary"].assign(label_zone=["z1", "z2"], label_site="x<y")
    page = parsed(render_report(replace(content, frames={"summary": labelled})))
    headings = page.text("th")
    assert "Client" in headings
    assert "zone" in headings
    assert "site" not in headings
    assert {"z1", "z2"} <= set(page.text("td"))
