"""Scripted executor for tests: a host simulated by dictionaries of files, devices and outputs.

It simulates hosts that a test machine cannot provide: a RAID, a hung program, a host without fio.
Directories exist implicitly as parents of scripted paths. Waits return at once.
"""

import signal
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath
from typing import Any, ParamSpec, TypeVar

from volbench.errors import InputError, RefusedError, TransportError
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.facts import Survey, survey
from volbench.execute.agent.files import FileStat, NamedFile, PrivateFolder
from volbench.execute.agent.run_command import Output
from volbench.execute.agent.snapshot import Snapshot
from volbench.execute.local import LocalBase
from volbench.execute.protocol import (
    ClockReading,
    Completed,
    OperationError,
    SharedLocks,
    Supervision,
)
from volbench.model.campaign.planned_run import FileIdentity

ROOT_FILESYSTEM = (8, 1)  # Device number of the filesystem of all scripted files

_LINK_LIMIT = 40
P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class FakeProcess:
    """A scripted process that advances by one step per wait."""

    steps: Sequence[str] = ()  # output of each step; the process exits after the last
    exit_status: int | None = 0  # its exit status; None to run until a signal terminates it
    ignores: frozenset[int] = frozenset()  # signals that do not terminate it
    pid: int = 4242  # process id
    signals: list[int] = field(default_factory=list)  # signals received
    handle: str = ""
    lost: str = ""
    silent_s: float = 0.0
    _step: int = 0
    _read: int = 0
    _ended: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self._ended is None and self._step >= len(self.steps):
            self._ended = self.exit_status
        return self._ended

    def read_output(self) -> str:
        """Return the output of the steps since the last call."""
        text = "".join(self.steps[self._read : self._step])
        self._read = self._step
        return text

    @property
    def is_sampled(self) -> bool:
        """Return False: there is no sampler."""
        return False

    def skip(self, *, output_bytes: int = 0, sample_bytes: int = 0) -> None:
        """Do nothing: scripted processes are never reattached."""

    def read_samples(self) -> str:
        """Return nothing: no scripted host has counters."""
        return ""

    def stop_sampling(self) -> None:
        """Do nothing: there is no sampler."""

    def first_line(self, path: str) -> None:
        """Return None: the executor reads files without delay."""

    def signal(self, number: int) -> None:
        """Record a signal and terminate, unless the signal is ignored."""
        if self.poll() is not None:
            return
        self.signals.append(number)
        if number == signal.SIGKILL or number not in self.ignores:
            self._ended = -number

    def wait(self, timeout_s: float) -> int | None:
        """Advance one step, unless the timeout is zero, and return the exit status."""
        if timeout_s > 0 and self.poll() is None:
            self._step = min(self._step + 1, len(self.steps))
        return self.poll()


