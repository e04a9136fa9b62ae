"""Words about system calls of this process that a filesystem or disk does not answer.

Python takes no signal until a call ends: a thread says what is waited for, and ends the process
some seconds after a request to stop, on a frozen filesystem not before it is thawed.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from volbench.errors import StoppedError

_LOOK_S = 1.0
# Looks at the same call: a flush of a busy disk takes seconds.
# Noticed by: tests/cli/test_hung_volume.py
_LOOKS = 8
# Looks while a request to stop is not taken: a volume that is only slow ends in order.
# Noticed by: tests/cli/test_hung_volume.py
_LEAVE_LOOKS = 5
_REQUESTS = sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
_FUSE = "request_wait_answer"  # Function of the kernel in which the calls of FUSE sleep
_TASKS = Path("/proc/self/task")
_MAX_PATH = 4096
_HERE = 0xFFFFFF9C  # AT_FDCWD: the path is the second argument
_HELD = re.compile(r"/proc/(?:self|\d+)/fd/(\d+)")


def report_stuck_calls() -> None:
    """Start to report calls without an answer on standard error, once each."""
    if _TASKS.is_dir() and not any(thread.name == __name__ for thread in threading.enumerate()):
        threading.Thread(target=_report, name=__name__, daemon=True).start()


def _report() -> None:
    looks: dict[tuple[str, str], int] = {}
    asked = 0
    while True:
        time.sleep(_LOOK_S)
        with suppress(OSError):
            calls = [(task.name, _call_of(task)) for task in _TASKS.iterdir()]
            looks = {key: looks.get(key, 0) + 1 for key in calls if key[1]}
        for path in {_path_in(call) for (_, call), count in looks.items() if count == _LOOKS}:
            _say(
                f"waiting for {path or 'a filesystem'}, which does not answer; if it is frozen: "
                "fsfreeze -u its mount point; if its server is dead: umount -l; Ctrl-C ends this "
                f"after {_LEAVE_LOOKS * _LOOK_S:g}s"
            )
        is_asked = asked or _is_asked_to_stop()
        asked = asked + 1 if is_asked and max(looks.values(), default=0) > 1 else 0
        if asked == _LEAVE_LOOKS:
            _say("stopped; once all volumes answer, remove what stays: volbench status --clean")
            os._exit(StoppedError.exit_code)


def _say(words: str) -> None:
    with suppress(OSError):
        os.write(2, f"volbench: {words}\n".encode(errors="replace"))


def _is_asked_to_stop() -> bool:
    """Return whether a signal to stop waits for the main thread, which sleeps in a call."""
    pending = re.search(r"ShdPnd:\s*(\w+)", Path("/proc/self/status").read_text(errors="replace"))
    return bool(pending and int(pending[1], 16) & _REQUESTS)


def _call_of(task: Path) -> str:
    """Return the system call in which a thread sleeps uninterruptibly (D), or in FUSE; or ""."""
    with suppress(OSError):
        state = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        is_stuck = state == "D" or (state == "S" and (task / "wchan").read_text() == _FUSE)
        return (task / "syscall").read_text() if is_stuck else ""
    return ""


def _path_in(call: str) -> str:
    """Return the file that a call names, by its path or a descriptor; empty if neither is seen."""
    with suppress(OSError, ValueError):
        first, second = (int(word, 16) for word in call.split()[1:3])
        if first < _MAX_PATH:
            return str(Path(f"/proc/self/fd/{first}").readlink())
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            memory.seek(second if first & 0xFFFFFFFF == _HERE else first)
            path = memory.read(_MAX_PATH).partition(b"\0")[0].decode()
        return _HELD.sub(lambda held: str(Path(held[0]).readlink()), path)
    return ""
