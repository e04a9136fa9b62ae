"""Snapshot of this machine: each file is examined once, so that one operation judges one instant.

It changes nothing: stat, real path, text of a file, names in a folder, bytes of a device, output of
a program that only reports.
"""

import errno
import os
import threading
from typing import Callable, Iterable, TypeVar

from volbench.execute.agent import files, held_device, run_command
from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.files import FileStat
from volbench.execute.agent.run_command import Output

SECTOR_BYTES = 512  # Unit of sizes in sysfs, whatever the sector size of the device.

READ_S = 120.0
"""Time to read the ends of a device: Linux gives a SCSI command 30 s and repeats it. Noticed by:
tests/execute/agent/test_snapshot.py::test_a_hung_volume_is_skipped"""

_PROCESSES = 100  # whose files are examined within READ_S: 12 ms, unless a filesystem hangs

T = TypeVar("T")


class Snapshot:
    """Snapshot of this machine. Tests replace its methods."""

    def __init__(self) -> None:
        self._stats = {}  # type: dict[tuple[str, bool], FileStat | AgentError | None]
        self._texts = {}  # type: dict[str, str]
        self._lists = {}  # type: dict[str, list[str]]
        self._reals = {}  # type: dict[str, str]

    def forget(self) -> None:
        """Examine every file again."""
        for answers in (self._stats, self._texts, self._lists, self._reals):
            answers.clear()

    def stat(self, path: str, *, follow: bool = True) -> "FileStat | None":
        """Return the stat result of a path, or None if it does not exist."""
        key = path, follow
        if key not in self._stats:
            try:
                self._stats[key] = self._stat(path, follow=follow)
            except AgentError as error:
                message = "{} cannot be examined: {}".format(path, error.message)
                self._stats[key] = AgentError("denied", message)
        entry = self._stats[key]
        if isinstance(entry, AgentError):
            raise entry
        return entry

    def stat_visible(self, path: str) -> "FileStat | None":
        """Return the stat result of a path from a kernel table; None if missing or inaccessible.

        An unprivileged user cannot access every folder. Files in such folders are not the user's
        own, and device nodes are accessible to all users.
        """
        try:
            return self.stat(path)
        except AgentError:
            return None

    def text(self, path: str) -> str:
        """Return the text of a regular file; empty if it is missing or unreadable."""
        if path not in self._texts:
            self._texts[path] = files.read_text(path) or ""
        return self._texts[path]

    def names(self, path: str) -> "list[str]":
        """Return the sorted names in a directory; none if it does not exist."""
        if path not in self._lists:
            self._lists[path] = files.list_directory(path)
        return self._lists[path]

    def real_path(self, path: str) -> str:
        """Return a path with all symlinks resolved; nonexistent components are kept."""
        if path not in self._reals:
            self._reals[path] = files.real_path(path)
        return self._reals[path]

    def nearest(self, path: str) -> str:
        """Return a path, or its nearest existing parent."""
        while path != "/" and self.stat(path) is None:
            path = parent_of(path)
        return path

    def _stat(self, path: str, *, follow: bool) -> "FileStat | None":
        return files.stat(path, follow=follow)

    def free_space(self, path: str) -> "tuple[int, int]":
        """Return bytes and files that unprivileged users can add to the filesystem of a path."""
        free_bytes, free_files = files.free_space(path)
        return min(free_bytes, files.free_memory(path)), free_files

    def which(self, program: str) -> str:
        """Return the absolute path of a program; empty if it is missing."""
        return files.which(program) or ""

    def run(self, argv: "list[str]", timeout_s: float = 60.0) -> Output:
        """Run a program that changes nothing."""
        return run_command.run(argv, timeout_s)

    def read(self, node: str, offset: int, length: int) -> bytes:
        """Return bytes of a block device."""
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return held_device.read_at(descriptor, offset, length)
        finally:
            os.close(descriptor)

    def edges(self, node: str, size_bytes: int) -> str:
        """Return the digest of the first and last MiB of a device; empty if unreadable."""
        try:
            return within(READ_S, held_device.edges_digest, node, size_bytes)
        except OSError:
            return ""

    def open_error(self, path: str, *, writes: bool) -> str:
        """Return the error of opening a file or device; empty on success."""
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            within(READ_S, lambda: os.close(os.open(path, flags)))
        except OSError as error:
            return error.strerror or str(error)
        # Not opened for writing: an overlay would copy it
        return self.access_error(path, os.W_OK) if writes else ""

    def access_error(self, path: str, mode: int) -> str:
        """Return why a file or folder cannot be used in a mode of access(2); empty if it can."""
        if os.access(path, mode, effective_ids=True):
            return ""
        is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        return os.strerror(errno.EROFS if is_read_only else errno.EACCES)

    def exclusive_error(self, node: str) -> str:
        """Return the error of opening a block device with O_EXCL; empty on success."""
        return held_device.exclusive_error(node)

    def attached_file(self, node: str) -> "tuple[FileStat, int] | None":
        """Return the file that a loop device shows, and its first byte; None if unknown."""
        return held_device.attached_file(node)

    def allocated_bytes(self, path: str, size_bytes: int) -> int:
        """Return the bytes of a file that have blocks; 0 if it cannot be opened."""
        try:
            return held_device.allocated_bytes(path, size_bytes)
        except OSError:
            return 0

    def is_open(self, path: str) -> bool:
        """Return whether anything else has a file open."""
        return held_device.is_open(path)

    def opener_of(self, file: "FileStat | None", devices: "Iterable[tuple[int, int]]" = ()) -> str:
        """Return a program that has a file open, or may write to a device; empty for none."""
        pids = list(filter(str.isdigit, os.listdir("/proc")))
        try:
            for at in range(0, len(pids), _PROCESSES):
                group = pids[at : at + _PROCESSES]
                opener = within(READ_S, held_device.opener_of, group, file, devices)
                if opener:
                    return opener
        except OSError as error:
            raise of_os_error(error) from error
        return ""


def parent_of(path: str) -> str:
    """Return the folder of a path."""
    return path.rpartition("/")[0] or "/"


def within(limit_s: float, work: "Callable[..., T]", *arguments: object) -> T:
    """Return the result of a function that may block on a volume."""
    results = []  # type: list[T]
    errors = []  # type: list[OSError]

    def call() -> None:
        try:
            results.append(work(*arguments))
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    if results:
        return results[0]
    raise errors[0] if errors else OSError(errno.ETIMEDOUT, "no answer in {:g} s".format(limit_s))
