"""Operations on a host by its agent, typed and validated, wherever the agent runs.

`LocalExecutor` calls the agent's functions in its own process, `AgentExecutor` asks the agent of
another machine over a channel, and starts detached programs there; both are an `AgentHost`.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NoReturn

from volbench.errors import (
    DeadlineError,
    RefusedError,
    TransportError,
    VolbenchError,
    unwritten,
)
from volbench.execute.agent.operations import AS_ROOT
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
from volbench.model.campaign.planned_run import FileIdentity

_RUN_S = 60.0  # Tools such as blkid take milliseconds, seconds on a busy volume.
_WRITABLE_HINT = "check permissions and free space"
_MANUAL_HINT = "remove it manually"


class AgentHost(ABC):
    """A host that answers `ask`."""

    host: str
    shared_locks: SharedLocks | None = None
    is_remote = False
    check_folder = ""  # where `run` makes its files; empty for the system's folder

    def ask(self, operation: str, *, within_s: float = 60.0, **arguments: object) -> object:
        """Return the result of an operation of the agent."""
        return self.carry_out(operation, arguments, within_s=within_s)

    @abstractmethod
    def stream(
        self,
        operation: str,
        take: Callable[[object], None],
        *,
        within_s: float,
        **arguments: object,
    ) -> None:
        """Let a function take each part of a result, until there is none or it raises.

        Args:
            take: called with each part, in this thread; also with None, between two parts.
            within_s: time limit of each part.

        Raises:
            OperationError: it could not be carried out.
            TransportError: the host does not answer.
        """

    @abstractmethod
    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Carry out an operation of the agent; see `ask`."""

    @property
    def _on_host(self) -> str:
        """Where something happened, for messages; empty on the controller's machine."""
        return ""

    def run(
        self, argv: Sequence[str], *, texts: Sequence[str] = (), timeout_s: float = _RUN_S
    ) -> Completed:
        """Run a program to completion with LC_ALL=C and no input.

        Raises:
            TransportError: the program is missing, or was killed after `timeout_s`, or the files
                cannot be written.
            AuthError: sudo requires a password.
        """
        arguments: dict[str, object] = {"argv": [*argv], "timeout_s": timeout_s}
        if texts:
            arguments |= {"texts": [*texts], "base": self.check_folder}
        operation = "run_on_files" if texts else "run"
        try:
            result = self.ask(operation, within_s=timeout_s + 15, **arguments)
        except OperationError as error:
            self._not_run(argv, error, timeout_s)
        match result:
            case {"status": int(status), "stdout": str(stdout), "stderr": str(stderr)}:
                return Completed(tuple(argv), status, stdout, stderr)
            case _:
                raise self.malformed("run", result)

    def _not_run(
        self, argv: Sequence[str], error: OperationError, timeout_s: float = _RUN_S
    ) -> NoReturn:
        """Raise the error of a program that was not run, or killed."""
        if error.kind in {"missing", "denied"}:
            raise TransportError(
                f"{argv[0]} cannot be started{self._on_host}: {error.reason}",
                hint=f"check that it is installed: command -v {argv[0]}",
            ) from error
        if error.kind == "timeout":
            error_class = DeadlineError if self._on_host else TransportError
            raise error_class(
                f"{argv[0]} did not end in {timeout_s:g} s{self._on_host} and was killed",
                hint="a hung program is often blocked on an unresponsive volume",
            ) from error
        raise TransportError(
            f"{argv[0]} cannot be run{self._on_host}: {error.reason}", hint=_WRITABLE_HINT
        ) from error

    def read_files(self, paths: Sequence[str]) -> list[str | None]:
        """Return the texts of small files; None for each that is unreadable."""
        texts = self.ask("read_files", paths=[*paths])
        if not isinstance(texts, list) or len(texts) != len(paths):
            raise self.malformed("read_files", texts)
        return [None if text is None else self._text("read_files", text) for text in texts]

    def real_path(self, path: str) -> str:
        """Return the path with all symlinks resolved; nonexistent components are kept."""
        return self._text("real_path", self.ask("real_path", path=path))

    def remove_exactly(self, files: Sequence[tuple[str, FileIdentity | None]]) -> list[bool]:
        """Remove files and empty directories in order, each if its identity matches.

        Raises:
            VolbenchError: the operating system refused.
        """
        if not files:
            return []
        try:
            gone = self._ask_as_owner("remove_exactly", files=_listed(files))
        except OperationError as error:
            raise self._not_removed(files[0][0], error) from error
        if not isinstance(gone, list) or len(gone) != len(files):
            raise self.malformed("remove_exactly", gone)
        return [is_gone is True for is_gone in gone]

    def _not_removed(self, path: str, error: OperationError) -> VolbenchError:
        return VolbenchError(
            f"{path} cannot be removed{self._on_host}: {error.reason}", hint=_MANUAL_HINT
        )

    def make_private_folder(self, parent: str, name: str) -> tuple[str, FileIdentity]:
        """Create a directory with mode 0700 in another one; return its path and identity.

        Raises:
            RefusedError: the operating system refused.
        """
        try:
            made = self._ask_as_owner("make_private_folder", parent=parent, name=name)
        except OperationError as error:
            raise RefusedError(
                f"{parent}/{name} cannot be created{self._on_host}: {error.reason}",
                hint=_WRITABLE_HINT,
            ) from error
        match made:
            case [str(path), [int(major), int(minor), int(inode), int(born_ns)]]:
                return path, (major, minor, inode, born_ns)
            case _:
                raise self.malformed("make_private_folder", made)

    def write_files(self, files: Mapping[str, str]) -> None:
        """Write small files atomically, creating their folders.

        Raises:
            TransportError: the host refused.
        """
        try:
            self.ask("write_files", within_s=600.0, files=dict(files))
        except OperationError as error:
            raise self.not_written(error) from error

    def not_written(self, error: OperationError) -> TransportError:
        """Return the error of a file that cannot be written."""
        path, _, reason = error.reason.partition(": ")
        verb = f"written{self._on_host}"
        reason = reason or error.kind
        message, hint = unwritten(path, reason, hint="check permissions", verb=verb)
        return TransportError(message, hint=hint)

    def _ask_as_owner(self, operation: str, **arguments: object) -> object:
        """Ask as the login user; a host with sudo repeats as root what that user may not do."""
        return self.carry_out(operation, arguments, within_s=60.0)

    def _text(self, operation: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.malformed(operation, value)
        return value

    def malformed(self, operation: str, value: object) -> TransportError:
        """Return the error of a result that is not what the operation returns."""
        return TransportError(
            f"{self.host} answers {operation} with {repr(value)[:80]}",
            hint="do not trust this host",
        )


def _listed(files: Sequence[tuple[str, FileIdentity | None]]) -> list[object]:
    """Return paths and identities as the agent takes them."""
    return [[path, identity and list(identity)] for path, identity in files]


_WORK_FOLDER = ".volbench"
_LAUNCH_S = 45.0  # The agent itself waits 30 s for a supervisor on a busy host.
_SILENCE_S = 60.0  # Between chunks: hashing 1 GB that arrived before takes seconds.
_DEVICE_TOOLS = frozenset({"blkid", "blockdev", "fio", "fuser", "lsof", "nvme", "smartctl"})
_ONCE = frozenset({"make_private_folder", "record_requests"})  # Not repeated after a lost link
_DEVICE_FOLDERS = ("/dev/", "/sys/dev/block/")


class AgentExecutor(AgentHost):
    """A host on the other side of a channel.

    Args:
        channel: channel to the host.
        python: interpreter there; empty to try the usual ones.
        sudo: run fio and what accesses devices as root, by ``sudo -n``.
        work_folder: parent of the work folders on the host; empty for ``~/.volbench``.
        patience: retry policy for an unreachable host.
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
        self.check_folder = work_folder or _WORK_FOLDER
        self._work_base = ""
        self._starts: Counter[str] = Counter()
        self._removals: dict[str, Callable[[], object] | None] = {}

    @property
    def _on_host(self) -> str:
        return f" on {self.host}"

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of the host."""
        return self.client.silent_s

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

    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Ask the agent; see `AgentHost.ask`."""
        request = self.request(operation, arguments, within_s)
        if operation == "release":
            self.client.standing = None
        answer = self.client.ask(request)
        if operation == "reserve":
            self.client.standing = Standing(request, self._check_reserved)
        return answer

    def stream(
        self,
        operation: str,
        take: Callable[[object], None],
        *,
        within_s: float,
        **arguments: object,
    ) -> None:
        """Ask the agent for parts; see `AgentHost.stream`."""
        self.client.ask_parts(self.request(operation, arguments, within_s), take)

    def _check_reserved(self, answer: object) -> None:
        """Refuse to go on with a host whose locks another campaign took while it was away."""
        match answer:
            case {"device": str(number), "holder": str(holder)}:
                raise RefusedError(
                    f"another campaign ({holder}) locked the device {number} on {self.host} while "
                    "the connection was lost",
                    hint="resume this campaign when the other one has ended",
                )

    def request(self, operation: str, arguments: Mapping[str, object], within_s: float) -> Request:
        """Return the request of an operation, with the rights that it needs."""
        argv, hold = arguments.get("argv"), arguments.get("hold")
        needs_device = hold is not None or (isinstance(argv, list) and uses_device(argv))
        as_root = self._sudo and (operation in AS_ROOT or needs_device)
        path = argv[0] if isinstance(argv, list) else arguments.get("parent", "")
        return Request(
            operation,
            arguments,
            timeout_s=within_s,
            as_root=as_root,
            repeatable=operation not in _ONCE,
            name=f"{operation} {path}".strip(),
        )

    def _ask_as_owner(self, operation: str, **arguments: object) -> object:
        """Ask as the login user, then as root what that user may not do."""
        try:
            return self.carry_out(operation, arguments, within_s=60.0)
        except OperationError as error:
            if not self._sudo or error.kind != "denied":
                raise
        if operation == "make_private_folder":
            arguments["owner"] = self.ask("user_id")
        request = self.request(operation, arguments, 60.0)
        return self.client.ask(Request(operation, arguments, as_root=True, name=request.name))

    def survey(self) -> tuple[object, tuple[ClockReading, ...]]:
        """Return the facts of the host, and readings of its clock, in one round trip.

        Raises:
            TransportError: the host does not respond.
        """
        request = self.request("survey", {"folder": self.check_folder}, 60.0)
        answer, readings = self.client.ask_with_clock(request)
        match answer:
            case {"folder": str(folder)}:
                self._work_base = folder
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

        Raises:
            TransportError: the program cannot be started.
        """
        self._starts[stderr] += 1
        count, path = self._starts[stderr], PurePosixPath(stderr)
        control = str(path.with_name(f".{path.stem}")) + (f".{count}" if count > 1 else "")
        if on_intent is not None:
            on_intent(control)
        arguments = launch_arguments(argv, supervision)
        arguments |= {"cwd": cwd, "stderr": stderr, "control": control}
        request = self.request("launch", arguments, _LAUNCH_S)
        if request.as_root and files:
            self.write_files(files)  # they are to belong to the login user
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
            raise TransportError(
                f"{argv[0]} cannot be started on {self.host}: {error.reason}",
                hint=f"check that it is installed there: command -v {argv[0]}"
                if error.kind == "missing"
                else "check there: permissions, free space and inodes (df -h, df -i), ulimit -a",
            ) from error
        return process

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> DetachedProcess:
        """Reattach to a program that an earlier controller started."""
        return DetachedProcess(self.client, handle, as_root=self._sudo, followed=followed)

    def hold(self, path: str) -> None:
        """Hold nothing: the run's own program holds its device there."""

    def owe(self, files: Sequence[tuple[str, FileIdentity | None]]) -> None:
        """Let the host remove files by itself if it loses the controller before they are gone."""
        with suppress(TransportError):  # the removal itself reports that
            if self.client.is_open:
                request = self.request("owe", {"files": _listed(files)}, 60.0)
                self.client.post(request)

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return a work folder on the host, created with its first file."""
        del folder  # local paths have no meaning on the host
        return f"{self._base()}/{name}"

    def _base(self) -> str:
        """Return the absolute parent of the work folders: root has another home."""
        self._work_base = self._work_base or self.real_path(self.check_folder)
        return self._work_base

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Fetch all files of a work folder into the controller's, each atomically.

        Raises:
            TransportError: a file is unreadable on the host, or was corrupted in transit.
            ArchiveError: a local file cannot be written.
        """
        with IncomingFolder(self.host, path, Path(folder)) as incoming:
            arguments = {"path": path, "have": incoming.have}
            request = Request(
                "fetch_folder", arguments, timeout_s=_SILENCE_S, name=f"fetching {path}"
            )
            try:
                self.client.ask_parts(request, incoming.take)
            except OperationError as error:
                raise TransportError(
                    f"{path} cannot be fetched from {self.host}: {error.reason}",
                    hint="check that it exists, and its permissions",
                ) from error

    def remove_work_folder(self, path: str, *, wait: bool = True) -> None:
        """Remove a work folder recursively, including files owned by root.

        Raises:
            VolbenchError: the path is not a work folder, or the operating system refused.
        """
        arguments = {"base": self.check_folder, "path": path}
        if not wait:
            try:
                request = Request("remove_work_folder", arguments, name=f"removing {path}")
                self._removals[path] = self.client.post(request)
            except TransportError:
                self._removals[path] = None
            return
        self._removals.setdefault(path, None)
        while self._removals:
            removed, answer = self._removals.popitem()
            self._finish_removal(removed, answer)

    def _finish_removal(self, path: str, answer: Callable[[], object] | None) -> None:
        """Wait for the end of a removal, and repeat it as root, or if its reply was lost."""
        if answer is not None:
            try:
                answer()
            except (OperationError, TransportError):
                pass
            else:
                return
        try:
            self._ask_as_owner("remove_work_folder", base=self._base(), path=path)
        except OperationError as error:
            raise VolbenchError(
                f"{path} cannot be removed from {self.host}: {error.reason}",
                hint="remove it manually",
            ) from error

    def close(self) -> None:
        """Release the host; detached programs continue."""
        self.client.close()


def uses_device(argv: Sequence[str]) -> bool:
    """Return whether a program is fio, a device tool, or has an argument that is a device."""
    program = next((word for word in argv if word != "env"), "")  # which starts another program
    is_tool = posixpath.basename(program) in _DEVICE_TOOLS
    return is_tool or any(argument.startswith(_DEVICE_FOLDERS) for argument in argv[1:])
