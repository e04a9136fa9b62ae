"""Orphans: processes on this machine that an earlier controller left behind."""

import os
import signal
import time
import typing

from volbench.execute.agent.block_devices import boot_id
from volbench.execute.agent.files import OWN_FOLDER, FileIdentity
from volbench.execute.agent.snapshot import Snapshot
from volbench.execute.agent.supervisor import was_launched

# fio ends after SIGINT once its I/O is completed: up to half a minute on a throttled volume.
# Noticed by: tests/execute/agent/test_snapshot.py::test_processes_are_known_by_their_start
_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
_POLL_S = 0.1


class ProcessIdentity(typing.NamedTuple):
    """Unique identity of a process."""

    pid: int
    start_ticks: "int | None"  # field 22 of proc_pid_stat(5); None if the process has ended
    boot_id: str


class Stray(typing.NamedTuple):
    """A process of a run that works in a folder."""

    folder: str
    process: ProcessIdentity


class Lifetime(typing.NamedTuple):
    """When a program was started and ended, in ns since 1970.

    0 if that has not happened, or the file system keeps no times of birth.
    """

    began_ns: int
    ended_ns: int


def identify_process(pid: int) -> ProcessIdentity:
    """Return the unique identity of a process."""
    snapshot = Snapshot()
    fields = snapshot.text("/proc/{}/stat".format(pid)).rpartition(")")[2].split()
    is_alive = len(fields) >= 20 and fields[0] != "Z"
    return ProcessIdentity(pid, int(fields[19]) if is_alive else None, boot_id(snapshot))


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
    return Lifetime(start.born_ns, 0 if end is None else end.born_ns)


def find_strays(folders: "list[str]") -> "list[Stray]":
    """Return the processes of runs that work in one of some folders.

    Only processes started for a run have `OWN_FOLDER` as their TMPDIR: a user's shell in such a
    folder is not among them.
    """
    snapshot = Snapshot()
    real_folders = {os.path.realpath(folder): folder for folder in folders}
    strays = []  # type: list[Stray]
    for name in snapshot.names("/proc"):
        if not name.isdigit():
            continue
        variables = snapshot.text("/proc/{}/environ".format(name)).split("\0")
        if "TMPDIR=" + OWN_FOLDER not in variables:
            continue
        folder = os.path.realpath("/proc/{}/cwd".format(name))
        if folder in real_folders:
            strays.append(Stray(real_folders[folder], identify_process(int(name))))
    return strays


def open_files(pid: int) -> "list[FileIdentity]":
    """Return the identities of the files that a process holds open."""
    snapshot = Snapshot()
    folder = "/proc/{}/fd".format(pid)
    stats = [snapshot.stat_visible("{}/{}".format(folder, name)) for name in snapshot.names(folder)]
    return [stat.identity for stat in stats if stat is not None]
