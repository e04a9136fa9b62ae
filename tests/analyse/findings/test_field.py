"""Findings about results that others published, and the benchmark that judges them."""

from pathlib import Path

import pytest
from benchmarks.field import LABELS, Judged, judge, read_labels

CASES = LABELS.parent


@pytest.fixture(scope="module", name="judged")
def _judged() -> list[Judged]:
    """Return the judged findings about all published cases."""
    return list(judge(CASES, read_labels(LABELS)))


def test_no_finding_is_false_or_missed(judged: list[Judged]) -> None:
    """Each claim about these results is true, and what is true of them is said."""
    assert [each for each in judged if each.outcome in {"false", "missed"}] == []
    true = {(each.rule, each.source.split("/")[-2]) for each in judged if each.outcome == "true"}
    assert true >= {
        ("stall", "raid-hang"),
        ("not-steady", "alternating"),
        ("impossible-values", "rbd-lost-samples"),
        ("contradicting-latency", "zns-contradiction"),
        ("not-steady", "alternate-randwrite-8"),
        ("two-latencies", "tiers-randread-4"),
    }


def test_periodic_stalls_are_named(judged: list[Judged]) -> None:
    """Seconds in which nothing completed for 0.6 s show in the series and in the slowest I/O."""
    (found,) = (each for each in judged if each.rule == "not-steady" and "stalls" in each.source)
    assert "as if nothing completed for 0.58s each time" in found.message


def test_false_and_missed_findings_are_counted(tmp_path: Path) -> None:
    """The first entry that says something about a rule decides; notes are no claim of others."""
    labels = tmp_path / "labels.yaml"
    labels.write_text(
        "- {files: 'raid-hang/*', wrong: [stall], expect: [cpu-throttled]}\n"
        "- {files: '*', right: [stall]}\n"
    )
    found = {each.rule: each.outcome for each in judge(CASES / "raid-hang", read_labels(labels))}
    assert found["stall"] == "false"
    assert found["cpu-throttled"] == "missed"
    assert found["not-steady"] == "unlabelled"


@pytest.mark.parametrize(
    "entry", ["{files: '*', wrong: [stal]}", "{wrong: [stall]}", "{file: '*'}"]
)
def test_labels_of_field_cases_are_valid(tmp_path: Path, entry: str) -> None:
    """A name that is misspelt would make a rule look better than it is."""
    labels = tmp_path / "labels.yaml"
    labels.write_text(f"- {entry}\n")
    with pytest.raises(SystemExit, match="entry 1"):
        read_labels(labels)
