"""The comparison as a table and as Markdown."""

from __future__ import annotations

import pytest

from tests.analyse.compared_rows import candidates_of_three_jobs
from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Verdict
from volbench.present.tables.compare_table import comparison_table, notes
from volbench.present.tables.render_table import render_table


@pytest.fixture(name="comparison", scope="module")
def _comparison() -> Comparison:
    return candidates_of_three_jobs()


def test_the_table_has_verdicts_and_notes(comparison: Comparison) -> None:
    """Every comparison has its row; below stands how to read them."""
    table = comparison_table(comparison)
    assert len(table.rows) == len(comparison.rows) == 16
    headings = [column.heading for column in table.columns]
    assert headings[:4] == ["job", "dir", "metric", "candidate"]
    text = "\n".join(table.notes)
    assert "12 comparisons: family-wise confidence 95 % (Holm-Bonferroni)" in text
    assert "does not generalise to the volume type" in text
    kinds = {row.verdict for row in comparison.rows}
    assert kinds == {Verdict.FASTER, Verdict.SLOWER, Verdict.NOT_SHOWN, Verdict.TOO_FEW}
    assert len(notes(comparison)) == 3


def test_markdown_stays_in_its_cells(comparison: Comparison) -> None:
    """Names from files break neither the table nor the page."""
    lines = render_table(comparison_table(comparison), "markdown").splitlines()
    assert sum(line.startswith("|") for line in lines) == 18
    (row, *_) = (line for line in lines if "brief" in line)
    assert r"brief \<b\>\|x" in row
