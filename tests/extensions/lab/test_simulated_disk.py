from random import Random

import pytest

from tests.extensions.lab.clients import KIB, MIB, keep_busy, parameters, rate
from volbench.extensions.lab.disk_model import (
    BucketParameters,
    CacheParameters,
    Pacer,
    ServiceParameters,
)
from volbench.extensions.lab.simulated_disk import Disk


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 16])
def test_jitter_keeps_the_mean(depth: int) -> None:
    """A log-normal spread changes single latencies and no rate."""
    disk = Disk(parameters(write=ServiceParameters(0.002, sigma=0.5)))
    until_s = 60 / depth  # as many answers at every depth
    answers = keep_busy(disk, until_s=until_s, depth=depth)
    assert rate(answers, 0, until_s) == pytest.approx(depth / 0.002, rel=0.01)
    latencies = sorted(answer.latency_s for answer in answers)
    assert latencies[len(latencies) // 2] < 0.9 * 0.002
    assert latencies[-1] > 2 * 0.002


@pytest.mark.parametrize(("cap", "depth"), [(90, 64), (1100, 16)])
def test_iops_limit_is_exact(cap: float, depth: int) -> None:
    """A cap holds to 0.5 % over each second, from the first second on."""
    disk = Disk(parameters(request_buckets=(BucketParameters(cap),)))
    answers = keep_busy(disk, until_s=6, depth=depth)
    for second in range(6):
        assert rate(answers, second, second + 1) == pytest.approx(cap, rel=0.005, abs=3)
    assert rate(answers, 0, 6) == pytest.approx(cap, rel=0.005)


def test_credits_come_back() -> None:
    """Ten idle seconds at a baseline of 300 buy 3,000 more at once."""
    buckets = (BucketParameters(1500.0), BucketParameters(300.0, 3000.0))
    disk = Disk(parameters(request_buckets=buckets))
    keep_busy(disk, until_s=30, depth=16)
    done = [disk.write(40.0, 0, 4 * KIB) for _ in range(6000)]
    assert sum(at < 42.4 for at in done) == pytest.approx(1500 * 2.4, rel=0.01)
    later = [at for at in done if at > 42.6]
    assert len(later) / (later[-1] - later[0]) == pytest.approx(300, rel=0.01)


def test_only_the_first_write_of_a_block_is_slow() -> None:
    """The first write of a block pays after a read too; writes in its preparation wait for it."""
    disk = Disk(parameters(first_write_s=0.04))
    disk.read(-1.0, 0, 4 * KIB)
    assert disk.write(0.0, 0, 4 * KIB) == pytest.approx(0.041)
    assert disk.write(0.01, 4 * KIB, 4 * KIB) == pytest.approx(0.041)
    assert disk.write(1.0, 8 * KIB, 4 * KIB) == pytest.approx(1.001)
    assert disk.write(2.0, 64 * KIB, 4 * KIB) == pytest.approx(2.041)
    assert disk.read(3.0, 640 * KIB, 4 * KIB) == pytest.approx(3.001)


def test_blocks_are_prepared_together_or_in_turn() -> None:
    """A request over 16 cold blocks waits once, or 16 times when one is prepared at a time."""
    together = Disk(parameters(first_write_s=0.01))
    in_turn = Disk(parameters(first_write_s=0.01, first_touches=1))
    assert together.write(0.0, 0, MIB) == pytest.approx(0.011)
    assert in_turn.write(0.0, 0, MIB) == pytest.approx(0.161)


def test_restored_blocks_are_fetched_at_the_first_read() -> None:
    """A snapshot's block is slow once, be it read or overwritten first."""
    disk = Disk(parameters(restored=True, instant_unwritten=True, first_read_s=0.025))
    assert disk.read(0.0, 0, 4 * KIB) == pytest.approx(0.026)
    assert disk.read(1.0, 0, 4 * KIB) == pytest.approx(1.001)
    disk.write(2.0, 64 * KIB, 4 * KIB)
    assert disk.read(3.0, 64 * KIB, 4 * KIB) == pytest.approx(3.001)


def test_never_written_blocks_are_answered_at_once() -> None:
    """A read that finds nothing costs nothing, and one that finds something is served."""
    disk = Disk(parameters(instant_unwritten=True, request_buckets=(BucketParameters(10.0),)))
    assert [disk.read(0.5, offset, 4 * KIB) for offset in range(0, MIB, 4 * KIB)] == [0.5] * 256
    disk.write(1.0, 0, 4 * KIB)
    assert disk.read(2.0, 4 * KIB, 4 * KIB) == pytest.approx(2.001)
    assert disk.read(3.0, 60 * KIB, 8 * KIB) > 3


def test_trim_makes_blocks_cold_and_empty() -> None:
    """Blocks that lie wholly in the range are as on the first day; others keep what they are."""
    disk = Disk(parameters(first_write_s=0.04, instant_unwritten=True))
    disk.write(0.0, 0, MIB)
    disk.trim(32 * KIB, 128 * KIB)
    assert disk.read(1.0, 64 * KIB, 4 * KIB) == 1.0
    assert disk.write(2.0, 64 * KIB, 4 * KIB) == pytest.approx(2.041)
    assert disk.write(3.0, 0, 4 * KIB) == pytest.approx(3.001)
    assert disk.write(4.0, 128 * KIB, 4 * KIB) == pytest.approx(4.001)


def test_a_stalled_cache_accepts_no_writes_until_it_has_room() -> None:
    """After 64 MiB nothing completes for the time 48 MiB take to drain, then it goes on."""
    cache = CacheParameters(64 * MIB, 4e6, 0.0002, resume_bytes=16 * MIB)
    disk = Disk(parameters(cache=cache, request_buckets=(BucketParameters(3000.0),)))
    answers = keep_busy(disk, until_s=30, depth=16)
    full_s, stall_s = 64 * MIB / (3000 * 4096 - 4e6), 48 * MIB / 4e6
    longest = max(answers, key=lambda answer: answer.latency_s)
    assert longest.latency_s == pytest.approx(stall_s, rel=0.005)
    assert longest.sent_s == pytest.approx(full_s, rel=0.005)
    assert rate(answers, full_s + 0.05, full_s + stall_s - 0.05) == 0
    assert rate(answers, full_s + stall_s + 0.05, full_s + stall_s + 3) == pytest.approx(3000, 0.01)


@pytest.mark.slow
def test_drift_is_linear() -> None:
    """Minus 40 % a minute: 90 % of the speed around second 15, 70 % around 45, 10 % in the end."""
    answers = keep_busy(Disk(parameters(drift_per_s=-0.4 / 60)), until_s=160)
    assert rate(answers, 10, 20) == pytest.approx(900, rel=0.005)
    assert rate(answers, 40, 50) == pytest.approx(700, rel=0.005)
    assert rate(answers, 140, 160) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("depth", [1, 8])
def test_overhead_of_the_server_is_taken_out(depth: int) -> None:
    """A late timer and a socket, 50 to 300 us a request, cost no IOPS."""
    rng = Random(3)  # noqa: S311 - a test must be repeatable
    disk = Disk(parameters(write=ServiceParameters(0.0025)), pacer=Pacer())
    answers = keep_busy(
        disk, until_s=10, depth=depth, overhead=lambda: rng.uniform(0.00005, 0.0003)
    )
    assert rate(answers, 0, 10) == pytest.approx(400 * depth, rel=0.002)


@pytest.mark.parametrize(("pause_s", "rate_per_s"), [(0.0009, 400), (0.0011, 1 / 0.0036)])
def test_a_delay_of_a_millisecond_is_overhead(pause_s: float, rate_per_s: float) -> None:
    """A request that follows its answer that soon would have come at once on a real volume."""
    disk = Disk(parameters(write=ServiceParameters(0.0025)), pacer=Pacer())
    answers = keep_busy(disk, until_s=10, overhead=lambda: pause_s)
    assert rate(answers, 1, 10) == pytest.approx(rate_per_s, rel=0.01)
