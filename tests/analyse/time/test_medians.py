"""Medians of short arrays equal those of numpy."""

import math

import numpy as np
import pytest

from volbench.analyse.frames.resample import interval_of, median, median_step, row_medians


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
