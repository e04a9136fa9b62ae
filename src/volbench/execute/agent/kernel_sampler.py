"""Sampler of the kernel's counters beside a program, and of the write-back after it.

A sample is ``T <UTC> <uptime>``, raw lines of /proc, and a line ``.``; lines with ``!`` are marks.
A program that writes through the page cache leaves dirty pages. The kernel writes them back within
about 35 s (vm.dirty_expire_centisecs and vm.dirty_writeback_centisecs, by default 30 s and 5 s;
Documentation/admin-guide/sysctl/vm.rst of Linux), or sooner when many pages are dirty.
"""

import os
import re
import time
import typing

from volbench.execute.agent import nvme_log
from volbench.execute.agent.files import list_directory, read_bytes

_DISKS = "/proc/diskstats"
_FILES = ("/proc/stat", _DISKS, "/proc/meminfo", "/proc/vmstat", "/proc/pressure/io")
_LINES = (b"cpu ", b"Dirty:", b"Writeback:", b"pswpin ", b"pswpout ", b"some ", b"full ")
TICK_S = 0.5  # Between two looks whether a stream of samples is still wanted.
_CLOCK_BOOTTIME = 7  # time.CLOCK_BOOTTIME is missing before Python 3.7.

# Longest wait for the write-back of a run: three times the 35 s of an idle kernel.
# Noticed by: test_kernel_sampler.py::test_slow_device_is_followed_for_two_minutes
MAX_WAIT_S = 120.0
# Pause after which no write-back is expected soon: the 35 s of an idle kernel and some samples.
# Noticed by: test_kernel_sampler.py::test_dirty_pages_that_stay_end_the_sampling
QUIET_S = 40.0
# The same for a run shorter than `LONG_RUN_S`, or the run's own length if that is longer.
# Noticed by: test_kernel_sampler.py::test_dirty_pages_that_stay_end_the_sampling
MIN_QUIET_S = 5.0
# A run of at least this length is worth following to the end of its write-back.
# Noticed by: test_kernel_sampler.py::test_dirty_pages_that_stay_end_the_sampling
LONG_RUN_S = 10.0
# Dirty pages of an idle host vary that much.
# Noticed by: test_kernel_sampler.py::test_run_that_leaves_nothing_is_not_delayed
SLACK_BYTES = 8 * 1024 * 1024
# Share of the dirty pages that may remain: the rest hardly changes the time of write-back.
# Noticed by: test_kernel_sampler.py::test_sampling_lasts_until_dirty_pages_are_written_back
SLACK_SHARE = 0.05
# A smaller decrease is background variation, not write-back.
# Noticed by: test_kernel_sampler.py::test_dirty_pages_that_stay_end_the_sampling
_NOTICEABLE_BYTES = 1024 * 1024

# Models of the disks inside a machine of AWS, Azure and Google Cloud. The machine's limits are
# those of its remote disks; a temporary disk of Azure has the link.
_LOCAL = re.compile(
    "Amazon EC2 NVMe Instance Storage|Microsoft NVMe Direct Disk.*|nvme_card[0-9]*|EphemeralDisk"
)
_TEMPORARY = "/dev/disk/azure/resource"


