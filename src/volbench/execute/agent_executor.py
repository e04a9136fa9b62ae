"""Operations on a host by its agent, typed and validated, wherever the agent runs.

`LocalExecutor` calls the agent's functions in its own process, `AgentExecutor` asks the agent of
another machine over a channel, and starts detached programs there; both are an `AgentHost`.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NoReturn, TypeGuard

from volbench.errors import DeadlineError, InputError, RefusedError, TransportError, VolbenchError
from volbench.execute.agent.operations import AS_ROOT
from volbench.execute.channels import PATIENCE_S, Channel, Patience
from volbench.execute.client import AgentClient, Request
from volbench.execute.detached_process import DetachedProcess
from volbench.execute.incoming_folder import IncomingFolder
from volbench.execute.protocol import (
    FILE_KINDS,
    ClockReading,
    Completed,
    FileStat,
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
    check_folder = ""  # where `run_on_files` makes its files; empty for the system's folder

    def ask(self, operation: str, *, within_s: float = 60.0, **arguments: object) -> object:
        """Return the result of an operation of the agent."""
        return self.carry_out(operation, arguments, within_s=within_s)

    @abstractmethod
    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Carry out an operation of the agent; see `ask`."""

    @property
    def identity(self) -> str:
        """Empty: its machine-id identifies a machine."""
        return ""

    @property
    def _on_host(self) -> str:
        """Where something happened, for messages; empty on the controller's machine."""
        return ""

    def run(self, argv: Sequence[str], *, timeout_s: float = _RUN_S) -> Completed:
        """Run a program to completion with LC_ALL=C and no input.

        Raises:
            TransportError: the program is missing, or was killed after `timeout_s`.
        """
        try:
            result = self.ask("run", within_s=timeout_s + 15, argv=[*argv], timeout_s=timeout_s)
        except OperationError as error:
            self._not_run(argv, error, timeout_s)
        return self._completed(argv, result)

    def run_on_files(self, argv: Sequence[str], texts: Sequence[str]) -> Completed:
        """Run a program on temporary files, which are removed when it ends.

        Raises:
            TransportError: the program is missing, or the files cannot be written.
        """
        arguments = {"argv": [*argv], "texts": [*texts], "base": self.check_folder}
        try:
            result = self.carry_out("run_on_files", arguments, within_s=_RUN_S + 15)
        except OperationError as error:
            self._not_run(argv, error)
        return self._completed(argv, result)

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

    def _completed(self, argv: Sequence[str], result: object) -> Completed:
        match result:
            case {"status": int(status), "stdout": str(stdout), "stderr": str(stderr)}:
                return Completed(tuple(argv), status, stdout, stderr)
            case _:
                raise self.malformed("run", result)

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""
        path = self.ask("which", program=program)
        return None if path is None else self._text("which", path)

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or None if unreadable."""
        text = self.ask("read_text", path=path)
        return None if text is None else self._text("read_text", text)

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty if it does not exist."""
        names = self.ask("list_directory", path=path)
        if not isinstance(names, list) or not all(_is_name(name) for name in names):
            raise self.malformed("list_directory", names)
        return tuple(names)

    def real_path(self, path: str) -> str:
        """Return the path with all symlinks resolved; nonexistent components are kept."""
        return self._text("real_path", self.ask("real_path", path=path))

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return the stat result of a path, or None if it does not exist.

        Raises:
            InputError: access is denied.
        """
        try:
            status = self.ask("stat", path=path, follow=follow)
        except OperationError as error:
            raise self._not_examined(path, error) from error
        return None if status is None else self.parse_stat(status)

    def _not_examined(self, path: str, error: OperationError) -> InputError:
        return InputError(
            f"{path} cannot be examined{self._on_host}: {error.reason}",
            hint="check the path and its permissions",
        )

    def remove_exactly(self, files: Sequence[tuple[str, FileIdentity]]) -> list[bool]:
        """Remove files and empty directories in order, each if its identity matches.

        Raises:
            VolbenchError: the operating system refused.
        """
        if not files:
            return []
        listed = [[path, list(identity)] for path, identity in files]
        try:
            gone = self._ask_as_owner("remove_exactly", files=listed)
        except OperationError as error:
            raise self._not_removed(files[0][0], error) from error
        if not isinstance(gone, list) or len(gone) != len(files):
            raise self.malformed("remove_exactly", gone)
        return [is_gone is True for is_gone in gone]

    def _not_removed(self, path: str, error: OperationError) -> VolbenchError:
        return VolbenchError(
            f"{path} cannot be removed{self._on_host}: {error.reason}", hint=_MANUAL_HINT
        )

    def make_private_folder(self, path: str) -> bool:
        """Create a directory with mode 0700; return False if the path exists.

        Raises:
            RefusedError: the operating system refused.
        """
        try:
            return self._ask_as_owner("make_private_folder", path=path) is True
        except OperationError as error:
            raise RefusedError(
                f"{path} cannot be created{self._on_host}: {error.reason}", hint=_WRITABLE_HINT
            ) from error

    def write_text(self, path: str, text: str) -> None:
        """Write a file atomically.

        Raises:
            TransportError: the host refused.
        """
        self.write_texts({path: text})

    def write_texts(self, files: Mapping[str, str]) -> None:
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
        return TransportError(
            f"{path} cannot be written{self._on_host}: {reason or error.kind}", hint=_WRITABLE_HINT
        )

    def _ask_as_owner(self, operation: str, **arguments: object) -> object:
        """Ask as the login user; a host with sudo repeats as root what that user may not do."""
        return self.carry_out(operation, arguments, within_s=60.0)

    def parse_stat(self, status: object) -> FileStat:
        """Return a stat result.

        Raises:
            TransportError: it is malformed.
        """
        match status:
            case {
                "kind": str(kind),
                "device": [int(major), int(minor)],
                "rdev": [int(rdev_major), int(rdev_minor)],
                "inode": int(inode),
                "size_bytes": int(size_bytes),
                "born_ns": int(born_ns),
                "owner": int(owner),
                "mode": int(mode),
            } if kind in {*FILE_KINDS.values(), "other"} and size_bytes >= 0:
                device, rdev = (major, minor), (rdev_major, rdev_minor)
                return FileStat(kind, device, rdev, inode, size_bytes, born_ns, owner, mode)
            case _:
                raise self.malformed("stat", status)

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


def _is_name(name: object) -> bool:
    return isinstance(name, str) and "/" not in name and name not in {"", ".", ".."}


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


_WORK_FOLDER = ".volbench"
_LAUNCH_S = 45.0  # The agent itself waits 30 s for a supervisor on a busy host.
_SILENCE_S = 60.0  # Between chunks: hashing 1 GB that arrived before takes seconds.
_DEVICE_TOOLS = frozenset({"blkid", "blockdev", "fio", "fuser", "lsof", "nvme", "smartctl"})
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

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """Extend the retry period for the case that the host becomes unreachable."""
        patience = Patience(tries=10_000, begin_within_s=PATIENCE_S, unless=unless)
        self.client.patience = patience

    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Ask the agent; see `AgentHost.ask`."""
        return self.client.ask(self.request(operation, arguments, within_s))

    def request(self, operation: str, arguments: Mapping[str, object], within_s: float) -> Request:
        """Return the request of an operation, with the rights that it needs."""
        argv, hold = arguments.get("argv"), arguments.get("hold")
        needs_device = hold is not None or (isinstance(argv, list) and uses_device(argv))
        as_root = self._sudo and (operation in AS_ROOT or needs_device)
        path = arguments.get("path", argv[0] if isinstance(argv, list) else "")
        return Request(
            operation,
            arguments,
            timeout_s=within_s,
            as_root=as_root,
            repeatable=operation != "make_private_folder",
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

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to completion; see `AgentHost.run`.

        Raises:
            TransportError: the program is missing, or was killed after `timeout_s`.
            AuthError: sudo requires a password.
        """
        return super().run(argv, timeout_s=timeout_s)

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        followed: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        supervision: Supervision | None = None,
    ) -> DetachedProcess:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        Its control folder is hidden and beside that file, with the same stem.

        Raises:
            TransportError: the program cannot be started.
        """
        self._starts[stderr] += 1
        count = self._starts[stderr]
        control = self.handle_of(stderr) + (f".{count}" if count > 1 else "")
        arguments = launch_arguments(argv, supervision)
        arguments |= {"cwd": cwd, "stderr": stderr, "control": control}
        request = self.request("launch", arguments, _LAUNCH_S)
        if request.as_root and files:
            self.write_texts(files)  # they are to belong to the login user
        else:
            arguments["files"] = dict(files or {})
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
                else "check permissions and free space there",
            ) from error
        return process

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> DetachedProcess:
        """Reattach to a program that an earlier controller started."""
        return DetachedProcess(self.client, handle, as_root=self._sudo, followed=followed)

    def handle_of(self, stderr: str) -> str:
        """Return the control folder of the first program started with the file `stderr`."""
        path = PurePosixPath(stderr)
        return str(path.with_name(f".{path.stem}"))

    def was_started(self, handle: str) -> bool:
        """Return whether the program of a control folder was started."""
        return self.stat(f"{handle}/start") is not None

    def hold(self, path: str, *, exclusive: bool) -> RemoteDevice:
        """Check a block device; the run's supervisor holds it open.

        Raises:
            RefusedError: the path is not a block device.
        """
        del exclusive
        status = self.stat(path)
        if status is None or status.kind != "block":
            raise RefusedError(
                f"{path} on {self.host} is not a block device", hint="lsblk lists the devices"
            )
        return RemoteDevice(self, path, status.rdev)

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return a work folder on the host, created with its first file."""
        del folder  # local paths have no meaning on the host
        self._work_base = self._work_base or self.real_path(self.check_folder)
        return f"{self._work_base}/{name}"

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
            self._ask_as_owner("remove_work_folder", base=self._work_base_path(), path=path)
        except OperationError as error:
            raise VolbenchError(
                f"{path} cannot be removed from {self.host}: {error.reason}",
                hint="remove it manually",
            ) from error

    def _work_base_path(self) -> str:
        """Return the absolute parent of the work folders: root has another home."""
        return self.real_path(self.check_folder)

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return `count` readings of the host's clock.

        Raises:
            TransportError: the host does not respond.
        """
        return self.client.read_clock(count)

    def close(self) -> None:
        """Release the host; detached programs continue."""
        self.client.close()


class RemoteDevice:
    """A block device of another host, which the run's supervisor holds open."""

    is_exclusive = False

    def __init__(self, executor: AgentExecutor, path: str, number: tuple[int, int]) -> None:
        self.number = number
        self._executor = executor
        self._path = path

    def digest(self, size_bytes: int) -> str:
        """Return the SHA-256 of the first and last MiB; "" on a read error."""
        digest = self._executor.ask("edges_digest", path=self._path, size_bytes=size_bytes)
        if not isinstance(digest, str) or len(digest) > 64:
            raise self._executor.malformed("edges_digest", digest)
        return digest

    def close(self) -> None:
        """Do nothing."""


def uses_device(argv: Sequence[str]) -> bool:
    """Return whether a program is fio, a device tool, or has an argument that is a device."""
    is_tool = posixpath.basename(argv[0]) in _DEVICE_TOOLS
    return is_tool or any(argument.startswith(_DEVICE_FOLDERS) for argument in argv[1:])
