"""Operations on a host by its agent, wherever the agent runs.

`LocalExecutor` calls the agent's functions in its own process, `AgentExecutor` asks the agent of
another machine over a channel, and starts detached programs there; both are an `AgentHost`.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NoReturn, ParamSpec, TypeVar

from volbench.errors import DeadlineError, RefusedError, TransportError, VolbenchError, unwritten
from volbench.execute.agent.facts import Survey, clock, survey
from volbench.execute.agent.files import (
    NamedFile,
    fetch_folder,
    make_private_folder,
    owe,
    real_path,
    remove_exactly,
    remove_work_folder,
    user_id,
    write_files,
)
from volbench.execute.agent.locks import Reservation, release, reserve
from volbench.execute.agent.operations import AS_ROOT
from volbench.execute.agent.run_command import run, run_on_files
from volbench.execute.agent.supervisor import launch
from volbench.execute.channels import PATIENCE_S, Channel, Patience
from volbench.execute.client import AgentClient, Request, Standing
from volbench.execute.detached_process import DetachedProcess
from volbench.execute.incoming_folder import IncomingFolder
from volbench.execute.protocol import (
    ClockReading,
    Completed,
    OperationError,
    SharedLocks,
    Supervision,
)
from volbench.execute.pushed_process import launch_arguments
from volbench.execute.typed_operations import limit_s, named_arguments

_RUN_S = 60.0  # Tools such as blkid take milliseconds, seconds on a busy volume.
_WRITABLE_HINT = "check permissions and free space"
P = ParamSpec("P")
T = TypeVar("T")

_WORK_FOLDER = ".volbench"
_DEVICE_TOOLS = frozenset({"blkid", "blockdev", "fio", "fuser", "lsof", "nvme", "smartctl"})
# What a host with sudo repeats as root if the login user may not do it
_AS_OWNER = (make_private_folder, remove_exactly, remove_work_folder)
_DEVICE_FOLDERS = ("/dev/", "/sys/dev/block/")


class AgentHost(ABC):
    """A host that answers `ask`."""

    host: str
    shared_locks: SharedLocks | None = None
    is_remote = False

    @abstractmethod
    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of the agent on the host; see `Executor.ask`."""

    @property
    def _on_host(self) -> str:
        """Where something happened, for messages; empty on the controller's machine."""
        return ""

    def run(
        self, argv: Sequence[str], *, texts: Sequence[str] = (), timeout_s: float = _RUN_S
    ) -> Completed:
        """Run a program to completion with LC_ALL=C and no input."""
        try:
            if texts:
                done = self.ask(run_on_files, [*argv], [*texts], timeout_s=timeout_s)
            else:
                done = self.ask(run, [*argv], timeout_s=timeout_s)
        except OperationError as error:
            self._not_run(argv, error, timeout_s)
        return Completed(tuple(argv), *done)

    def _not_run(
        self, argv: Sequence[str], error: OperationError, timeout_s: float = _RUN_S
    ) -> NoReturn:
        """Raise the error of a program that was not run, or killed."""
        if error.kind in {"missing", "denied"}:
            message = f"{argv[0]} cannot be started{self._on_host}: {error.reason}"
            hint = f"check that it is installed: command -v {argv[0]}"
            raise TransportError(message, hint=hint) from error
        if error.kind == "timeout":
            error_class = DeadlineError if self._on_host else TransportError
            message = f"{argv[0]} did not end in {timeout_s:g} s{self._on_host} and was killed"
            hint = "a hung program is often blocked on an unresponsive volume"
            raise error_class(message, hint=hint) from error
        message = f"{argv[0]} cannot be run{self._on_host}: {error.reason}"
        raise TransportError(message, hint=_WRITABLE_HINT) from error


def not_written(error: OperationError, host: str) -> TransportError:
    """Return the error of a file that cannot be written on a host; empty for this machine."""
    path, _, reason = error.reason.partition(": ")
    verb = f"written on {host}" if host else "written"
    message, hint = unwritten(path, reason or error.kind, hint="check permissions", verb=verb)
    return TransportError(message, hint=hint)


