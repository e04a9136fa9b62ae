"""Operations on a host by its agent, typed and validated, wherever the agent runs.

`LocalExecutor` calls the agent's functions in its own process, `AgentExecutor` asks the agent of
another machine; both are an `AgentHost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeGuard

from volbench.errors import DeadlineError, InputError, RefusedError, TransportError, VolbenchError
from volbench.execute.protocol import (
    FILE_KINDS,
    Completed,
    FileStat,
    OperationError,
    SharedLocks,
)
from volbench.model.campaign.planned_run import FileIdentity

_RUN_S = 60.0  # Tools such as blkid take milliseconds, seconds on a busy volume.
_WRITABLE_HINT = "check permissions and free space"
_MANUAL_HINT = "remove it manually"


class AgentHost:
    """A host that answers `ask`."""

    host: str
    shared_locks: SharedLocks | None = None
    check_folder = ""  # where `run_on_files` makes its files; empty for the system's folder

    def ask(self, operation: str, *, within_s: float = 60.0, **arguments: object) -> object:
        """Return the result of an operation of the agent; see `execute.agent.operations`.

        Args:
            operation: its name.
            within_s: time limit of the reply.
            arguments: what JSON can carry.

        Raises:
            OperationError: it could not be carried out.
            TransportError: the host does not answer.
        """
        return self.carry_out(operation, arguments, within_s=within_s)

    def carry_out(
        self, operation: str, arguments: Mapping[str, object], *, within_s: float
    ) -> object:
        """Carry out an operation of the agent; see `ask`."""
        raise NotImplementedError

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
