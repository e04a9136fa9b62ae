"""Matrix of what is compared, and the ranking of many values."""

from itertools import product

from volbench.analyse.frames.design import Row, design_of
from volbench.present.tables.matrix_table import compared_page_table, shared_runs
from volbench.present.tables.results_table import result_tables

_RATES = (("a", 9.0), ("b", 1.0))


def row(volume: str, depth: int, iops: float, repeat: int = 1) -> Row:
    """Return a result."""
    known = {"run": f"{volume}-{depth}-{repeat}", "volume": volume, "repeat": repeat}
    read = {"rw": "randread", "direction": "read", "block_bytes": 4096, "iodepth": depth}
    return {**known, **read, "iops": iops, "lat_p99_s": 1 / iops}


def test_a_matrix_has_workloads_by_what_is_compared() -> None:
    """Against the best of each row, certain changes have a number, and others none."""
    rows = [row("a", 1, 1000 + n, n) for n in (1, 2, 3)]
    rows += [row("b", 1, 500 + n, n) for n in (1, 2, 3)]
    rows += [row("a", 16, 2000 + 50 * n, n) for n in (1, 2, 3)]
    rows += [row("b", 16, 2010 + 50 * n, n) for n in (1, 2, 3)]
    table = compared_page_table(design_of(rows))
    assert table is not None
    assert [column.heading for column in table.columns] == ["IOPS by workload", "a", "b"]
    cells = [[column.cell(item) for column in table.columns[1:]] for item in table.rows]
    assert cells == [["1k", "502 \N{MINUS SIGN}50 %"], ["2.1k ~", "2.11k"]]


def test_changes_of_a_column_are_judged_together() -> None:
    """One change of 3 % is certain alone, and may be chance among five workloads."""
    for depths, shown in ((1, "987 \N{MINUS SIGN}3 %"), (5, "987 ~")):
        places = product("ab", range(1, depths + 1), (1, 2, 3))
        rows = [row(v, d, 1000 + 10 * n - 33 * ((v, d) == ("b", 1)), n) for v, d, n in places]
        table = compared_page_table(design_of(rows))
        assert table is not None
        assert table.columns[2].cell(table.rows[0]) == shown


def test_many_values_are_ranked_where_most_were_measured() -> None:
    """Nine volumes are ranked at the depth that all share; eight were measured at another."""
    rows = [row(f"vol{n}", 4, 1000 + 100 * n) for n in range(9)]
    rows += [row(f"vol{n}", 64, 5000 - 100 * n) for n in range(8)]
    design = design_of(rows)
    table = compared_page_table(design)
    assert table is not None
    assert table.title == "randread 4k, queue depth 4: the setting that all 9 share."
    texts = [[column.cell(item) for column in table.columns] for item in table.rows]
    assert texts[0][:3] == ["1", "vol8", "1.8k"]
    assert texts[-1][:3] == ["9", "vol0", "1k"]
    assert shared_runs(design) == {f"vol{n}-4-1" for n in range(9)}


def test_nothing_is_compared_on_one_volume() -> None:
    """A sweep of one volume has no matrix."""
    assert compared_page_table(design_of([row("a", n, 1000.0 * n) for n in (1, 2)])) is None
    sizes = [{**row(name, 1, iops), "size_bytes": iops} for name, iops in _RATES]
    assert compared_page_table(design_of(sizes)) is None  # volbench compare refuses it
    watched = compared_page_table(design_of([{**row(a, 1, n), "rw": "watched"} for a, n in _RATES]))
    assert watched is not None
    cells = [[column.cell(item) for column in watched.columns[1:]] for item in watched.rows]
    assert (cells, watched.notes) == ([["9", "1"]], [])


class _Measured:
    """Two volumes, measured at two depths three times each, and in vain at a third."""

    verdict = ()

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return that depth 64 is invalid, and no verdict or summary."""
        runs = [str(row["run"]) for row in self.results()] if name == "findings" else []
        invalid = {"severity": "invalid", "rule": "page-cache", "evidence": ""}
        return [{"run": run, **invalid} for run in runs if "-64-" in run]

    def results(self) -> list[dict[str, object]]:
        """Return the results: b is faster at depth 16."""
        gains = {("b", 16): 2.0}
        return [
            {**row(volume, depth, 1000 * gains.get((volume, depth), 1.0) + n, n), "group": ""}
            for volume in ("a", "b")
            for depth in (1, 16, 64)
            for n in (1, 2, 3)
        ]


def test_a_run_of_several_workloads_on_two_volumes_ends_with_the_matrix() -> None:
    """The answer stands above it; a verb that shows results has invalid ones as well."""
    (matrix,) = result_tables(_Measured(), {}, is_brief=True, is_compared=True)
    assert (matrix.name, len(matrix.rows)) == ("matrix", 2)
    assert "a and b: 2 valid workloads" in matrix.title
    (cells,) = result_tables(_Measured(), {}, is_brief=True)
    assert len(cells.rows) == 6
