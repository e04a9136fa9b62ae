"""What happened between two samples."""

import math
from dataclasses import replace

import pytest

from volbench.analyse.frames.kernel_counters import Disk, Sample, disk_rates, host_rates

BEFORE = Disk(100, 800, 50, 10, 2560, 70, 1000, 2000, read_merges=5, write_merges=1)
NOW = Disk(300, 2400, 150, 20, 5120, 170, 2000, 6000, read_merges=25, write_merges=7)
"""Reads, their sectors and ticks, the same of writes, and ticks of use and of the queue."""


def test_rates_means_and_use_of_a_device() -> None:
    """Reads and writes apart; ticks are milliseconds and sectors 512 bytes."""
    assert disk_rates(BEFORE, NOW, interval_s=2.0) == {
        "read_iops": 100.0,
        "write_iops": 5.0,
        "read_bw_bytes_per_s": 1600 * 512 / 2,
        "write_bw_bytes_per_s": 2560 * 512 / 2,
        "read_lat_s": 0.0005,
        "write_lat_s": 0.01,
        "read_request_bytes": 4096.0,
        "write_request_bytes": 131072.0,
        "read_merges_per_s": 10.0,
        "write_merges_per_s": 3.0,
        "queue_depth": 2.0,
        "active_percent": 50.0,
    }


def test_a_device_at_rest_has_no_latency() -> None:
    """Zero rates are known; the mean of nothing is not."""
    rates = disk_rates(BEFORE, BEFORE, interval_s=1.0)
    assert rates is not None
    unknown = {name for name, value in rates.items() if math.isnan(value)}
    assert unknown == {"read_lat_s", "write_lat_s", "read_request_bytes", "write_request_bytes"}
    assert {value for value in rates.values() if not math.isnan(value)} == {0.0}


def test_active_time_never_exceeds_100_percent() -> None:
    """The kernel's ticks may reach past the interval; 32 bits begin again after 49 days."""
    rates = disk_rates(BEFORE, replace(NOW, busy_ticks=2003), interval_s=1.0)
    assert rates is not None
    assert rates["active_percent"] == 100.0
    before = replace(BEFORE, queue_ticks=2**32 - 1000)
    rates = disk_rates(before, replace(NOW, queue_ticks=3000), interval_s=2.0)
    assert rates is not None
    assert rates["queue_depth"] == 2.0


@pytest.mark.parametrize("name", Disk.__dataclass_fields__)
def test_counters_that_were_reset_give_no_rates(name: str) -> None:
    """A device that was recreated counts from zero: it has no rate, least of all one below 0."""
    assert disk_rates(BEFORE, replace(NOW, **{name: 0}), interval_s=1.0) is None


def sample(cpu: tuple[int, ...] = (), *, swapped: int | None = None, some: int = -1) -> Sample:
    """Return a sample with some of a host's numbers."""
    pressure = {} if some < 0 else {"some": some}
    return Sample(0.0, 0.0, cpu=cpu, swapped_pages=swapped, pressure_us=pressure)


def test_cpu_shares_are_of_all_time() -> None:
    """Guests are in user already; iowait may decrease, and no share is below 0."""
    before = (100, 0, 50, 1000, 10, 0, 0, 0, 90, 0)
    now = (130, 0, 60, 1040, 20, 2, 3, 5, 115, 0)
    rates = host_rates(sample(before), sample(now), interval_s=1.0, page_bytes=4096)
    assert rates["cpu_busy_percent"] == 50.0
    assert rates["iowait_percent"] == 10.0
    assert rates["steal_percent"] == 5.0
    earlier, later = sample((0, 0, 0, 100, 50, 0, 0, 0)), sample((10, 0, 0, 190, 49, 0, 0, 0))
    rates = host_rates(earlier, later, interval_s=1.0, page_bytes=4096)
    assert rates["iowait_percent"] == 0.0
    assert rates["cpu_busy_percent"] == 10.0


def test_swap_and_pressure_are_reported_where_there_are_any() -> None:
    """A missing counter stays unknown, and so does one that was reset."""
    rates = host_rates(
        sample(swapped=10, some=1_000_000),
        sample(swapped=14, some=1_500_000),
        interval_s=2.0,
        page_bytes=16384,
    )
    assert rates["swap_bytes_per_s"] == 32768.0
    assert rates["io_pressure_some_percent"] == 25.0
    assert math.isnan(rates["io_pressure_full_percent"])
    assert math.isnan(rates["dirty_bytes"])
    assert math.isnan(rates["cpu_busy_percent"])
    rates = host_rates(
        sample(swapped=10, some=9), sample(swapped=0, some=1), interval_s=1.0, page_bytes=4096
    )
    assert math.isnan(rates["swap_bytes_per_s"])
    assert math.isnan(rates["io_pressure_some_percent"])
