"""Exact tests of stalled runs, with and without blocks."""

import math

import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact

from tests.analyse.compared_rows import findings_of, rows_of
from volbench.analyse.compare.comparison import Question, compare

REPEATS = 8


def stalls_of(
    *, base: int, candidate: int, in_blocks: bool, severity: str = "warning"
) -> list[str]:
    """Return what is said of as many stalled runs, the first ones of each side."""
    rows = rows_of(1000, repeats=REPEATS), rows_of(1000, repeats=REPEATS, seed=2)
    for side in rows:
        side["block"] = range(1, REPEATS + 1) if in_blocks else math.nan
    found = [
        findings_of(*(("stall", severity, f"sdb-reads-r{n}", None) for n in range(1, count + 1)))
        for count in (base, candidate)
    ]
    names = "AB"
    sides: dict[str, pd.DataFrame] = dict(zip(names, rows, strict=True))
    question = Question(metrics=("iops",))
    done = compare(sides, dict(zip(names, found, strict=True)), question)
    return [text for text in done.remarks if text.startswith("stalls")]


def test_blocks_in_which_one_side_stalled_decide() -> None:
    """One block stalled on both sides and says nothing; without blocks Fisher's test decides."""
    (text,) = stalls_of(base=1, candidate=7, in_blocks=True)
    assert text.startswith("stalls: 7 of 8 runs of reads in B, 1 of 8 in A (exact test, p = ")
    assert float(text.rpartition(" ")[2].rstrip(")")) == pytest.approx(
        binomtest(0, 6).pvalue, rel=0.05
    )
    (text,) = stalls_of(base=1, candidate=7, in_blocks=False)
    expected = fisher_exact([[1, 7], [7, 1]]).pvalue
    assert float(text.rpartition(" ")[2].rstrip(")")) == pytest.approx(expected, rel=0.05)


def test_nothing_is_said_without_a_stall() -> None:
    """Nor of notes: the job was asked to pause."""
    assert stalls_of(base=0, candidate=0, in_blocks=True) == []
    assert stalls_of(base=2, candidate=5, in_blocks=True, severity="note") == []
