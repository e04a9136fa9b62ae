"""Detached programs on a remote host, which outlive the connection and the controller.

All state is kept in a control folder on the host, so that a later controller can reattach. The
host needs only a POSIX shell and coreutils or busybox.
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

LAUNCH_TIMEOUT_S = 30.0
STATE_TIMEOUT_S = 20.0
LOST_STATUS = -signal.SIGKILL
"""Exit status if the exit was not observed, after a reboot or SIGKILL."""


_LOST = {
    "reboot": "its host rebooted",
    "died": "it was killed together with its parent, or its exit status could not be written",
    "none": "it was never started, or its control folder was removed",
}


class CommandRunner(Protocol):
    """Interface to the host of a detached program."""

    host: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, sudo: bool) -> Completed:
        """Run a program to completion."""

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or None if unreadable."""


@dataclass(frozen=True)
class LaunchOrder:
    """Parameters of a launch.

    Attributes:
        argv: program and arguments.
        cwd: existing working directory.
        stderr: path of a file for standard error.
        control: path of the control folder, created if missing.
        longest_s: maximum runtime, enforced on the host.
    """

    argv: Sequence[str]
    cwd: str
    stderr: str
    control: str
    longest_s: float


def launch(runner: CommandRunner, order: LaunchOrder, *, sudo: bool = False) -> None:
    """Start a program, unless an earlier call whose response was lost has started it.

    Raises:
        TransportError: the program cannot be started.
    """
    paths = order.control, order.cwd, order.stderr
    done = runner.run(
        [*_script("launch"), *paths, str(ceil(order.longest_s)), *order.argv],
        timeout_s=LAUNCH_TIMEOUT_S,
        sudo=sudo,
    )
    answer = done.stdout.strip()
    if done.exit_status == 0 and answer in {"started", "already"}:
        return
    is_missing = answer == "missing"
    reason = "no such program" if is_missing else done.stderr.strip() or "no response"
    raise TransportError(
        f"{order.argv[0]} cannot be started on {runner.host}: {reason}",
        hint=f"check that it is installed there: command -v {order.argv[0]}"
        if is_missing
        else "check permissions and free space there",
        context={"host": runner.host, "path": order.cwd},
    )


class DetachedProcess:
    """A launched program, possibly of an earlier controller.

    Signals require the same user, so a program started by sudo is also polled and signalled by
    sudo.

    Args:
        runner: its host.
        control: path of the control folder.
        poll_s: poll interval in seconds.
        sudo: whether it was started by sudo.
    """

    def __init__(
        self, runner: CommandRunner, control: str, *, poll_s: float, sudo: bool = False
    ) -> None:
        self._runner = runner
        self._control = control
        self._poll_s = poll_s
        self._sudo = sudo
        self._polled_s = -poll_s
        self._responded_s = time.monotonic()
        self._offset = 0
        self._unread: list[str] = []
        self._status: int | None = None
        self._pid = 0
        self._lost = ""

    @property
    def lost(self) -> str:
        """Reason why its exit was not observed; empty otherwise."""
        return _LOST.get(self._lost, self._lost)

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of its host."""
        return time.monotonic() - self._responded_s

    @property
    def handle(self) -> str:
        """Control folder of the program."""
        return self._control

    @property
    def pid(self) -> int:
        """Process id on its host; 0 if unknown."""
        if not self._pid:
            text = (self._runner.read_text(f"{self._control}/pid") or "").strip()
            self._pid = int(text) if text.isdecimal() else 0
        return self._pid

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of the output, which an earlier controller has read."""
        self._offset = count

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the program runs."""
        if self._status is None and time.monotonic() - self._polled_s >= self._poll_s:
            self._update()
        return self._status

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        self.poll()
        text = "".join(self._unread)
        self._unread.clear()
        return text

    def signal(self, number: int) -> None:
        """Send a signal, if the program is running."""
        if self._status is None:
            name = signal.Signals(number).name.removeprefix("SIG")
            self._run("signal", name)
            self._polled_s = -self._poll_s

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the program still runs after `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        while self.poll() is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return None
            due_s = self._polled_s + self._poll_s - time.monotonic()
            time.sleep(min(left_s, max(due_s, 0.01)))
        return self._status

    def _run(self, script: str, argument: str) -> Completed:
        return self._runner.run(
            [*_script(script), self._control, argument], timeout_s=STATE_TIMEOUT_S, sudo=self._sudo
        )

    def _update(self) -> None:
        """Update the state; a temporarily unreachable host leaves it unchanged."""
        try:
            done = self._run("state", str(self._offset))
        except TransportError as error:
            self._polled_s = time.monotonic()
            if not error.transient or self._polled_s - self._responded_s > PATIENCE_S:
                raise
            return
        self._polled_s = self._responded_s = time.monotonic()
        state, length, output = (*done.stdout.split("\n", 2), "", "")[:3]
        if done.exit_status or not length.isdecimal():
            raise TransportError(
                f"the state of {self._control} cannot be read on {self._runner.host}: "
                f"{done.stderr.strip() or done.stdout.strip() or 'no response'}",
                hint="check that host, then continue with: volbench resume DIR",
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
    """Convert a shell's exit status to that of `Process`: 128 + signal becomes negative."""
    status = int(text) if text.strip().isdecimal() else 1
    return 128 - status if status in {128 + number for number in (9, 15)} else status


def _script(name: str) -> list[str]:
    """Return the command prefix that runs a script of this package."""
    text = files("volbench.execute.shell").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    return ["sh", "-c", text, name]