@dataclass(frozen=True)
class FakeHeldDevice:
    """An open scripted device."""

    number: tuple[int, int]
    edges: str

    def digest(self, size_bytes: int) -> str:
        """Return the scripted digest, whatever the size."""
        return self.edges if size_bytes else ""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class FakeExecutor(LocalBase):
    """A scripted host."""

    host: str = "fake"  # host name
    files: dict[str, str] = field(default_factory=dict)  # path to text
    # path to stat result, for devices and other special files
    stats: dict[str, FileStat] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)  # path of a symlink to its absolute target
    # program name to a function that maps its argv to its result
    answers: dict[str, Callable[[tuple[str, ...]], Completed]] = field(default_factory=dict)
    # program name to a function that creates its process
    processes: dict[str, Callable[[tuple[str, ...]], FakeProcess]] = field(default_factory=dict)
    # path of a block device to the error of an exclusive open
    busy: dict[str, str] = field(default_factory=dict)
    # path of a block device to the digest of its first and last MiB
    edges: dict[str, str] = field(default_factory=dict)
    free: int = 1024**4  # bytes free on every filesystem
    ran: list[tuple[str, ...]] = field(default_factory=list)  # argv of each program run or started

    shared_locks: SharedLocks | None = None

    def clock(self) -> tuple[ClockReading, ...]:
        """Return nothing: the scripted host has no clock."""
        return ()

    def survey(self) -> tuple[Survey, tuple[ClockReading, ...]]:
        """Return the facts of the scripted host, which has no clock."""
        return self.ask(survey), ()

    def announce(self, *_arguments: object) -> tuple[int, tuple[str, ...]]:
        """Return the free bytes, which no other campaign takes."""
        return self.free, ()

    def remove_exactly(self, files: Sequence[NamedFile]) -> list[bool]:
        """Remove scripted files in order."""
        return [
            self.stat(path, follow=False) is None
            if identity is None
            else self.remove_exact(path, identity)
            for path, identity in files
        ]

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of an operation of the agent on the scripted host."""
        scripted: dict[str, Callable[..., Any]] = {
            function.__name__: function
            for function in (
                self.real_path,
                self.which,
                self.read_files,
                self.write_files,
                self.remove_exactly,
                self.make_private_folder,
                self.announce,
            )
        }
        if function := scripted.get(operation.__name__):
            answer: T = function(*args, **kwargs)
            return answer
        kwargs["snapshot"] = ScriptedSnapshot(self)
        try:
            return operation(*args, **kwargs)
        except AgentError as error:
            raise OperationError(error.kind, error.message) from error

    def content(self, node: str, offset: int, length: int) -> bytes:
        """Return bytes of a block device: zeros, unless a test replaces this."""
        del node, offset
        return bytes(length)

    def run(
        self, argv: Sequence[str], *, texts: Sequence[str] = (), timeout_s: float = 60.0
    ) -> Completed:
        """Return the scripted result of a program, whose files are not made."""
        argv = [*argv, *(f"/tmp/{number}" for number in range(len(texts)))]
        answer = self.answers.get(PurePosixPath(argv[0]).name)
        if answer is None:
            raise _missing(argv)
        self.ran.append(tuple(argv))
        del timeout_s
        return answer(tuple(argv))

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        files: Mapping[str, str] | None = None,
        supervision: Supervision | None = None,
        on_intent: Callable[[str], None] | None = None,
    ) -> FakeProcess:
        """Return the scripted process of a program; its standard error is empty."""
        begin = self.processes.get(PurePosixPath(argv[0]).name)
        if begin is None:
            raise _missing(argv)
        self.ran.append(tuple(argv))
        self.files[stderr] = ""
        del cwd, supervision, on_intent
        self.write_files(files or {})
        return begin(tuple(argv))

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> FakeProcess:
        """Raise: scripted processes cannot be reattached."""
        del followed
        raise _missing([handle])

    def which(self, program: str) -> str | None:
        """Return the path of a scripted program, or None."""
        known = program in self.answers or program in self.processes
        return f"/usr/bin/{program}" if known else None

    def read_text(self, path: str) -> str | None:
        """Return the text of a scripted file, or None."""
        return self.files.get(self.real_path(path))

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names of the scripted entries of a directory."""
        start = self.real_path(path).rstrip("/") + "/"
        below = (p.removeprefix(start) for p in self._all_paths() if p.startswith(start))
        return tuple(sorted({rest.partition("/")[0] for rest in below if rest}))

    def real_path(self, path: str) -> str:
        """Return the path with every scripted symlink resolved."""
        pending, resolved, followed = _parts(path), "", 0
        while pending:
            part = pending.pop(0)
            if part == "..":
                resolved = resolved.rpartition("/")[0]
                continue
            resolved = f"{resolved}/{part}"
            if resolved in self.links and followed < _LINK_LIMIT:
                pending = [*_parts(self.links[resolved]), *pending]
                resolved, followed = "", followed + 1
        return resolved or "/"

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return the stat result of a scripted path, or None if it does not exist."""
        if not follow and path in self.links:
            return FileStat("other", ROOT_FILESYSTEM, (0, 0), zlib.crc32(path.encode()), 0)
        real = self.real_path(path)
        if real in self.stats:
            return self.stats[real]
        inode = 2 + zlib.crc32(real.encode())
        if real in self.files:
            return FileStat("file", ROOT_FILESYSTEM, (0, 0), inode, len(self.files[real].encode()))
        if real == "/" or self.list_directory(real):
            return FileStat("directory", ROOT_FILESYSTEM, (0, 0), inode, 4096)
        return None

    def exclusive_error(self, path: str) -> str:
        """Return the error of an exclusive open, or "" if the device is free."""
        found = self.stat(path)
        if found is None or found.kind != "block":
            return "not a block device"
        return self.busy.get(self.real_path(path), "")

    def remove(self, path: str) -> None:
        """Remove a scripted file, if it exists."""
        self.files.pop(path, None)

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a scripted file if its identity matches."""
        found = self.stat(path, follow=False)
        if found is None or found.identity != identity:
            return found is None
        self.remove(path)
        return True

    def make_private_folder(self, parent: str, name: str) -> PrivateFolder:
        """Add a directory that does not exist yet."""
        paths = (f"{parent}/{name}" + (f"-{n}" if n else "") for n in count())
        path = next(path for path in paths if self.stat(path, follow=False) is None)
        inode = zlib.crc32(path.encode())
        status = FileStat("directory", ROOT_FILESYSTEM, (0, 0), inode, 4096, mode=0o700)
        self.stats[path] = status
        return PrivateFolder(path, status.identity)

    def hold(self, path: str) -> FakeHeldDevice:
        """Return an open scripted device."""
        found, reason = self.stat(path), self.exclusive_error(path)
        if found is None or reason:
            raise RefusedError(
                f"{path} cannot be opened exclusively: {reason}", hint="adapt the script"
            )
        return FakeHeldDevice(found.rdev, self.edges.get(self.real_path(path), ""))

    def read_files(self, paths: Sequence[str]) -> list[str | None]:
        """Return the texts of scripted files."""
        return [self.read_text(path) for path in paths]

    def write_files(self, files: Mapping[str, str]) -> None:
        """Store the texts of several files."""
        self.files.update(files)

    def _all_paths(self) -> set[str]:
        return {*self.files, *self.stats, *self.links}


