"""Orphans: processes left running by an earlier controller."""

from __future__ import annotations

from collections.abc import Mapping

from volbench.errors import CampaignError
from volbench.execute.agent.processes import ProcessIdentity, end_process, identify_process
from volbench.execute.protocol import Executor, Process
from volbench.store.journal import utc_now


def start_record(executor: Executor, process: Process) -> dict[str, object]:
    """Return the journal's record of a process that was just started: its handle or identity."""
    if not process.handle:
        return identify(executor, process.pid)
    return {"handle": process.handle, "since_utc": utc_now()}


def identify(executor: Executor, pid: int) -> dict[str, object]:
    """Return the unique identity of a process, by the names of a `ProcessIdentity`."""
    return executor.ask(identify_process, pid)._asdict()


def end_orphan(executor: Executor, process: Mapping[str, object]) -> bool:
    """End a process of an earlier controller; return whether it was still running."""
    pid, ticks, boot = process.get("pid"), process.get("start_ticks"), process.get("boot_id")
    if not (isinstance(pid, int) and isinstance(ticks, int) and isinstance(boot, str)):
        return False
    is_ended = executor.ask(end_process, ProcessIdentity(pid, ticks, boot))
    if is_ended is None:
        raise CampaignError(
            f"process {pid}, started by an earlier controller, cannot be ended",
            hint="it waits for the volume; resume when it has ended",
        )
    return is_ended
