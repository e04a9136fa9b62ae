"""The comparison as a chart and as a table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tests.analyse.compared_rows import no_findings, rows_of
from volbench.analyse.compare.comparison import Comparison, Question, compare
from volbench.analyse.compare.comparison_result import Verdict
from volbench.present.figures.forest import forest_figure
from volbench.present.tables.compare_table import comparison_table, notes
from volbench.present.tables.render_table import render_table


@pytest.fixture(name="comparison", scope="module")
def _comparison() -> Comparison:
    """Return three jobs of two candidates: faster, slower, unknown, too few."""
    jobs = {"fast": 1.2, "slow": 0.7, "even": 1.0}
    base = pd.concat([rows_of(1000, job=job) for job in (*jobs, "brief <b>|x")])
    other = [rows_of(1000 * ratio, job=job, seed=2) for job, ratio in jobs.items()]
    other.append(rows_of(1000, job="brief <b>|x", repeats=2))
    sides = {"old": base, "new": pd.concat(other), "newer": pd.concat(other)}
    question = Question(metrics=("iops", "p99"), tolerance=0.001)
    return compare(sides, dict.fromkeys(sides, no_findings()), question)


def _intervals(figure: Figure) -> list[tuple[float, float]]:
    """Return the ends of every horizontal line that was drawn."""
    ends = []
    for axes in figure.axes:
        for line in axes.get_lines():
            x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
            if len(x) == 2 and y[0] == y[1]:
                ends.append((float(x[0]), float(x[1])))
    return ends


def test_every_interval_is_drawn(comparison: Comparison) -> None:
    """A panel a metric, a row a cell and candidate, lines from end to end, and 1 as reference."""
    figure = forest_figure(comparison)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["iops", "p99"]
    told = [one.interval for one in comparison.rows if one.interval]
    expected = sorted((one.low, one.high) for one in told)
    assert np.array(sorted(_intervals(figure))) == pytest.approx(np.array(expected))
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        low, high = axes.get_xlim()
        title = axes.get_title(loc="left")
        here = [one.interval for one in comparison.rows if one.measure.name == title]
        assert low < min(one.low for one in here if one)
        assert max(one.high for one in here if one) < high
        assert any(np.array_equal(line.get_xdata(), [1, 1]) for line in axes.get_lines())
        assert len(axes.xaxis.get_majorticklocs()) >= 3
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 8
    assert "fast read (newer)" in names
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts.count("not enough repeats: 2") == 4
    figure.canvas.draw()


def test_the_legend_names_what_is_there(comparison: Comparison) -> None:
    """Only verdicts that occur are named."""
    (legend,) = forest_figure(comparison).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "faster",
        "slower",
        "no difference shown",
    ]
    assert all(isinstance(handle, Line2D) for handle in legend.legend_handles)


def test_a_wide_interval_still_has_ticks() -> None:
    """Ratios over decades are ticked by powers."""
    base, candidate = rows_of(1000, noise=1.5), rows_of(90000, noise=1.5, seed=2)
    sides = {"a": base, "b": candidate}
    found = compare(sides, dict.fromkeys(sides, no_findings()), Question(metrics=("iops",)))
    axes = forest_figure(found).axes[0]
    ticks = axes.xaxis.get_majorticklocs()
    assert 2 <= len(ticks) <= 8
    assert all(math.isfinite(tick) for tick in ticks)


def test_the_table_has_verdicts_and_notes(comparison: Comparison) -> None:
    """Every comparison has its row; below stands how to read them."""
    table = comparison_table(comparison)
    assert len(table.rows) == len(comparison.rows) == 16
    headings = [column.heading for column in table.columns]
    assert headings[:4] == ["job", "dir", "metric", "candidate"]
    text = "\n".join(table.notes)
    assert "12 comparisons: family-wise confidence 95 % (Holm-Bonferroni)" in text
    assert "does not generalise to the volume type" in text
    kinds = {one.verdict for one in comparison.rows}
    assert kinds == {Verdict.FASTER, Verdict.SLOWER, Verdict.NOT_SHOWN, Verdict.TOO_FEW}
    assert len(notes(comparison)) == 3


def test_markdown_stays_in_its_cells(comparison: Comparison) -> None:
    """Names from files break neither the table nor the page."""
    lines = render_table(comparison_table(comparison), "markdown").splitlines()
    assert sum(line.startswith("|") for line in lines) == 18
    (row, *_) = (line for line in lines if "brief" in line)
    assert r"brief \<b\>\|x" in row
