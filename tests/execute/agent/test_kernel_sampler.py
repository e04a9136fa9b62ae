"""Samples of a real kernel, and the tail of a run on hosts whose memory is scripted."""

import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, until
from volbench.analyse.frames.kernel_counters import Sample, SampleReader, host_rates
from volbench.execute.agent import kernel_sampler
from volbench.execute.agent.kernel_sampler import MAX_WAIT_S, Sampler

KIB = 1024
MIB = KIB * 1024


def tail(
    dirty_mib: Sequence[float],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    ran_s: float = 1.0,
    is_followed: bool = True,
) -> tuple[str, int]:
    """Sample a host with so much in memory only at each second.

    The first value is from before the run, the second from its end.

    Returns:
        Why the tail ended, and the number of its samples.
    """
    clock_s, left = 0.0, list(dirty_mib)

    def read(path: str) -> bytes:
        return b"Dirty: %d kB\nWriteback: 0 kB\n" % (left[0] * KIB) if "meminfo" in path else b""

    monkeypatch.setattr(kernel_sampler, "read", read)
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: clock_s)
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    sampler = Sampler(log, [], 1.0, is_tail_followed=is_followed)
    sampler.started(0)
    clock_s += ran_s
    left.pop(0)
    sampler.ended()
    while not sampler.is_over:
        clock_s += 1.0
        left.pop(0)
        sampler.take()
    os.close(log)
    reader = SampleReader()
    samples = reader.feed((tmp_path / "log").read_text(encoding="ascii"))
    return reader.marks[-1], sum(sample.after_end for sample in samples)


def test_sampling_lasts_until_dirty_pages_are_written_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """About as much as before is enough: a host is never quite still."""
    assert tail([100, 900, 700, 400, 130, 5], monkeypatch, tmp_path) == ("tail settled", 4)


@pytest.mark.parametrize(("left_mib", "is_followed"), [(900, False), (105, True), (math.nan, True)])
def test_run_that_leaves_nothing_is_not_delayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left_mib: float, *, is_followed: bool
) -> None:
    """A direct run on a busy host, one that left nothing, a host that reports nothing."""
    if math.isnan(left_mib):
        monkeypatch.setattr(kernel_sampler, "_dirty_bytes", lambda _lines: 0.0)
        left_mib = 900
    reason, samples = tail([100, left_mib], monkeypatch, tmp_path, is_followed=is_followed)
    assert (reason, samples) == ("tail none: no dirty pages left", 1)


@pytest.mark.parametrize(("ran_s", "quiet_s"), [(1, 5), (8, 8), (10, 40), (600, 40)])
def test_dirty_pages_that_stay_end_the_sampling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ran_s: float, quiet_s: int
) -> None:
    """Nobody waits longer than the kernel holds pages back, a short run as long as it took."""
    reason, samples = tail([100] + [900] * 60, monkeypatch, tmp_path, ran_s=ran_s)
    assert reason == f"tail unchanged for {quiet_s} s"
    assert quiet_s <= samples <= quiet_s + 2


def test_slow_device_is_followed_for_two_minutes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A write-back of hours is cut off, and the log says so."""
    reason, samples = tail([100, *range(9000, 1000, -40)], monkeypatch, tmp_path)
    assert reason == f"tail cut off after {MAX_WAIT_S:.0f} s"
    assert MAX_WAIT_S <= samples <= MAX_WAIT_S + 2


def test_full_disk_ends_the_samples_only(tmp_path: Path) -> None:
    """The run itself goes on."""
    log = os.open("/dev/full", os.O_WRONLY)
    sampler = Sampler(log, [], 1.0, is_tail_followed=True)
    sampler.started(0)
    sampler.ended()
    os.close(log)
    assert sampler.is_over
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(name="log")
def _log(tmp_path: Path) -> Iterator[int]:
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield log
    os.close(log)


def samples_in(log: int) -> list[Sample]:
    """Return the samples of a log."""
    return SampleReader().feed(os.pread(log, MIB, 0).decode())


def test_real_samples_hold_all_counters(log: int) -> None:
    """The two clocks agree with this machine's, and the lines are those of the kernel."""
    clocks = [(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))]
    sampler = Sampler(log, [], 0.1, is_tail_followed=False)
    sampler.stop("cut off: stopped by the user")
    sample = samples_in(log)[0]
    clocks.append((time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)))
    (utc_s, boot_s), (utc_end_s, boot_end_s) = clocks
    assert utc_s - 0.5 < sample.utc_s < utc_end_s + 0.5
    assert boot_s - 0.5 < sample.uptime_s < boot_end_s + 0.5
    assert len(sample.cpu) >= 8
    assert sample.unwritten_bytes >= 0
    assert ("some" in sample.pressure_us) == Path("/proc/pressure/io").exists()
    assert os.pread(log, MIB, 0).startswith(
        b"volbench-samples 1 page %d\n" % os.sysconf("SC_PAGESIZE")
    )


def test_tasks_of_the_measured_program_are_counted(log: int, tmp_path: Path) -> None:
    """Runs that share a host wait for a CPU each for itself: only the fio of this one counts."""
    tool = tmp_path / "fio"
    shutil.copy("/bin/sleep", tool)
    sampler = Sampler(log, [], 0.1, is_tail_followed=False)
    own, other = (subprocess.Popen([tool, "60"]) for _ in range(2))
    try:
        sampler.started(own.pid)
        until(lambda: Path(f"/proc/{own.pid}/comm").read_text() == "fio\n")
        sampler.take()
    finally:
        for process in (own, other):
            process.kill()
            process.wait(PATIENCE_S)
    lines = os.pread(log, MIB, 0).decode().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("wait ")] == ["1"]


