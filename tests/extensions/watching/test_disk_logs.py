"""Logs of watched disks, and the table of a terminal."""

import time
from io import StringIO
from math import nan
from pathlib import Path

import pytest

from volbench.extensions.watching.disk_logs import DiskLog, split_sample
from volbench.extensions.watching.live_table import LiveTable, table_lines
from volbench.extensions.watching.watch_loop import LiveDisk
from volbench.ingest.watched_load import read_watched
from volbench.model.campaign.planned_run import Run, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import VolumeFacts
from volbench.store.layout import RunFolder

VOLUME = Volume(role="sda", kind=VolumeKind.DEVICE, target="/dev/sda")
RUN = Run(
    id="001-watch-r1-sda",
    profile="watch",
    job="watch",
    volume=VOLUME,
    tool=Tool.WATCH,
    sections=(Section(name="watch"),),
)
SAMPLE = (
    "T {utc:.3f} {up:.3f}\ncpu  1 0 1 100 0 0 0 0\nDirty: 8 kB\nWriteback: 0 kB\n"
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=17\n"
    "   8       0 sda {ios} 5 {sectors} {ios} 0 0 0 0 0 {ios} {ios} 0 0 0 0 0 0\n"
    "   8      16 sdb 1 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n.\n"
)


def sample(second: int, *, ios: int, boot_s: float = 0.0) -> str:
    """Return a sample in which so many reads of 4 KiB, of 1 ms each, were done since boot."""
    return SAMPLE.format(
        utc=1_700_000_000 + second, up=second + 1000 - boot_s, ios=ios, sectors=8 * ios
    )


def folder_of(tmp_path: Path) -> RunFolder:
    """Return the folder of a run with the facts of its disk."""
    folder = RunFolder(tmp_path)
    facts = VolumeFacts(
        role="sda", target="/dev/sda", kind=VolumeKind.DEVICE, path="/dev/sda", device="sda"
    )
    folder.facts.write_text(facts.model_dump_json())
    return folder


def logged(tmp_path: Path, *texts: str) -> RunFolder:
    """Return the folder of a run with a log of samples."""
    folder = folder_of(tmp_path)
    log = DiskLog(folder, ["sda"])
    for text in texts:
        log.add(*split_sample(text))
    log.close()
    return folder


def test_the_log_of_a_disk_has_the_lines_of_the_disk_and_its_host(tmp_path: Path) -> None:
    """It is compressed at the end, and has no lines of other disks."""
    folder = logged(tmp_path, *(sample(second, ios=10 * second) for second in range(20)))
    assert [path.name for path in tmp_path.glob("device*")] == ["device.log.zst"]
    watched = read_watched(RUN, folder, elapsed_s=20)
    assert len(watched.samples.taken) == 20
    assert set(watched.samples.taken[0].disks) == {"sda"}
    assert watched.samples.taken[3].pressure_us == {"some": 17}
    (reads,) = watched.output.jobs[0].directions
    assert (reads.total_ios, reads.io_bytes, reads.runtime_s) == (190, 190 * 4096, 19.0)
    assert reads.iops == reads.iops_max == 10
    assert reads.lat is not None
    assert reads.lat.mean_s == pytest.approx(0.001)


def test_a_restart_of_the_host_is_a_gap(tmp_path: Path) -> None:
    """Uptime and counters begin again; the time axis goes on, and no rate is negative."""
    before = [sample(second, ios=1000 + 10 * second) for second in range(5)]
    after = [sample(second, ios=10 * second, boot_s=1060) for second in range(64, 70)]
    watched = read_watched(RUN, logged(tmp_path, *before, *after), elapsed_s=70)
    times = [one.uptime_s - 1000 for one in watched.samples.taken]
    assert times == [*range(5), *range(64, 70)]
    assert watched.output.jobs[0].directions[0].total_ios == 40 + 50


def test_a_long_watch_is_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means stay exact, and the summary has the extremes of all intervals."""
    monkeypatch.setattr("volbench.ingest.watched_load.MAX_POINTS", 10)
    counts = [10 * second + (500 if second > 50 else 0) for second in range(100)]
    texts = [sample(second, ios=ios) for second, ios in enumerate(counts)]
    watched = read_watched(RUN, logged(tmp_path, *texts), elapsed_s=100)
    taken = watched.samples.taken
    assert len(taken) <= 11
    assert taken[-1].disks["sda"].reads - taken[0].disks["sda"].reads == counts[-1]
    (reads,) = watched.output.jobs[0].directions
    assert reads.total_ios == counts[-1]
    assert (reads.iops_min, reads.iops_max) == (10, 510)


def test_a_log_keeps_the_sums_of_cpu_time_that_are_shown() -> None:
    """Idle, waiting and stolen time apart from all other; a line of an old kernel as it is."""
    lines, _ = split_sample("cpu  10 20 30 400 50 6 7 8 9 9\ncpu  1 2 3 4\n")
    assert lines == ["cpu 73 0 0 400 50 0 0 8", "cpu  1 2 3 4"]


def test_a_line_has_the_mean_rates_since_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the last sample; a disk without samples meanwhile is not counted."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = StringIO()
    show, disk = LiveTable(stream), LiveDisk("local", "sda", {"any": 0.0})
    for reads in (10, 310, 310, 0):
        disk.moved["seconds"] += 20.0
        disk.moved["read_iops"] += 20.0 * reads
        show([disk], now[0], {})
        now[0] += 20.0
    now[0] += 60.0
    show([disk, LiveDisk("local", "sdb", {"any": 0.0})], now[0], {})
    texts = [line.split(": ")[1].split(",")[:2] for line in stream.getvalue().splitlines()]
    assert texts == [
        ["1 disk", " 10 reads/s"],
        ["1 disk", " 207 reads/s"],
        ["0 disks", " 0 reads/s"],
    ]


def test_the_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty columns, whatever the rates and names; the busiest disk comes first."""
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    busy = {"queue_depth": 1023.9, "active_percent": 100.0, "dirty_bytes": 3e9}
    for way in ("read", "write"):
        busy |= {f"{way}_iops": 1_234_567.0, f"{way}_bw_bytes_per_s": 98_765_432_100.0}
        busy |= {f"{way}_request_bytes": 1_048_576.0, f"{way}_lat_s": 12.3456}
    idle = dict.fromkeys(busy, 0.0) | {"read_lat_s": nan, "read_request_bytes": nan}
    disks = [
        LiveDisk("database-server-07", "nvme0n1", idle, seen_s=99.5),
        LiveDisk("vm1", "sda", busy, seen_s=99.5),
        LiveDisk("vm2", "sda", busy, seen_s=1.0, problem="vm2 does not answer"),
        LiveDisk("vm3", "sda", problem="vm3 did not answer within the time " * 5),
    ]
    lines = table_lines(disks, 99.0, most=9)
    assert max(map(len, lines[1:])) <= 79, max(lines, key=len)
    assert "1.23M reads/s" in lines[0]  # not those of vm2 half a minute ago
    assert lines[2] == "vm2:sda           vm2 does not answer (for 1m 39s)"
    assert lines[3].startswith("vm3:sda           vm3 did not answer within the time")
    assert lines[4].startswith("vm1:sda")
    assert table_lines(disks, 99.0, most=1)[3] == "and 3 more disks, less busy"
