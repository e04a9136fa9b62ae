"""Protocols of an executor and its processes: everything that the engine needs of a machine.

The same guard, probe and campaign work here and elsewhere because they know no more than this.
Programs are started from argument lists, never through a shell.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from volbench.model.campaign.target import FileIdentity

FOREVER_S = 30 * 86400.0
"""A month: longer than any run."""

FILE_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFBLK: "block",
    stat.S_IFCHR: "char",
}
"""File type bits of a mode to `FileStat.kind`; ``other`` for the rest."""


@dataclass(frozen=True)
class Completed:
    """A process that ended; `stdout` and `stderr` are text with undecodable bytes replaced."""

    argv: tuple[str, ...]
    exit_status: int
    stdout: str
    stderr: str


EDGE_BYTES = 1 << 20
"""Length of the first and of the last part of a device that `HeldDevice.digest` covers."""

BLANK = "blank"
"""Digest of edges that hold only zeros."""


@dataclass(frozen=True)
class FileStat:
    """What a path is.

    Attributes:
        kind: ``file``, ``directory``, ``block``, ``char`` or ``other``.
        device: (major, minor) of the filesystem that holds it.
        rdev: (major, minor) of the device it is; (0, 0) for none.
        inode: with `device`, its identity as long as it exists.
        size_bytes: apparent size; 0 for a device.
        born_ns: when it was made, in ns since 1970; 0 where its filesystem does not record that.
        owner: user id.
        mode: permission bits, such as 0o1777.
    """

    kind: str
    device: tuple[int, int]
    rdev: tuple[int, int]
    inode: int
    size_bytes: int
    born_ns: int = 0
    owner: int = 0
    mode: int = 0o600

    @property
    def identity(self) -> FileIdentity:
        """What no other file has, not even one that is made later with the same inode."""
        return (*self.device, self.inode, self.born_ns)


class HeldDevice(Protocol):
    """A block device that was opened, and is identified by what was opened."""

    @property
    def number(self) -> tuple[int, int]:
        """Its (major, minor)."""

    @property
    def is_exclusive(self) -> bool:
        """Whether it is open with O_EXCL until `close`: nobody can mount or replace it."""

    def digest(self, size_bytes: int) -> str:
        """Return the SHA-256 of its first and last MiB; "" where it can't be read.

        `BLANK` stands for nothing but zeros.
        """

    def close(self) -> None:
        """Release it."""


@dataclass(frozen=True)
class ClockReading:
    """A machine's clock, read between two readings of the controller's; seconds since 1970.

    Attributes:
        sent_s: when the machine was asked, by the controller's clock.
        remote_s: what its clock said.
        received_s: when the answer arrived, by the controller's clock.
        resolution_s: how fine the machine's clock can be read.
    """

    sent_s: float
    remote_s: float
    received_s: float
    resolution_s: float = 0.0


class Process(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Its process id on the machine it runs on."""

    @property
    def handle(self) -> str:
        """Argument of `Executor.find` to find it again; empty when it ends with its controller."""

    @property
    def lost(self) -> str:
        """Why its end was not observed; empty while that is not so."""

    @property
    def silent_s(self) -> float:
        """Seconds since its machine last answered; 0 where it always does."""

    def poll(self) -> int | None:
        """Return the exit status (negative: ended by that signal), or None while it runs."""

    def read_output(self) -> str:
        """Return what it wrote to standard output since the last call."""

    def skip_output(self, count: int) -> None:
        """Skip the first bytes of its output: an earlier controller has them."""

    def signal(self, number: int) -> None:
        """Send a signal to its whole process group; nothing happens when it has ended."""

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None when it still runs after `timeout_s`."""


class Executor(Protocol):
    """A machine."""

    host: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to its end with LC_ALL=C and no input.

        Raises:
            TransportError: the program is missing, or did not end in `timeout_s` (it is killed).
        """

    def start(
        self, argv: Sequence[str], *, cwd: str, stderr: str, longest_s: float = FOREVER_S
    ) -> Process:
        """Start a program in its own session, standard error to the file `stderr`.

        Args:
            argv: program and arguments.
            cwd: its working folder, and its temporary one.
            stderr: path of the file for standard error.
            longest_s: time after which a program that outlives its controller is ended there.

        Raises:
            TransportError: it can't be started.
        """

    def find(self, handle: str) -> Process:
        """Return a process that an earlier controller started.

        Raises:
            TransportError: processes of this machine can't be found again.
        """

    def handle_of(self, stderr: str) -> str:
        """Return the handle of the first program that will be started with a file `stderr`.

        Empty when it ends with its controller.
        """

    def was_started(self, handle: str) -> bool:
        """Return whether the program of a handle was ever started."""

    def which(self, program: str) -> str | None:
        """Return the absolute path of a program, or None."""

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""

    def list_directory(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty when there is none."""

    def real_path(self, path: str) -> str:
        """Return the path with every symlink resolved; parts that do not exist are kept."""

    def stat(self, path: str, *, follow: bool = True) -> FileStat | None:
        """Return what a path is, or None when nothing is there.

        Args:
            path: absolute.
            follow: of a symlink, return what it leads to.
        """

    def hold(self, path: str, *, exclusive: bool) -> HeldDevice:
        """Open a block device.

        Args:
            path: of its node.
            exclusive: with O_EXCL, until it is closed. On machines that keep nothing open for
                their controller it is only looked at: `HeldDevice.is_exclusive` says so.

        Raises:
            RefusedError: it can't be opened.
        """

    def exclusive_error(self, path: str) -> str:
        """Open a block device with O_EXCL and close it; return "" or the system's reason."""

    def free_bytes(self, path: str) -> int:
        """Return the bytes an ordinary user may still write to the filesystem of `path`."""

    def remove(self, path: str) -> None:
        """Remove one file; nothing happens when it is gone."""

    def remove_exact(self, path: str, identity: FileIdentity) -> bool:
        """Remove a file or an empty folder if it is the one with an identity.

        Returns:
            Whether nothing is there now.

        Raises:
            VolbenchError: the system refused.
        """

    def make_private_folder(self, path: str) -> bool:
        """Make a folder that only its owner may use.

        Returns:
            False when something is there already, even a symlink.

        Raises:
            RefusedError: the system refused.
        """

    def make_work_folder(self, folder: str, *, name: str) -> str:
        """Return the folder on the machine that stands for one of the controller's; it is made.

        On the controller's own machine it is the same.

        Args:
            folder: the controller's; it exists.
            name: unique on the machine: names joined by ``/``.
        """

    def write_text(self, path: str, text: str) -> None:
        """Write a file so that a reader sees all of it or nothing.

        Raises:
            TransportError: the machine refused.
        """

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Copy every file of a work folder to the controller's, each whole or not at all.

        Raises:
            TransportError: a file can't be read there, or was damaged on the way.
        """

    def remove_work_folder(self, path: str) -> None:
        """Remove a work folder with all that is in it; never the controller's own folder."""

    def wait_when_unreachable(self, *, unless: Callable[[], bool]) -> None:
        """From now on, wait long for the machine when it is out of reach.

        Args:
            unless: called now and then; True ends the wait.
        """

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return some readings of the machine's clock, taken in one go; empty if it has none.

        Raises:
            TransportError: the machine does not answer.
        """

    @property
    def silent_s(self) -> float:
        """Seconds since the machine last answered; 0 where it always does."""

    def close(self) -> None:
        """Release the machine; running processes are left alone."""
