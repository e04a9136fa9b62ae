"""fio's latency bins: midpoints, edges, sums and percentiles."""

from pathlib import Path

import pytest

from volbench.fio.results.json_output import parse_output
from volbench.fio.results.merge_jobs import (
    BINS,
    bin_edges_ns,
    bin_mid_ns,
    bin_range_ns,
    merge_bins,
    percentile_ns,
)
from volbench.model.results.result import Latency

CASES = Path(__file__).parents[2] / "cases"


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
    known = {bin_mid_ns(index): bin_range_ns(index) for index in range(BINS)}
    assert max(known) == 17_112_760_320
    for version, latency in latencies():
        if not version.startswith("fio-2"):
            assert set(latency.bins) <= set(known)
    for mid_ns, edges in known.items():
        assert bin_edges_ns(mid_ns) == edges
        assert edges[0] <= mid_ns < edges[1]


def test_bins_of_fio_2_have_edges_in_microseconds() -> None:
    """Microseconds are what fio 2 counts, so its bins are a thousand times as wide."""
    assert bin_edges_ns(5_000, unit_ns=1000) == (5_000, 6_000)
    assert bin_edges_ns(1004_000, unit_ns=1000) == (1000_000, 1008_000)


def test_merged_bins_hold_every_sample() -> None:
    """Counts of the same bin are added, and the bins are in order."""
    assert list(merge_bins([{5: 1, 3: 2}, {}, {5: 4, 1: 1}]).items()) == [(1, 1), (3, 2), (5, 5)]


@pytest.mark.parametrize(
    ("percentile", "expected"), [(0, 10), (50, 10), (50.1, 20), (75, 20), (100, 30)]
)
def test_percentile_is_the_first_bin_that_reaches_it(percentile: float, expected: int) -> None:
    """The running count has to reach the share; empty bins are never the answer."""
    assert percentile_ns({5: 0, 10: 2, 20: 1, 30: 1, 40: 0}, percentile) == expected


def test_invalid_bins_are_refused() -> None:
    """There is no bin -1, no percentile 101 and no percentile of nothing."""
    with pytest.raises(ValueError, match="bin"):
        bin_mid_ns(-1)
    with pytest.raises(ValueError, match="bin"):
        bin_mid_ns(BINS)
    with pytest.raises(ValueError, match="percentile"):
        percentile_ns({1: 1}, 101)
    with pytest.raises(ValueError, match="samples"):
        percentile_ns({1: 0}, 50)
    with pytest.raises(ValueError, match="latency"):
        bin_edges_ns(-1)
