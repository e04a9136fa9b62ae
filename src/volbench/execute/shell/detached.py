"""Program on another machine that outlives the connection and its controller.

All of its state lies in a control folder on its machine, so that any later controller can find it.
Nothing is needed there but a POSIX shell and the usual tools.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import ceil
from typing import Protocol

from volbench.errors import TransportError
from volbench.execute.protocol import Completed
from volbench.execute.shell.retry import PATIENCE_S

LAUNCH_S = 30.0
LOOK_S = 20.0
LOST_STATUS = -signal.SIGKILL
"""Exit status of a program whose end was not observed: its machine restarted, or it was killed."""


_LOST = {
    "reboot": "its machine restarted",
    "died": "it was killed together with its parent, or its exit status could not be written",
    "none": "it was never started, or its folder was removed",
}


class CommandRunner(Protocol):
    """What a detached program needs of its machine."""

    host: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, sudo: bool) -> Completed:
        """Run a program to its end."""

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it cannot be read."""


@dataclass(frozen=True)
class LaunchOrder:
    """What to start, and where.

    Attributes:
        argv: program and arguments.
        cwd: working folder, which exists.
        stderr: path of a file for standard error.
        control: path of its control folder, made when missing.
        longest_s: it is ended after this time whatever becomes of the controller.
    """

    argv: Sequence[str]
    cwd: str
    stderr: str
    control: str
    longest_s: float


def launch(runner: CommandRunner, order: LaunchOrder, *, sudo: bool = False) -> None:
    """Start a program unless it was started before, as by a call whose answer was lost.

    Raises:
        TransportError: it cannot be started.
    """
    paths = order.control, order.cwd, order.stderr
    done = runner.run(
        [*_script("launch"), *paths, str(ceil(order.longest_s)), *order.argv],
        timeout_s=LAUNCH_S,
        sudo=sudo,
    )
    answer = done.stdout.strip()
    if done.exit_status == 0 and answer in {"started", "already"}:
        return
    is_missing = answer == "missing"
    reason = "no such program" if is_missing else done.stderr.strip() or "no answer"
    raise TransportError(
        f"{order.argv[0]} cannot be started on {runner.host}: {reason}",
        hint=f"check that it is installed there: command -v {order.argv[0]}"
        if is_missing
        else "check permissions and free space there",
        context={"host": runner.host, "path": order.cwd},
    )


class DetachedProcess:
    """A program that was launched, now or by an earlier controller.

    A signal reaches only processes of the same user: what was started as root is looked after as
    root.

    Args:
        runner: its machine.
        control: path of its control folder.
        poll_s: seconds between two looks.
        sudo: whether it was started by sudo.
    """

    def __init__(
        self, runner: CommandRunner, control: str, *, poll_s: float, sudo: bool = False
    ) -> None:
        self._runner = runner
        self._control = control
        self._poll_s = poll_s
        self._sudo = sudo
        self._looked_s = -poll_s
        self._answered_s = time.monotonic()
        self._offset = 0
        self._unread: list[str] = []
        self._status: int | None = None
        self._pid = 0
        self._lost = ""

    @property
    def lost(self) -> str:
        """Why its end was not observed; empty while that is not so."""
        return _LOST.get(self._lost, self._lost)

    @property
    def silent_s(self) -> float:
        """Seconds since its machine last answered."""
        return time.monotonic() - self._answered_s

    @property
    def handle(self) -> str:
        """Its control folder."""
        return self._control

    @property
    def pid(self) -> int:
        """Its process id on its machine; 0 when it is not known."""
        if not self._pid:
            text = (self._runner.read_text(f"{self._control}/pid") or "").strip()
            self._pid = int(text) if text.isdecimal() else 0
        return self._pid

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of its output: an earlier controller has them."""
        self._offset = count

    def poll(self) -> int | None:
        """Return the exit status (negative: ended by that signal), or None while it runs."""
        if self._status is None and time.monotonic() - self._looked_s >= self._poll_s:
            self._look()
        return self._status

    def read_output(self) -> str:
        """Return what it wrote to standard output since the last call."""
        self.poll()
        text = "".join(self._unread)
        self._unread.clear()
        return text

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self._status is None:
            name = signal.Signals(number).name.removeprefix("SIG")
            self._run("signal", name)
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

    def _run(self, script: str, argument: str) -> Completed:
        return self._runner.run(
            [*_script(script), self._control, argument], timeout_s=LOOK_S, sudo=self._sudo
        )

    def _look(self) -> None:
        """Update the state; a machine that does not answer for a while says nothing about it."""
        try:
            done = self._run("look", str(self._offset))
        except TransportError as error:
            self._looked_s = time.monotonic()
            if not error.transient or self._looked_s - self._answered_s > PATIENCE_S:
                raise
            return
        self._looked_s = self._answered_s = time.monotonic()
        state, length, output = (*done.stdout.split("\n", 2), "", "")[:3]
        if done.exit_status or not length.isdecimal():
            raise TransportError(
                f"the state of {self._control} cannot be read on {self._runner.host}: "
                f"{done.stderr.strip() or done.stdout.strip() or 'no answer'}",
                hint="check that machine, then continue with: volbench resume DIR",
                context={"host": self._runner.host},
            )
        self._offset = int(length)
        self._unread.append(output)
        word, _, detail = state.partition(" ")
        if word == "done":
            self._status = _exit_status(detail)
        elif word in {"lost", "none"}:
            self._lost = detail or word
            self._status = LOST_STATUS


def _exit_status(text: str) -> int:
    """Return a shell's status as `Process` has it: signals are negative, not 128 and more."""
    status = int(text) if text.strip().isdecimal() else 1
    return 128 - status if status in {128 + number for number in (9, 15)} else status


def _script(name: str) -> list[str]:
    """Return the start of a command that runs one of the scripts beside this file."""
    text = files("volbench.execute.shell").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    return ["sh", "-c", text, name]