class AgentExecutor(AgentHost):
    """A host on the other side of a channel.

    Args:
        python: interpreter there; empty to try the usual ones.
        sudo: run fio and what accesses devices as root, by ``sudo -n``.
        work_folder: parent of the work folders on the host; empty for ``~/.volbench``.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        python: str = "",
        sudo: bool = False,
        work_folder: str = "",
        patience: Patience | None = None,
    ) -> None:
        self.host = channel.host
        self.is_remote = True
        self.client = AgentClient(channel, python=python, patience=patience)
        self._sudo = sudo
        self._work_folder = work_folder or _WORK_FOLDER
        self._work_base = ""
        self._starts: Counter[str] = Counter()

    @property
    def _on_host(self) -> str:
        return f" on {self.host}"

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of the host."""
        return self.client.silent_s

    @property
    def trouble(self) -> str:
        """Reason why the host cannot be connected to again; empty while it is connected."""
        return self.client.trouble

    def wait_when_unreachable(
        self, *, unless: Callable[[], bool], is_hung: Callable[[], bool]
    ) -> None:
        """Extend the retry period for the case that the host becomes unreachable."""
        self.client.patience = Patience(
            tries=10_000,
            begin_within_s=PATIENCE_S,
            unless=lambda: unless() or is_hung(),
            is_hung=is_hung,
        )

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of the agent on the host; see `Executor.ask`.

        A host with sudo repeats as root what the login user may not do to files.
        """
        arguments = named_arguments(operation, args, kwargs)
        request = self.request(operation, arguments)
        if operation is release:
            self.client.standing = None
        try:
            answer = self.client.ask(request)
        except OperationError as error:
            if not self._sudo or error.kind != "denied" or operation not in _AS_OWNER:
                raise
            if operation is make_private_folder:
                arguments["owner"] = self.ask(user_id)
            answer = self.client.ask(replace(request, as_root=True))
        if operation is reserve:
            self.client.standing = Standing(request, self._check_reserved)
        return answer

    def stream(
        self,
        operation: Callable[P, Iterator[T]],
        take: Callable[[T], None],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Pass the parts of a generator of the agent to a function; see `Executor.stream`."""
        self.client.ask_parts(
            self.request(operation, named_arguments(operation, args, kwargs)), take
        )

    def _check_reserved(self, answer: Reservation) -> None:
        """Refuse to go on with a host whose locks another campaign took while it was away."""
        if answer.holder:
            message = f"another campaign ({answer.holder}) locked the device {answer.device} on "
            message += f"{self.host} while the connection was lost"
            raise RefusedError(message, hint="resume this campaign when the other one has ended")

    def request(self, operation: Callable[..., T], arguments: dict[str, object]) -> Request[T]:
        """Return the request of an operation, with the rights and the time that it needs."""
        argv, hold = arguments.get("argv"), arguments.get("hold")
        needs_device = bool(hold)
        if isinstance(argv, list):  # env starts another program
            program = posixpath.basename(next((word for word in argv if word != "env"), ""))
            needs_device |= program in _DEVICE_TOOLS
            needs_device |= any(word.startswith(_DEVICE_FOLDERS) for word in argv[1:])
        name = operation.__name__
        path = argv[0] if isinstance(argv, list) else arguments.get("parent", "")
        return Request(
            operation,
            arguments,
            timeout_s=limit_s(operation, arguments),
            as_root=self._sudo and (name in AS_ROOT or needs_device),
            repeatable=operation is not make_private_folder,  # not after a lost link
            name=f"{name} {path}".strip(),
        )

    def clock(self) -> tuple[ClockReading, ...]:
        """Return readings of the host's clock, in one round trip."""
        return self.client.ask_with_clock(self.request(clock, {}))[1]

    def survey(self) -> tuple[Survey, tuple[ClockReading, ...]]:
        """Return the facts of the host, and readings of its clock, in one round trip."""
        request = self.request(survey, {"folder": self._work_folder})
        answer, readings = self.client.ask_with_clock(request)
        self._work_base = answer.folder
        return answer, readings

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        files: Mapping[str, str] | None = None,
        supervision: Supervision | None = None,
        on_intent: Callable[[str], None] | None = None,
    ) -> DetachedProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        Its control folder is hidden and beside that file, with the same stem.
        """
        self._starts[stderr] += 1
        count, path = self._starts[stderr], PurePosixPath(stderr)
        control = str(path.with_name(f".{path.stem}")) + (f".{count}" if count > 1 else "")
        if on_intent is not None:
            on_intent(control)
        arguments = launch_arguments(argv, supervision)
        arguments |= {"cwd": cwd, "stderr": stderr, "control": control}
        request = self.request(launch, arguments)
        if request.as_root and files:  # they are to belong to the login user
            try:
                self.ask(write_files, dict(files))
            except OperationError as error:
                raise not_written(error, self.host) from error
        else:
            arguments["files"] = dict(files or {})
        followed = () if supervision is None else supervision.followed
        process = DetachedProcess(
            self.client, control, as_root=request.as_root, is_new=True, followed=followed
        )
        process.watch()  # its messages follow the launch without a further round trip
        try:
            process.take_launch(self.client.ask(request))
        except OperationError as error:
            message = f"{argv[0]} cannot be started on {self.host}: {error.reason}"
            hint = "check there: permissions, free space and inodes (df -h, df -i), ulimit -a"
            if error.kind == "missing":
                hint = f"check that it is installed there: command -v {argv[0]}"
            raise TransportError(message, hint=hint) from error
        return process

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> DetachedProcess:
        """Reattach to a program that an earlier controller started."""
        return DetachedProcess(self.client, handle, as_root=self._sudo, followed=followed)

    def hold(self, path: str) -> None:
        """Hold nothing: the run's own program holds its device there."""

    def owe(self, files: Sequence[NamedFile]) -> None:
        """Let the host remove files by itself if it loses the controller before they are gone."""
        with suppress(TransportError):  # the removal itself reports that
            if self.client.is_open:
                self.client.post(self.request(owe, {"files": [*files]}))

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return a work folder on the host, created with its first file."""
        del folder  # local paths have no meaning on the host
        return f"{self._base()}/{name}"

    def _base(self) -> str:
        """Return the absolute parent of the work folders: root has another home."""
        self._work_base = self._work_base or self.ask(real_path, self._work_folder)
        return self._work_base

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Fetch all files of a work folder into the controller's, each atomically."""
        with IncomingFolder(self.host, path, Path(folder)) as incoming:
            arguments = {"path": path, "have": incoming.have}
            request = Request(fetch_folder, arguments, name=f"fetching {path}")
            try:
                self.client.ask_parts(request, incoming.take)
            except OperationError as error:
                message = f"{path} cannot be fetched from {self.host}: {error.reason}"
                hint = "check that it exists, and its permissions"
                raise TransportError(message, hint=hint) from error

    def remove_work_folder(self, path: str) -> None:
        """Remove a work folder recursively, including files owned by root."""
        try:
            self.ask(remove_work_folder, base=self._base(), path=path)
        except OperationError as error:
            message = f"{path} cannot be removed from {self.host}: {error.reason}"
            raise VolbenchError(message, hint="remove it manually") from error

    def close(self) -> None:
        """Release the host; detached programs continue."""
        self.client.close()
