"""Time, bytes and deadlines, as far as a plan tells them."""

import math

import pytest

from tests.plan.loading import load
from tests.planned import planned_campaign, planned_run
from volbench.errors import InputError
from volbench.model.campaign.planned_run import (
    Campaign,
    DevicePin,
    Run,
    Section,
    Volume,
    VolumeKind,
)
from volbench.plan.expansion.estimate import (
    CAMPAIGN_S,
    FILL_BYTES_PER_S,
    START_S,
    deadline_s,
    estimate,
    expected_s,
    layout_bytes,
)
from volbench.plan.expansion.expand import Terms, expand

GIB = 2**30


def planned(*jobs: str, kind: VolumeKind = VolumeKind.DIRECTORY, repeat: int = 1) -> Campaign:
    """Expand jobs, each written in one line, on one volume."""
    text = "name: x\njobs:\n" + "".join(f"  j{n}: {{{job}}}\n" for n, job in enumerate(jobs))
    profile = load(text)
    volume = Volume(role="data", kind=kind, target="/there")
    return expand([profile], {"data": volume}, Terms(name="c", seed=1, repeat=repeat))


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        ("rw: read, size: 1g, runtime: 60s", 60),
        ("rw: read, size: 1g, runtime: 1.5s, ramp_time: 500ms, startdelay: 250us", 2.00025),
        ("rw: read, size: 1g", None),
        ("rw: read, size: 1g, runtime: 0", None),
        ("size: 1g, sections: {a: {rw: read, runtime: 5s}, b: {rw: read, runtime: 9s}}", 9),
        ("size: 1g, sections: {a: {rw: read, runtime: 5s}, b: {rw: read}}", None),
        ("size: 1g, sections: {a: {runtime: 5s}, b: {runtime: 9s, wait_for: a}}", 14),
        ("size: 1g, sections: {a: {rw: read}, b: {runtime: 9s, wait_for: a}}", None),
    ],
)
def test_the_expected_time_is_estimated(job: str, seconds: float | None) -> None:
    """The longest section counts; one without runtime leaves the end open."""
    (run,) = planned(job).runs
    assert expected_s(run) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("job", "kind", "written"),
    [
        ("rw: randwrite, bs: 4k, nrfiles: 10, filesize: 10m", VolumeKind.DIRECTORY, 100 << 20),
        ("rw: randread, bs: 4k, nrfiles: 10, filesize: 10m", VolumeKind.DIRECTORY, 100 << 20),
        ("rw: randrw, size: 1t, ioengine: 'null'", VolumeKind.DIRECTORY, 0),
        ("rw: write, size: 1g, numjobs: 2, loops: 3", VolumeKind.DEVICE, 6 * GIB),
        ("rw: randread, size: 1g", VolumeKind.DIRECTORY, GIB),
        ("rw: 'randread:8', size: 1g", VolumeKind.DEVICE, 0),
        ("rw: randwrite, size: 1g, runtime: 5s, time_based: 1", VolumeKind.DEVICE, None),
        ("rw: randwrite, size: 1g, io_size: 2g", VolumeKind.DEVICE, 2 * GIB),
        ("rw: randwrite, size: 50%", VolumeKind.DEVICE, None),
    ],
)
def test_the_bytes_written_are_estimated(job: str, kind: VolumeKind, written: int | None) -> None:
    """Sizes bound what is written, laid-out files included; a time-based job has no bound."""
    assert estimate(planned(job, kind=kind)).bytes_written == written


def test_files_are_counted_once_for_each_job() -> None:
    """Parallel jobs share a named file, and make one each without a name."""
    (shared,) = planned("rw: read, size: 1g, numjobs: 4, filename: f").runs
    (own,) = planned("rw: read, size: 1g, numjobs: 4").runs
    (device,) = planned("rw: read, size: 1g, numjobs: 4", kind=VolumeKind.DEVICE).runs
    assert [layout_bytes(run) for run in (shared, own, device)] == [GIB, 4 * GIB, 0]


