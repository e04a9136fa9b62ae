"""Runs whose I/Os are fast or slow, and nothing between."""

from collections.abc import Sequence

import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, percentile_rows, summary_row

NUMBERS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)


def messages(
    slow_percent: float, slow_s: float, *, growth: float = 1.002, ios: int = 60_000
) -> list[str]:
    """Return what is said of I/Os of 60 us, some of which take longer; each kind widens."""
    values = [
        (number, (slow_s if number > 100 - slow_percent else 60e-6) * growth**number)
        for number in NUMBERS
    ]
    return messages_of(values, ios=ios)


def messages_of(values: Sequence[tuple[float, float]], *, ios: int = 60_000) -> list[str]:
    """Return what is said of percentiles."""
    run = a_run()
    rows = [
        {
            **percentile_rows(run)[0],
            "latency": "clat",
            "percentile": float(number),
            "value_s": value_s,
        }
        for number, value_s in values
    ]
    view = a_view(run, percentiles=rows, summary=[summary_row(run, total_ios=ios)])
    return [entry.message for entry in found(view, rule="two-latencies")]


@pytest.mark.parametrize(
    ("slow_percent", "slow_s", "share"),
    [(67, 2.5e-3, "60 to 70 % of the writes"), (100 / 60, 30e-3, "1 to 5 % of the writes")],
)
def test_hits_and_misses_of_a_cache_are_two_latencies(
    slow_percent: float, slow_s: float, share: str
) -> None:
    """A third of the I/Os from a cache; one in sixty that takes 30 ms."""
    (message,) = messages(slow_percent, slow_s)
    assert message.startswith(share)
    assert "the others" in message


def test_one_latency_is_not_split() -> None:
    """A tail of 1 in 200, a factor of 3.5, a wide distribution and few I/Os are no second kind."""
    assert messages(0.5, 30e-3) == []
    assert messages(50, 210e-6) == []
    assert messages(50, 2.5e-3, growth=1.06) == []
    assert messages(100 / 60, 30e-3, ios=5_000) == []


@pytest.mark.parametrize(
    ("slow_percent", "slow_s", "count"),
    [(50, 300e-6, 1), (50, 230e-6, 0), (11, 300e-6, 1), (5, 300e-6, 0), (5, 600e-6, 1)],
)
def test_two_large_groups_need_a_smaller_gap(
    slow_percent: float, slow_s: float, count: int
) -> None:
    """A factor of 5 is no tail where it separates a tenth of the I/Os or more."""
    assert len(messages(slow_percent, slow_s)) == count


def test_few_percentiles_show_no_gap() -> None:
    """With percentile_list=1:50:99:99.9, nothing is known of the 49 % between two of them."""
    values = [(1.0, 50e-6), (20.0, 60e-6), (50.0, 70e-6), (99.0, 2e-3), (99.9, 3e-3)]
    assert messages_of(values) == []
    assert messages_of([*values[:3], (90.0, 80e-6), *values[3:]]) != []
