"""Jobs of one section become one result: totals, pools, bins and percentiles."""

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from volbench.fio.logs.log_windows import bin_mids
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.merge_jobs import (
    BINS,
    bin_edges_ns,
    merge_bins,
    merge_jobs,
    percentile_ns,
    split_result,
    total_rates,
)
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency, RunOutput

CASES = Path(__file__).parents[2] / "cases"
VERSIONS = sorted(path.name for path in CASES.glob("fio-*"))


def jobs_of(version: str, case: str) -> tuple[JobResult, ...]:
    """Return the entries of a case."""
    return parse_output((CASES / version / case / "stdout").read_text()).jobs


def write_of(job: JobResult) -> DirectionResult:
    """Return the writes of an entry that has some."""
    found = job.direction(Direction.WRITE)
    assert found is not None
    return found


def latency(samples_ns: list[int]) -> Latency:
    """Return the exact distribution of some samples, each below fio's first wide bin."""
    return Latency(
        count=len(samples_ns),
        min_s=min(samples_ns) / 1e9,
        max_s=max(samples_ns) / 1e9,
        mean_s=statistics.fmean(samples_ns) / 1e9,
        stddev_s=statistics.stdev(samples_ns) / 1e9 if len(samples_ns) > 1 else 0.0,
        percentiles={50.0: 0.0, 99.0: 0.0},
        bins={value: samples_ns.count(value) for value in samples_ns},
    )


def clone(samples_ns: list[int], *, runtime_s: float = 1.0, error: int = 0) -> JobResult:
    """Return an entry with writes of these latencies."""
    count = len(samples_ns)
    direction = DirectionResult(
        direction=Direction.WRITE,
        io_bytes=count * 4096,
        total_ios=count,
        runtime_s=runtime_s,
        iops=count / runtime_s,
        bw_bytes_per_s=count * 4096 / runtime_s,
        iops_min=10.0,
        iops_max=30.0,
        iops_stddev=3.0,
        clat=latency(samples_ns),
    )
    return JobResult("w", 0, error, (direction,), cpu_usr=float(count))


@pytest.mark.parametrize("version", VERSIONS)
def test_numjobs_of_a_section_are_added_up(version: str) -> None:
    """Totals are sums, rates are totals over the longest runtime, and members are counted."""
    jobs = jobs_of(version, "numjobs-separate")
    (merged,) = merge_jobs(jobs)
    found, parts = write_of(merged), [write_of(job) for job in jobs]
    assert merged.members == len(jobs) == 3
    assert found.total_ios == sum(part.total_ios or 0 for part in parts)
    assert found.io_bytes == sum(part.io_bytes for part in parts)
    assert found.runtime_s == max(part.runtime_s for part in parts)
    assert found.iops == (found.total_ios or 0) / found.runtime_s
    assert found.bw_bytes_per_s == found.io_bytes / found.runtime_s
    assert found.clat is not None
    assert found.clat.max_s == max(part.clat.max_s for part in parts if part.clat)
    assert not found.clat.percentiles or found.clat.bins


@pytest.mark.parametrize("version", VERSIONS)
def test_different_sections_are_never_added_up(version: str) -> None:
    """Two jobs one after another stay two, each with fio's own numbers."""
    jobs = jobs_of(version, "stonewall-two-jobs")
    assert merge_jobs(jobs) == jobs


def test_pooled_numbers_are_those_of_all_samples() -> None:
    """Mean, deviation, extremes and percentiles equal those of the joined samples."""
    first, second = [3, 5, 9, 9, 100], [1, 7, 7]
    (merged,) = merge_jobs([clone(first), clone(second, runtime_s=2.0)])
    joined = sorted(first + second)
    found = write_of(merged)
    assert (found.total_ios, found.runtime_s, found.iops) == (8, 2.0, 4.0)
    assert found.clat is not None
    assert found.clat.count == 8
    assert found.clat.min_s == 1 / 1e9
    assert found.clat.max_s == 100 / 1e9
    assert found.clat.mean_s == pytest.approx(statistics.fmean(joined) / 1e9)
    assert found.clat.stddev_s == pytest.approx(statistics.stdev(joined) / 1e9)
    assert found.clat.percentiles == {50.0: 7 / 1e9, 99.0: 100 / 1e9}


def test_rates_over_windows_are_combined_as_documented() -> None:
    """Minimum and maximum are summed; the deviation of a sum follows from its series only."""
    found = write_of(merge_jobs([clone([1]), clone([2]), clone([3])])[0])
    assert (found.iops_min, found.iops_max) == (30.0, 90.0)
    assert found.iops_stddev is None


def test_percentiles_are_never_averaged() -> None:
    """Where one job has no bins the merged result has neither bins nor percentiles."""
    bare = clone([5, 6])
    direction = write_of(bare)
    assert direction.clat is not None
    without = replace(direction, clat=replace(direction.clat, bins={}))
    found = write_of(merge_jobs([clone([1]), replace(bare, directions=(without,))])[0])
    assert found.clat is not None
    assert found.clat.percentiles == {}
    assert found.clat.bins == {}
    assert found.clat.mean_s == pytest.approx(4e-9)


