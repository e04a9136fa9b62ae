"""Processes that an earlier controller started and could not end: recognised surely, then ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from volbench.errors import CampaignError
from volbench.execute.protocol import Executor, Process
from volbench.store.journal import utc_now

_SIGNALS = (("-INT", 30.0), ("-TERM", 10.0), ("-KILL", 10.0))


def trace(executor: Executor, process: Process, *, sampler_handle: str) -> dict[str, object]:
    """Return what is written down of a process that was just started.

    Returns:
        What `identify` tells; of one that outlives its controller ``handle``, the ``sampler``
        beside it and ``since_utc`` instead.
    """
    if not process.handle:
        return identify(executor, process.pid)
    return {"handle": process.handle, "sampler": sampler_handle, "since_utc": utc_now()}


def intent(handle: str, sampler_handle: str) -> dict[str, object]:
    """Return what is written down of a process before it is started on another machine."""
    return {
        "handle": handle,
        "sampler": sampler_handle,
        "since_utc": utc_now(),
        "launched": False,
    }


def identify(executor: Executor, pid: int) -> dict[str, object]:
    """Return what tells a process from every other: pid, start time and boot.

    Returns:
        ``pid``, ``start_ticks`` (field 22 of proc(5) stat, None when it has ended) and ``boot_id``.
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
    """Tell whether exactly this process still runs."""
    pid, ticks = process.get("pid"), process.get("start_ticks")
    if not isinstance(pid, int) or ticks is None:
        return False
    return identify(executor, pid) == dict(process)


def end_strays(executor: Executor, folders: Iterable[Path]) -> tuple[Path, ...]:
    """End what an earlier controller started here and was killed before it wrote that down.

    Args:
        executor: the machine; where processes have handles, all of them are written down.
        folders: of Runs. What was started for one has its temporary files there, as nothing else
            has: a user's shell in that folder is left alone.

    Returns:
        The folders in which there was one.

    Raises:
        CampaignError: one can't be ended.
    """
    if executor.handle_of("stderr"):
        return ()
    ours = {executor.real_path(str(folder)): folder for folder in folders}
    found = []
    for name in executor.list_directory("/proc"):
        place = _temporary(executor, name) if name.isdecimal() else ""
        if place in ours:
            end_orphan(executor, identify(executor, int(name)))
            found.append(ours[place])
    return tuple(found)


def _temporary(executor: Executor, pid: str) -> str:
    """Return where a process was told to put its temporary files; "" where that is not told."""
    told = (executor.read_text(f"/proc/{pid}/environ") or "").split("\0")
    named = next((one.partition("=")[2] for one in told if one.startswith("TMPDIR=/")), "")
    return executor.real_path(named) if named else ""


def end_orphan(executor: Executor, process: Mapping[str, object]) -> bool:
    """End a process that an earlier controller left behind.

    Returns:
        Whether there was one.

    Raises:
        CampaignError: it can't be ended; starting another on the same volume would spoil both.
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
        f"process {process['pid']}, started by an earlier controller, can't be ended",
        hint="it waits for the volume; resume when it has ended",
        context=dict(process),
    )
