"""Detached program on a host, which outlives the connection and the controller.

The agent pushes what happens to it (`agent.watch`); a later controller finds it by its control
folder.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from volbench.errors import DeadlineError, TransportError, VolbenchError
from volbench.execute.client import AgentClient, Receiver, Request, Session
from volbench.execute.protocol import OperationError
from volbench.execute.retry import PATIENCE_S

LOST_STATUS = -signal.SIGKILL
"""Exit status if the exit was not observed, after a reboot or SIGKILL."""

STATE_TIMEOUT_S = 20.0
"""Time without a message after which the stream counts as broken; the host sends one a second."""

_TRY_S = 1.0
_START_S = 30.0  # The agent waits this long for a program that is being launched.
_UNREAD_LIMIT = 64 * 1024**2  # Characters of output kept for the controller; more is dropped.
_LOST = {
    "reboot": "its host rebooted",
    "died": "it was killed together with its supervisor, or its exit status could not be written",
    "none": "it was never started, or its control folder was removed",
}


class DetachedProcess(Receiver):
    """A launched program, possibly of an earlier controller.

    Signals require the same user, so a program started as root is also watched and signalled as
    root.

    Args:
        client: agent of its host.
        control: path of the control folder.
        as_root: whether it was started as root.
        is_new: whether it is about to be launched, so that it counts as running.
        followed: files whose first lines are pushed when they change.
    """

    def __init__(
        self,
        client: AgentClient,
        control: str,
        *,
        as_root: bool = False,
        is_new: bool = False,
        followed: Sequence[str] = (),
    ) -> None:
        self.handle = control
        self.lost = ""  # reason why its exit was not observed
        self._client = client
        self._as_root = as_root
        self._followed = tuple(followed)
        self._patience_s = _START_S if is_new else 0.0
        self._is_known = is_new  # whether its host has reported any state
        self._status: int | None = None
        self._offset = 0
        self._unread: list[str] = []
        self._unread_length = 0
        self._lines: dict[int, str] = {}
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._number = 0
        self._responded_s = time.monotonic()
        self._tried_s = -math.inf
        self._refused: VolbenchError | None = None
        self._pid = 0
        self._has_news = False
        self._wake: Callable[[], None] | None = None

    @property
    def pid(self) -> int:
        """Process id on its host; 0 if it is unknown."""
        if not self._pid:
            self._pid = self._count(self._ask("pid_of", control=self.handle))
        return self._pid

    @property
    def silent_s(self) -> float:
        """Seconds since the last message about it; 0 once its end is known."""
        return 0.0 if self._status is not None else time.monotonic() - self._responded_s

    def take_launch(self, reply: object) -> None:
        """Take note of the reply to its launch.

        Raises:
            TransportError: it is malformed.
        """
        match reply:
            case {"pid": int(pid)}:
                self._pid = pid
            case _:
                raise self._malformed(reply)

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of the output, which an earlier controller has read."""
        self._offset = count

    def first_line(self, path: str) -> str | None:
        """Return the first line of a followed file as last pushed; None if empty or missing."""
        return self._lines.get(self._followed.index(path)) or None

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the program runs."""
        self.watch()
        if not self._is_known:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_known or self._session is None, STATE_TIMEOUT_S
                )
        return self._status

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        self.poll()
        with self._changed:
            text, self._unread, self._unread_length = "".join(self._unread), [], 0
        return text

    def signal(self, number: int) -> None:
        """Send a signal, if the program is running."""
        if self._status is None:
            self._ask("send_signal", control=self.handle, number=int(number))

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None after `timeout_s` or when a followed file appeared."""
        deadline_s = time.monotonic() + timeout_s
        while self.poll() is None and not self._has_news:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            with self._changed:
                self._changed.wait_for(
                    lambda: self._status is not None or self._has_news, min(left_s, _TRY_S)
                )
        self._has_news = False
        return self._status

    def notify(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, when the program ends or a followed file appears."""
        with self._changed:
            is_due = self._has_news or self._status is not None
            self._has_news = False
            self._wake = None if is_due else wake
        if is_due:
            wake()

    def watch(self) -> None:
        """Subscribe, or again after a broken stream; a temporarily unreachable host is retried.

        Raises:
            TransportError: the host has been unreachable for too long, or sends nonsense.
        """
        if self._status is not None:
            return
        if self._refused is not None:
            raise self._refused
        now_s = time.monotonic()
        if self._session is not None and self._session.error is None:
            if now_s - max(self._responded_s, self._tried_s) < STATE_TIMEOUT_S:
                return
            error = DeadlineError(
                f"{self._client.host} was silent for {STATE_TIMEOUT_S:g} s",
                hint="the host may be hung",
            )
            self._session.close(error, in_doubt=True)
        if now_s - self._tried_s < _TRY_S:
            return
        self._tried_s = now_s
        arguments = {
            "control": self.handle,
            "output_bytes": self._offset,
            "followed": list(self._followed),
            "patience_s": self._patience_s,
        }
        request = Request("watch", arguments, as_root=self._as_root)
        try:
            self._session, self._number = self._client.subscribe(request, self)
        except TransportError as error:
            if not error.transient or self.silent_s > PATIENCE_S:
                raise

    def part(self, value: object) -> None:
        """Process a pushed message; called by the channel's reader."""
        with self._changed:
            self._responded_s = time.monotonic()
            match value:
                case {"output": str(text), "bytes": int(offset)}:
                    self._offset = offset
                    if self._unread_length < _UNREAD_LIMIT:
                        self._unread.append(text)
                        self._unread_length += len(text)
                case {"file": int(number), "line": str(line)}:
                    self._has_news = self._has_news or number not in self._lines
                    self._lines[number] = line
                case {"status": int(status)}:
                    self._status = status
                case {"lost": str(reason)}:
                    self.lost = _LOST.get(reason, f"its host reports {reason[:80]!r}")
                    self._status = LOST_STATUS
                case {"state": "running"}:
                    self._is_known = True
                case {}:  # nothing happened, or something that only others follow
                    pass
                case _:
                    self._refused = self._malformed(value)
            self._is_known = self._is_known or self._status is not None
            self._changed.notify_all()
            wake = self._wake
            if self._has_news or self._status is not None:
                self._has_news = self._has_news and wake is None
                self._wake = None
            else:
                wake = None
        if wake is not None:
            wake()

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Note that the subscription has ended; the program may continue."""
        del result
        with self._changed:
            self._session = None
            if error is not None and not error.transient:
                self._refused = error
            self._changed.notify_all()

    def close(self) -> None:
        """Stop watching; the program continues."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(VolbenchError):  # broken already
                session.forget(self._number, cancel=True)

    def _ask(self, operation: str, **arguments: object) -> object:
        request = Request(operation, arguments, timeout_s=STATE_TIMEOUT_S, as_root=self._as_root)
        try:
            return self._client.ask(request)
        except OperationError as error:
            raise TransportError(
                f"a program on {self._client.host} cannot be reached: {error.reason}",
                hint="see whether it still runs there: ps",
            ) from error

    def _count(self, value: object) -> int:
        if type(value) is not int or value < 0:
            raise self._malformed(value)
        return value

    def _malformed(self, value: object) -> TransportError:
        return TransportError(
            f"{self._client.host} reports of a program: {repr(value)[:80]}",
            hint="do not trust this host",
        )