def test_deadlines_grow_with_what_takes_longer() -> None:
    """More bytes, a slower rate or a longer pause never end a run earlier."""
    jobs = (
        "rw: write, size: 64m",
        "rw: write, size: 1g",
        "rw: write, size: 1g, rate: 512k",
        "rw: write, size: 1g, rate: 512k, thinktime: 10ms",
    )
    deadlines = [deadline_s(run, grace_s=10) for run in planned(*jobs).runs]
    assert deadlines == sorted(set(deadlines))
    assert deadlines[0] > 10


def test_a_campaign_is_the_sum_of_its_runs() -> None:
    """Repeats count; where nothing is timed there is no total."""
    whole = estimate(planned("rw: read, size: 1g, runtime: 60s", "rw: read, size: 1g", repeat=3))
    assert whole.runs == 6
    overhead_s = CAMPAIGN_S + 6 * START_S
    assert whole.total_s == pytest.approx(2 * GIB / FILL_BYTES_PER_S + 180 + overhead_s)
    assert estimate(planned("rw: read, size: 1g", kind=VolumeKind.DEVICE)).total_s is None


def test_files_are_laid_out_at_a_rate() -> None:
    """Files that a run reads are written first, once, at 100 MB/s or within the declared limit."""
    read, gib_s = "rw: randread, filename: f, size: 1g, runtime: 60s, time_based: 1", GIB / 1e8
    found = estimate(planned(read, repeat=2))
    assert found.total_s == pytest.approx(gib_s + 120 + CAMPAIGN_S + 2 * START_S)
    assert found.fill_s == pytest.approx(gib_s)
    written = estimate(planned(read.replace("randread", "randwrite"), repeat=2))
    assert written.total_s == pytest.approx(120 + CAMPAIGN_S + 2 * START_S)
    limited = estimate(planned(f"{read}, limits: {{bandwidth: 10MB/s}}"))
    assert limited.total_s == pytest.approx(GIB / 1e7 + 60 + CAMPAIGN_S + START_S)
    assert (limited.fill_s, limited.lays_out, written.lays_out) == (0, True, False)
    assert estimate(planned(read, kind=VolumeKind.FILE)).bytes_written == 0  # a file that exists


def test_large_blocks_fill_a_volume_at_a_rate() -> None:
    """The duration of a fill is known; that of small blocks is limited by unknown IOPS."""
    fill = estimate(planned("rw: write, bs: 1m, size: 1g", kind=VolumeKind.DEVICE))
    assert fill.total_s == pytest.approx(GIB / FILL_BYTES_PER_S + CAMPAIGN_S + START_S)
    assert fill.fill_s == pytest.approx(GIB / FILL_BYTES_PER_S)
    assert fill.untimed == 0
    small = estimate(planned("rw: write, bs: 4k, size: 1g", kind=VolumeKind.DEVICE))
    assert (small.fill_s, small.untimed) == (0, 1)


def test_endless_campaigns_are_refused() -> None:
    """The product of repeats and jobs is told before memory runs out."""
    assert estimate(planned("rw: read", repeat=2000)).runs == 2000
    with pytest.raises(InputError, match="200000 runs") as caught:
        planned(*["rw: read"] * 20, repeat=10_000)
    assert "repeat" in caught.value.hint


ROUNDS = """
name: x
rounds: {max: 20, track: [w.iops]}
cold_probe: true
limits: {bandwidth: 1MB/s, burst_bandwidth: 4MB/s, burst_bytes: 1g}
defaults: {size: 100m, runtime: 60s, time_based: 1}
phases:
  precondition:
    fill: {rw: write, bs: 1m, loops: 2, runtime: null, time_based: null}
jobs:
  w: {rw: randwrite}
  r: {rw: randrw, rwmixread: 100}
"""


