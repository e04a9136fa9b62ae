"""Offset of a clock from its readings."""

import pytest

from volbench.engine.hosts.connected_host import estimate_clock
from volbench.execute.protocol import ClockReading


def test_the_shortest_exchange_counts() -> None:
    """A host 3 s ahead: the exchange of 20 ms says it to 10 ms, the slow ones are not looked at."""
    readings = [
        ClockReading(100.0, 103.3, 100.4),
        ClockReading(101.0, 104.01, 101.02),
        ClockReading(102.0, 105.1, 102.2),
    ]
    clock = estimate_clock(readings)
    assert clock.offset_s == pytest.approx(3.0)
    assert clock.bound_s == pytest.approx(0.01)
    assert clock.round_trip_s == pytest.approx(0.02)


def test_an_offset_within_its_bound_is_not_corrected() -> None:
    """It may be none; what it might be is added to the bound."""
    clock = estimate_clock([ClockReading(100.0, 100.2, 100.3)])
    assert clock.offset_s == 0
    assert (clock.bound_s, clock.round_trip_s) == pytest.approx((0.2, 0.3))


def test_a_clock_of_whole_seconds_is_known_to_half_a_second() -> None:
    """Busybox prints no nanoseconds."""
    clock = estimate_clock([ClockReading(100.0, 100.5, 100.002, resolution_s=1.0)])
    assert clock.offset_s == 0
    assert clock.bound_s == pytest.approx(1.0, abs=0.01)
