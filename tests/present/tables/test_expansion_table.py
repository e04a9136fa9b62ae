"""Rates before, during and after an expansion, and what they say."""

from __future__ import annotations

import math
from unittest.mock import Mock

import pytest

from tests.present.tables.expansions import expanded_campaign
from tests.present.tables.table_rows import printed
from volbench.present.tables.expansion_table import expansion_tables


@pytest.mark.parametrize(
    ("meanwhile", "words"),
    [
        (800.0, "write IOPS meanwhile -20 %, below all the intervals before (900 to 1.1k)"),
        (1200.0, "write IOPS meanwhile +20 %, above all the intervals before (900 to 1.1k)"),
        (950.0, "write IOPS meanwhile -5.0 %, within the range of the intervals before"),
        (0.0, "write IOPS meanwhile -100 %, below all the intervals before"),
    ],
)
def test_rates_meanwhile_are_those_between_the_marks(meanwhile: float, words: str) -> None:
    """Of the intervals that overlap them, compared with the job before the expansion."""
    (table,) = expansion_tables(expanded_campaign(meanwhile=meanwhile))
    assert [row["part"] for row in table.rows] == ["before", "expanding", "after"]
    before, expanding, after = table.rows
    assert expanding["iops"] == meanwhile
    assert (before["low"], expanding["low"]) == (900, meanwhile)
    assert after["change"] == pytest.approx(-0.01)
    assert expanding["lat_mean_s"] == pytest.approx(
        1 / meanwhile if meanwhile else math.nan, nan_ok=True
    )
    (note,) = table.notes
    assert note.startswith(f"loop: expansion to 96Mi took 2s; {words}")
    assert note.endswith("afterwards -1.0 %")
    assert "expanding" in printed(table)


def test_an_expansion_that_had_not_ended_has_no_conclusion() -> None:
    """The rates after it are none, and its own are those to the end of the run."""
    (table,) = expansion_tables(expanded_campaign(meanwhile=800.0, end_s=None))
    assert table.rows[1]["iops"] == (3 * 800 + 1000) / 4
    assert table.notes == [
        "loop: expansion to 96Mi had not ended when the campaign went on; it has no rates after it"
    ]


def test_campaigns_without_an_expansion_have_no_table() -> None:
    """Marks of a watch are none."""
    results = Mock(rows=lambda _name: [{"campaign": "c", "run": "r", "kind": "note"}])
    assert expansion_tables(results) == []
