"""Requests to a remote host over a channel: retries, snapshots, and errors of refused requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from volbench.errors import (
    ConnectError,
    DeadlineError,
    TransferError,
    TransportError,
    VolbenchError,
)
from volbench.execute.protocol import SharedLocks
from volbench.execute.retry import PATIENCE_S, Patience, retry
from volbench.execute.session.kept_shell import MAX_INPUT_BYTES, KeptShell, NoShellError
from volbench.execute.session.look_ahead import LookAhead
from volbench.execute.shell.channel import Channel
from volbench.execute.shell.remote_script import ScriptAnswer, ScriptCall, call_script

_WORK_FOLDER = ".volbench"


class ShellHost:
    """A host that answers requests.

    Args:
        sudo: run fio and programs that access devices by ``sudo -n``.
        work_folder: parent of the work folders on the host; empty for ``~/.volbench``.
    """

    is_container = False  # Whether mounts and processes of the machine may be out of sight

    shared_locks: SharedLocks | None = None

    def __init__(
        self,
        channel: Channel,
        *,
        sudo: bool = False,
        work_folder: str = "",
        patience: Patience | None = None,
    ) -> None:
        self.host = channel.host
        self._channel = channel
        self._sudo = "sudo" if sudo else ""
        self._work_folder = work_folder or _WORK_FOLDER
        self._work_base = ""
        self._patience = Patience() if patience is None else patience
        self._shell = KeptShell(channel)
        self._look_ahead = LookAhead(self._send, work_folder=self._work_folder)
        self._responded_s = time.monotonic()
        self._posted: list[tuple[ScriptCall, Callable[[], ScriptAnswer] | None]] = []

    @property
    def identity(self) -> str:
        """Empty: its machine-id identifies a machine."""
        return ""

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of the host."""
        return time.monotonic() - max(self._responded_s, self._shell.heard_s)

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """Extend the retry period for the case that the host becomes unreachable."""
        self._patience = Patience(tries=10_000, begin_within_s=PATIENCE_S, unless=unless)

    def snapshot(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Answer the looks within a block together; see `LookAhead.snapshot`."""
        return self._look_ahead.snapshot(paths)

    def _call(self, call: ScriptCall) -> ScriptAnswer:
        """Run a script, unless a snapshot has its answer."""
        if (answer := self._look_ahead.answer(call)) is not None:
            return answer
        try:
            return self._send(call)
        finally:
            self._look_ahead.note(call)

    def _send(self, call: ScriptCall) -> ScriptAnswer:
        """Run a script; retry transient errors if it is repeatable or was not sent."""

        def may_repeat(error: TransportError) -> bool:
            if isinstance(error, ConnectError):
                return call.repeatable or not error.sent
            return call.repeatable and isinstance(error, DeadlineError | TransferError)

        return retry(lambda: self._attempt(call), may_repeat=may_repeat, patience=self._patience)

    def _post(self, call: ScriptCall) -> None:
        """Send a repeatable script whose result `_settle_posted` checks."""
        try:
            self._posted.append((call, self._shell.post(call)))
        except TransportError:
            self._posted.append((call, None))

    def _settle_posted(self, problem: str, error: type[VolbenchError]) -> None:
        """Wait for posted scripts, repeat what did not arrive, and raise `error` if one failed."""
        while self._posted:
            call, answer_of = self._posted.pop()
            try:
                answer = self._send(call) if answer_of is None else answer_of()
            except TransportError:
                answer = self._send(call)
            if answer.status:
                raise self._refusal(problem, answer, error, path=call.arguments[0])

    def _attempt(self, call: ScriptCall) -> ScriptAnswer:
        """Run a script in the kept shell; large transfers have a session of their own."""
        if call.sink is None and len(call.stdin) <= MAX_INPUT_BYTES:
            try:
                return self._shell.call(call)
            except TransportError as error:
                if not isinstance(error, NoShellError):
                    raise
        return call_script(self._channel, call, on_output=self._note_response)

    def _note_response(self) -> None:
        self._responded_s = time.monotonic()

    def _require(
        self,
        call: ScriptCall,
        problem: str,
        *,
        hint: str = "check the path and its permissions",
        error: type[VolbenchError] = TransportError,
    ) -> ScriptAnswer:
        """Run a script and raise `error` if it fails."""
        answer = self._call(call)
        if answer.status:
            raise self._refusal(problem, answer, error, path=call.arguments[0], hint=hint)
        return answer

    def _refusal(
        self,
        problem: str,
        answer: ScriptAnswer,
        error: type[VolbenchError],
        *,
        path: str,  # noqa: ARG002 - of the request
        hint: str = "check the path and its permissions",
    ) -> VolbenchError:
        return error(
            f"{problem} {self.host}: {answer.reason}",
            hint=hint,
        )
