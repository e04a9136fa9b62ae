"""Waits for what other processes do, long enough for a machine with much else to do."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer, get_ident
from types import TracebackType
from typing import AnyStr

import pytest

PATIENCE_S = 180.0


def until(condition: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fail the test if it does not in time."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"not within {patience_s:g} s"
        time.sleep(0.02)


def sleep_by(patch: pytest.MonkeyPatch, sleep: Callable[[float], object]) -> None:
    """Replace the sleeping of this thread; what earlier tests left in others sleeps as before."""
    own, before = get_ident(), time.sleep
    patch.setattr(time, "sleep", lambda s: sleep(s) if get_ident() == own else before(s))


@contextmanager
def killed_in_time(
    process: subprocess.Popen[AnyStr], *, patience_s: float = PATIENCE_S
) -> Iterator[None]:
    """Kill a process whose output is read inside the block, if that takes too long: it ends.

    If it leads a process group, as with ``start_new_session``, the whole group is killed.
    """
    timer = Timer(patience_s, kill_group, [process])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def kill_group(process: subprocess.Popen[AnyStr]) -> None:
    """Kill a process, and its process group if it leads one."""
    with suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


class Started(subprocess.Popen[AnyStr]):
    """Process that is killed if its block fails, which would else wait for its end."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the block."""
        if kind is not None:
            kill_group(self)
        super().__exit__(kind, error, trace)


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