class Sampler:
    """Samples of one program, written to an open file.

    Args:
        is_tail_followed: whether the program may leave dirty pages, whose write-back is followed.
    """

    def __init__(
        self, descriptor: int, devices: "list[str]", interval_s: float, *, is_tail_followed: bool
    ) -> None:
        self._descriptor = descriptor
        self._interval_s = interval_s
        self._names = {name.replace("!", "/").encode() for name in devices}
        paths = {name: "/sys/class/block/{}/device/ioerr_cnt".format(name) for name in devices}
        self._errors = {name: path for name, path in paths.items() if os.access(path, os.R_OK)}
        self._volumes = nvme_log.ebs_namespaces(devices)
        self._others = other_disks(devices)
        self._limited = _limited()
        self._tool = _Tool()
        self._tail = _Tail(is_followed=is_tail_followed)
        self.is_over = False
        self.due_s = time.monotonic() + interval_s
        self._write(b"volbench-samples 1 page %d\n" % os.sysconf("SC_PAGESIZE"))
        self.take()

    def started(self, pid: int) -> None:
        """Mark the start of the program."""
        self._tool.pid = pid
        self._write(b"\n! started\n")

    def ended(self) -> None:
        """Mark the end of the program, and follow its write-back if there is any."""
        if self.is_over:
            return
        self._write(b"\n! ended\n")
        self._tail.begin()
        self.take()

    def stop(self, reason: str) -> None:
        """Take the last sample, unless the tail is over."""
        if not self.is_over:
            self._tail.reason = reason
            self.take()

    def take_due(self) -> None:
        """Take a sample if one is due."""
        now_s = time.monotonic()
        if self.is_over or now_s < self.due_s:
            return
        self.due_s += self._interval_s
        if self.due_s <= now_s:
            self.due_s = now_s + self._interval_s
        self.take()

    def take(self) -> None:
        """Write one sample with a single write."""
        uptime_s = time.clock_gettime(_CLOCK_BOOTTIME)
        lines = [b"T %.3f %.3f" % (time.time(), uptime_s)]
        for path in _FILES:
            kernel_lines = read(path).splitlines()
            if path == _DISKS:
                lines += [line for line in kernel_lines if line.split(None, 3)[2] in self._names]
                if self._others:
                    lines.append(_sum(kernel_lines, self._others))
            else:
                lines += [line for line in kernel_lines if line.startswith(_LINES)]
        for name, path in self._errors.items():
            count = read(path).strip()
            if count:
                lines.append(b"ioerr %s %s" % (name.encode(), count))
        lines += self._of_ebs()
        lines += [b"cpu-" + line for line in read("/proc/pressure/cpu").splitlines()[:1]]
        lines += self._tool.waits()
        for path in self._limited:
            lines += _throttling(path)
        self._write(b"\n".join([*lines, b".", b""]))
        self._tail.add(uptime_s, lines)
        if self._tail.reason and not self.is_over:
            self._write(b"\n! tail %s\n" % self._tail.reason.encode())
            self.is_over = True

    def _of_ebs(self) -> "list[bytes]":
        """Return the counters and histograms of EBS volumes without a damaged page."""
        lines = []
        for name in list(self._volumes):
            page = nvme_log.read_page(name)
            counts = nvme_log.counters(page)
            if counts:
                lines.append(" ".join(map(str, ("ebs", name, *counts))).encode())
                for direction, bins in nvme_log.histograms(page).items():
                    words = ("{}:{}".format(*each) for each in bins)
                    lines.append(" ".join(("ebs-" + direction, name, *words)).encode())
            else:
                self._volumes.remove(name)
                self._write(b"\n! ebs %s: damaged page, no longer read\n" % name.encode())
        return lines

    def _write(self, text: bytes) -> None:
        if self.is_over:
            return
        try:
            os.write(self._descriptor, text)
        except OSError:  # the disk is full: the run goes on without samples
            self.is_over = True


