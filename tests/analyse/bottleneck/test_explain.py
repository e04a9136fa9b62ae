"""What holds a run where it is, and what changed it: runs made by hand whose reason is known."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    Limits,
    Row,
    a_run,
    a_view,
    device_sample,
    device_samples,
)
from tests.analyse.runs_at_levels import level, ran
from volbench.analyse.bottleneck.bottleneck import explain
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Cause
from volbench.model.results.provenance import HostFacts

P15 = Limits(iops=1100, bandwidth_bytes_per_s=125e6)
MIB = 2**20


def test_one_io_at_a_time_is_limited_by_latency() -> None:
    """400 IOPS at 2.5 ms; and 4 ms that scatter by 10 % have a fastest without any queue."""
    view = ran(level(400), {"iodepth": "1"}, limits=P15, lat_s=(0.0025, 0.0023, 0.0022))
    (first, *_) = explain(view, "write")
    assert first.cause is Cause.LATENCY
    assert "1 in flight at 2.5 ms each give 400 IOPS" in first.text
    view = ran(level(2000), {"iodepth": "8"}, lat_s=(0.004, 0.00317, 0.0026))
    (first, *_) = explain(view, "write")
    assert first.cause is Cause.LATENCY
    assert "a limit cannot be excluded without a second queue depth" in first.speaks_against


@pytest.mark.parametrize(
    ("iops", "cv", "cause", "exact"),
    [
        (1500.0, 0.001, Cause.IOPS_LIMIT, 1500.0),
        (20 * MIB / BLOCK, 0.005, Cause.BANDWIDTH_LIMIT, 20.0 * MIB),
    ],
)
def test_stolen_cpu_does_not_hide_an_exact_limit(
    iops: float, cv: float, cause: Cause, exact: float
) -> None:
    """Flat to 0.1 and 0.5 % with 16 in flight, although percentile 1 is a third of the mean."""
    mean_s = 16 / iops
    view = ran(level(iops, cv=cv), lat_s=(mean_s, mean_s / 3, mean_s / 8))
    (first, *_) = explain(view, "write")
    assert first.cause is cause
    assert first.level == pytest.approx(exact, rel=0.005)
    assert not first.is_certain
    assert "not all I/Os waited equally long" in first.speaks_against
    assert "in flight at" in first.text  # but not the latency of a run that began slower
    slow = ran(level(iops, cv=cv), lat_s=(2 * mean_s, mean_s / 3, mean_s / 8))
    assert "in flight at" not in explain(slow, "write")[0].text


@pytest.mark.parametrize(("seconds", "is_limit"), [(9, False), (10, True)])
def test_a_constant_rate_lasts_ten_intervals(seconds: int, *, is_limit: bool) -> None:
    """Fewer intervals are alike by chance."""
    view = ran([1500.0] * seconds, lat_s=(16 / 1500, 16 / 4500, 2 / 1500))
    assert (explain(view, "write")[0].cause is Cause.IOPS_LIMIT) is is_limit


def test_an_uneven_rate_with_uneven_waits_is_not_a_limit() -> None:
    """Scatter of 2 % and I/Os that wait unevenly are what a shared queue gives."""
    view = ran(level(1500, cv=0.02), lat_s=(16 / 1500, 16 / 4500, 2 / 1500))
    assert explain(view, "write")[0].cause not in {Cause.IOPS_LIMIT, Cause.BANDWIDTH_LIMIT}


def buffered(from_share: float = 1.0, /, *, later: Row | None = None, **usual: object) -> RunView:
    """Return a run into memory at 800 MB/s; its device took 125 MB/s, or changed on the way."""

    def view(device: list[Row]) -> RunView:
        options: dict[str, str | None] = {"direct": None, "iodepth": "1"}
        return ran(level(3050), options, limits=P15, block_bytes=256 * 1024, device=device)

    samples = device_samples(view([]).run, write_iops=250.0, write_bw_bytes_per_s=125e6, **usual)
    for row in samples[int(from_share * len(samples)) :]:
        row.update(later or {})
    return view(samples)


def test_a_buffered_run_is_judged_by_its_device() -> None:
    """The tool wrote into memory at 800 MB/s; the device took 125 MB/s, its declared bandwidth."""
    (first, *_) = explain(buffered(), "write")
    assert first.cause is Cause.BANDWIDTH_LIMIT
    assert first.level == 125e6


@pytest.mark.parametrize(
    ("after_bytes_per_s", "cause"),
    [(125e6, Cause.BANDWIDTH_LIMIT), (60e6, Cause.SLOWER)],
    ids=["larger", "slower"],
)
def test_larger_requests_are_not_a_drop(after_bytes_per_s: float, cause: Cause) -> None:
    """The kernel made requests larger in the middle: only if bandwidth falls too did the volume."""
    later: Row = {"write_iops": 120.0, "write_bw_bytes_per_s": after_bytes_per_s}
    assert explain(buffered(0.5, later=later), "write")[0].cause is cause


@pytest.mark.parametrize(
    ("active_percent", "cause"),
    [(40.0, Cause.BANDWIDTH_LIMIT), (100.0, Cause.SLOWER)],
    ids=["idle", "slow"],
)
def test_an_idle_device_is_not_the_bottleneck(active_percent: float, cause: Cause) -> None:
    """The kernel had few pages to write for a while; a device that was busy all along is slow."""
    later: Row = {"write_iops": 100.0, "write_bw_bytes_per_s": 50e6}
    view = buffered(5 / 9, later=later | {"active_percent": active_percent}, active_percent=100.0)
    assert explain(view, "write")[0].cause is cause


def test_an_undeclared_limit_shows_in_waiting() -> None:
    """Flat, and 99 % of the I/Os wait six times as long as the fastest: capped, and by size."""
    small = explain(ran(level(1100)), "write")[0]
    large = explain(ran(level(1000), block_bytes=MIB), "write")[0]
    assert (small.cause, large.cause) == (Cause.IOPS_LIMIT, Cause.BANDWIDTH_LIMIT)
    assert "no limit is declared" in small.speaks_against
    assert "consistent with: throttled" in small.text
    declared = explain(ran(level(1100), limits=Limits(iops=1100)), "write")[0]
    assert "consistent with" not in declared.text


@pytest.mark.parametrize(("kib", "cause"), [(32, Cause.IOPS_LIMIT), (64, Cause.BANDWIDTH_LIMIT)])
def test_limits_of_large_blocks_are_those_of_bandwidth(kib: int, cause: Cause) -> None:
    """Neither 1,137 IOPS nor their bytes are a number that is sold: the block size decides."""
    assert explain(ran([1137.0] * 60, block_bytes=kib * 1024), "write")[0].cause is cause


def test_large_ios_at_a_flat_rate_are_throttled() -> None:
    """256 KiB at depth 8: 16.7 ms are only 1.8 times the fastest, but 99 % took 16.6 ms."""
    view = ran(
        level(476), {"iodepth": "8"}, block_bytes=256 * 1024, lat_s=(0.01675, 0.01658, 0.00945)
    )
    assert explain(view, "write")[0].cause is Cause.BANDWIDTH_LIMIT


@pytest.mark.parametrize(
    ("iops", "cause"), [(1140, Cause.IOPS_LIMIT), (1170, Cause.UNKNOWN), (2200, Cause.UNKNOWN)]
)
def test_a_second_queue_depth_shows_a_limit(iops: int, cause: Cause) -> None:
    """Restless rates prove nothing, but twice the depth that gains less than 5 % does."""
    entry = ran(level(1100, cv=0.015, seed=2), {"iodepth": "16"}, lat_s=(0.0145, 0.003, 0.0025))
    two = ran(level(iops, seed=3), {"iodepth": "32"}, lat_s=(0.0145, 0.003, 0.0025))
    assert explain(entry, "write")[0].cause is Cause.UNKNOWN
    assert explain(entry, "write", others=[entry, two])[0].cause is cause


def test_a_second_block_size_shows_which_limit() -> None:
    """The same bytes a second in blocks of 16 and of 32 KiB: bandwidth, though both are small."""
    entry = ran(level(2000), block_bytes=16 * 1024)
    two = ran(level(1000), block_bytes=32 * 1024)
    assert explain(entry, "write")[0].cause is Cause.IOPS_LIMIT
    assert explain(entry, "write", others=[two])[0].cause is Cause.BANDWIDTH_LIMIT


@pytest.mark.parametrize(("iops", "count"), [(2600, 1), (2080, 0)])
def test_a_faster_run_contradicts_an_inferred_limit(iops: float, count: int) -> None:
    """Two thousand IOPS are not a limit of a volume that makes 2,600 with larger blocks."""
    entry, two = ran(level(2000)), ran(level(iops), block_bytes=32 * 1024)
    (first, *_) = explain(entry, "write", others=[two])
    assert first.cause is Cause.IOPS_LIMIT
    against = [words for words in first.speaks_against if "on the same volume" in words]
    assert len(against) == count
    assert all("reached 2.6k IOPS" in words for words in against)


def test_credits_for_bytes_run_out_when_predicted() -> None:
    """256 MB/s of 64 MB/s last 20 s; a restless fall at another time is not theirs."""
    rates = level(1000, 20) + level(250, 40)
    limits = Limits(
        bandwidth_bytes_per_s=64e6, burst_bandwidth_bytes_per_s=256e6, burst_bytes=3.84e9
    )
    (first, *_) = explain(ran(rates, limits=limits, block_bytes=256_000), "write")
    assert first.cause is Cause.CREDITS
    assert first.evidence["predicted_s"] == pytest.approx(20, rel=0.05)
    assert any("the declared baseline of 64 MB/s" in reported for reported in first.speaks_for)
    assert any("a full bucket lasts" in reported for reported in first.speaks_for)
    rates = level(3000, 20, cv=0.06) + level(1500, 40, cv=0.06, seed=6)
    limits = Limits(iops=300, burst_iops=3000, burst_ios=540_000)
    causes = {entry.cause for entry in explain(ran(rates, limits=limits), "write")}
    assert Cause.CREDITS not in causes


def test_credits_that_ended_early_are_questioned() -> None:
    """The same fall at half the time speaks against a full bucket."""
    rates = level(3000, 20) + level(300, 40)
    limits = Limits(iops=300, burst_iops=3000, burst_ios=108_000)
    (first, *_) = explain(ran(rates, limits=limits), "write")
    assert first.cause is Cause.CREDITS
    assert any("may not have been full" in reported for reported in first.speaks_against)


def test_a_neighbour_explains_a_temporary_drop() -> None:
    """Half the rate for 20 s with little steal, and then all of it again."""
    rates = level(1000, 20) + level(500, 20) + level(1000, 20)
    plain = ran(rates)
    device = [
        {**row, "steal_percent": 4.0 if 20 < float(str(row["t_s"])) <= 40 else 0.1}
        for row in device_samples(plain.run)
    ]
    host = HostFacts(host="local", virtualization="kvm")
    found = explain(replace(ran(rates, device=device), host=host), "write")
    guest = next(entry for entry in found if entry.cause is Cause.NEIGHBOUR)
    assert (guest.from_s, guest.to_s) == (20, 40)
    assert "4 % steal during the drop" in guest.speaks_for


@pytest.mark.parametrize("slow_s", [20, 50, 120])
def test_cpu_steal_is_not_a_neighbour_on_the_volume(slow_s: int) -> None:
    """Half the rate while the hypervisor stole 12 % says nothing about the volume."""
    rates = level(1000, 20) + level(500, slow_s) + level(1000, 20)
    plain = ran(rates)
    device = [
        {**device_sample(plain.run, t_s), "steal_percent": 12.0 if 20 < t_s <= 20 + slow_s else 0.1}
        for t_s in map(float, range(1, len(rates) + 1))
    ]
    causes = {entry.cause for entry in explain(ran(rates, device=device), "write")}
    assert Cause.NEIGHBOUR not in causes
    assert (Cause.HOST_NOISE in causes) == (slow_s == 120)


def test_warming_blocks_explain_a_climb() -> None:
    """A rate that climbs from a fifth to a plateau was slow at first touches."""
    climb = [1000 * (1 - 0.8 * np.exp(-second / 8)) for second in range(60)]
    found = explain(ran(climb), "write")
    warm = next(entry for entry in found if entry.cause is Cause.WARMING)
    assert warm.evidence["cold_iops"] < 400
    assert abs(warm.evidence["plateau_iops"] / 1000 - 1) < 0.03


def test_a_busy_cpu_is_reported() -> None:
    """A tool that used 99 % of a CPU measured the CPU."""
    view = ran(level(90_000, cv=0.02))
    busy = view.summary.assign(cpu_usr=40.0, cpu_sys=59.0)
    assert explain(replace(view, summary=busy), "write")[0].cause is Cause.CPU


def test_a_change_without_a_cause_is_unexplained() -> None:
    """A restless rate at depth 16 that is near no limit gets exactly one plain answer."""
    found = explain(ran(level(700, cv=0.08), limits=P15, lat_s=(0.0145, 0.003, 0.0025)), "write")
    assert [entry.cause for entry in found] == [Cause.UNKNOWN]
    assert "cause unknown" in found[0].text


def test_a_run_without_series_has_no_explanation() -> None:
    """Nothing was seen over time, so nothing is claimed."""
    run = a_run()
    assert explain(a_view(run, series=[]), "write") == ()
    assert verdict_rows(Context((a_view(run, series=[]),))) == []


def test_a_verdict_has_its_numbers_and_its_reason() -> None:
    """One row with state and what binds; unfinished runs have none."""
    view = ran(level(1100), limits=P15)
    (row,) = verdict_rows(Context((view,)))
    assert (row["verdict"], row["bottleneck"], row["direction"]) == (
        "steady",
        "iops-limit",
        "write",
    )
    assert row["changes"] == 0
    assert "the declared 1.1k" in str(row["explanation"])
    failed = replace(view, summary=view.summary.assign(status="failed"))
    assert verdict_rows(Context((failed,))) == []
