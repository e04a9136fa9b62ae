"""Progress of a running process: fio's status lines, device latency, state of the start gate.

fio reports no latency while it runs; the kernel counts the device's without disturbing the run
(Documentation/block/stat.rst of Linux: I/Os, merges, sectors, ticks of reads; the same of writes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from volbench.execute.protocol import Process
from volbench.fio.results.validation import ProgressReader
from volbench.model.campaign.event import Listener, Progress, RunProgress
from volbench.model.campaign.planned_run import Run

if TYPE_CHECKING:
    from volbench.engine.run.start_gate import Gate
    from volbench.engine.run.stop_when_steady import SteadyWatch

_READS, _READ_TICKS, _WRITES, _WRITE_TICKS = 0, 3, 4, 7

WAITING = "waiting"  # State of a run's progress before its start


def counters_path(number: tuple[int, int]) -> str:
    """Return the path of a block device's counters."""
    return f"/sys/dev/block/{number[0]}:{number[1]}/stat"


class LiveLatency:
    """Mean latency of a block device between two readings of its counters."""

    def __init__(
        self,
        read: Callable[[str], str | None],
        number: tuple[int, int] | None,
        *,
        interval_s: float = 1.0,
    ) -> None:
        self._read = read
        self._path = None if number is None else counters_path(number)
        self._interval_s = interval_s
        self._read_s = 0.0
        self._before = self._counters()
        self._latency_s: float | None = None

    def mean_s(self, elapsed_s: float) -> float | None:
        """Return seconds per I/O since the last reading; None if no I/O has completed."""
        if elapsed_s - self._read_s >= self._interval_s:
            now = self._counters()
            self._latency_s = _mean_s(self._before, now)
            self._before, self._read_s = now, elapsed_s
        return self._latency_s

    def _counters(self) -> tuple[int, int] | None:
        """Return the number of I/Os and milliseconds so far."""
        text = None if self._path is None else self._read(self._path)
        fields = [int(word) for word in (text or "").split() if word.isdecimal()]
        if len(fields) <= _WRITE_TICKS:
            return None
        return fields[_READS] + fields[_WRITES], fields[_READ_TICKS] + fields[_WRITE_TICKS]


def _mean_s(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None or now[0] <= before[0]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0]) / 1000


@dataclass(frozen=True)
class Watches:
    """Sources of progress besides the output of a process."""

    latency: LiveLatency  # latency of the device
    # judge of a run that ends when it is steady; None for other runs
    steady: SteadyWatch | None = None
    gate: Gate | None = None  # start gate of the run; None without one


class ProgressReporter:
    """Turns the output of a run's process into progress events."""

    def __init__(
        self,
        run: Run,
        process: Process,
        *,
        expected_s: float | None,
        watches: Watches,
        listener: Listener,
    ) -> None:
        self._run = run
        self._process = process
        self._latency = watches.latency
        self._steady = watches.steady
        self._gate = watches.gate
        self._listener = listener
        self._reader = ProgressReader(total_s=expected_s)
        self._last = Progress(0.0, expected_s)

    def __call__(self, text: str, elapsed_s: float) -> None:
        """Process new output, possibly empty, and report the state of the run."""
        if self._gate is not None:
            self._gate.poll()
        progress = self._reader.feed(text, elapsed_s=elapsed_s)
        if progress is not None and self._steady is not None:
            self._steady.feed(progress)
        self._last = replace(
            progress or self._last,
            elapsed_s=elapsed_s,
            lat_mean_s=self._latency.mean_s(elapsed_s),
            note="" if self._steady is None else self._steady.words,
            silent_s=self._process.silent_s,
        )
        if self._gate is not None and self._gate.is_waiting:
            self._last = replace(self._last, state=WAITING)
        self._listener(RunProgress(self._run, self._last))
