"""Number of parallel reads of used blocks."""

import pytest

from volbench.engine.conditioning.used_reads import depth_after

Trial = tuple[int, float]


@pytest.mark.parametrize(
    ("rates", "depth"),
    [
        ([], 4),
        ([(4, 100)], 8),
        ([(4, 100), (8, 190), (16, 300)], 32),
        ([(4, 100), (8, 105)], 8),  # tried again: that extent may be colder
        ([(4, 100), (8, 105), (8, 190)], 16),
        ([(4, 100), (8, 105), (8, 105), (4, 900)], 4),
        ([(4, 100), (8, 200), (16, 400), (32, 800)], 40),
    ],
)
def test_parallel_reads_double_while_the_rate_grows(rates: list[Trial], depth: int) -> None:
    """Two extents in turn that gain less than a tenth end it; the most of them is kept."""
    assert depth_after(rates, most=40) == depth