def test_percentiles_never_exceed_the_maximum() -> None:
    """A bin's midpoint may lie above the largest sample, which is exact."""
    parts = []
    for job in jobs_of("fio-3.33", "randrw-jsonplus") * 2:
        direction = write_of(job)
        assert direction.clat is not None
        top = replace(direction.clat, percentiles={100.0: 0.0})
        parts.append(replace(job, directions=(replace(direction, clat=top),)))
    found = write_of(merge_jobs(parts)[0]).clat
    assert found is not None
    bins = merge_bins([found.bins])
    assert found.percentiles[100.0] == min(percentile_ns(bins, 100) / 1e9, found.max_s)
    assert found.percentiles[100.0] <= found.max_s


def test_the_first_error_is_kept_and_cpu_usage_is_averaged() -> None:
    """An error of any job is the section's; shares of a processor are averaged."""
    merged = merge_jobs([clone([1, 2]), clone([1] * 4, error=28), clone([1] * 6, error=5)])[0]
    assert merged.error == 28
    assert merged.cpu_usr == 4.0


def test_a_direction_of_some_numjobs_is_kept() -> None:
    """Jobs that did nothing in a direction do not hide those that did."""
    idle = replace(clone([1]), directions=())
    (merged,) = merge_jobs([idle, clone([1, 2])])
    assert write_of(merged).total_ios == 2
    assert merged.members == 2
    assert merge_jobs([]) == ()


def test_jobs_of_different_length_keep_their_own_rates() -> None:
    """100 IOPS for 10 s and 100 for 60 s are 200 while both ran, not 117 over the longest."""
    jobs = [clone([1] * round(100 * runtime_s), runtime_s=runtime_s) for runtime_s in (10.0, 60.0)]
    direction = write_of(merge_jobs(jobs)[0])
    assert direction.iops == pytest.approx(7000 / 60)
    assert (direction.iops_parallel, direction.parallel_s) == (200.0, 10.0)
    jobs = [clone([1] * 10, runtime_s=runtime_s) for runtime_s in (0.1, 0.2, 1.0)]
    assert total_rates(jobs)[0] == 30  # ten writes each, not 100 + 50 + 10 while all ran


def test_rates_of_entries_without_totals_are_added_up() -> None:
    """Normal output with latencies disabled has rates and times only; shorter jobs count less."""
    parts = [clone([10, 20], runtime_s=10.0), clone([30, 40], runtime_s=5.0)]
    cut = [
        replace(job, directions=(replace(write_of(job), total_ios=None, iops=iops),))
        for job, iops in zip(parts, (1000.0, 600.0), strict=True)
    ]
    (merged,) = merge_jobs(cut)
    whole = write_of(merged)
    assert (whole.iops, whole.iops_parallel, whole.total_ios) == (1300.0, 1600.0, None)
    unknown = replace(cut[1], directions=(replace(write_of(cut[1]), iops=None),))
    (other,) = merge_jobs([cut[0], unknown])
    assert write_of(other).iops is None


def latencies() -> list[tuple[str, Latency]]:
    """Return every latency with bins and percentiles, with the version that wrote it."""
    found = []
    for path in sorted(CASES.glob("fio-*/*/stdout")):
        text = path.read_text()
        if '"bins"' not in text:
            continue
        found += [
            (path.parts[-3], latency)
            for job in parse_output(text).jobs
            for direction in job.directions
            for latency in (direction.lat, direction.clat, direction.slat)
            if latency is not None and latency.bins
        ]
    return found


def test_percentiles_equal_those_of_fio() -> None:
    """From fio's bins come exactly the percentiles that fio itself prints beside them."""
    compared = 0
    for _, latency in latencies():
        for percentile, value_s in latency.percentiles.items():
            assert percentile_ns(latency.bins, percentile) / 1e9 == pytest.approx(
                value_s, rel=1e-12
            )
            compared += 1
    assert compared > 300


def test_bins_of_fio_3_are_the_midpoints() -> None:
    """Every key of json+ is the midpoint of one bin, and its edges enclose it."""
    known = set(bin_mids(np.arange(BINS)).tolist())
    assert max(known) == 17_112_760_320
    for version, latency in latencies():
        if not version.startswith("fio-2"):
            assert set(latency.bins) <= known
    edges = {mid: bin_edges_ns(mid) for mid in known}
    assert all(sum(ends) // 2 == mid for mid, ends in edges.items())


@pytest.mark.parametrize(("elapsed_s", "parts"), [(61.0, 1), (121.0, 2), (None, 2)])
def test_groups_that_had_no_time_to_take_turns(elapsed_s: float | None, parts: int) -> None:
    """Two groups of 58 s in a process of a minute ran at the same time, whatever else is known."""
    jobs = tuple(
        JobResult(
            name=name,
            groupid=number,
            error=0,
            directions=(DirectionResult(Direction.READ, 0, 1, 58.0, None, None),),
            elapsed_s=elapsed_s,
        )
        for number, name in enumerate(("a", "b"))
    )
    assert len(split_result(RunOutput("fio-3.35", jobs))) == parts