class _Stream(Sampler):
    """Samples that are kept until they are taken, instead of written to a file."""

    def __init__(self, devices: "list[str]", interval_s: float) -> None:
        self._parts = []  # type: list[bytes]
        super().__init__(-1, devices, interval_s, is_tail_followed=False)

    def _write(self, text: bytes) -> None:
        self._parts.append(text)

    def text(self) -> str:
        """Return the text since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts).decode("utf-8", "replace")


def sample_disks(devices: "list[str]", interval_s: float) -> "typing.Iterator[str | None]":
    """Yield samples of block devices without end; nothing is written on this machine."""
    stream = _Stream(devices, interval_s)
    while True:
        yield stream.text() or None
        time.sleep(max(0.0, min(TICK_S, stream.due_s - time.monotonic())))
        stream.take_due()


class _Tail:
    """Write-back after the end of a program: dirty bytes by time, and the reason to end."""

    def __init__(self, *, is_followed: bool) -> None:
        self._is_followed = is_followed
        self._samples = []  # type: list[tuple[float, float]]
        self._before = None  # type: tuple[float, float] | None
        self._peak_bytes = 0.0
        self._is_begun = False
        self.reason = ""

    def begin(self) -> None:
        """Begin with the next sample."""
        self._is_begun = True

    def add(self, uptime_s: float, lines: "list[bytes]") -> None:
        """Judge a sample."""
        dirty_bytes = _dirty_bytes(lines)
        if self._before is None:
            self._before = uptime_s, dirty_bytes
        self._peak_bytes = max(self._peak_bytes, dirty_bytes - self._before[1])
        if not self._is_begun or self.reason:
            return
        self._samples.append((uptime_s, dirty_bytes))
        left_bytes = dirty_bytes - self._before[1]
        is_first = len(self._samples) == 1
        if is_first and not (self._is_followed and left_bytes > SLACK_BYTES):
            self.reason = "none: no dirty pages left"
        elif left_bytes <= max(SLACK_BYTES, SLACK_SHARE * self._peak_bytes):
            self.reason = "settled"
        elif self._is_quiet(uptime_s):
            self.reason = "unchanged for {:.0f} s".format(self._quiet_s())
        elif uptime_s - self._samples[0][0] >= MAX_WAIT_S:
            self.reason = "cut off after {:.0f} s".format(MAX_WAIT_S)

    def _quiet_s(self) -> float:
        """Return the longest pause of write-back before it counts as ended."""
        assert self._before is not None  # noqa: S101 - for the type checker
        ran_s = self._samples[0][0] - self._before[0]
        return QUIET_S if ran_s >= LONG_RUN_S else max(MIN_QUIET_S, ran_s)

    def _is_quiet(self, now_s: float) -> bool:
        since_s = now_s - self._quiet_s()
        if self._samples[0][0] > since_s:
            return False
        recent = [dirty_bytes for uptime_s, dirty_bytes in self._samples if uptime_s >= since_s]
        return recent[-1] > recent[0] - _NOTICEABLE_BYTES


class _Tool:
    """Tasks of the program, and of the children that fio forks without ``thread=1``."""

    def __init__(self) -> None:
        self.pid = 0
        self._pids = []  # type: list[str]

    def waits(self) -> "list[bytes]":
        """Return a line with the number of tasks, and their time on a CPU and waiting for one."""
        if not self._pids and self.pid:
            if read("/proc/{}/comm".format(self.pid)).strip() != b"fio":
                return []  # it still waits at the start gate
            self._pids = [str(self.pid)]
        for pid in list(self._pids):
            children = read("/proc/{0}/task/{0}/children".format(pid)).decode().split()
            self._pids += [child for child in children if child not in self._pids]
        count = cpu_ns = delay_ns = 0
        for pid in self._pids:
            for task in list_directory("/proc/{}/task".format(pid)):
                numbers = read("/proc/{}/task/{}/schedstat".format(pid, task)).split()
                if len(numbers) > 1:
                    count += 1
                    cpu_ns += int(numbers[0])
                    delay_ns += int(numbers[1])
        return [b"wait %d %d %d" % (count, cpu_ns, delay_ns)] if count else []


def read(path: str) -> bytes:
    """Return the content of a kernel file; empty if the kernel does not provide it."""
    return read_bytes(path) or b""


def other_disks(devices: "list[str]") -> "frozenset[bytes]":
    """Return the disks of the machine that share its limits with some devices, without these.

    None where no device is such a disk, as on a network file system. Partitions, loop, dm and md
    devices have no hardware of their own.

    Args:
        devices: kernel names of a volume's device and of all devices below it.
    """
    disks = {name for name in list_directory("/sys/block") if _is_shared_disk("/sys/block/" + name)}
    disks.discard(os.path.basename(os.path.realpath(_TEMPORARY)))
    below = set(devices)
    for filesystem in list_directory("/sys/fs/btrfs"):  # it may span disks
        members = list_directory("/sys/fs/btrfs/{}/devices".format(filesystem))
        if below.intersection(members):
            paths = [os.path.realpath("/sys/class/block/" + name) for name in members]
            below.update(members, (path.split("/")[-2] for path in paths))
    own = disks & below
    return frozenset(name.replace("!", "/").encode() for name in disks - own if own)


def _is_shared_disk(path: str) -> bool:
    if not os.access(path + "/device", os.F_OK) or read(path + "/hidden").strip() == b"1":
        return False  # Hidden: one of several paths to a disk
    return not _LOCAL.fullmatch(read(path + "/device/model").decode("utf-8", "replace").strip())


def _sum(diskstats: "list[bytes]", disks: "frozenset[bytes]") -> bytes:
    """Return a line with the reads and writes of disks since boot, and the sectors of both."""
    ios = sectors = 0
    for line in diskstats:
        fields = line.split()
        if len(fields) > 9 and fields[2] in disks:
            ios += int(fields[3]) + int(fields[7])
            sectors += int(fields[5]) + int(fields[9])
    return b"others %d %d" % (ios, sectors)


def _dirty_bytes(lines: "list[bytes]") -> float:
    """Return the bytes that are in memory only; 0 if the host does not report them."""
    kib = [int(line.split()[1]) for line in lines if line.startswith((b"Dirty:", b"Writeback:"))]
    return 1024.0 * sum(kib) if len(kib) == 2 else 0.0


def cgroups(controller: str) -> "list[str]":
    """Return the folder of each cgroup of this process with a controller, up to the root."""
    folders = []
    for line in read("/proc/self/cgroup").decode().splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        roots = [controller if names else ".", names or "unified"]
        root = "/sys/fs/cgroup/" + roots[os.access("/sys/fs/cgroup/" + roots[1], os.F_OK)]
        path = path.rstrip("/")
        while True:
            folders.append(root + path)
            if not path:
                break
            path = path.rpartition("/")[0]
    return folders


def _limited() -> "list[str]":
    """Return cpu.stat of each cgroup of this process, up to the root, that has a CPU limit."""
    paths = []
    for folder in cgroups("cpu"):
        quota = read(folder + "/cpu.max") or read(folder + "/cpu.cfs_quota_us")
        if quota and quota[:1] not in b"m-":
            paths.append(folder + "/cpu.stat")
    return paths


def _throttling(path: str) -> "list[bytes]":
    """Return a line with the periods of a limit, throttled periods, and throttled time."""
    counts = dict(line.split() for line in read(path).splitlines())
    if not {b"nr_periods", b"nr_throttled"} <= counts.keys():
        return []
    us = counts.get(b"throttled_usec") or int(counts.get(b"throttled_time", 0)) // 1000
    return [b"throttle %s %s %d" % (counts[b"nr_periods"], counts[b"nr_throttled"], int(us))]
