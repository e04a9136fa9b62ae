"""Facts that differ between two sides, and their effect."""

import pandas as pd
import pytest

from tests.analyse.compared_rows import compared, rows_of
from volbench.analyse.compare.comparability import Effect, IncomparableError


def test_differing_facts_are_listed() -> None:
    """Each has its values and its effect; fio's version is a reservation, a folder nothing."""
    base = rows_of(1000, fio_version="fio-3.33", label_volume_type="P15")
    other = rows_of(1200, fio_version="fio-3.36", kernel="6.8", label_volume_type="P20")
    found = compared(base, other, allowed=("kernel",)).comparability
    assert [(fact.fact, fact.by_side, fact.effect) for fact in found.facts] == [
        ("kernel", {"A": "6.1", "B": "6.8"}, Effect.ALLOWED),
        ("fio_version", {"A": "fio-3.33", "B": "fio-3.36"}, Effect.RESERVATION),
        ("volume_type", {"A": "P15", "B": "P20"}, Effect.NOTED),
    ]
    assert {fact.workloads for fact in found.facts} == {("randread 4k, queue depth 1",)}
    assert (found.verdict, len(found.defects)) == ("comparable with reservations", 1)
    same = compared(rows_of(1000), rows_of(1200)).comparability
    assert (same.facts, same.verdict) == ((), "comparable")
    base, other = rows_of(1000, import_folder="a/qd1"), rows_of(1200, import_folder="b/qd1")
    found = compared(base, other).comparability
    assert (found.facts, found.verdict) == ((), "comparable")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["volume", "label_storage_class", "label_volume_type"])
def test_properties_of_a_volume_may_differ_between_volumes(column: str) -> None:
    """They follow from the volumes that are compared; those of the host do not."""
    first = rows_of(1000, scheduler="none", write_cache="write back", volume_bytes=2**30)
    second = rows_of(1200, scheduler="mq-deadline", write_cache="", volume_bytes=2**31)
    rows = pd.concat([first.assign(**{column: "fast"}), second.assign(**{column: "slow"})])
    found = compared(rows, between=column, base="fast").comparability
    differing = {(fact.fact, fact.effect) for fact in found.facts}
    assert {(name, Effect.RESERVATION) for name in ("scheduler", "volume_bytes")} <= differing
    rows.loc[rows[column] == "slow", "kernel"] = "6.8"
    with pytest.raises(IncomparableError, match="kernel") as refused:
        compared(rows, between=column)
    assert refused.value.comparability.refused == ["kernel"]
    pooled = pd.concat([first.assign(**{column: "slow"}), rows])
    with pytest.raises(IncomparableError, match="scheduler: mq-deadline and none in slow among"):
        compared(pooled, between=column, allowed=["kernel"])


def test_the_order_of_values_makes_no_difference() -> None:
    """Runs of one side that would be pooled differ once, however each workload lists them."""
    rows = [
        rows_of(1000, label_volume_type=kind).assign(job=job)
        for job, kinds in (("a", ("P15", "P20")), ("b", ("P20", "P15")))
        for kind in kinds
    ]
    with pytest.raises(IncomparableError) as refused:
        compared(pd.concat(rows), pd.concat(rows))
    jobs = tuple(f"randread 4k, queue depth 1, {job}/reads" for job in "ab")
    assert [(fact.by_side, fact.workloads) for fact in refused.value.comparability.facts] == [
        ({"A": "P15 and P20"}, jobs),
        ({"B": "P15 and P20"}, jobs),
    ]
