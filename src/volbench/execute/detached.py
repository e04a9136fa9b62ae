"""A program on another machine that outlives the connection: commands in, a Process out.

Everything that is known of it lies in a control folder on its machine, so that any controller can
ask later how it stands. Nothing here needs more there than a POSIX shell and the usual tools.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from math import ceil
from typing import Protocol

from volbench.errors import TransportError
from volbench.execute.protocol import Completed

POLL_S = 1.0
"""Seconds between two looks; each costs the machine a few short processes."""

PATIENCE_S = 600.0
"""How long a machine may be out of reach before it is given up; the program there goes on."""

LAUNCH_S = 30.0
LOOK_S = 20.0
LOST_STATUS = -signal.SIGKILL
"""Exit status of a program whose end nobody saw: its machine restarted, or it was killed."""


_LOST = {
    "reboot": "its machine restarted",
    "died": "it was killed with what waited for it, or there was no room to write down its end",
    "none": "it was never started, or its folder was removed",
}


class Shell(Protocol):
    """What a detached program needs of its machine; every Executor has it."""

    host: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to its end."""

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""


@dataclass(frozen=True)
class Order:
    """What to start, and where.

    Attributes:
        argv: program and arguments.
        cwd: working folder, which exists.
        stderr: path of a file for standard error.
        control: path of its control folder, made when missing.
        longest_s: it is ended after this time whatever becomes of the controller.
        env: more environment.
    """

    argv: Sequence[str]
    cwd: str
    stderr: str
    control: str
    longest_s: float
    env: Mapping[str, str] = field(default_factory=dict)


def launch(executor: Shell, order: Order) -> DetachedProcess:
    """Start a program once; when it was started before, return that one.

    Raises:
        TransportError: it could not be started.
    """
    env = ["env", *(f"{name}={value}" for name, value in order.env.items())] if order.env else []
    longest = str(ceil(order.longest_s))
    place = order.control, order.cwd, order.stderr
    done = executor.run(
        [*_script("launch"), *place, longest, *env, *order.argv], timeout_s=LAUNCH_S
    )
    if done.exit_status or done.stdout.strip() not in {"started", "already"}:
        said = done.stderr.strip() or "no answer"
        raise TransportError(
            f"{order.argv[0]} can't be started on {executor.host}: {said}",
            hint="check permissions and free space there",
            context={"host": executor.host, "path": order.cwd},
        )
    return DetachedProcess(executor, order.control)


class DetachedProcess:
    """A program that was launched, now or by an earlier controller.

    Args:
        executor: its machine.
        control: path of its control folder.
        poll_s: seconds between two looks.
    """

    def __init__(self, executor: Shell, control: str, *, poll_s: float = POLL_S) -> None:
        self._executor = executor
        self._control = control
        self._poll_s = poll_s
        self._looked_s = -poll_s
        self._heard_s = time.monotonic()
        self._offset = 0
        self._waiting: list[str] = []
        self._status: int | None = None
        self._pid = 0
        self._lost = ""

    @property
    def lost(self) -> str:
        """Why nobody saw how it ended; empty while that is not so."""
        return _LOST.get(self._lost, self._lost)

    @property
    def silent_s(self) -> float:
        """Seconds since its machine last told how it stands."""
        return time.monotonic() - self._heard_s

    @property
    def handle(self) -> str:
        """Its control folder."""
        return self._control

    @property
    def pid(self) -> int:
        """Its process id on its machine; 0 when it is not known."""
        if not self._pid:
            told = (self._executor.read_text(f"{self._control}/pid") or "").strip()
            self._pid = int(told) if told.isdecimal() else 0
        return self._pid

    def skip_output(self, count: int) -> None:
        """Pass over the first bytes that it wrote: an earlier controller has them."""
        self._offset = count

    def poll(self) -> int | None:
        """Return the exit status (negative: ended by that signal), or None while it runs."""
        if self._status is None and time.monotonic() - self._looked_s >= self._poll_s:
            self._look()
        return self._status

    def read_output(self) -> str:
        """Return what it wrote to standard output since the last call."""
        self.poll()
        text = "".join(self._waiting)
        self._waiting.clear()
        return text

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self._status is None:
            name = signal.Signals(number).name.removeprefix("SIG")
            self._executor.run([*_script("signal"), self._control, name], timeout_s=LOOK_S)
            self._looked_s = -self._poll_s

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None when it still runs after `timeout_s`."""
        until = time.monotonic() + timeout_s
        while self.poll() is None:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return None
            due_s = self._looked_s + self._poll_s - time.monotonic()
            time.sleep(min(left_s, max(due_s, 0.01)))
        return self._status

    def _look(self) -> None:
        """Ask how it stands; a machine that does not answer for a while says nothing about it."""
        try:
            done = self._executor.run(
                [*_script("look"), self._control, str(self._offset)], timeout_s=LOOK_S
            )
        except TransportError as error:
            self._looked_s = time.monotonic()
            if not error.transient or self._looked_s - self._heard_s > PATIENCE_S:
                raise
            return
        self._looked_s = self._heard_s = time.monotonic()
        state, length, output = (*done.stdout.split("\n", 2), "", "")[:3]
        if done.exit_status or not length.isdecimal():
            raise TransportError(
                f"{self._executor.host} does not tell how {self._control} stands: "
                f"{done.stderr.strip() or done.stdout.strip() or 'no answer'}",
                hint="look at the machine, then go on with: volbench resume DIR",
                context={"host": self._executor.host},
            )
        self._offset = int(length)
        self._waiting.append(output)
        word, _, rest = state.partition(" ")
        if word == "done":
            self._status = _exit_status(rest)
        elif word in {"lost", "none"}:
            self._lost = rest or word
            self._status = LOST_STATUS


def _exit_status(told: str) -> int:
    """Return the status as `Process` has it: a shell tells signals as 128 and more."""
    status = int(told) if told.strip().isdecimal() else 1
    return 128 - status if status in {128 + number for number in (9, 15)} else status


def _script(name: str) -> list[str]:
    """Return the start of a command that runs one of the scripts beside this file."""
    text = files("volbench.execute").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    return ["sh", "-c", text, name]
