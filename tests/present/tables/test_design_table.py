"""Tables of a design: a row is a cell, named by what varies."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.present.frames_for_plots import result
from tests.present.tables.table_rows import printed
from volbench.analyse.frames.design import design_of
from volbench.errors import InputError
from volbench.present.formatting import Row
from volbench.present.tables.design_table import (
    MAX_GROUPS,
    Judgements,
    cells_table,
    design_table,
    groups_table,
)
from volbench.present.tables.render_table import render_table


def grid(*, depths: int = 2, repeats: int = 3) -> Iterator[Row]:
    """Yield repeats of reads and writes at several depths on two volumes."""
    places = product(("randread", "randwrite"), range(depths), ("/dev/sda", "/dev/sdb"))
    for (rw, depth, volume), repeat in product(places, range(1, repeats + 1)):
        yield result(
            "j",
            repeat=repeat,
            rw=rw,
            direction=rw.removeprefix("rand"),
            iodepth=2**depth,
            volume=volume,
            iops=1000.0 * 2**depth + repeat,
            lat_max_s=repeat / 1000,
            run=f"{rw}-{depth}-{volume}-{repeat}",
            import_folder="f",
        )


def test_repeats_are_one_row_named_by_its_factors() -> None:
    """Volumes stand below each other at one setting; what is constant stands above the table."""
    table = cells_table(design_of([*grid()]), Judgements(), title="The answer.")
    lines = render_table(table, "table", width=80).splitlines()
    assert lines[:3] == ["The answer.", "All: 4k, direct, libaio.", ""]
    assert lines[3].split()[:4] == ["rw", "iodepth", "volume", "IOPS"]
    assert [line.split()[:3] for line in lines[5:9]] == [
        ["randread", "1", "sda"],
        ["randread", "1", "sdb"],
        ["randread", "2", "sda"],
        ["randread", "2", "sdb"],
    ]
    assert "1k to 1k" not in printed(table)
    first = table.records()[0]
    assert (first["iops"], first["iops_low"], first["lat_max_s"]) == (1002.0, 1001.0, 0.003)
    assert "Of repeats: the median; of lat max the largest." in table.notes
    assert len(first["runs"]) == 3  # type: ignore[arg-type]  # a list


def test_the_number_of_repeats_is_a_column_where_it_varies() -> None:
    """A cell that was measured once stands beside others of three repeats."""
    rows = [*grid()][:-2]
    heading = printed(cells_table(design_of(rows), Judgements())).splitlines()[2]
    assert "  repeats" in heading
    assert "  repeats" not in printed(cells_table(design_of([*grid()]), Judgements()))


def test_a_single_result_shows_pattern_block_size_and_depth() -> None:
    """Nothing varies, and the row is no less readable for it."""
    lines = printed(cells_table(design_of([result("only")]), Judgements())).splitlines()
    assert lines[2].split()[:4] == ["rw", "bs", "iodepth", "IOPS"]


def test_what_is_not_sound_is_remarked() -> None:
    """Invalid repeats are left out of the median; asked rates and unsteady runs are named."""
    rows = [
        result("a", repeat=n, iops=iops, run=f"{n}", rate_iops="3000", import_folder="f")
        for n, iops in enumerate((3000.0, 3000.0, 9e9), 1)
    ]
    table = cells_table(design_of(rows), Judgements({"3": "2!"}, {"1": "stepped"}))
    [row] = table.records()
    assert (row["iops"], row["invalid"], row["asked"]) == (3000.0, 1, "rate_iops=3000")
    assert "as asked, 1 invalid, stepped" in printed(table)
    short = cells_table(design_of([result("a", iops=2000.0, rate_iops="3000")]), Judgements())
    assert "less than asked" in printed(short)


def test_syncs_have_a_row_below_their_writes() -> None:
    """Their latency is what an application waits for; they have no rate."""
    row = result("wal", rw="write", run="w")
    sync = {**row, "direction": "sync", "iops": None, "lat_p99_s": 0.004}
    judgements = Judgements(syncs={("w", "wal"): sync})
    lines = printed(cells_table(design_of([row]), judgements)).splitlines()
    assert lines[5].startswith("write, sync")
    assert "4 ms" in lines[5]


def test_named_jobs_of_a_plan_keep_its_order() -> None:
    """A first pass stands above the second, whatever their options."""
    passes = (("first", "90s"), ("second", "10s"))
    rows = [result(name, runtime=runtime, run=name) for name, runtime in passes]
    assert [row["job"] for row in cells_table(design_of(rows), Judgements()).rows] == [
        "first",
        "second",
    ]


def test_completion_latency_is_marked_once() -> None:
    """In the heading where all rows have it, by stars where some do."""
    alone: dict[str, Any] = {"lat_p99_s": None, "clat_p99_s": 0.002}
    text = printed(cells_table(design_of([result("a", **alone)]), Judgements()))
    assert "clat p99" in text
    assert "*" not in text
    rows = [result("a", **alone), result("b", iodepth=4)]
    assert "2 ms*" in printed(cells_table(design_of(rows), Judgements()))


def test_many_cells_are_grouped_by_the_design() -> None:
    """Groups of different workloads have a range and no median."""
    design = design_of([*grid(depths=12, repeats=1)])
    table = groups_table(design, Judgements())
    assert len(table.rows) <= MAX_GROUPS
    by_pattern = groups_table(design, Judgements(), by=("rw",))
    [read, _] = by_pattern.records()
    assert (read["rw"], read["results"], read["iops"]) == ("randread", 24, None)
    assert read["iodepth"] == "1 to 2048"
    assert any("different workloads (iodepth)" in note for note in by_pattern.notes)
    alike = groups_table(design, Judgements(), by=("rw", "depth")).records()
    assert alike[0]["iops"] == 1001.0


def test_groups_are_by_any_factor() -> None:
    """An option of fio counts as any column; an unknown name is refused with a hint."""
    rows = [result("a", rate_iops=rate, import_folder="f") for rate in ("100", "200")]
    table = groups_table(design_of(rows), Judgements(), by=("rate_iops",))
    assert [row["rate_iops"] for row in table.records()] == ["100", "200"]
    with pytest.raises(InputError, match="--by names rate_iop"):
        groups_table(design_of(rows), Judgements(), by=("rate_iop",))


def test_the_design_names_what_is_missing() -> None:
    """Factors, aliases and constants, and the cells that lack repeats or were not measured."""
    rows = [row for row in grid() if row["run"] != "randwrite-1-/dev/sdb-3"]
    table = design_table(design_of(rows))
    assert table.notes == [
        "7 of 8 cells measured three times; /dev/sdb, randwrite, queue depth 2: twice"
    ]
    document = json.loads(render_table(table, "json"))
    assert document["factors"]["iodepth"] == [1, 2]
    assert document["aliases"]["direction"] == "rw"
    assert document["constants"]["ioengine"] == "libaio"
    whole = [row for row in rows if not str(row["run"]).startswith("randwrite-1-/dev/sdb")]
    notes = design_table(design_of(whole)).notes
    assert notes[-1] == "not measured: /dev/sdb, randwrite, queue depth 2"
