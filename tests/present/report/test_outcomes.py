"""Highest rates in words, and shares of declared limits."""

from __future__ import annotations

import pytest

from tests.present.report.small_reports import row_of, run_of
from volbench.present.report.outcomes import (
    client_outcomes,
    highest_rates,
    job_outcomes,
    shares_of_limits,
)


def test_the_larger_share_of_a_limit_counts() -> None:
    """Reads and writes of a mixed run are added up, as the provider counts them."""
    run = run_of(1, "mixed")
    known = {
        "iops": 250.0,
        "limit_iops": 1000.0,
        "bw_bytes_per_s": 4e6,
        "limit_bw_bytes_per_s": 1e7,
    }
    rows = [row_of(run, direction=way, **known) for way in ("read", "write")]
    assert shares_of_limits(job_outcomes(rows)) == [pytest.approx(0.8)]
    assert shares_of_limits(job_outcomes([row_of(run, iops=250.0)])) == []


def test_a_sum_of_reads_and_writes_names_both() -> None:
    """Tables and charts show each direction: the answer says which ones it adds up."""
    run = run_of(1, "a")
    rows = [
        row_of(run, direction="read", rw="randrw", iops=42_400.0, lat_p99_s=0.004),
        row_of(run, direction="write", rw="randrw", iops=6_300.0, lat_p99_s=0.009),
    ]
    assert highest_rates(job_outcomes(rows)) == (
        "48.7k IOPS (42.4k reads + 6.3k writes; one run), 9 ms p99 latency (slowest direction)"
    )


@pytest.mark.parametrize(
    ("direct", "words"), [(False, "fdatasync p99 4 ms"), (True, "20 us p99 latency")]
)
def test_buffered_writes_are_headlined_by_their_syncs(words: str, *, direct: bool) -> None:
    """The p99 of writes into memory says nothing of the volume; one after a direct write does."""
    run = run_of(1, "a")
    writes = row_of(run, direction="write", rw="write", direct=direct, lat_p99_s=2e-5)
    syncs = {**writes, "direction": "sync", "lat_p99_s": 0.004, "sync_calls": "fdatasync"}
    for row in (writes, syncs):
        row["lat_max_s"] = 1.0
    assert highest_rates(job_outcomes([writes, {**syncs, "iops": None}])) == words


def test_the_highest_rate_says_how_many_repeats_it_is_of() -> None:
    """The range of repeats, or that there was a single one, is beside the median."""
    rows = [row_of(run_of(n, "a"), iops=iops) for n, iops in ((1, 900.0), (2, 1000.0), (3, 950.0))]
    assert highest_rates(job_outcomes(rows[:1])) == "900 IOPS (one run)"
    assert highest_rates(job_outcomes(rows[:2])) == "950 IOPS (median of 2, 900 to 1k)"
    words = "950 IOPS (median of 3, 95 % CI 833 to 1.08k)"
    assert highest_rates(job_outcomes(rows)) == words


def test_rates_of_several_clients_are_their_sums() -> None:
    """The aggregate table and the answer show one number; without a sum it is that of a client."""
    outcomes = job_outcomes([row_of(run_of(number, "a"), iops=500.0) for number in (1, 2)])
    step = {"job": "a", "direction": "read", "clients": 2, "step": 1, "lat_p99_s": 0.01}
    summed = client_outcomes(outcomes, [{**step, "iops": 990.0}])
    assert highest_rates(summed).startswith("990 IOPS of 2 clients (one run), 10 ms p99 latency")
    single = client_outcomes(outcomes, [{**step, "iops": None}])
    assert highest_rates(single) == "500 IOPS per client (median of 2)"
    assert client_outcomes(outcomes, []) == outcomes


def test_rates_say_of_which_jobs_they_are() -> None:
    """One job of direct I/O among many others must not stand for all of them."""
    rows = [
        row_of(run_of(1, "direct"), iops=3_200.0, direct=True),
        row_of(run_of(2, "cached"), iops=900_000.0, direct=False),
        row_of(run_of(3, "unknown-a"), iops=40_000.0, direct=None),
        row_of(run_of(4, "unknown-b"), iops=50_000.0, direct=None),
    ]
    words = "Up to 3.2k IOPS (one run) with direct I/O"
    assert highest_rates(job_outcomes(rows[:2])) == words
    assert highest_rates(job_outcomes(rows[:3])) == words
    assert highest_rates(job_outcomes(rows)) == "Up to 50k IOPS (one run)"
