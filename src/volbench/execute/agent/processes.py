"""Orphans: processes on this machine that an earlier controller left behind."""

import os
import signal
import time
import typing

from volbench.execute.agent.snapshot import Snapshot
from volbench.execute.agent.supervisor import boot_id, is_supervised, ticks_of, was_launched

# fio ends after SIGINT once its I/O is completed: up to half a minute on a throttled volume.
# Noticed by: tests/execute/agent/test_snapshot.py::test_processes_are_known_by_their_start
_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
_POLL_S = 0.1


class ProcessIdentity(typing.NamedTuple):
    """Unique identity of a process."""

    pid: int
    start_ticks: "int | None"  # field 22 of proc_pid_stat(5); None if the process has ended
    boot_id: str


class Lifetime(typing.NamedTuple):
    """When a program was started and ended, in ns since 1970.

    0 if that has not happened, or the file system keeps no times of birth. An end that nothing
    recorded is that of the last output or sample.
    """

    began_ns: int
    ended_ns: int


def identify_process(pid: int) -> ProcessIdentity:
    """Return the unique identity of a process."""
    return ProcessIdentity(pid, ticks_of(pid) or None, boot_id())


def end_process(process: ProcessIdentity) -> "bool | None":
    """End a process; a reused pid does not count.

    Return whether it was still running; None if it cannot be ended.
    """
    process = ProcessIdentity(*process)
    if process.start_ticks is None or identify_process(process.pid) != process:
        return False
    for number, patience_s in _SIGNALS:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return True
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if identify_process(process.pid) != process:
                return True
            time.sleep(_POLL_S)
    return None


def lifetime(control: str, snapshot: "Snapshot | None" = None) -> "Lifetime | None":
    """Return the lifetime of the program of a control folder; None if it was never started."""
    snapshot = snapshot or Snapshot()
    start, end = snapshot.stat(control + "/start"), snapshot.stat(control + "/end")
    if start is None or not was_launched(control):
        return None
    if end is not None or is_supervised(control):
        return Lifetime(start.born_ns, 0 if end is None else end.born_ns)
    written = [control + "/" + name for name in ("state", "out", "samples")]
    last_ns = max(os.stat(path).st_mtime_ns for path in written if os.path.exists(path))
    return Lifetime(start.born_ns, last_ns)
