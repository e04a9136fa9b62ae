"""Progress of a running process: fio's status lines, and the state of the start gate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from volbench.execute.protocol import Process
from volbench.fio.jobs.render_job import lays_out
from volbench.fio.results.validation import ProgressReader
from volbench.model.campaign.event import Listener, Notice, Progress, RunProgress
from volbench.model.campaign.planned_run import Run

if TYPE_CHECKING:
    from volbench.engine.run.start_gate import Gate
    from volbench.engine.run.stop_when_steady import SteadyWatch

WAITING = "waiting"  # State of a run's progress before its start
# Seconds after its expected end at which a run is reported: fio ends within a second or two.
# Noticed by: tests/cli/test_hung_volume.py
LATE_S = 8.0
# Seconds without an I/O after which a run without an expected end is reported.
# Noticed by: tests/cli/test_hung_volume.py
_STALLED_S = 20.0
_PAUSES = {"startdelay", "thinktime", "rate", "rate_iops"}  # Options that ask for such times


@dataclass(frozen=True)
class Watches:
    """Sources of progress besides the output of a process."""

    steady: SteadyWatch | None = None  # judge of a run that ends when it is steady
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
        self._steady = watches.steady
        self._gate = watches.gate
        self._listener = listener
        self._reader = ProgressReader(total_s=expected_s)
        self._last = Progress(0.0, expected_s)
        asked = {name for section in run.sections for name in run.effective(section)}
        self._may_stall = expected_s is None and not lays_out(run) and not asked & _PAUSES
        self._late_s = math.inf if expected_s is None else expected_s + LATE_S
        self._late_s = _STALLED_S if self._may_stall else self._late_s

    def __call__(self, text: str, elapsed_s: float) -> None:
        """Process new output, possibly empty, and report the state of the run."""
        if self._gate is not None:
            self._gate.poll()
        gap_s = elapsed_s - self._last.elapsed_s
        self._late_s += gap_s if gap_s > LATE_S else 0.0  # the controller was stopped
        progress = self._reader.feed(text, elapsed_s=elapsed_s)
        if progress is not None and progress.iops and self._may_stall:
            self._late_s = elapsed_s + _STALLED_S
        if progress is not None and self._steady is not None:
            self._steady.feed(progress)
        self._last = replace(
            progress or self._last,
            elapsed_s=elapsed_s,
            note="" if self._steady is None else self._steady.words,
            silent_s=self._process.silent_s,
        )
        if self._gate is not None and self._gate.is_waiting:
            self._last = replace(self._last, state=WAITING)
        elif elapsed_s > self._late_s + (self._gate.waited_s if self._gate else 0.0):
            late = "completes no I/O" if self._may_stall else "should have ended"
            self._late_s, self._may_stall = math.inf, False
            why = f"fio waits for {self._run.volume.target}; if it is frozen: fsfreeze -u"
            why = f"{self._run.host} does not answer" if self._process.silent_s > LATE_S else why
            self._listener(Notice(f"{self._run.id} {late}: {why}; to stop: Ctrl-C"))
        self._listener(RunProgress(self._run, self._last))
