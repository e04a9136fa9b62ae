"""Executor for the controller's own machine: the agent's functions, called in this process."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import ParamSpec, TypeVar

from volbench.errors import RefusedError, TransportError
from volbench.execute.agent import supervisor
from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.facts import Survey, survey
from volbench.execute.agent.files import (
    place_of_others,
    read_files,
    real_path,
    refuse_mounts,
    which,
    write_files,
)
from volbench.execute.agent.held_device import HeldDevice
from volbench.execute.agent.watch import watch
from volbench.execute.agent_executor import AgentHost, not_written
from volbench.execute.presence import own_time
from volbench.execute.protocol import ClockReading, OperationError, Supervision
from volbench.execute.pushed_process import PushedProcess, launch_arguments

P = ParamSpec("P")
T = TypeVar("T")

_ALL_USERS = ["0", "0", "4294967295"]
"""Content of uid_map outside user namespaces."""
# Operations that read profiles and find programs, which work on other systems too
_ELSEWHERE = (real_path, read_files, which)
_OUTSIDE = 65534
"""Whom files seem to belong to in a user namespace if their owner is not part of it."""
_PROBE = "volbench-probe-"
# A folder that is made is locked within that time. Noticed by: test_temporary_folder.py
_NEW_S = 60.0


def require_linux() -> None:
    """Refuse to measure from a system that volbench can only read results on."""
    if sys.platform != "linux":
        message = f"measuring needs Linux, and this machine runs {sys.platform}"
        hint = "results can be read here: show, check, compare, plot, report, export, import"
        raise RefusedError(message, hint=hint)


def temporary_folder() -> str:
    """Return the folder for temporary files (TMPDIR), where other users cannot replace root's."""
    given = tempfile.gettempdir()
    folder = Path(given).resolve()
    if os.geteuid() != 0:
        return str(folder)
    everybody = Path("/proc/self/uid_map").read_text(encoding="ascii").split() == _ALL_USERS
    trusted = {0} if everybody else {0, _OUTSIDE}
    check_place(
        folder,
        f"in TMPDIR={given}",
        hint="use a folder in which only root can rename files: TMPDIR=/tmp",
        trusted=trusted,
    )
    return str(folder)


@contextmanager
def probe_folder() -> Iterator[Path]:
    """Yield a temporary folder, after the removal of those that killed processes have left."""
    parent = Path(temporary_folder())
    for left in parent.glob(f"{_PROBE}????????"):  # as tempfile names it
        with suppress(OSError, AgentError), _locked(left):
            refuse_mounts(str(left))
            if time.time() - left.stat().st_mtime > _NEW_S:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_PROBE, dir=parent) as made, _locked(Path(made)):
        yield Path(made)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder of this user; OSError if another process has locked it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def check_place(folder: Path, named: str, *, hint: str, trusted: Collection[int] = (0,)) -> None:
    """Refuse a folder, which may not exist yet, where another user can replace root's files.

    Args:
        named: what root makes there, or where, for the message.
        trusted: ids of the users who may own it and the folders that it is in.
    """
    if os.geteuid() == 0:
        place, reason = place_of_others(os.path.realpath(folder), trusted)
        if place:
            message = f"{place} {reason}, who could replace the files that root makes {named}"
            raise RefusedError(message, hint=hint)


class LocalProcess(PushedProcess):
    """A supervised program of this machine, whose sampler ends with this controller."""

    handle = ""
    silent_s = 0.0

    def __init__(self, control: str, pid: int) -> None:
        super().__init__(is_known=True)
        self.pid = pid
        self._control = control
        Thread(target=self._follow, name=f"watch {pid}", daemon=True).start()

    def _follow(self) -> None:
        for event in watch(self._control):
            if event is not None:
                self.happened(event)
        self.end(None, None)
        shutil.rmtree(self._control, ignore_errors=True)

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if the process is running."""
        if self.poll() is None:
            supervisor.send_signal(self._control, number)

    def stop_sampling(self) -> None:
        """End its sampler after one last sample, if the program has ended."""
        supervisor.stop_sampling(self._control)


class LocalBase:
    """Operations without effect on the controller's own machine."""

    is_remote = False
    silent_s = 0.0
    trouble = ""

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return the controller's own directory."""
        del name
        return folder

    def close(self, *_arguments: object, **_options: object) -> None:
        """Do nothing: processes go on, files are in their place, and no link can break."""

    owe = fetch_work_folder = remove_work_folder = close

    def wait_when_unreachable(
        self, *, unless: Callable[[], bool], is_hung: Callable[[], bool]
    ) -> None:
        """Do nothing: no link can break."""

    def stream(
        self,
        operation: Callable[P, Iterator[T]],
        take: Callable[[T], None],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Pass the parts of a generator of the agent to a function; see `Executor.stream`."""
        try:
            for part in operation(*args, **kwargs):
                take(part)
        except AgentError as error:
            raise OperationError(error.kind, error.message) from error


class LocalExecutor(LocalBase, AgentHost):
    """The machine the controller runs on."""

    def __init__(self, host: str = "local") -> None:
        self.host = host

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of the agent in this process; see `Executor.ask`."""
        if operation not in _ELSEWHERE:
            require_linux()
        try:
            return operation(*args, **kwargs)
        except (AgentError, OSError) as error:
            failure = of_os_error(error)
            raise OperationError(failure.kind, failure.message) from error

    def clock(self) -> tuple[ClockReading, ...]:
        """Return one reading of this machine's clock."""
        return (ClockReading(own_time(), time.time(), own_time(), time.monotonic()),)

    def survey(self) -> tuple[Survey, tuple[ClockReading, ...]]:
        """Return the facts of this machine, and one reading of its clock."""
        return self.ask(survey), self.clock()

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        files: Mapping[str, str] | None = None,
        supervision: Supervision | None = None,
        on_intent: Callable[[str], None] | None = None,
    ) -> LocalProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        TMPDIR leads to `cwd`, because fio reacts to a file named fio-dump-status there.
        """
        try:
            self.ask(write_files, dict(files or {}))
        except OperationError as error:
            raise not_written(error, "") from error
        arguments = launch_arguments(argv, supervision)
        # The supervisor works elsewhere.
        arguments |= {
            "cwd": os.path.abspath(cwd),  # noqa: PTH100 - resolve() would follow symlinks
            "stderr": os.path.abspath(stderr),  # noqa: PTH100 - the same
        }
        control = f"{temporary_folder()}/volbench-run-{secrets.token_hex(8)}"
        if on_intent is None:  # nobody knows it later: it goes with the working directory
            control = f"{arguments['cwd']}/.control"
        else:
            on_intent(control)
        try:
            launched = supervisor.launch(**arguments, control=control, attached=True)
        except AgentError as error:
            shutil.rmtree(control, ignore_errors=True)
            self._not_run(argv, OperationError(error.kind, error.message))
        return LocalProcess(control, launched.pid)

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> LocalProcess:
        """Raise: only the controller that started a local process can read its output."""
        del followed
        message = f"cannot reattach to process {handle!r} on {self.host}"
        raise TransportError(message, hint="repeat its run: volbench resume DIR --retry-failed")

    def hold(self, path: str) -> HeldDevice:
        """Open a block device exclusively."""
        try:
            return HeldDevice(path, exclusive=True)
        except AgentError as error:
            message = f"{path} cannot be opened exclusively: {error.message}"
            hint = "end the process that uses it, or run volbench as a user who may write to it"
            raise RefusedError(message, hint=hint) from error
