"""Start gate: a benchmark waits in it until the common start.

fio runs it as ``exec_prerun`` once its jobs are set up, right before its clock starts; any other
program is started by it. In the folder ``gate`` of the run it writes ``ready``, waits for ``go``
with the start time in its own time, sleeps until then, and records in ``woke`` when it woke up, for
which start, and this machine's time then. A start that was postponed or revoked is followed. One in
the past, unless the word "late" follows it, or far ahead counts as ``missed``.

Its own time is this machine's as it became ready, and goes on by the monotonic clock, which is in
``ready`` too: whoever sets the clock moves no start. fio's other jobs wait at a named pipe in their
shells, which read it at the same time: it only wakes them, to look for the folder ``open``.
"""

import _signal as signal  # type: ignore[import-not-found]  # loads faster than signal and its enums
import os
import sys
import time

VARIABLE = "VOLBENCH_GATE"
PRERUN = 'eval "${}"'.format(VARIABLE)
"""Shell command that waits at the gate; the supervisor of the run sets the variable."""

FOLDER = "gate"
READY, GO, OPEN, WOKE, MISSED = ("gate/ready", "gate/go", "gate/open", "gate/woke", "gate/missed")
NEVER, LATE = "never", "late"

POLL_S = 0.2  # A start is announced at least 1 s ahead. Noticed by: test_skew.py
# A missed start may be postponed for 20 s.
# Noticed by: test_gate.py::test_start_out_of_reach_is_missed_and_may_be_postponed
MISSED_S = 25.0
# A start is announced 1 s ahead and 0.05 s for each client, of which there may be thousands.
# Noticed by: test_gate.py::test_start_out_of_reach_is_missed_and_may_be_postponed
AHEAD_S = 300.0
_LEAD_S = time.time() - time.monotonic()  # of this machine's clock as the gate began
DISK_FULL_S = 5.0  # A disk that stays full fails the run, as nobody would end the wait.
MAX_JOBS = 4096  # fio starts no more (REAL_MAX_JOBS), and 24 KB fit into a pipe.


def main(arguments: "list[str]") -> None:
    """Wait at the gate, let the other jobs pass, and start a program if one is given.

    Args:
        arguments: seconds to wait without a start, path of the pipe where other jobs wait, and the
            program with its arguments.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ready = "{:.6f} {:.6f}".format(own_time(), own_time() - _LEAD_S)
    is_ready = _write_pipe("ready", ready, tries_s=DISK_FULL_S)
    start = wait_for_start(float(arguments[0])) if is_ready else ""
    woke, now = own_time(), time.time()
    is_open = bool(start) and _is_made(OPEN)
    wake(arguments[1], "\n" * MAX_JOBS)  # all other jobs, present and future ones, look at OPEN
    if not is_open:
        os._exit(1)
    _write_pipe("woke", "{:.6f} {} {:.6f}".format(woke, start, now), tries_s=0.0)
    if arguments[2:]:
        try:
            os.execvp(arguments[2], arguments[2:])  # noqa: S606 - never through a shell
        except OSError as error:
            sys.stderr.write("{}: {}\n".format(arguments[2], error.strerror))
            os._exit(127)
    os._exit(0)


def own_time() -> float:
    """Return the time of the gate, in seconds since 1970."""
    return time.monotonic() + _LEAD_S


def _write_pipe(name: str, line: str, tries_s: float) -> bool:
    """Write a line to a file of the gate, and wake the watches of the run."""
    path = "{}/{}".format(FOLDER, name)
    end_s = time.monotonic() + tries_s
    while True:
        try:
            with open(path + ".new", "w") as file:
                file.write(line + "\n")
            os.rename(path + ".new", path)
            break
        except OSError:
            if time.monotonic() >= end_s:
                return False
            time.sleep(POLL_S)
    wake(os.environ.get("VOLBENCH_CONTROL", "") + "/news")
    return True


def wait_for_start(patience_s: float) -> str:
    """Wait for the start; return it as it was announced, or "" if it did not come."""
    end_s = time.monotonic() + patience_s
    missed_until_s = 0.0
    slept_to = ""
    while True:
        fields = _start_words()
        start = fields[0] if fields else ""
        if start == NEVER:
            return ""
        if start and start == slept_to:
            return start
        left_s = float(start) - own_time() if start else 0.0
        if 0 < left_s <= AHEAD_S:
            time.sleep(left_s)
            slept_to = start
        elif start and (fields[1:] == [LATE] or os.path.exists(WOKE)):
            return start
        else:
            if start and not missed_until_s:
                open(MISSED, "w").close()
                missed_until_s = time.monotonic() + MISSED_S
            if time.monotonic() > (missed_until_s if start else end_s):
                return ""
            time.sleep(POLL_S)


def _start_words() -> "list[str]":
    try:
        with open(GO) as file:
            return file.readline().split()
    except FileNotFoundError:
        return [] if os.path.isdir(FOLDER) else [NEVER]  # the run's folder was removed


def _is_made(folder: str) -> bool:
    try:
        os.mkdir(folder)
    except OSError:  # the disk is full, or the run's folder was removed
        return False
    return True


def wake(path: str, text: str = "\n") -> None:
    """Write to a named pipe, unless nobody has it open or it is full."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, text.encode())
    except OSError:  # full: those who read it are awake
        pass
    finally:
        os.close(descriptor)
