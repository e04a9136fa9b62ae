"""Detached programs on a remote host, which outlive the connection and the controller.

All state is kept in a control folder on the host, so that a later controller can reattach. The
host needs only a POSIX shell and coreutils or busybox.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Protocol

from volbench.errors import TransportError, VolbenchError
from volbench.execute.protocol import Completed
from volbench.execute.retry import PATIENCE_S
from volbench.execute.session.frames import Frame
from volbench.execute.session.kept_shell import OnEnd, OnFrame, Session
from volbench.execute.session.program_state import ProgramState
from volbench.execute.shell.channel import TimeLimit

LAUNCH_TIMEOUT_S = 30.0
# Time without a message after which the session counts as broken; the host sends one a second
STATE_TIMEOUT_S = 20.0

_SILENCE = TimeLimit("the watch of a program", STATE_TIMEOUT_S, of_silence=True)
_TRY_S = 1.0
_START_TICKS = 300  # `watch.sh` waits this long for a program that is being launched: 30 s


class CommandRunner(Protocol):
    """Interface to the host of a detached program."""

    host: str

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        sudo: bool,
        files: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a program to completion, after writing files."""

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or None if unreadable."""

    def subscribe(
        self, arguments: Sequence[str], on_frame: OnFrame, on_end: OnEnd, *, sudo: bool
    ) -> Session:
        """Start to push the state of a detached program; see `KeptShell.subscribe`."""


@dataclass(frozen=True)
class LaunchOrder:
    """Parameters of a launch."""

    argv: Sequence[str]  # program and arguments
    cwd: str  # existing working directory
    stderr: str  # path of a file for standard error
    control: str  # path of the control folder, created if missing
    longest_s: float  # maximum runtime, enforced on the host
    files: Mapping[str, str] = field(default_factory=dict)  # small files to write before


def launch(runner: CommandRunner, order: LaunchOrder, *, sudo: bool = False) -> None:
    """Start a program, unless an earlier call whose response was lost has started it."""
    paths = order.control, order.cwd, order.stderr
    done = runner.run(
        [*_script("launch"), *paths, str(math.ceil(order.longest_s)), *order.argv],
        timeout_s=LAUNCH_TIMEOUT_S,
        sudo=sudo,
        files=order.files,
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
    )


class DetachedProcess:
    """A launched program, possibly of an earlier controller.

    Its host pushes what happens to it. Signals require the same user, so a program started by sudo
    is also watched and signalled by sudo.

    Args:
        sudo: whether it was started by sudo.
        is_new: whether it is about to be launched, so that it counts as running.
    """

    def __init__(
        self,
        runner: CommandRunner,
        control: str,
        *,
        sudo: bool = False,
        is_new: bool = False,
        followed: Sequence[str] = (),
    ) -> None:
        self._runner = runner
        self._control = control
        self._sudo = sudo
        self._followed = tuple(followed)
        self._patience = _START_TICKS if is_new else 0
        self._state = ProgramState(is_known=is_new)
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._responded_s = time.monotonic()
        self._tried_s = -math.inf
        self._refused: VolbenchError | None = None
        self._pid = 0
        self._has_news = False
        self._wake: Callable[[], None] | None = None

    @property
    def lost(self) -> str:
        """Reason why its exit was not observed; empty otherwise."""
        return self._state.lost

    @property
    def silent_s(self) -> float:
        """Seconds since the last message about it."""
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
        self._state.offset = count

    def first_line(self, path: str) -> str | None:
        """Return the first line of a followed file as last pushed; None if empty or missing."""
        return self._state.lines.get(self._followed.index(path) + 1) or None

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the program runs."""
        self.watch()
        if not self._state.is_known:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._state.is_known or self._session is None, STATE_TIMEOUT_S
                )
        return self._state.status

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        self.poll()
        with self._changed:
            return self._state.take_output()

    def signal(self, number: int) -> None:
        """Send a signal, if the program is running."""
        if self._state.status is None:
            name = signal.Signals(number).name.removeprefix("SIG")
            self._runner.run(
                [*_script("signal"), self._control, name],
                timeout_s=STATE_TIMEOUT_S,
                sudo=self._sudo,
            )

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None after `timeout_s` or when a followed file appeared."""
        deadline_s = time.monotonic() + timeout_s
        while self.poll() is None and not self._has_news:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            with self._changed:
                self._changed.wait_for(
                    lambda: self._state.status is not None or self._has_news, min(left_s, _TRY_S)
                )
        self._has_news = False
        return self._state.status

    def notify(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, when the program ends or a followed file appears."""
        with self._changed:
            is_due = self._has_news or self._state.status is not None
            self._has_news = False
            self._wake = None if is_due else wake
        if is_due:
            wake()

    def watch(self) -> None:
        """Subscribe, or again after a broken session; a temporarily unreachable host is retried."""
        if self._state.status is not None:
            return
        if self._refused is not None:
            raise self._refused
        if self._session is not None and self._session.error is None:
            if time.monotonic() - max(self._responded_s, self._tried_s) < STATE_TIMEOUT_S:
                return
            self._session.close(_SILENCE.exceeded(self._runner.host), in_doubt=True)
        if time.monotonic() - self._tried_s < _TRY_S:
            return
        self._tried_s = time.monotonic()
        numbers = str(self._state.offset), str(self._patience)
        arguments = self._control, *numbers, *self._followed
        try:
            self._session = self._runner.subscribe(
                arguments, self._take, self._lose, sudo=self._sudo
            )
        except TransportError as error:
            if not error.transient or self.silent_s > PATIENCE_S:
                raise

    def _take(self, frame: Frame) -> None:
        """Process a pushed message; called by the channel's reader."""
        with self._changed:
            self._responded_s = time.monotonic()
            known = len(self._state.lines)
            self._state.take(frame)
            self._has_news = self._has_news or len(self._state.lines) > known
            self._changed.notify_all()
            wake = self._wake
            if wake is not None and (self._has_news or self._state.status is not None):
                self._has_news, self._wake = False, None
            else:
                wake = None
        if wake is not None:
            wake()

    def _lose(self, error: VolbenchError) -> None:
        """Note that the session has ended; the program continues."""
        with self._changed:
            self._session = None
            if not error.transient:
                self._refused = error
            self._changed.notify_all()


def _script(name: str) -> list[str]:
    """Return the command prefix that runs a script of this package."""
    text = files("volbench.execute.shell").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    return ["sh", "-c", text, name]
