"""Metrics: their column, which way is better, and how finely they are told."""

import pytest

from volbench.errors import InputError
from volbench.model.frames.column_names import find_measure
from volbench.model.frames.columns import SUMMARY

COLUMNS = [column.name for column in SUMMARY]


@pytest.mark.parametrize(
    ("name", "column", "more", "resolution"),
    [
        ("iops", "iops", True, 0),
        ("mean", "lat_mean_s", False, 0),
        ("p99", "lat_p99_s", False, 0.0157),
        ("clat_p50_s", "clat_p50_s", False, 0.0157),
        ("cpu_sys", "cpu_sys", False, 0),
    ],
)
def test_names_directions_and_resolutions(
    name: str, column: str, *, more: bool, resolution: float
) -> None:
    """Rates are better when they grow, latencies and CPU time when they fall.

    Percentiles are known to fio's bins; means and extremes are exact.
    """
    found = find_measure(name, COLUMNS)
    assert (found.column, found.more_is_better) == (column, more)
    assert found.resolution == pytest.approx(resolution, abs=1e-4)


def test_measures_without_a_better_direction_are_refused() -> None:
    """More repeats are neither better nor worse."""
    with pytest.raises(InputError, match="neither higher nor lower is defined as better"):
        find_measure("numjobs", COLUMNS)
