"""Detached program on a host, which outlives the connection and the controller.

The agent pushes what happens to it (`agent.watch`); a later controller finds it by its control
folder.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from volbench.errors import DeadlineError, TransportError, VolbenchError
from volbench.execute.agent.supervisor import Launched, pid_of, send_signal, stop_sampling
from volbench.execute.agent.watch import watch
from volbench.execute.channels import PATIENCE_S
from volbench.execute.client import AgentClient, Receiver, Request, Session
from volbench.execute.presence import PRESENCE
from volbench.execute.protocol import OperationError
from volbench.execute.pushed_process import STATE_TIMEOUT_S, TRY_S, PushedProcess
from volbench.execute.typed_operations import checked_part

T = TypeVar("T")

_START_S = 30.0  # The agent waits this long for a program that is being launched.


class DetachedProcess(PushedProcess, Receiver):
    """A launched program, possibly of an earlier controller.

    Signals require the same user, so a program started as root is also watched and signalled as
    root.

    Args:
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
        super().__init__(is_known=is_new, followed=followed)
        self.handle = control
        self._client = client
        self._as_root = as_root
        self._patience_s = _START_S if is_new else 0.0
        self._session: Session | None = None
        self._number = 0
        self._tried_s = -math.inf
        self._pid = 0

    @property
    def pid(self) -> int:
        """Process id on its host; 0 if it is unknown."""
        if not self._pid:
            self._pid = self._ask(pid_of, control=self.handle)
        return self._pid

    @property
    def silent_s(self) -> float:
        """Seconds since the last message about it; 0 once its end is known."""
        return 0.0 if self._status is not None else PRESENCE.silent_s(self._responded_s)

    def take_launch(self, launched: Launched) -> None:
        """Take note of the reply to its launch."""
        self._pid = launched.pid

    def signal(self, number: int) -> None:
        """Send a signal, if the program is running."""
        if self._status is None:
            self._ask(send_signal, control=self.handle, number=int(number))

    def watch(self) -> None:
        """Subscribe, or again after a broken stream; a temporarily unreachable host is retried."""
        if self._is_over:
            return
        if self._refused is not None:
            raise self._refused
        now_s = time.monotonic()
        if self._session is not None and self._session.error is None:
            if PRESENCE.silent_s(max(self._responded_s, self._tried_s)) < STATE_TIMEOUT_S:
                return
            error = DeadlineError(
                f"{self._client.host} was silent for {STATE_TIMEOUT_S:g} s",
                hint="the host may be hung",
            )
            self._session.close(error, in_doubt=True)
        if now_s - self._tried_s < TRY_S:
            return
        self._tried_s = now_s
        arguments = {
            "control": self.handle,
            "output_bytes": self._text["output"].offset,
            "sample_bytes": self._text["samples"].offset,
            "followed": list(self._followed),
            "patience_s": self._patience_s,
        }
        request = Request(watch, arguments, as_root=self._as_root)
        try:
            self._session, self._number = self._client.subscribe(request, self)
        except TransportError as error:
            if not error.transient or self.silent_s > PATIENCE_S:
                raise

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Note that the subscription has ended; after an error the program may continue."""
        self._session = None
        super().end(result, error)

    def stop_sampling(self) -> None:
        """End its sampler after one last sample, if the program has ended."""
        if not self._is_over:
            self._ask(stop_sampling, control=self.handle)

    def _is_news_due(self) -> bool:
        return self._is_known or self._session is None

    def close(self) -> None:
        """Stop watching; the program continues."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(VolbenchError):  # broken already
                session.forget(self._number, cancel=True)

    def part(self, value: object) -> None:
        """Process a pushed event; called by the channel's reader."""
        try:
            self.happened(checked_part(watch, value, host=self._client.host))
        except TransportError as error:
            self.end(None, error)

    def _ask(self, operation: Callable[..., T], **arguments: object) -> T:
        request = Request(operation, arguments, timeout_s=STATE_TIMEOUT_S, as_root=self._as_root)
        try:
            return self._client.ask(request)
        except OperationError as error:
            message = f"a program on {self._client.host} cannot be reached: {error.reason}"
            raise TransportError(message, hint="see whether it still runs there: ps") from error
