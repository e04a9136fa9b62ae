"""Shares of declared limits: what counts as reached, and what needs an explanation."""

from __future__ import annotations

import pytest

from tests.present.report.small_reports import row_of, run_of
from volbench.present.report.outcomes import against_limits, job_outcomes, key_numbers


@pytest.mark.parametrize(
    ("iops", "is_direct", "reading"),
    [
        (940, True, "below"),
        (960, True, "reached"),
        (1040, True, "reached"),
        (1060, True, "above: a burst, or declared too low"),
        (960, False, "reached, through the page cache"),
        (1060, False, "above: served by the page cache"),
    ],
)
def test_five_percent_around_a_limit_count_as_reached(
    iops: float, reading: str, *, is_direct: bool
) -> None:
    """A result 6 % below its limit has not reached it, and one 6 % above is explained."""
    row = row_of(run_of(1, "a"), iops=float(iops), limit_iops=1000.0, direct=is_direct)
    [limit] = against_limits(job_outcomes([row]))
    assert limit.reading == reading


def test_a_sum_of_reads_and_writes_names_both() -> None:
    """Tables and charts show each direction: a headline number says which ones it adds up."""
    run = run_of(1, "a")
    reads = row_of(run, direction="read", rw="randrw", iops=42_400.0)
    writes = row_of(run, direction="write", rw="randrw", iops=6_300.0)
    iops = key_numbers(job_outcomes([reads, writes]))[0]
    assert iops.value == "48.7k"
    assert iops.phrase == "48.7k IOPS (42.4k reads + 6.3k writes)"
    assert iops.source.endswith("; 42.4k reads + 6.3k writes")


def test_buffered_writes_are_headlined_by_their_syncs() -> None:
    """The p99 of writes into memory says nothing of the volume; one after a direct write does."""
    run = run_of(1, "a")
    for is_direct, value, name in (
        (False, "4 ms", "p99 latency, through the page cache, fdatasync"),
        (True, "20 us", "p99 latency, direct I/O, total latency"),
    ):
        writes = row_of(run, direction="write", rw="write", direct=is_direct, lat_p99_s=2e-5)
        syncs = {**writes, "direction": "sync", "lat_p99_s": 0.004, "sync_calls": "fdatasync"}
        for row in (writes, syncs):
            row["lat_max_s"] = 1.0
        numbers = key_numbers(job_outcomes([writes, {**syncs, "iops": None}]))
        assert [(each.value, each.label) for each in numbers if "p99" in each.label] == [
            (value, name)
        ]
