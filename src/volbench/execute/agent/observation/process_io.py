"""Bytes that each process reads from and writes to block devices, from /proc/PID/io.

The kernel counts bytes when a process causes I/O at the block layer, also those that it writes back
on its behalf later (Documentation/filesystems/proc.rst of Linux, task_io_accounting_ops.h). Once a
parent has waited for a child that ended, its own counters include those of the child.
"""

import heapq
import os
import time
import typing
from urllib.parse import quote

from volbench.execute.agent.kernel_sampler import TICK_S, read

# Processes that are reported of each interval. Noticed by: benchmarks/watch.py
TOP = 10
# Share of a core that the looks may cost; with the disks' 0.2 % that is the 0.5 % of a watch.
# Noticed by: benchmarks/watch.py
_SHARE = 0.003
_MAX_INTERVAL_S = 60.0  # However many processes there are. A trade-off: cost against resolution
_CPU_CLOCK = 3  # time.CLOCK_THREAD_CPUTIME_ID of Linux
_NOTHING = b" 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"
_FIRST = "1"  # Process that takes over children whose parents have ended
_GENERATIONS = 100  # Between a process that ended and one that lives
_SAFE = "/:@+=,._-"


def sample_processes(interval_s: float) -> "typing.Iterator[str | None]":
    """Yield the processes with the most bytes in each interval, without end; nothing if not root.

    A part is ``P <UTC> <interval> <number of processes>``, a line ``<pid> <bytes read> <written>
    <cancelled> <name>`` for each, and a line ``.``. Names are percent-encoded. Looks are rarer than
    asked for if that would cost too much.
    """
    if os.geteuid() or not read("/proc/self/io"):
        return
    looks = _Looks()
    looks.take()
    looked_s = time.monotonic()
    while True:
        due_s = looked_s + min(max(interval_s, looks.cost_s / _SHARE), _MAX_INTERVAL_S)
        while time.monotonic() < due_s:
            yield None
            time.sleep(max(0.0, min(TICK_S, due_s - time.monotonic())))
        grown = looks.take()
        before_s, looked_s = looked_s, time.monotonic()
        lines = ["P {:.3f} {:.3f} {}".format(time.time(), looked_s - before_s, looks.count)]
        for pid, counts in heapq.nlargest(TOP, grown.items(), key=lambda each: sum(each[1][:2])):
            if any(counts[:2]):
                lines.append(" ".join(map(str, (pid, *counts, looks.name(pid)))))
        yield "\n".join([*lines, ".", ""])


class _Looks:
    """Counters of all processes at the last look."""

    def __init__(self) -> None:
        self._counters = {}  # type: dict[str, bytes]
        self._known = {}  # type: dict[str, tuple[str, str]]  # parent and name
        self.cost_s = 0.0  # CPU time of the last look

    @property
    def count(self) -> int:
        """Number of processes."""
        return len(self._counters)

    def name(self, pid: str) -> str:
        """Return the name of a process, percent-encoded."""
        return self._known[pid][1]

    def take(self) -> "dict[str, list[int]]":
        """Look at all processes; return the growth of the counters of processes with I/O."""
        began_s = time.clock_gettime(_CPU_CLOCK)
        now = {}
        # Children first: one that ends meanwhile is then in the counters of its parent already.
        for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int, reverse=True):
            counters = read("/proc/{}/io".format(pid)).partition(b"\nread_bytes:")[2]
            if counters:
                now[pid] = counters
        grown = {}
        for pid, counters in now.items():
            before = self._counters.get(pid, _NOTHING)
            if counters != before:
                self._learn(pid)
                old, new = _io_counts(before), _io_counts(counters)
                growth = [value - known for value, known in zip(new, old)]  # noqa: B905 - as below
                grown[pid] = new if min(growth) < 0 else growth  # another process has the number
        ended = self._counters.keys() - now.keys()
        for pid in ended:
            heir = grown.get(self._heir(pid, now))
            if heir is not None:
                counts = zip(heir, _io_counts(self._counters[pid]))  # noqa: B905 - not in Python 3.6
                left = [new - known for new, known in counts]
                heir[:] = heir if min(left) < 0 else left  # a parent that did not wait has less
        for pid in ended:
            self._known.pop(pid, None)
        self._counters = now
        self.cost_s = time.clock_gettime(_CPU_CLOCK) - began_s
        return grown

    def _learn(self, pid: str) -> None:
        """Note parent and name of a process, and of its unknown ancestors."""
        found = _parent_and_name(pid) or self._known.get(pid, (_FIRST, "-"))
        self._known[pid] = found
        if found[0] not in self._known:
            self._learn(found[0])

    def _heir(self, pid: str, now: "dict[str, bytes]") -> str:
        """Return the process whose counters include an ended process."""
        for _ in range(_GENERATIONS):
            pid = self._known.get(pid, (_FIRST, ""))[0]
            if pid in now:
                return pid
        return _FIRST


def _io_counts(counters: bytes) -> "list[int]":
    """Return bytes read, written, and written into pages that were dropped before write-back."""
    return [int(word) for word in counters.split()[::2]]


def _parent_and_name(pid: str) -> "tuple[str, str] | None":
    """Return the parent and the name of a process; None if it has ended."""
    head, _, rest = read("/proc/{}/stat".format(pid)).rpartition(b")")
    fields = rest.split()
    name = quote(head.partition(b"(")[2], safe=_SAFE) or "-"
    return (fields[1].decode(), name) if len(fields) > 1 else None