def test_rounds_have_a_minimum_and_a_maximum_time() -> None:
    """Five rounds at least; the base limits the fill, the burst the writes; reads write nothing."""
    profile = load(ROUNDS)
    pin = DevicePin(path="/dev/x", major=8, minor=0, size_bytes=100 * 2**20)
    volume = Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/x", pin=pin)
    found = estimate(expand([profile], {"data": volume}, Terms(name="c", seed=1)))
    fill_s = 2 * 100 * 2**20 / 1e6 + 1
    round_s = 60 + 60 + 2
    assert (found.runs, found.min_runs, found.untimed, found.unbounded) == (41, 11, 0, 0)
    assert found.min_s == pytest.approx(CAMPAIGN_S + fill_s + 5 * round_s)
    assert found.total_s == pytest.approx(CAMPAIGN_S + 90 + fill_s + 20 * round_s)
    assert found.bytes_written == 200 * 2**20 + 20 * 60 * 4_000_000
    assert found.min_bytes == 200 * 2**20 + 5 * 60 * 4_000_000
    assert found.times_capacity == pytest.approx(found.bytes_written / pin.size_bytes)
    assert found.is_long
    assert found.is_most


def test_a_run_until_steady_may_end_after_its_window() -> None:
    """The least is the first window there is, the most the deadline."""
    job = "rw: read, size: 1g, runtime: 1h, time_based: 1, until: steady"
    found = estimate(planned(job, kind=VolumeKind.DEVICE))
    assert (found.min_s, found.total_s) == (301 + CAMPAIGN_S, 3601 + CAMPAIGN_S)
    short = estimate(planned(job.replace("1h", "20m")))
    assert not short.is_long


def test_unbounded_runs_are_counted_separately() -> None:
    """A time-based write and a read of a whole volume are told as what they are."""
    jobs = "rw: write, size: 1g", "rw: write, size: 1g, runtime: 5s, time_based: 1"
    found = estimate(planned(*jobs, kind=VolumeKind.DEVICE))
    assert (found.bytes_written, found.bounded_bytes, found.unbounded) == (None, GIB, 1)
    assert (found.untimed, found.total_s) == (1, 7.0 + CAMPAIGN_S)


def test_a_file_is_laid_out_once() -> None:
    """Reads of a file that an earlier run made write nothing; a larger one is laid out again."""
    read = "rw: read, filename: f, size: "
    assert estimate(planned(f"{read}1g", f"{read}1g", repeat=3)).bytes_written == GIB
    assert estimate(planned(f"{read}1g", f"{read}2g")).bytes_written == 3 * GIB
    assert estimate(planned(f"{read}1g", f"{read}1g".replace("f,", "g,"))).bytes_written == 2 * GIB


def test_time_besides_the_runs_is_mentioned() -> None:
    """Buffered writes to files are written back after a run; not so direct ones on devices."""
    buffered = "rw: write, size: 1g, runtime: 5s"
    found = estimate(planned(buffered))
    assert found.is_cached
    direct = estimate(planned(f"{buffered}, direct: 1", kind=VolumeKind.DEVICE))
    assert not direct.is_cached
    reading = estimate(planned("rw: read, size: 1g, runtime: 5s", kind=VolumeKind.DEVICE))
    assert not reading.is_cached


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
    return planned_run(volume, *named)


def written(run: Run) -> int | None:
    """Return the bytes a campaign of one run writes."""
    return estimate(planned_campaign(run)).bytes_written


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
    assert written(run_of(DEVICE, {"rw": "write", "offset": "40%"})) == 6 * GIB
    late = {"numjobs": "2", "offset_increment": str(6 * GIB), "size": "80%"}
    assert written(run_of(DEVICE, {"rw": "write", **late})) == (8 + 4) * GIB
    assert written(run_of(DEVICE, {"rw": "write", "io_size": "10%", "size": "50%"})) == GIB // 2
