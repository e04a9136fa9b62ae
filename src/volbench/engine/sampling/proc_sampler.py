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


def _take(marks: list[bytes], counters: dict[str, str]) -> None:
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
    os.write(1, b"\n".join([*lines, b".", b""]))


def main(interval_s: float, life_s: float, names: list[str]) -> None:
    """Sample until SIGTERM, the end of the parent, or `life_s`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    parent = os.getppid()
    marks = [*_MARKS, *(b" %s " % name.replace("!", "/").encode() for name in names)]
    paths = {name: "/sys/class/block/" + name + "/device/ioerr_cnt" for name in names}
    counters = {name: path for name, path in paths.items() if os.access(path, os.R_OK)}
    os.write(1, b"volbench-samples 1 page %d\n" % os.sysconf("SC_PAGESIZE"))
    due = time.monotonic()
    end = due + life_s
    terminated = None
    while terminated is None and os.getppid() == parent and time.monotonic() < end:
        _take(marks, counters)
        due += interval_s
        now = time.monotonic()
        if due <= now:
            due = now + interval_s
        terminated = signal.sigtimedwait([signal.SIGTERM], due - now)
    if terminated is not None:
        _take(marks, counters)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
