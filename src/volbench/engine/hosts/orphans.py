"""Orphans: processes left running by an earlier controller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from volbench.errors import CampaignError
from volbench.execute.protocol import Executor, Process
from volbench.store.journal import utc_now

_SIGNALS = (("-INT", 30.0), ("-TERM", 10.0), ("-KILL", 10.0))


def start_record(executor: Executor, process: Process, *, sampler_handle: str) -> dict[str, object]:
    """Return the journal's record of a process that was just started.

    Returns:
        The result of `identify`; for a process that outlives its controller, its ``handle``, the
        handle of its ``sampler``, and ``since_utc`` instead.
    """
    if not process.handle:
        return identify(executor, process.pid)
    return {"handle": process.handle, "sampler": sampler_handle, "since_utc": utc_now()}


def intent_record(handle: str, sampler_handle: str) -> dict[str, object]:
    """Return the journal's record of a process that is about to start on another machine."""
    return {
        "handle": handle,
        "sampler": sampler_handle,
        "since_utc": utc_now(),
        "launched": False,
    }


def identify(executor: Executor, pid: int) -> dict[str, object]:
    """Return the unique identity of a process: pid, start time and boot.

    Returns:
        ``pid``, ``start_ticks`` (field 22 of proc(5) stat, None if it has ended) and ``boot_id``.
    """
    return {
        "pid": pid,
        "start_ticks": _start_ticks(executor, pid),
        "boot_id": (executor.read_text("/proc/sys/kernel/random/boot_id") or "").strip(),
    }


def _start_ticks(executor: Executor, pid: int) -> int | None:
    """Return the start time of a live process in clock ticks since boot."""
    text = executor.read_text(f"/proc/{pid}/stat") or ""
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] == "Z":
        return None
    return int(fields[19])


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
    if executor.handle_of("stderr"):
        return ()
    ours = {executor.real_path(str(folder)): folder for folder in folders}
    found = []
    for name in executor.list_directory("/proc"):
        folder = _temporary_folder(executor, name) if name.isdecimal() else ""
        if folder in ours:
            end_orphan(executor, identify(executor, int(name)))
            found.append(ours[folder])
    return tuple(found)


def _temporary_folder(executor: Executor, pid: str) -> str:
    """Return the TMPDIR of a process; empty if it has none."""
    variables = (executor.read_text(f"/proc/{pid}/environ") or "").split("\0")
    named = next((text.partition("=")[2] for text in variables if text.startswith("TMPDIR=/")), "")
    return executor.real_path(named) if named else ""


def end_orphan(executor: Executor, process: Mapping[str, object]) -> bool:
    """End the orphaned process of an earlier controller.

    Returns:
        Whether the process was still running.
    """
    if not is_alive(executor, process):
        return False
    for option, patience_s in _SIGNALS:
        executor.run(["sh", "-c", 'kill "$1" "$2"', "kill", option, str(process["pid"])])
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if not is_alive(executor, process):
                return True
            time.sleep(0.1)
    raise CampaignError(
        f"process {process['pid']}, started by an earlier controller, cannot be ended",
        hint="it waits for the volume; resume when it has ended",
    )
