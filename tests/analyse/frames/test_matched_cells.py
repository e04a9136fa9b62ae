"""Results of several sides are matched by what was done, whatever it is called."""

from collections.abc import Sequence
from itertools import product

import pandas as pd
import pytest

from volbench.analyse.frames.matched_cells import cells_of_frame

Row = dict[str, object]


def row(job: str = "a", /, **values: object) -> Row:
    """Return a random read of volbench's own."""
    named = {"rw": "randread", "direction": "read", "block_bytes": 4096, "iodepth": 1}
    run = f"{job}-{len(values)}"
    return {"run": run, "job": job, "group": job, "import_folder": None, **named, **values}


def cells_of(*given: tuple[str, Row], compared: Sequence[str] = ()) -> list[list[int]]:
    """Return the places of rows that are in one cell, in the order of their first."""
    sides, rows = zip(*given, strict=True)
    named = [{**each, "run": str(place)} for place, each in enumerate(rows)]
    found = cells_of_frame(pd.DataFrame(named, dtype=object), sides, compared=compared)
    groups: dict[int, list[int]] = {}
    for place, cell in enumerate(found.numbers):
        groups.setdefault(cell, []).append(place)
    return list(groups.values())


def test_names_of_jobs_do_not_affect_matching() -> None:
    """One workload under two names is one; two workloads of a side under one name are two."""
    assert cells_of(("A", row("old")), ("B", row("new"))) == [[0, 1]]
    depths = [(side, row("x", iodepth=depth)) for side in "AB" for depth in (1, 8)]
    assert cells_of(*depths) == [[0, 2], [1, 3]]


def test_equal_jobs_of_a_side_are_told_apart_by_names_of_both() -> None:
    """First and second pass match by name, also where one side finished one of them."""
    passes = [(side, row(job)) for side in "AB" for job in ("first", "second")]
    assert cells_of(*passes) == [[0, 2], [1, 3]]
    assert cells_of(*passes[:3]) == [[0, 2], [1]]


@pytest.mark.parametrize("changed", [{"ioengine": "io_uring"}, {"iodepth": 8}, {"rate_iops": "9"}])
def test_what_varies_with_the_side_alone_is_left_to_compare(changed: Row) -> None:
    """An engine, a depth or a rate of one side makes no workload of its own."""
    base = {"ioengine": "libaio", "rate_iops": "not set"}
    given = [
        (side, row(rw=rw, **{**base, **(changed if side == "B" else {})}))
        for side, rw in product("AB", ("randread", "randwrite"))
    ]
    assert cells_of(*given) == [[0, 2], [1, 3]]


def test_an_option_that_changed_in_one_job_is_found() -> None:
    """The job stays matched, so that its rate is refused and not passed over."""
    rates = {"reads": ("not set", "not set"), "writes": ("not set", "3000")}
    given = [
        (side, row(job, rw=f"rand{job[:-1]}", rate_iops=rates[job][place]))
        for place, side in enumerate("AB")
        for job in rates
    ]
    assert cells_of(*given) == [[0, 2], [1, 3]]
    deeper = [("A", row("x")), ("A", row("y", iodepth=8)), ("B", row("x")), ("B", row("y"))]
    assert cells_of(*deeper) == [[0, 2], [1, 3]]


def test_an_option_that_a_side_has_several_of_is_a_workload() -> None:
    """Two engines of one side are matched with those of the other."""
    engines = [(side, row(ioengine=engine)) for side in "AB" for engine in ("libaio", "io_uring")]
    assert cells_of(*engines) == [[0, 2], [1, 3]]
    assert cells_of(*engines[:3]) == [[0, 2], [1]]


def test_unknown_depths_match_where_only_one_is_known() -> None:
    """A side that reports no depth is compared with the one depth of the other, not with two."""
    unknown = ("A", row("x", iodepth=None, import_folder="o"))
    known = [("B", row(f"y{depth}", iodepth=depth, import_folder="o")) for depth in (1, 8)]
    assert cells_of(unknown, known[0]) == [[0, 1]]
    assert len(cells_of(unknown, *known)) == 3


def test_labels_are_words_of_factors() -> None:
    """Pattern, block size and depth are named; usual values and names that say nothing are not."""
    rows = [
        row("r", numjobs=1, direct=True),
        row("w", rw="randrw", direction="write", rwmixread=70, numjobs=4, direct=False),
        row("s", rw="randrw", direction="read", rwmixread=70, numjobs=4, direct=False),
        row("t", rate_iops="3000", numjobs=1, direct=True),
    ]
    rows = [{**each, "run": str(place)} for place, each in enumerate(rows)]
    assert cells_of_frame(pd.DataFrame(rows, dtype=object), ["A"] * 4).labels == (
        "randread 4k, queue depth 1, rate_iops unknown",
        "randrw 4k writes, queue depth 1, 4 jobs, 70 % reads, buffered",
        "randrw 4k reads, queue depth 1, 4 jobs, 70 % reads, buffered",
        "randread 4k, queue depth 1, rate_iops=3000",
    )


@pytest.mark.parametrize("variant", ["da", ""])
def test_a_job_of_several_volumes_matches_that_of_one(variant: str) -> None:
    """The arm at the end of a name is no workload: its name or its volume pairs it."""
    pair = [row(f"r-{arm}", arm=arm, volume=f"/mnt/{arm}") for arm in ("da", "db")]
    single = row(f"r-{variant}" if variant else "r", arm=variant or None, volume="/mnt/da")
    given = [("pair", pair[0]), ("pair", pair[1]), ("single", single)]
    assert cells_of(*given) == [[0, 2], [1]]
    volumes = [(str(each["volume"]), each) for _, each in given]
    assert cells_of(*volumes, compared=["volume"]) == [[0, 1, 2]]
    other = row("r", arm=None, volume="/mnt/dc")
    assert cells_of(*given[:2], ("other", other)) == [[0, 1, 2]]


@pytest.mark.parametrize(
    "folders",
    [
        ("p1", "n2"),
        ("old", "new"),
        ("nvme0n1-2022_03_04_07_58_PM", "nvme2n1-2022_03_04_11_51_AM"),
        ("overwrite", "write"),
    ],
)
def test_names_of_folders_change_nothing(folders: tuple[str, str]) -> None:
    """A word in all folders of a side is its name, not that of a workload."""
    given = [
        (
            folder,
            row(
                f"{disk}_{job}",
                rw="write",
                iodepth=depth,
                volume=f"/dev/{disk}",
                direction="write",
                import_folder=folder,
            ),
        )
        for folder, disk in zip(folders, ("nvme0n1", "nvme2n1"), strict=True)
        for job in ("write", "overwrite-seq")
        for depth in (1, 2)
    ]
    assert cells_of(*given) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    within = [(str(each["volume"]), {**each, "campaign": "panel"}) for _, each in given]
    assert cells_of(*within, compared=["volume"]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
