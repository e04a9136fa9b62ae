"""Shares of declared limits: what counts as reached, and what needs an explanation."""

from __future__ import annotations

import pytest

from tests.present.report.small_reports import row_of, run_of
from volbench.present.report.outcomes import (
    against_limits,
    client_outcomes,
    job_outcomes,
    key_numbers,
)


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
    assert iops.phrase == "48.7k IOPS (42.4k reads + 6.3k writes; one run)"
    assert iops.source.endswith("; 42.4k reads + 6.3k writes")


def test_the_lowest_p99_says_that_it_is_of_the_slowest_direction() -> None:
    """It is the maximum of 4 ms of the reads and 9 ms of the writes."""
    mixed, reading = run_of(1, "a"), run_of(2, "b")
    rows = [
        row_of(mixed, direction="read", rw="randrw", iops=900.0, lat_p99_s=0.004),
        row_of(mixed, direction="write", rw="randrw", iops=100.0, lat_p99_s=0.009),
    ]
    (alone,) = (each for each in key_numbers(job_outcomes(rows)) if "p99" in each.label)
    assert alone.phrase == "9 ms p99 latency (slowest direction)"
    rows.append(row_of(reading, direction="read", iops=900.0, lat_p99_s=0.02))
    (lowest,) = (each for each in key_numbers(job_outcomes(rows)) if "p99" in each.label)
    assert lowest.value == "9 ms"
    assert lowest.source.endswith("; slowest direction of each job")
    (single,) = (each for each in key_numbers(job_outcomes(rows[2:])) if "p99" in each.label)
    assert "direction" not in single.source


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
        (tail,) = (each for each in numbers if "p99" in each.label)
        assert (tail.value, tail.label) == (value, name)
        assert tail.phrase == ("20 us p99 latency" if is_direct else "fdatasync p99 4 ms")


def test_a_headline_number_says_how_many_repeats_it_is_of() -> None:
    """The range of repeats, or that there was a single one, is beside the median."""
    rows = [row_of(run_of(number, "a"), iops=iops) for number, iops in ((1, 900.0), (2, 1000.0))]
    [single] = [number.phrase for number in key_numbers(job_outcomes(rows[:1]))[:1]]
    assert single == "900 IOPS (one run)"
    assert key_numbers(job_outcomes(rows))[0].phrase == "950 IOPS (median of 2, 900 to 1k)"
    rows.append(row_of(run_of(3, "a"), iops=950.0))
    words = "950 IOPS (median of 3, 95 % CI 833 to 1.08k)"
    assert key_numbers(job_outcomes(rows))[0].phrase == words


def test_headline_numbers_of_several_clients_are_their_sums() -> None:
    """The aggregate table and the answer show one number; without a sum it is that of a client."""
    outcomes = job_outcomes([row_of(run_of(number, "a"), iops=500.0) for number in (1, 2)])
    step = {"job": "a", "direction": "read", "clients": 2, "step": 1, "lat_p99_s": 0.01}
    [iops, tail] = key_numbers(client_outcomes(outcomes, [{**step, "iops": 990.0}]))
    assert iops.phrase == "990 IOPS of 2 clients (one run)"
    assert (tail.value, tail.source[:3]) == ("10 ms", "a: ")
    [iops, *_] = key_numbers(client_outcomes(outcomes, [{**step, "iops": None}]))
    assert iops.phrase == "500 IOPS per client (median of 2)"
    assert client_outcomes(outcomes, []) == outcomes


def test_headline_numbers_say_of_which_jobs_they_are() -> None:
    """One job of direct I/O among many others must not stand for all of them."""
    rows = [row_of(run_of(1, "direct"), iops=3_200.0, direct=True)]
    assert key_numbers(job_outcomes(rows))[0].of == ""
    rows.append(row_of(run_of(2, "cached"), iops=900_000.0, direct=False))
    iops = key_numbers(job_outcomes(rows))[0]
    assert (iops.value, iops.of) == ("3.2k", " with direct I/O")
    rows.append(row_of(run_of(3, "unknown-a"), iops=40_000.0, direct=None))
    assert key_numbers(job_outcomes(rows))[0].value == "3.2k"
    rows.append(row_of(run_of(4, "unknown-b"), iops=50_000.0, direct=None))
    iops = key_numbers(job_outcomes(rows))[0]
    assert (iops.label, iops.value, iops.of) == ("Highest IOPS, page cache use unknown", "50k", "")