@contextmanager
def cpu_limit() -> Iterator[Path]:
    """Yield a cgroup that may use a tenth of one CPU."""
    split = Path("/sys/fs/cgroup/cpu")
    parent = split if split.is_dir() else Path("/sys/fs/cgroup")
    if parent != split:
        (parent / "cgroup.subtree_control").write_text("+cpu")
    group = parent / f"volbench-test-{os.getpid()}"
    group.mkdir()
    quota, text = ("cpu.cfs_quota_us", "10000") if parent == split else ("cpu.max", "10000 100000")
    try:
        (group / quota).write_text(text)
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.root
def test_throttling_of_a_cpu_limit_is_counted(log: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real cgroup with a quota, and a program in it that wants a whole CPU."""
    with cpu_limit() as group:
        hog = subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; while :; do :; done', group]
        )
        try:
            cgroup = f"/proc/{hog.pid}/cgroup"
            until(lambda: group.name in Path(cgroup).read_text())
            read = kernel_sampler.read
            monkeypatch.setattr(
                kernel_sampler,
                "read",
                lambda path: read(cgroup if path == "/proc/self/cgroup" else path),
            )
            sampler = Sampler(log, [], 0.1, is_tail_followed=False)

            def is_throttled() -> bool:
                sampler.take()
                _, periods, waited = samples_in(log)[-1].throttling[0][:3]
                return periods > 0 and waited > 0

            until(is_throttled)
        finally:
            hog.kill()
            hog.wait(PATIENCE_S)
    first, last = (samples_in(log)[index].throttling[0] for index in (0, -1))
    assert all(later >= earlier for earlier, later in zip(first, last, strict=True))
    assert last[1] <= last[0]
    assert last[2] > 0


DISKSTATS = """\
 8 0 sda 10 0 80 5 20 0 160 5 0 9 9
 8 1 sda1 10 0 80 5 20 0 160 5 0 9 9
 8 16 sdb 1 0 8 5 2 0 16 5 0 9 9
 8 32 sdc 100 0 800 5 200 0 1600 5 0 9 9
 259 0 nvme0n1 1000 0 8000 5 2000 0 16000 5 0 9 9
 7 0 loop0 7 0 7 5 7 0 7 5 0 9 9
 253 0 dm-0 7 0 7 5 7 0 7 5 0 9 9
"""


@pytest.fixture(name="machine")
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "machine"
    for disk in ("sda", "sdb", "sdc", "nvme0n1"):
        (root / "sys/block" / disk / "device").mkdir(parents=True)
    for stacked in ("loop0", "dm-0"):
        (root / "sys/block" / stacked).mkdir()
    model = root / "sys/block/nvme0n1/device/model"
    model.write_text("Amazon EC2 NVMe Instance Storage        \n")
    (root / "proc").mkdir()
    (root / "proc/diskstats").write_text(DISKSTATS)
    access, listdir, really = os.access, os.listdir, kernel_sampler.read
    monkeypatch.setattr(kernel_sampler, "read", lambda path: really(f"{root}{path}"))
    monkeypatch.setattr(os, "access", lambda path, mode: access(f"{root}{path}", mode))
    monkeypatch.setattr(os, "listdir", lambda path: listdir(f"{root}{path}"))
    return root


@pytest.mark.parametrize(
    ("devices", "others"),
    [
        (["sda"], {b"sdb", b"sdc"}),
        (["sda1", "sda"], {b"sdb", b"sdc"}),  # a partition
        (["loop0", "sda1", "sda"], {b"sdb", b"sdc"}),  # a file on a disk
        (["dm-0", "sda", "sdb"], {b"sdc"}),  # a volume over two disks
        (["nvme0n1"], set()),  # a disk inside the machine has a limit of its own
        (["nbd0"], set()),
        ([], set()),
    ],
)
def test_other_disks_are_those_below_no_part_of_the_volume(
    devices: list[str], others: set[bytes], machine: Path
) -> None:
    """Disks with hardware of their own, without those inside the machine."""
    assert machine.exists()
    assert kernel_sampler.other_disks(devices) == others


def test_paths_to_a_disk_and_members_of_a_filesystem_are_no_other_disks(machine: Path) -> None:
    """One disk by two paths is one, and btrfs spans disks without a device of its own."""
    (machine / "sys/block/sdc/hidden").write_text("1\n")
    assert kernel_sampler.other_disks(["sda"]) == {b"sdb"}
    (machine / "sys/fs/btrfs/1234/devices").mkdir(parents=True)
    for member in ("sda", "sdb"):
        (machine / "sys/fs/btrfs/1234/devices" / member).touch()
    assert kernel_sampler.other_disks(["sda"]) == frozenset()


def test_the_load_of_other_disks_is_sampled_as_one_sum(tmp_path: Path, machine: Path) -> None:
    """Reads and writes of sdb and sdc: 303, of 2,424 sectors; then as many more in a second."""
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    sampler = Sampler(log, ["sda"], 1.0, is_tail_followed=False)
    (machine / "proc/diskstats").write_text(DISKSTATS.replace("sdc 100 0 800", "sdc 500 0 8800"))
    sampler.take()
    os.close(log)
    first, second = SampleReader().feed((tmp_path / "log").read_text(encoding="ascii"))
    assert first.others == (303, 2424)
    rates = host_rates(first, second, interval_s=2.0, page_bytes=4096)
    assert rates["other_disks_iops"] == 200
    assert rates["other_disks_bw_bytes_per_s"] == 8000 * 512 / 2
    unknown = host_rates(second, first, interval_s=2.0, page_bytes=4096)
    assert math.isnan(unknown["other_disks_iops"])
