"""Results are matched over campaigns by what was done; names are labels."""

import pytest

from tests.analyse.compared_rows import no_findings
from tests.present.frames_by_kind import in_campaign, together
from tests.present.frames_for_plots import frames, result
from volbench.analyse.frames.matched_workloads import match_workloads, order_by_workload
from volbench.present.plots.chart import build_plot
from volbench.present.plots.description import numbers

Row = dict[str, object]


def matched(*given: tuple[str, Row], ignored: str = "", by_name: bool = False) -> list[list[int]]:
    """Return the places of rows that have one label, in the order of their first."""
    sides, rows = zip(*given, strict=True)
    labels = match_workloads(rows, sides, ignored=ignored, by_name=by_name)
    groups: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        groups.setdefault(label, []).append(place)
    return list(groups.values())


def test_names_of_jobs_do_not_affect_matching() -> None:
    """One workload under two names is one; two workloads under one name are two."""
    assert matched(("A", result("old")), ("B", result("new"))) == [[0, 1]]
    assert matched(("A", result("x")), ("B", result("x", iodepth=8))) == [[0], [1]]
    nights = [(f"n{n}", result("old" if n < 5 else "new")) for n in range(10)]
    assert matched(*nights) == [[*range(10)]]


def test_same_workloads_are_distinguished_by_names_of_both_sides() -> None:
    """Jobs that differ in something that no column shows are told apart by their names."""
    sides = [(side, result(job)) for side in "AB" for job in ("plain", "synced")]
    assert matched(*sides) == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({"ioengine": "io_uring"}, True),
        ({"ioengine": "psync"}, False),
        ({"size_bytes": 10**9}, True),
        ({"size_bytes": 100 * 10**9}, False),
        ({"direct": False}, False),
        ({"rw": "randwrite:8"}, True),
        ({"block_bytes": 8192}, False),
    ],
)
def test_classes_of_engines_and_sizes(changed: Row, *, is_same: bool) -> None:
    """Libaio and io_uring are one class, 1 GB and 1 GiB are one size; all else is exact."""
    base = result("a", size_bytes=1 << 30)
    other = result("b", size_bytes=1 << 30) | changed
    assert (len(matched(("A", base), ("B", other))) == 1) is is_same


def test_the_compared_option_may_differ() -> None:
    """Values that are compared, or facts that are checked, do not keep workloads apart."""
    pair = ("A", result("qd1")), ("B", result("qd8", iodepth=8))
    assert matched(*pair, ignored="iodepth") == [[0, 1]]
    assert matched(*pair) == [[0], [1]]
    pair = ("A", result("x")), ("B", result("x", iodepth=8))
    assert matched(*pair, by_name=True) == [[0, 1]]


def test_unknown_workloads_are_matched_by_name_alone() -> None:
    """A result that reports no options is not of the workload of another that reports none."""
    blank = {"rw": None, "iodepth": None, "numjobs": None, "direct": None, "ioengine": None}
    rows = [("A", result("x") | blank), ("B", result("y") | blank), ("B", result("x") | blank)]
    assert matched(*rows) == [[0, 2], [1]]


def test_rows_of_one_workload_follow_each_other() -> None:
    """`show` of two campaigns puts what can be compared below each other."""
    rows: list[Row] = [
        result(job, rw=rw) | {"campaign": campaign}
        for campaign, names in (("A", ("r", "w")), ("B", ("reads", "writes")))
        for job, rw in zip(names, ("randread", "randwrite"), strict=True)
    ]
    assert [row["job"] for row in order_by_workload(rows)] == ["r", "reads", "w", "writes"]


def test_charts_match_renamed_jobs() -> None:
    """Bars of one workload are one group."""
    first = in_campaign(frames([result("old", iops=100)]), "A")
    second = in_campaign(frames([result("new", iops=200)]), "B")
    both = together(first, second) | {"findings": no_findings()}
    rows = numbers(build_plot("iops", both, by=["campaign"]))
    assert rows["job"].unique().tolist() == ["randwrite 4k"]
    assert sorted(rows["iops"]) == [100, 200]
