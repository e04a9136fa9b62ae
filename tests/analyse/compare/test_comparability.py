"""Facts that differ between two sides, and their effect."""

from __future__ import annotations

from tests.analyse.compared_rows import compared, rows_of
from volbench.analyse.compare.comparability import Effect


def test_differing_facts_are_listed() -> None:
    """Each has its value on either side and its effect; fio's version alone is a reservation."""
    base = rows_of(1000, fio_version="fio-3.33", label_volume_type="P15")
    other = rows_of(1200, fio_version="fio-3.36", kernel="6.8", label_volume_type="P20")
    found = compared(base, other, allowed=("kernel",)).comparability
    assert [(fact.fact, fact.by_side, fact.effect) for fact in found.facts] == [
        ("kernel", {"A": "6.1", "B": "6.8"}, Effect.ALLOWED),
        ("fio_version", {"A": "fio-3.33", "B": "fio-3.36"}, Effect.RESERVATION),
        ("volume_type", {"A": "P15", "B": "P20"}, Effect.NOTED),
    ]
    assert {fact.workloads for fact in found.facts} == {("reads",)}
    assert found.verdict == "comparable with reservations"
    same = compared(rows_of(1000), rows_of(1200)).comparability
    assert (same.facts, same.verdict) == ((), "comparable")


def test_the_folder_of_an_import_is_not_a_difference() -> None:
    """Provenance says nothing about what was measured: it would fill a row per workload."""
    base, other = rows_of(1000, import_folder="a/qd1"), rows_of(1200, import_folder="b/qd1")
    found = compared(base, other).comparability
    assert (found.facts, found.verdict) == ((), "comparable")
