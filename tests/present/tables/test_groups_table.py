"""Many results by group: what tells the groups apart, how many they are, and how they spread."""

from itertools import product

import pytest

from volbench.errors import InputError
from volbench.present.formatting import Row
from volbench.present.tables.groups_table import groups_table
from volbench.present.tables.render_table import render_table
from volbench.present.tables.results_table import result_tables


def matrix(*iodepths: int) -> list[dict[str, object]]:
    """Return results of two patterns and two block sizes at queue depths."""
    return [
        {"run": f"{rw}-{block_bytes}-{iodepth}", "job": f"{rw}-{block_bytes}-{iodepth}"}
        | {"rw": rw, "direction": rw, "block_bytes": block_bytes, "iodepth": iodepth}
        | {"iops": 1000.0 * iodepth, "lat_p99_s": 0.001}
        for rw, block_bytes, iodepth in product(("read", "write"), (4096, 65536), iodepths)
    ]


def test_failed_runs_are_no_results() -> None:
    """They stay in the group of their workload, which counts those that finished."""
    failed = matrix(40)[0] | {"status": "interrupted", "iops": 1e6}
    table = groups_table([*matrix(*range(1, 32)), failed], {}, {})
    assert (table.rows[0]["results"], table.rows[0]["range"]) == (31, "1k to 31k")
    assert "124 results in 4 groups" in table.notes[0]


def test_groups_are_the_workloads() -> None:
    """Pattern and block size tell groups apart; queue depths are a range, rates a median."""
    table = groups_table(matrix(*range(1, 32)), {"read-4096-3": "1"}, {})
    assert [column.heading for column in table.columns[:3]] == ["rw", "bs", "results"]
    first = table.rows[0]
    assert (first["rw"], first["bs"], first["results"]) == ("read", "4k", 31)
    assert (first["iodepth"], first["iops"]) == ("1 to 31", 16000.0)
    assert (first["range"], first["warnings"]) == ("1k to 31k", "1")


def test_medians_and_ranges_leave_invalid_results_out() -> None:
    """A group of invalid results alone has no numbers, and a note says why."""
    rows = matrix(1, 4, 16)
    marks = {"read-4096-16": "1!"} | {str(row["run"]): "1!" for row in rows if row["rw"] == "write"}
    table = groups_table(rows, marks, {}, by=["rw", "bs"])
    by_name = {(str(row["rw"]), str(row["bs"])): row for row in table.rows}
    first = by_name["read", "4k"]
    assert (first["results"], first["iops"], first["range"]) == (3, 2500.0, "1k to 4k")
    assert by_name["write", "4k"]["iops"] is by_name["write", "4k"]["lat_p99_s"] is None
    assert any("7 (!) invalid and left out of medians and ranges" in note for note in table.notes)


def test_named_columns_separate_groups_and_nothing_else_does() -> None:
    """A user groups by queue depth: patterns and block sizes are pooled, as a range."""
    table = groups_table(matrix(1, 4, 16), {}, {}, by=["iodepth"])
    assert [column.heading for column in table.columns[:2]] == ["iodepth", "results"]
    counts = [(row["iodepth"], row["results"]) for row in table.rows]
    assert counts == [("1", 4), ("4", 4), ("16", 4)]
    assert {row["bs"] for row in table.rows} == {"4k to 64k"}
    assert "caution: results in one row differ in rw, bs, so their" in table.notes[-1]
    assert "add --by iodepth,rw,bs" in table.notes[-1]
    apart = groups_table(matrix(1, 4, 16), {}, {}, by=["iodepth", "rw", "bs"])
    assert not any("caution" in note for note in apart.notes)


def test_an_unknown_column_is_refused_with_the_nearest_one() -> None:
    """A typo does not group everything into one row."""
    with pytest.raises(InputError, match="--by names iodept") as caught:
        groups_table(matrix(1), {}, {}, by=["iodept"])
    assert "iodepth" in caught.value.hint


def test_any_differing_column_can_separate_groups() -> None:
    """Where few values differ they are a column, so that no group hides two workloads."""
    table = groups_table(matrix(1, 2), {}, {})
    assert [column.heading for column in table.columns[:3]] == ["rw", "bs", "job"]
    assert len(table.rows) == 8


class Stored:
    """Frames of a campaign with many results."""

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the summary; the other frames are empty."""
        return matrix(*range(1, 32)) if name == "summary" else []


def test_only_many_results_are_grouped() -> None:
    """124 results are four lines if the table may be brief, else each has its own."""
    brief: list[Row] = list(result_tables(Stored(), {}, is_brief=True)[0].rows)
    assert len(brief) == 4
    (whole,) = result_tables(Stored(), {})
    assert len(whole.rows) == 124
    assert "124 results in 4 groups" in render_table(
        result_tables(Stored(), {}, is_brief=True)[0], "table"
    )
