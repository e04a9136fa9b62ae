"""Executor for the controller's own machine: the agent's functions, called in this process.

Processes write standard output to an unlinked file: a slow reader never blocks them, and they get
no SIGPIPE when the controller dies.
"""

from __future__ import annotations

import codecs
import os
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from volbench.errors import RefusedError, TransportError
from volbench.execute.agent import programs
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.held_device import HeldDevice
from volbench.execute.agent.operations import OPERATIONS
from volbench.execute.agent_host import AgentHost
from volbench.execute.protocol import FOREVER_S, ClockReading, OperationError


class LocalProcess:
    """A local process in a session of its own, which ends with its controller."""

    handle = ""
    lost = ""
    silent_s = 0.0

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self._process = process
        self._output = output
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        weakref.finalize(self, os.close, output)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the process runs."""
        return self._process.poll()

    def read_output(self) -> str:
        """Return the standard output since the last call."""
        parts = []
        end = os.fstat(self._output).st_size  # ends the loop even if the process writes faster
        while self._offset < end:
            part = os.pread(self._output, 65536, self._offset)
            self._offset += len(part)
            parts.append(self._decoder.decode(part))
        return "".join(parts)

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of the output."""
        self._offset = count

    def first_line(self, path: str) -> None:
        """Return None: the executor reads files without delay."""

    def notify(self, wake: Callable[[], None]) -> None:
        """Do nothing: the process is polled."""

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if the process is running."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended after the poll
                os.killpg(self.pid, number)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the process still runs after `timeout_s`."""
        return programs.wait(self._process, timeout_s)


class LocalBase:
    """What an executor of the controller's own machine need not do."""

    def handle_of(self, stderr: str) -> str:
        """Return an empty handle: processes cannot be reattached."""
        del stderr
        return ""

    def was_started(self, handle: str) -> bool:
        """Return False: processes have no handles."""
        del handle
        return False

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return the controller's own directory."""
        del name
        return folder

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Do nothing: all files are already in place."""

    def remove_work_folder(self, path: str, *, wait: bool = True) -> None:
        """Do nothing: the directory belongs to the controller."""

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """Do nothing: the host is always reachable."""

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return readings of the controller's own clock."""
        now_s = time.time()
        return (ClockReading(now_s, now_s, now_s),) * count

    def snapshot(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Do nothing: every look is answered at once."""
        del paths
        return nullcontext()

    @property
    def silent_s(self) -> float:
        """Zero: the host always responds."""
        return 0.0

    def close(self) -> None:
        """Release the host; running processes continue."""


class LocalExecutor(LocalBase, AgentHost):
    """The machine the controller runs on.

    Args:
        host: host name in the plan.
    """

    def __init__(self, host: str = "local") -> None:
        self.host = host

    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Call an operation of the agent; see `AgentHost.ask`."""
        del within_s
        try:
            return OPERATIONS[operation](**arguments)
        except AgentError as error:
            raise OperationError(error.kind, error.message) from error

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        longest_s: float = FOREVER_S,
        followed: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> LocalProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        TMPDIR is set to `cwd`, because fio reacts to a file named fio-dump-status there.

        Raises:
            TransportError: the program cannot be started.
        """
        del longest_s, followed  # the process ends with its controller
        self.write_texts(files or {})
        extra = {"TMPDIR": os.path.abspath(cwd)}  # noqa: PTH100 - resolve() would follow symlinks
        try:
            with Path(stderr).open("wb") as errors, tempfile.TemporaryFile() as stdout:
                process = programs.spawn([*argv], stdout, errors, cwd=cwd, extra=extra)
                return LocalProcess(process, os.dup(stdout.fileno()))
        except AgentError as error:
            self._not_run(argv, OperationError(error.kind, error.message))
        except OSError as error:
            raise TransportError(
                f"{stderr} cannot be written: {error.strerror}",
                hint="check permissions and free space",
            ) from error

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> LocalProcess:
        """Raise: the output of a local process is readable only by the controller that started it.

        Raises:
            TransportError: always.
        """
        del followed
        raise TransportError(
            f"cannot reattach to process {handle!r} on {self.host}",
            hint="repeat its run: volbench resume DIR --retry-failed",
        )

    def hold(self, path: str, *, exclusive: bool) -> HeldDevice:
        """Open a block device.

        Raises:
            RefusedError: the device cannot be opened.
        """
        try:
            return HeldDevice(path, exclusive=exclusive)
        except AgentError as error:
            raise RefusedError(
                f"{path} cannot be opened exclusively: {error.message}",
                hint="end the process that uses it, or run volbench as a user who may write to it",
            ) from error
