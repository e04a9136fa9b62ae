"""Write-back of dirty pages and idle time of a volume before a run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from volbench.engine.hosts.described_volumes import parse_answer
from volbench.engine.run.process_watch import StopRequest
from volbench.errors import TransportError
from volbench.execute.protocol import Executor
from volbench.execute.waiting_work import Wait, Work
from volbench.model.campaign.event import Listener, Progress, RunProgress
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind

# Longest flush: a full cache of a provider holds back writes for 8 minutes ("Disk performance on
# Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019).
# Noticed by: tests/execute/agent/test_looks.py::test_a_flush_that_fails_says_why
FLUSH_S = 600.0

PAUSED = "paused"  # State of a run's progress while its volume is idle

# Excess over the planned idle time that is reported, because burst credits continue to refill. It
# decides a notice, no verdict.
LATE_S = 60.0

_STEP_S = 0.5
_REPLY_S = 15.0  # Time of a reply on a slow link, besides the flush itself


@dataclass
class DirtyData:
    """Record of volumes that may have dirty pages of earlier runs."""

    writes: int  # number of runs so far that may have left dirty pages
    # volume to the value of `writes` at its last flush
    flushed: dict[str, int] = field(default_factory=dict)

    def needs_flush(self, target: str) -> bool:
        """Return whether a volume needs a flush, and record it as flushed."""
        is_due = self.flushed.get(target, 0) < self.writes
        self.flushed[target] = self.writes
        return is_due


def flush_volume(executor: Executor, volume: Volume) -> str:
    """Write back every dirty page of a volume.

    Otherwise the kernel, which keeps dirty pages for about 30 s, writes those of an earlier run
    during the next run, where they count as its load.

    Returns:
        The reason of a failure; empty on success, or if there is nothing to write back.
    """
    if volume.kind is VolumeKind.NBD:
        return ""
    try:
        answer = executor.ask(
            "flush", within_s=FLUSH_S + _REPLY_S, path=volume.target, limit_s=FLUSH_S
        )
    except TransportError as error:
        if error.transient:
            raise
        return error.message
    return parse_answer(str, answer, host=executor.host)


def pause_before(run: Run, *, ended_utc: str, listener: Listener, stop: StopRequest) -> Work[float]:
    """Wait until the volume has been idle for as long as the plan says.

    Idle time counts from the end of the previous run, even without a running controller: burst
    credits refill regardless.

    Args:
        ended_utc: end of the previous run, ISO 8601; empty for the first run.

    Returns:
        The idle time of the volume in seconds.
    """
    began_s = time.time()
    since_s = min(began_s, _seconds(ended_utc)) if ended_utc else began_s
    while (idle_s := time.time() - since_s) < run.pause_before_s and not stop.requested:
        listener(RunProgress(run, Progress(idle_s, run.pause_before_s, state=PAUSED)))
        yield Wait(min(_STEP_S, run.pause_before_s - idle_s))
    return idle_s


def _seconds(utc: str) -> float:
    return datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
