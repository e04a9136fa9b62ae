"""The comparison as a table and as Markdown."""

from dataclasses import replace

import pytest

from tests.analyse.compared_rows import candidates_of_three_jobs
from volbench.analyse.compare.comparison import Comparison, headlines
from volbench.analyse.compare.comparison_result import Verdict
from volbench.analyse.compare.repeat_statistics import Group
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
    assert headings[:3] == ["workload", "metric", "candidate"]
    text = "\n".join(table.notes)
    assert "12 comparisons: family-wise confidence 95 % (Holm-Bonferroni)" in text
    assert "does not generalise to the volume type" in text
    kinds = {row.verdict for row in comparison.rows}
    assert kinds == {Verdict.FASTER, Verdict.SLOWER, Verdict.NOT_SHOWN, Verdict.TOO_FEW}
    assert len(notes(comparison)) == 4


def of_ratios(comparison: Comparison, ratios: tuple[float, ...]) -> Comparison:
    """Return single runs of as many random reads, with a ratio each."""
    first = replace(comparison.rows[0], kind="random reads", contrast=None)
    first = replace(first, base_group=Group((100.0,)))
    rows = [
        replace(first, label=f"w{n}", candidate_group=Group((100.0 * ratio,)))
        for n, ratio in enumerate(ratios)
    ]
    return replace(comparison, rows=tuple(rows))


def test_untested_rows_are_called_so(comparison: Comparison) -> None:
    """The answer says so once; the note has the spread of the repeats, or that it is unknown."""
    single = of_ratios(comparison, (0.5, 2.0))
    untested = tuple(replace(row, shortage="one run per side") for row in single.rows)
    single = replace(single, rows=untested)
    printed = render_table(comparison_table(single), "markdown")
    assert "may be chance; the spread of repeats is unknown." in printed
    assert printed.splitlines()[4].endswith("| looks 50 % slower |")
    kinds = replace(single, rows=(single.rows[0], replace(single.rows[1], kind="random writes")))
    words = "looks 50 % slower; random writes: looks 2x faster; not tested: one run per side."
    assert headlines(kinds)[0].endswith(f"random reads: {words}")
    wide = (replace(single.rows[0], base_group=Group((100.0, 280.0))),)
    assert "by up to 2.8x." in notes(replace(single, rows=wide))[-1]


def test_many_comparisons_are_one_screen_of_the_largest_differences(comparison: Comparison) -> None:
    """Significant ones come first; data, and few comparisons, are all listed."""
    slow = next(row for row in comparison.rows if row.verdict is Verdict.SLOWER)
    alike = of_ratios(comparison, (1.0,) * 69 + (9.0,)).rows
    many = replace(comparison, rows=(*alike, slow))
    table = comparison_table(many, is_brief=True)
    assert (table.rows[0], table.rows[1].label, len(table.rows)) == (slow, "w69", 20)
    assert table.notes[-1].startswith("51 more that differ less: --format csv lists all")
    assert len(comparison_table(many).rows) == 71
    assert len(comparison_table(comparison, is_brief=True).rows) == 16
