"""Orphans: processes left running by an earlier controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from volbench.errors import CampaignError
from volbench.execute.agent.processes import (
    ProcessIdentity,
    end_process,
    find_strays,
    identify_process,
)
from volbench.execute.protocol import Executor, Process
from volbench.store.journal import utc_now


def start_record(executor: Executor, process: Process) -> dict[str, object]:
    """Return the journal's record of a process that was just started.

    Returns:
        Its identity; for a process that outlives its controller, its ``handle`` and ``since_utc``
        instead.
    """
    if not process.handle:
        return identify(executor, process.pid)
    return {"handle": process.handle, "since_utc": utc_now()}


def intent_record(handle: str) -> dict[str, object]:
    """Return the journal's record of a process that is about to start on another machine."""
    return {"handle": handle, "since_utc": utc_now(), "launched": False}


def identify(executor: Executor, pid: int) -> dict[str, object]:
    """Return the unique identity of a process, by the names of a `ProcessIdentity`."""
    return executor.ask(identify_process, pid)._asdict()


def is_alive(executor: Executor, process: Mapping[str, object]) -> bool:
    """Return whether a recorded process still runs; a reused pid does not count."""
    pid, ticks = process.get("pid"), process.get("start_ticks")
    if not isinstance(pid, int) or ticks is None:
        return False
    return identify(executor, pid) == dict(process)


def end_strays(executor: Executor, folders: Iterable[Path]) -> tuple[Path, ...]:
    """End processes of a controller that was killed before it could record their start.

    Args:
        executor: the machine; processes with handles are always recorded, so none are searched.
        folders: folders of runs. Only processes started for a run have their TMPDIR there: a user's
            shell in such a folder is not ended.

    Returns:
        The folders whose process was ended.
    """
    if executor.is_remote:
        return ()
    listed = {str(folder): folder for folder in folders}
    strays = executor.ask(find_strays, list(listed))
    for stray in strays:
        _end_process(executor, stray.process)
    return tuple(dict.fromkeys(listed[s.folder] for s in strays if s.folder in listed))


def end_orphan(executor: Executor, process: Mapping[str, object]) -> bool:
    """End the orphaned process of an earlier controller.

    Returns:
        Whether the process was still running.
    """
    pid, ticks, boot = process.get("pid"), process.get("start_ticks"), process.get("boot_id")
    if not (isinstance(pid, int) and isinstance(ticks, int) and isinstance(boot, str)):
        return False
    return _end_process(executor, ProcessIdentity(pid, ticks, boot))


def _end_process(executor: Executor, process: ProcessIdentity) -> bool:
    is_ended = executor.ask(end_process, process)
    if is_ended is None:
        raise CampaignError(
            f"process {process.pid}, started by an earlier controller, cannot be ended",
            hint="it waits for the volume; resume when it has ended",
        )
    return is_ended
