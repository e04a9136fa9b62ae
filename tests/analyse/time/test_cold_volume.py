"""The judgement of paired reads, on latencies whose truth is known."""

import numpy as np
import pytest

from volbench.analyse.time.cold_volume import describe, judge_cold, pair_by_offset
from volbench.model.results.provenance import ColdProbe

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def latencies(random: np.random.Generator, pairs: int, *, sigma: float = 0.4) -> Floats:
    """Return latencies around 1 ms with the long tail that volumes have."""
    usual = 1e-3 * np.exp(sigma * random.standard_normal(pairs))
    return np.where(random.random(pairs) < 0.01, 20 * usual, usual)


def judge(first: Floats, second: Floats) -> ColdProbe:
    """Judge arrays."""
    return judge_cold(first.tolist(), second.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [20, 64, 200, 1024])
@pytest.mark.parametrize("sigma", [0.1, 0.8])
def test_false_alarms_are_rare(pairs: int, sigma: float) -> None:
    """Of volumes whose first and second reads are alike, at most 5 % are called cold."""
    random = np.random.default_rng(pairs)
    alarms = sum(
        judge(latencies(random, pairs, sigma=sigma), latencies(random, pairs, sigma=sigma)).cold
        for _ in range(400)
    )
    assert alarms <= 0.05 * 400


@pytest.mark.parametrize("pairs", [64, 1024])
def test_first_reads_at_twice_the_latency_are_detected(pairs: int) -> None:
    """A volume whose every first read takes twice as long is hardly ever missed."""
    random = np.random.default_rng(pairs)
    found = sum(
        judge(2 * latencies(random, pairs), latencies(random, pairs)).cold for _ in range(200)
    )
    assert found >= 0.95 * 200


def test_partly_cold_volume_shows_in_the_tail() -> None:
    """A tenth of cold blocks shows in p99; half the volume at ten times the latency is warm."""
    random = np.random.default_rng(3)
    first, second = latencies(random, 1000, sigma=0.1), latencies(random, 1000, sigma=0.1)
    first[:100] += 0.1
    found = judge(first, second)
    assert found.cold
    assert found.median_ratio < 1.2
    assert found.p99_ratio > 3
    random = np.random.default_rng(5)
    place = np.where(np.arange(300) < 150, 1e-3, 1e-2)
    found = judge(
        place * np.exp(0.05 * random.standard_normal(300)),
        place * np.exp(0.05 * random.standard_normal(300)),
    )
    assert not found.cold
    assert found.median_ratio == pytest.approx(1, abs=0.5)


def test_slow_second_reads_are_not_cold() -> None:
    """Only the first read can meet a cold block."""
    random = np.random.default_rng(4)
    found = judge(latencies(random, 500), 5 * latencies(random, 500))
    assert not found.cold
    assert found.p_value > 0.99
    found = judge(np.full(30, 0.001), np.full(30, 0.001))
    assert (found.cold, found.p_value, found.median_ratio) == (False, 1.0, 1.0)


def test_differences_of_microseconds_are_attributed_to_the_host() -> None:
    """Tripling 20 us is an idle CPU that woke up; tripling 2 ms is storage."""
    random = np.random.default_rng(6)
    noise = np.exp(0.1 * random.standard_normal(200))
    assert not judge(60e-6 * noise, np.full(200, 20e-6)).cold
    assert judge(6e-3 * noise, np.full(200, 2e-3)).cold


def test_too_few_blocks_give_no_verdict() -> None:
    """Nineteen pairs are too few, however clear they look."""
    found = judge(np.full(19, 0.1), np.full(19, 0.001))
    assert not found.cold
    assert describe(found).startswith("undecided, because fewer than")


def test_only_blocks_of_both_passes_are_paired() -> None:
    """A pass that its time limit cut short leaves blocks without a partner."""
    first, second = pair_by_offset({0: 3.0, 8: 1.0, 4: 2.0}, {4: 5.0, 0: 4.0, 12: 9.0})
    assert (first, second) == ([3.0, 2.0], [4.0, 5.0])


@pytest.mark.parametrize(
    ("share", "words", "never_written"),
    [
        (None, ".", False),
        (0.0, "0 % of sampled blocks hold only zeros.", False),
        (0.01, "1 % of sampled blocks hold only zeros.", False),
        (0.4, "fill the volume with volbench warmup, which shows it.", True),
    ],
)
def test_zeros_are_reported(share: float | None, words: str, *, never_written: bool) -> None:
    """More than one block of zeros in a hundred means that the volume was not filled."""
    found = judge_cold([0.001] * 30, [0.001] * 30, zero_share=share)
    assert found.never_written is never_written
    assert describe(found).endswith(words)
    assert ("zeros" in describe(found)) == (share is not None)
    assert describe(found).startswith("partly never written" if never_written else "not cold")


def test_a_volume_of_zeros_is_undecided() -> None:
    """A read cannot tell how slow its first writes are."""
    found = judge_cold([0.001] * 30, [0.001] * 30, zero_share=0.5)
    assert describe(found).startswith("undecided: first reads of 30 sampled blocks")
