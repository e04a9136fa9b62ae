"""Script that copies lines of /proc to standard output at regular intervals, run on the target.

Arguments: seconds between samples, maximum runtime in seconds, kernel names of block devices. A
sample is ``T <UTC> <uptime>``, raw lines, and a line ``.``. SIGTERM takes one last sample and ends
the script; it also ends with its parent. It runs on Python 3.7 and newer without dependencies, and
imports only modules that load quickly.
"""

from __future__ import annotations

# Importing signal itself, for the enums in it, takes longer than all the rest.
import _signal as signal  # type: ignore[import-not-found]  # part of CPython, without a stub
import os
import sys
import time

_FILES = ("/proc/stat", "/proc/diskstats", "/proc/meminfo", "/proc/vmstat", "/proc/pressure/io")
_TOOLS = (b"fio", b"dd")
_RESCAN = 10
_MARKS = (b"cpu ", b"Dirty:", b"Writeback:", b"pswpin ", b"pswpout ", b"some ", b"full ")


def _read(path: str) -> bytes:
    """Return the content of a kernel file; empty if the kernel does not provide it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts: list[bytes] = []
        while True:
            part = os.read(descriptor, 65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _listed(path: str) -> list[str]:
    """Return the names of processes or tasks in a folder of /proc; none once it is gone."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _is_here(pid: str) -> bool | None:
    """Return whether a process works in the current directory; None where that is not allowed."""
    try:
        place = os.stat("/proc/" + pid + "/cwd")  # noqa: PTH116 - pathlib loads slowly
    except PermissionError:
        return None
    except OSError:
        return False  # it ended
    here = os.stat(".")  # noqa: PTH116 - same
    return (place.st_dev, place.st_ino) == (here.st_dev, here.st_ino)


def _own(pids: list[str]) -> list[str]:
    """Return the processes of this run: those that work in its directory, as the sampler does.

    The directory of a tool that sudo started cannot be read. Such a tool counts if it is the only
    one on the host, with its children.
    """
    places = {pid: _is_here(pid) for pid in pids}
    own = [pid for pid, here in places.items() if here]
    hidden = [pid for pid, here in places.items() if here is None]
    if own or not hidden:
        return own
    stats = (_read("/proc/" + pid + "/stat").decode() for pid in hidden)
    parents = [stat.rpartition(")")[2].split()[1] for stat in stats if stat]
    return hidden if sum(parent not in hidden for parent in parents) == 1 else []


class _Tool:
    """Processes of this run's tool; new ones are found as children, or every few samples."""

    def __init__(self) -> None:
        self._pids: list[str] = []
        self._turns = 0

    def waits(self) -> list[bytes]:
        """Return a line with the number of tasks, and their time on a CPU and waiting for one."""
        if not self._pids or self._turns % _RESCAN == 0:
            names = ((pid, _read("/proc/" + pid + "/comm").strip()) for pid in _listed("/proc"))
            self._pids = _own([pid for pid, name in names if name in _TOOLS])
        self._turns += 1
        for pid in list(self._pids):
            children = _read("/proc/" + pid + "/task/" + pid + "/children").decode().split()
            self._pids += [child for child in children if child not in self._pids]
        count = cpu_ns = delay_ns = 0
        for pid in self._pids:
            for task in _listed("/proc/" + pid + "/task"):
                numbers = _read("/proc/" + pid + "/task/" + task + "/schedstat").split()
                if len(numbers) > 1:
                    count += 1
                    cpu_ns += int(numbers[0])
                    delay_ns += int(numbers[1])
        return [b"wait %d %d %d" % (count, cpu_ns, delay_ns)] if count else []


def _limited() -> list[str]:
    """Return cpu.stat of each cgroup of this process, up to the root, that has a CPU limit."""
    found = []
    for line in _read("/proc/self/cgroup").decode().splitlines():
        _, names, path = line.split(":", 2)
        if names and "cpu" not in names.split(","):
            continue
        roots = ["cpu" if names else ".", names or "unified"]
        root = "/sys/fs/cgroup/" + roots[os.access("/sys/fs/cgroup/" + roots[1], os.F_OK)]
        path = path.rstrip("/")
        while True:
            quota = _read(root + path + "/cpu.max") or _read(root + path + "/cpu.cfs_quota_us")
            if quota and quota[:1] not in b"m-":
                found.append(root + path + "/cpu.stat")
            if not path:
                break
            path = path.rpartition("/")[0]
    return found


def _throttling(path: str) -> list[bytes]:
    """Return a line with the periods of a limit, those in which it throttled, and for how long."""
    counts = dict(line.split() for line in _read(path).splitlines())
    us = counts.get(b"throttled_usec") or int(counts.get(b"throttled_time", 0)) // 1000
    if not {b"nr_periods", b"nr_throttled"} <= counts.keys():
        return []
    return [b"throttle %s %s %d" % (counts[b"nr_periods"], counts[b"nr_throttled"], int(us))]


def _take(marks: list[bytes], counters: dict[str, str], tool: _Tool, limited: list[str]) -> None:
    """Write one sample with a single write."""
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    lines = [b"T %.3f %.3f" % (time.time(), uptime)]
    for path in _FILES:
        found = _read(path).splitlines()
        lines += [line for line in found if any(mark in line for mark in marks)]
    for name, path in counters.items():
        count = _read(path).strip()
        if count:
            lines.append(b"ioerr %s %s" % (name.encode(), count))
    lines += [b"cpu-" + line for line in _read("/proc/pressure/cpu").splitlines()[:1]]
    lines += tool.waits()
    for path in limited:
        lines += _throttling(path)
    os.write(1, b"\n".join([*lines, b".", b""]))


def main(interval_s: float, life_s: float, names: list[str]) -> None:
    """Sample until SIGTERM, the end of the parent, or `life_s`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    parent = os.getppid()
    marks = [*_MARKS, *(b" %s " % name.replace("!", "/").encode() for name in names)]
    paths = {name: "/sys/class/block/" + name + "/device/ioerr_cnt" for name in names}
    counters = {name: path for name, path in paths.items() if os.access(path, os.R_OK)}
    os.write(1, b"volbench-samples 1 page %d\n" % os.sysconf("SC_PAGESIZE"))
    tool, limited = _Tool(), _limited()
    due = time.monotonic()
    end = due + life_s
    terminated = None
    while terminated is None and os.getppid() == parent and time.monotonic() < end:
        _take(marks, counters, tool, limited)
        due += interval_s
        now = time.monotonic()
        if due <= now:
            due = now + interval_s
        terminated = signal.sigtimedwait([signal.SIGTERM], due - now)
    if terminated is not None:
        _take(marks, counters, tool, limited)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
