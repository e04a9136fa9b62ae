"""The kernel's counters of a block device in, its mean latency since the last look out.

fio tells no latency while it runs; the kernel tells the device's, without disturbing the run
(Documentation/block/stat.rst of Linux: reads, merges, sectors, ticks; the same for writes).
"""

from __future__ import annotations

from volbench.execute.protocol import Executor

_READS, _READ_TICKS, _WRITES, _WRITE_TICKS = 0, 3, 4, 7


class Pulse:
    """Mean latency of a device between calls.

    Args:
        executor: the machine.
        number: major and minor of the device; None for a volume without one.
        interval_s: shortest time between two looks.
    """

    def __init__(
        self, executor: Executor, number: tuple[int, int] | None, *, interval_s: float = 1.0
    ) -> None:
        self._executor = executor
        self._path = None if number is None else f"/sys/dev/block/{number[0]}:{number[1]}/stat"
        self._interval_s = interval_s
        self._looked_s = 0.0
        self._before = self._look()
        self._latency_s: float | None = None

    def latency_s(self, elapsed_s: float) -> float | None:
        """Return seconds per I/O since the last look, or None while nothing completes."""
        if elapsed_s - self._looked_s >= self._interval_s:
            now = self._look()
            self._latency_s = _mean_s(self._before, now)
            self._before, self._looked_s = now, elapsed_s
        return self._latency_s

    def _look(self) -> tuple[int, int] | None:
        """Return I/Os and milliseconds so far."""
        text = None if self._path is None else self._executor.read_text(self._path)
        fields = [int(word) for word in (text or "").split() if word.isdecimal()]
        if len(fields) <= _WRITE_TICKS:
            return None
        return fields[_READS] + fields[_WRITES], fields[_READ_TICKS] + fields[_WRITE_TICKS]


def _mean_s(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None or now[0] <= before[0]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0]) / 1000
