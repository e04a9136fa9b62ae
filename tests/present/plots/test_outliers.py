"""Outliers of a fleet: far from the middle half, in its own width and in the median's."""

import pandas as pd
import pytest

from volbench.present.plots.charts.fleet_strips import _outliers

SPREAD = [900.0, 950.0, 1000.0, 1050.0, 1100.0]


@pytest.mark.parametrize(
    ("values", "outlying"),
    [
        ([*SPREAD, 1270.0], 0),
        ([*SPREAD, 1400.0], 1),
        ([1000.0] * 5 + [1040.0], 0),
        ([1000.0] * 5 + [1060.0], 1),
        ([1000.0, 1000.0, 1000.0, 9000.0], 0),
    ],
)
def test_outliers_are_beyond_tukeys_fence(values: list[float], outlying: int) -> None:
    """The fence is 1.5 interquartile ranges, at least 5 % of the median, from five hosts on."""
    assert int(_outliers(pd.Series(values)).sum()) == outlying
