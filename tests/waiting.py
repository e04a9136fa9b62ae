"""Waits for what other processes do, long enough for a machine with much else to do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 180.0


def until(condition: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fail the test if it does not in time."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"not within {patience_s:g} s"
        time.sleep(0.02)


def until_written(path: Path, text: str) -> None:
    """Wait until a text stands in a file."""
    until(lambda: path.exists() and text in path.read_text(encoding="utf-8"))


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes, some of which may have ended since they were listed."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or waits only to be collected by its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}
