"""Orphans: processes left running by an earlier controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from volbench.engine.hosts.described_volumes import parse_answer
from volbench.errors import CampaignError
from volbench.execute.protocol import Executor, Process
from volbench.store.journal import utc_now

# Seconds to end a process: its signals, each with the time that fio needs to complete its I/O
_END_S = 60.0


def start_record(executor: Executor, process: Process) -> dict[str, object]:
    """Return the journal's record of a process that was just started.

    Returns:
        The result of `identify`; for a process that outlives its controller, its ``handle`` and
        ``since_utc`` instead.
    """
    if not process.handle:
        return identify(executor, process.pid)
    return {"handle": process.handle, "since_utc": utc_now()}


def intent_record(handle: str) -> dict[str, object]:
    """Return the journal's record of a process that is about to start on another machine."""
    return {"handle": handle, "since_utc": utc_now(), "launched": False}


def identify(executor: Executor, pid: int) -> dict[str, object]:
    """Return the unique identity of a process: pid, start time and boot.

    Returns:
        ``pid``, ``start_ticks`` (field 22 of proc(5) stat, None if it has ended) and ``boot_id``.
    """
    answer = executor.ask("identify_process", pid=pid)
    return parse_answer(dict[str, object], answer, host=executor.host)


def is_alive(executor: Executor, process: Mapping[str, object]) -> bool:
    """Return whether a recorded process still runs; a reused pid does not count."""
    pid, ticks = process.get("pid"), process.get("start_ticks")
    if not isinstance(pid, int) or ticks is None:
        return False
    return identify(executor, pid) == dict(process)


@dataclass(frozen=True)
class Lifetime:
    """When the program of a handle was started and ended; ns since 1970, 0 if unknown."""

    began_ns: int
    ended_ns: int  # 0 also while it runs


def lifetime_of(executor: Executor, handle: str) -> Lifetime | None:
    """Return the lifetime of the program of a handle; None if it was never started."""
    answer = executor.ask("lifetime", control=handle)
    if answer is None:
        return None
    return Lifetime(*parse_answer(tuple[int, int], answer, host=executor.host))


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
    answer = executor.ask("find_strays", folders=list(listed))
    strays = parse_answer(list[tuple[str, dict[str, object]]], answer, host=executor.host)
    for _, process in strays:
        end_orphan(executor, process)
    return tuple(dict.fromkeys(listed[path] for path, _ in strays if path in listed))


def end_orphan(executor: Executor, process: Mapping[str, object]) -> bool:
    """End the orphaned process of an earlier controller.

    Returns:
        Whether the process was still running.
    """
    answer = executor.ask("end_process", within_s=_END_S, process=dict(process))
    if answer is None:
        raise CampaignError(
            f"process {process['pid']}, started by an earlier controller, cannot be ended",
            hint="it waits for the volume; resume when it has ended",
        )
    return parse_answer(bool, answer, host=executor.host)
