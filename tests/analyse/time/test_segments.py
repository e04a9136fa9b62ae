"""Own numerics beside the libraries that they replaced: the same results on many series."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import theilslopes

from volbench.analyse.frames.resample import Floats, interval_of, median, median_step, row_medians
from volbench.analyse.time.change_points import segment
from volbench.analyse.time.steady_state import theil_sen

RECORDED = Path(__file__).parent / "cases" / "ruptures-1.1.10.json"
"""Edges that `ruptures.KernelCPD(kernel="linear")` 1.1.10 found in each of `made_series`."""


def made_series(seed: int) -> Floats:
    """Return noise, a step, a random walk, a ramp, several steps, or noise with ties."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=int(rng.integers(8, 200)))
    count = len(values)
    match seed % 6:
        case 1:
            values[count // 2 :] += rng.uniform(1, 8)
        case 2:
            values = np.cumsum(values)
        case 3:
            values += np.linspace(0, rng.uniform(-20, 20), count)
        case 4:
            for place in rng.integers(0, count, size=4):
                values[place:] += 6 * rng.normal()
        case 5:
            values = np.round(values)
        case _:
            pass
    return values + rng.uniform(-500, 500)


def test_segments_equal_those_of_ruptures() -> None:
    """All 600 series have the recorded edges; a third of them have some."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert len(recorded) == 600
    assert sum(bool(edges) for edges in recorded) > 200
    for seed, edges in enumerate(recorded):
        values = made_series(seed)
        least = 2 if len(values) < 120 else 3
        assert segment(values, penalty=3 * math.log(len(values)), least=least) == edges, seed


@pytest.mark.parametrize("kind", range(6))
def test_slopes_equal_those_of_scipy(kind: int) -> None:
    """Slope and both ends of its interval agree with scipy's, ties included."""
    for seed in range(kind, 300, 6):
        values = made_series(seed)
        slope, _, low, high = theilslopes(values, alpha=0.95)
        assert theil_sen(values) == pytest.approx((slope, low, high), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 59, 60])
def test_medians_equal_those_of_numpy(count: int) -> None:
    """Odd and even counts, to the last bit."""
    values = np.random.default_rng(count).normal(1000, 300, (50, count))
    assert [median(row) for row in values] == np.median(values, axis=1).tolist()
    assert row_medians(values).tolist() == np.median(values, axis=1).tolist()


def test_missing_values_have_no_median() -> None:
    """No values, and a NaN among others, as in numpy."""
    assert math.isnan(median(np.array([])))
    assert math.isnan(median(np.array([1.0, math.nan, 2.0])))
    found = row_medians(np.array([[1.0, math.nan, 2.0], [3.0, 1.0, 2.0]]))
    assert np.isnan(found).tolist() == [True, False]
    assert found[1] == 2.0
    assert row_medians(np.empty((0, 4))).tolist() == []


def test_the_interval_is_the_median_distance() -> None:
    """A lost interval does not lengthen the others; a single one ends after its length."""
    assert interval_of(np.array([1.0, 2.0, 3.0, 9.0])) == 1.0
    assert interval_of(np.array([0.5])) == 0.5
    assert math.isnan(median_step(np.array([0.5])))
