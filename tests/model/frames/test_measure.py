"""Metrics: their column, which way is better, and how finely they are told."""

import pytest

from volbench.errors import InputError
from volbench.model.frames.column_names import find_measure
from volbench.model.frames.columns import SUMMARY

COLUMNS = [column.name for column in SUMMARY]


@pytest.mark.parametrize(
    ("name", "column", "more"),
    [
        ("iops", "iops", True),
        ("p99", "lat_p99_s", False),
        ("clat_p50_s", "clat_p50_s", False),
        ("cpu_sys", "cpu_sys", False),
    ],
)
def test_names_and_directions(name: str, column: str, *, more: bool) -> None:
    """Rates are better when they grow, latencies and CPU time when they fall."""
    found = find_measure(name, COLUMNS)
    assert (found.column, found.more_is_better) == (column, more)


def test_only_percentiles_have_bins() -> None:
    """Percentiles are known to fio's bins; means and extremes are exact."""
    assert find_measure("p99", COLUMNS).resolution == pytest.approx(0.0157, abs=1e-4)
    assert find_measure("mean", COLUMNS).resolution == 0
    assert find_measure("iops", COLUMNS).resolution == 0


def test_measures_without_a_better_direction_are_refused() -> None:
    """More repeats are neither better nor worse."""
    with pytest.raises(InputError, match="neither higher nor lower is defined as better"):
        find_measure("numjobs", COLUMNS)
