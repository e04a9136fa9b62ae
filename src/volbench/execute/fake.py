"""Scripted executor: a machine made of files, links, devices and answers.

It can be what no test machine is: a RAID, a hung program, a host without fio. Folders follow from
what is in them. No time passes.
"""

from __future__ import annotations

import signal
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.errors import RefusedError, TransportError
from volbench.execute.local_base import LocalBase, LocalProcessBase
from volbench.execute.protocol import FOREVER_S, Completed, FileStat
from volbench.model.campaign.target import FileIdentity

ROOT_FILESYSTEM = (8, 1)
"""Device number of the filesystem that every scripted file is on."""

_LINK_LIMIT = 40


@dataclass
class FakeProcess(LocalProcessBase):
    """A scripted process: each wait is one step, and every step may write something.

    Attributes:
        steps: what it writes while each step passes; it ends after the last.
        exit_status: how it ends by itself; None to run until a signal ends it.
        ignores: signals that do not end it.
        pid: its process id.
        signals: what it was sent.
    """

    steps: Sequence[str] = ()
    exit_status: int | None = 0
    ignores: frozenset[int] = frozenset()
    pid: int = 4242
    signals: list[int] = field(default_factory=list)
    _step: int = 0
    _read: int = 0
    _ended: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        if self._ended is None and self._step >= len(self.steps):
            self._ended = self.exit_status
        return self._ended

    def read_output(self) -> str:
        """Return what the steps since the last call wrote."""
        text = "".join(self.steps[self._read : self._step])
        self._read = self._step
        return text

    def skip_output(self, count: int) -> None:
        """Do nothing: it is not found again."""

    def signal(self, number: int) -> None:
        """Record a signal, and end by it unless it is ignored."""
        if self.poll() is not None:
            return
        self.signals.append(number)
        if number == signal.SIGKILL or number not in self.ignores:
            self._ended = -number

    def wait(self, timeout_s: float) -> int | None:
        """Let one step pass, unless no time is given, and return the exit status."""
        if timeout_s > 0 and self.poll() is None:
            self._step = min(self._step + 1, len(self.steps))
        return self.poll()


@dataclass(frozen=True)
class FakeHeldDevice:
    """A scripted device that is open."""

    number: tuple[int, int]
    is_exclusive: bool
    edges: str

    def digest(self, size_bytes: int) -> str:
        """Return the scripted digest, whatever the size."""
        return self.edges if size_bytes else ""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class FakeExecutor(LocalBase):
    """A scripted machine.

    Attributes:
        host: its name.
        files: path to text.
        stats: path to what it is, for devices and other special files.
        links: path of a symlink to its absolute target.
        answers: program name to a function of its argument list.
        processes: program name to a function that makes its process.
        busy: path of a block device to why it can't be opened exclusively.
        edges: path of a block device to the digest of its first and last MiB.
        free: bytes free on every filesystem.
        ran: every argument list that was run or started.
        timeouts_s: time limit of every program that was run.
        started_in: folder of every process that was started.
    """

    host: str = "fake"
    files: dict[str, str] = field(default_factory=dict)
    stats: dict[str, FileStat] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Callable[[tuple[str, ...]], Completed]] = field(default_factory=dict)
    processes: dict[str, Callable[[tuple[str, ...]], FakeProcess]] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)
    free: int = 1024**4
    ran: list[tuple[str, ...]] = field(default_factory=list)
    timeouts_s: list[float] = field(default_factory=list)
    started_in: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Return the scripted answer of a program.

        Raises:
            TransportError: none is scripted.
        """
        answer = self.answers.get(PurePosixPath(argv[0]).name)
        if answer is None:
            raise _missing(argv)
        self.ran.append(tuple(argv))
        self.timeouts_s.append(timeout_s)
        return answer(tuple(argv))

    def start(
        self, argv: Sequence[str], *, cwd: str, stderr: str, longest_s: float = FOREVER_S
    ) -> FakeProcess:
        """Return the scripted process of a program; its error file is empty.

        Raises:
            TransportError: none is scripted.
        """
        begin = self.processes.get(PurePosixPath(argv[0]).name)
        if begin is None:
            raise _missing(argv)
        self.ran.append(tuple(argv))
        self.files[stderr] = ""
        del longest_s
        self.started_in.append(cwd)
        return begin(tuple(argv))

    def find(self, handle: str) -> FakeProcess:
        """Raise: no process is found again.

        Raises:
            TransportError: always.
        """
        raise _missing([handle])

    def which(self, program: str) -> str | None:
        """Return a path for every scripted program, or None."""
        known = program in self.answers or program in self.processes
        return f"/usr/bin/{program}" if known else None

    def read_text(self, path: str) -> str | None:
        """Return a scripted file's text, or None."""
        return self.files.get(self.real_path(path))

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names of what is scripted in a folder."""
        start = self.real_path(path).rstrip("/") + "/"
        below = (p.removeprefix(start) for p in self._everything() if p.startswith(start))
        return tuple(sorted({rest.partition("/")[0] for rest in below if rest}))

    def real_path(self, path: str) -> str:
        """Return the path with every scripted symlink resolved."""
        waiting, here, hops = _parts(path), "", 0
        while waiting:
            part = waiting.pop(0)
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            here = f"{here}/{part}"
            if here in self.links and hops < _LINK_LIMIT:
                waiting, here, hops = [*_parts(self.links[here]), *waiting], "", hops + 1
        return here or "/"

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return what a scripted path is, or None when nothing is there."""
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
        """Return why a block device is busy, or "" when it is free."""
        found = self.stat(path)
        if found is None or found.kind != "block":
            return "not a block device"
        return self.busy.get(self.real_path(path), "")

    def free_bytes(self, path: str) -> int:
        """Return the scripted free space, wherever `path` is."""
        return self.free if path else 0

    def remove(self, path: str) -> None:
        """Forget one file; nothing happens when it is gone."""
        self.files.pop(path, None)

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Forget a file if it is the one with an identity."""
        found = self.stat(path, follow=False)
        if found is None or found.identity != identity:
            return found is None
        self.remove(path)
        return True

    def make_private_folder(self, path: str) -> bool:
        """Script a folder; False when something is there already."""
        if self.stat(path, follow=False) is not None:
            return False
        inode = zlib.crc32(path.encode())
        self.stats[path] = FileStat("directory", ROOT_FILESYSTEM, (0, 0), inode, 4096, mode=0o700)
        return True

    def hold(self, path: str, *, exclusive: bool) -> FakeHeldDevice:
        """Return a scripted device.

        Raises:
            RefusedError: it is busy.
        """
        found = self.stat(path)
        reason = self.exclusive_error(path) if exclusive else ""
        if found is None or reason:
            raise RefusedError(
                f"{path} cannot be opened exclusively: {reason}", hint="script it otherwise"
            )
        return FakeHeldDevice(found.rdev, exclusive, self.edges.get(self.real_path(path), ""))

    def write_text(self, path: str, text: str) -> None:
        """Keep a text under its path."""
        self.files[path] = text

    def _everything(self) -> set[str]:
        return {*self.files, *self.stats, *self.links}


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _missing(argv: Sequence[str]) -> TransportError:
    return TransportError(
        f"{argv[0]} can't be started: no such program",
        hint=f"check that it is installed: command -v {argv[0]}",
        context={"argv": tuple(argv)},
    )
