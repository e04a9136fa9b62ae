"""Rates before, during and after an expansion, and what they say."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import Mock

import pytest

from tests.present.tables.table_rows import printed, summary
from volbench.present.tables.expansion_table import expansion_tables

PARTS = ("before", "during", "after")
IDENTITY = {"campaign": "c", "host": "loop", "direction": "write"}


def campaign(*, meanwhile: float, end_s: float | None = 4.5) -> Any:  # noqa: ANN401 - a protocol
    """Return a campaign whose volume was expanded from second 2.5 on.

    Args:
        meanwhile: IOPS from second 2 to second 5 of the run; 1000 before, 900 to 1100 around it.
        end_s: end of the expansion; None for one that had not ended.
    """
    rates: dict[str, list[float]] = {
        "before": [10, 900, 1100, 1000, 10],
        "during": [1000, 1000, *3 * [meanwhile], 1000],
        "after": [990] * 5,
    }
    runs: list[dict[str, Any]] = [
        {**IDENTITY, "run": f"00{n}-a-{part}-r1", "arm": part, "iops": iops, "lat_p99_s": 0.001}
        for n, (part, iops) in enumerate(zip(PARTS, (1000.0, 950.0, 990.0), strict=True), 1)
    ]
    series = [
        {**IDENTITY, "run": run["run"], "t_s": float(t_s), "iops": float(rate)}
        | {"bw_bytes_per_s": rate * 4096.0, "lat_mean_s": 1 / rate if rate else math.nan}
        for run in runs
        for t_s, rate in enumerate(rates[run["arm"]], 1)
    ]
    events: list[tuple[float | None, str, str | None]] = [(2.5, "expand", "96Mi")]
    events += [(end_s, "expanded", None)] if end_s else []
    marks = [
        {"campaign": "c", "run": "002-a-during-r1", "t_s": t_s, "kind": kind, "text": words}
        for t_s, kind, words in events
    ]
    frames = {
        "summary": [row for run in runs for row in summary(**run)],
        "series": series,
        "marks": marks,
    }
    return Mock(rows=frames.__getitem__)


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
    (table,) = expansion_tables(campaign(meanwhile=meanwhile))
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
    (table,) = expansion_tables(campaign(meanwhile=800.0, end_s=None))
    assert table.rows[1]["iops"] == (3 * 800 + 1000) / 4
    assert table.notes == [
        "loop: expansion to 96Mi had not ended when the campaign went on; it has no rates after it"
    ]


def test_campaigns_without_an_expansion_have_no_table() -> None:
    """Marks of a watch are none."""
    results = Mock(rows=lambda _name: [{"campaign": "c", "run": "r", "kind": "note"}])
    assert expansion_tables(results) == []
