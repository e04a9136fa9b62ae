"""Layout of tables: which columns stay, where words are broken, and what unknown values read."""

import math
from collections.abc import Mapping

from volbench.present.tables.render_table import render_table, wrap
from volbench.present.tables.table import IDENTITY, Column, Table


def test_columns_are_dropped_by_priority() -> None:
    """The column with the largest number is left out first, the identity never."""
    priorities = {"a": 3, "n": IDENTITY, "b": 1, "c": 2}
    columns: list[Column[Mapping[str, object]]] = [
        Column(name, priority=priority) for name, priority in priorities.items()
    ]
    table = Table("t", columns, [{name: name * 30 for name in priorities}])
    assert "aaa" not in render_table(table, "table", width=100)
    narrow = render_table(table, "table", width=70)
    assert "ccc" not in narrow
    assert "n" * 30 in narrow
    assert "b" * 30 in narrow
    assert "hidden columns (--wide shows them): a, c" in narrow


def test_words_are_broken_after_punctuation() -> None:
    """A name that is too long for its column ends a line with its punctuation mark."""
    assert wrap("random-read-write-4k", 12) == ["random-read-", "write-4k"]
    assert wrap("a" * 20, 12) == ["a" * 12, "a" * 8]


def test_rows_are_sorted_by_a_column() -> None:
    """Numbers by value and texts by letter, the largest first behind a minus, unknown ones last."""
    columns: list[Column[Mapping[str, object]]] = [Column("a", priority=IDENTITY), Column("n")]
    rows: list[Mapping[str, object]] = [
        {"a": name, "n": n} for name, n in (("x", 10.0), ("z", None), ("y", 9.0))
    ]
    table = Table("t", columns, rows)
    assert [row["a"] for row in table.sorted_by("n").rows] == ["y", "x", "z"]
    assert [row["a"] for row in table.sorted_by("-n").rows] == ["x", "y", "z"]
    assert [row["a"] for row in table.sorted_by("-a").rows] == ["z", "y", "x"]


def test_missing_numbers_are_null_in_json_and_empty_in_csv() -> None:
    """NaN is null in JSON and empty in CSV; in a terminal it reads n/a."""
    columns: list[Column[Mapping[str, object]]] = [Column("a", priority=IDENTITY)]
    table = Table("t", columns, [{"a": math.nan, "b": [1, 2]}])
    assert '"a": null' in render_table(table, "json")
    assert render_table(table, "csv") == "a,b\n,1;2\n"
    assert "n/a" in render_table(table, "table")


def test_wide_characters_take_two_columns() -> None:
    """Columns stay aligned beside CJK text."""
    columns: list[Column[Mapping[str, object]]] = [Column("a", priority=IDENTITY), Column("b")]
    lines = render_table(Table("t", columns, [{"a": "測試", "b": "x"}]), "table").splitlines()
    assert lines[2] == "測試  x"
    assert lines[1] == "────  ─"
