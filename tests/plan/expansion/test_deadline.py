"""Deadlines never end a run that does what it was asked; bytes are never told too small."""

import math

import pytest

from volbench.model.campaign.planned_run import (
    Campaign,
    DevicePin,
    Run,
    Section,
    Volume,
    VolumeKind,
)
from volbench.plan.expansion.estimate import deadline_s, estimate, expected_s

GIB = 2**30
FOLDER = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
FILE = Volume(role="data", kind=VolumeKind.FILE, target="/data/file")
DEVICE = Volume(
    role="data",
    kind=VolumeKind.DEVICE,
    target="/dev/x",
    pin=DevicePin(path="/dev/x", major=7, minor=0, size_bytes=10 * GIB),
)


def run_of(volume: Volume, *sections: dict[str, str]) -> Run:
    """Return a run with these sections."""
    named = tuple(Section(name=f"s{n}", options=own) for n, own in enumerate(sections))
    return Run(id="001-a-r1", profile="p", job="a", volume=volume, sections=named)


def written(run: Run) -> int | None:
    """Return the bytes a campaign of one run writes."""
    campaign = Campaign(name="c", created_utc="2026-01-01T00:00:00Z", runs=(run,), seed=1)
    return estimate(campaign).bytes_written


def test_the_deadline_covers_timed_and_sized_sections() -> None:
    """The longest section decides, whether time or size bounds it."""
    timed = {"rw": "read", "runtime": "3600s", "time_based": "1", "size": "1048576"}
    small, large = ({"rw": "write", "size": str(size)} for size in (2**20, 10 * GIB))
    assert deadline_s(run_of(DEVICE, timed, small), grace_s=60) == 3660
    assert deadline_s(run_of(DEVICE, timed, large), grace_s=0) > 10_000
    assert expected_s(run_of(DEVICE, timed, small)) is None


@pytest.mark.parametrize(
    ("slow", "needed_s"),
    [
        ({"rate": "10240"}, GIB / 10240),
        ({"rate": ",10240"}, GIB / 10240),
        ({"rate_iops": "10", "bs": "4096"}, GIB / 4096 / 10),
        ({"rate_iops": "10", "bsrange": "4096-65536"}, GIB / 4096 / 10),
        ({"rate_iops": "10", "bssplit": "65536/50:4096/50"}, GIB / 4096 / 10),
        ({"thinktime": "100000", "bs": "4096"}, GIB / 4096 * 0.1),
        ({"thinktime": "100000", "thinktime_blocks": "4", "bs": "4096"}, GIB / 4096 / 4 * 0.1),
        ({"startdelay": "7200s"}, 7200 + GIB / 1e6),
        ({"loops": "3", "numjobs": "2"}, 6 * GIB / 1e6),
    ],
)
def test_the_deadline_of_a_throttled_run_allows_for_its_rate(
    slow: dict[str, str], needed_s: float
) -> None:
    """A rate, a think time or repeats that the profile asks for never end a run early."""
    run = run_of(DEVICE, {"rw": "write", "size": str(GIB), **slow})
    assert needed_s <= deadline_s(run, grace_s=0) < needed_s * 1.2 + GIB / 1e6


def test_unbounded_runs_have_no_deadline() -> None:
    """The size of a file that is there already is unknown to the plan."""
    assert deadline_s(run_of(FILE, {"rw": "read"}), grace_s=60) == math.inf
    assert deadline_s(run_of(FOLDER, {"rw": "write", "fill_device": "1"}), grace_s=60) == math.inf
    assert written(run_of(FILE, {"rw": "write"})) is None
    replay = run_of(DEVICE, {"read_iolog": "/traces/boot"})
    assert deadline_s(replay, grace_s=60) == math.inf
    assert written(replay) is None


def test_shares_of_a_device() -> None:
    """A percentage counts against the device's size; no size means all of it."""
    half = run_of(DEVICE, {"rw": "write", "size": "50%"})
    assert written(half) == 5 * GIB
    assert deadline_s(half, grace_s=0) == 5 * GIB / 1e6
    assert written(run_of(DEVICE, {"rw": "write"})) == 10 * GIB
    assert written(run_of(DEVICE, {"rw": "write", "io_size": "10%", "size": "50%"})) == GIB // 2


def test_time_based_without_runtime_is_bounded_by_size() -> None:
    """The size is then moved once."""
    run = run_of(DEVICE, {"rw": "write", "size": str(GIB), "time_based": "1"})
    assert written(run) == GIB
    timed = run_of(DEVICE, {"rw": "write", "size": str(GIB), "time_based": "1", "runtime": "9s"})
    assert written(timed) is None
