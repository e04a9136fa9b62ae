"""The comparison as a table and as Markdown."""

from __future__ import annotations

import pytest

from tests.analyse.compared_rows import candidates_of_three_jobs
from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Verdict
from volbench.present.tables.compare_table import comparison_markdown, comparison_table, notes


@pytest.fixture(name="comparison", scope="module")
def _comparison() -> Comparison:
    return candidates_of_three_jobs()


def test_the_table_has_verdicts_and_notes(comparison: Comparison) -> None:
    """Every comparison has its row; below stands how to read them."""
    table = comparison_table(comparison)
    assert table.row_count == len(comparison.rows) == 16
    headings = [str(column.header) for column in table.columns]
    assert headings[:4] == ["job", "dir", "metric", "candidate"]
    text = str(table.caption)
    assert "12 comparisons: all verdicts hold together with 95 % (Holm)" in text
    assert "for these volumes, not for their kinds" in text
    kinds = {one.verdict for one in comparison.rows}
    assert kinds == {Verdict.FASTER, Verdict.SLOWER, Verdict.NOT_SHOWN, Verdict.TOO_FEW}
    assert len(notes(comparison)) == 3


def test_markdown_stays_in_its_cells(comparison: Comparison) -> None:
    """Names from files break neither the table nor the page."""
    lines = comparison_markdown(comparison).splitlines()
    assert sum(line.startswith("|") for line in lines) == 18
    (row, *_) = (line for line in lines if "brief" in line)
    assert r"brief \<b\>\|x" in row