class ScriptedSnapshot(Snapshot):
    """What the agent sees of a scripted host."""

    def __init__(self, executor: FakeExecutor) -> None:
        super().__init__()
        self._executor = executor

    def _stat(self, path: str, *, follow: bool) -> FileStat | None:
        try:
            return self._executor.stat(path, follow=follow)
        except InputError as error:
            raise AgentError("denied", error.message) from error

    def text(self, path: str) -> str:
        """Return the text of a scripted file; empty if there is none."""
        return self._executor.read_text(path) or ""

    def names(self, path: str) -> list[str]:
        """Return the names of scripted entries."""
        return list(self._executor.list_directory(path))

    def real_path(self, path: str) -> str:
        """Return the path with every scripted symlink resolved."""
        return self._executor.real_path(path)

    def free_space(self, path: str) -> tuple[int, int]:
        """Return the scripted free space, and as many files."""
        return (self._executor.free,) * 2 if path else (0, 0)

    def which(self, program: str) -> str:
        """Return the path of a scripted program."""
        return self._executor.which(program) or ""

    def run(self, argv: list[str], timeout_s: float = 60.0) -> Output:
        """Return the scripted output of a program."""
        try:
            done = self._executor.run(argv, timeout_s=timeout_s)
        except TransportError as error:
            raise AgentError("missing", error.message) from error
        return Output(done.exit_status, done.stdout, done.stderr)

    def read(self, node: str, offset: int, length: int) -> bytes:
        """Return scripted bytes of a device."""
        return self._executor.content(node, offset, length)

    def edges(self, node: str, size_bytes: int) -> str:
        """Return the scripted digest of a device."""
        return self._executor.edges.get(self._executor.real_path(node), "") if size_bytes else ""

    def open_error(self, path: str, *, writes: bool) -> str:
        """Return no error: every scripted volume can be opened."""
        del path, writes
        return ""

    def access_error(self, path: str, mode: int) -> str:
        """Return no error: files can be created in every scripted folder."""
        del path, mode
        return ""

    def exclusive_error(self, node: str) -> str:
        """Return the scripted error of an exclusive open."""
        return self._executor.exclusive_error(node)

    def attached_file(self, node: str) -> None:
        """Return None: loop devices are scripted by the paths of their files."""
        del node

    def is_open(self, path: str) -> bool:
        """Return that no scripted file is open."""
        return not path

    def opener_of(self, file: FileStat | None, devices: Iterable[tuple[int, int]] = ()) -> str:
        """Return that no program has the file of a loop device or a device open."""
        del file, devices
        return ""


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _missing(argv: Sequence[str]) -> TransportError:
    return TransportError(
        f"{argv[0]} cannot be started: no such program",
        hint=f"check that it is installed: command -v {argv[0]}",
    )
