"""Latencies fall into fio's bins, and packed windows lose nothing."""

import random

import numpy as np
import pytest

from volbench.fio.logs.log_windows import BIN_COUNT, BinStore, bin_mids, bin_of
from volbench.fio.results.merge_jobs import BINS, bin_mid_ns, bin_range_ns, percentile_ns


def test_every_edge_falls_into_its_bin() -> None:
    """The first and the last value of each bin have its number, and its middle is fio's."""
    edges = np.array([bin_range_ns(n) for n in range(BINS)])
    assert bin_of(edges[:, 0]).tolist() == list(range(BINS))
    assert bin_of(edges[:, 1] - 1).tolist() == list(range(BINS))
    assert bin_mids(np.arange(BINS)).tolist() == [bin_mid_ns(n) for n in range(BINS)]


def test_bins_extend_beyond_the_last_bin_of_fio() -> None:
    """A latency of days has a bin too, with a middle at most 0.8 % away."""
    values = np.array([2**34, 2**40 + 12345, 10**15, 2**50 - 1])
    bins = bin_of(values)
    assert bins.max() < BIN_COUNT
    assert (np.abs(bin_mids(bins) - values) <= values * 0.0079).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_windows_in_any_order_keep_their_counts(seed: int) -> None:
    """Windows that come back after they were packed have the percentiles of all their counts."""
    chance = random.Random(seed)  # noqa: S311 - test data, no secret
    store = BinStore()
    plain: dict[int, dict[int, int]] = {}
    for _ in range(3000):
        window = chance.randrange(600)
        bins = sorted(chance.sample(range(BIN_COUNT), chance.randrange(1, 6)))
        counts = [chance.randrange(1, 10 ** chance.randrange(1, 11)) for _ in bins]
        store.add(window, np.array(bins), np.array(counts))
        mine = plain.setdefault(window, {})
        for bin_, count in zip(bins, counts, strict=True):
            mine[bin_] = mine.get(bin_, 0) + count
    assert store.windows() == set(plain)
    assert store.last() == max(plain)
    for window, mine in plain.items():
        expected = [
            int(bin_mids(np.array(percentile_ns(mine, share)))) for share in (50.0, 99.0, 99.9)
        ]
        assert store.percentiles(window) == tuple(expected)
    assert store.percentiles(601) is None
