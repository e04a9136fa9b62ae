"""Files and devices of the controller's own machine, identified by open descriptors."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
import struct
from functools import cache
from pathlib import Path

from volbench.errors import RefusedError
from volbench.execute.protocol import BLANK, EDGE_BYTES, FILE_KINDS, FileStat
from volbench.model.campaign.planned_run import FileIdentity

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BIRTH_OFFSET = 80  # Of stx_btime in struct statx (statx(2)): seconds as s64, nanoseconds as u32
_NS = 10**9


def file_stat(path: str, *, follow: bool = True, folder: int | None = None) -> FileStat:
    """Return the stat result of a path.

    Args:
        path: absolute, or a name in `folder`.
        follow: whether to follow a symlink.
    """
    found = os.stat(path, dir_fd=folder, follow_symlinks=follow)
    return FileStat(
        kind=FILE_KINDS.get(stat.S_IFMT(found.st_mode), "other"),
        device=(os.major(found.st_dev), os.minor(found.st_dev)),
        rdev=(os.major(found.st_rdev), os.minor(found.st_rdev)),
        inode=found.st_ino,
        size_bytes=found.st_size,
        born_ns=_born_ns(path, follow=follow, folder=folder),
        owner=found.st_uid,
        mode=stat.S_IMODE(found.st_mode),
    )


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _born_ns(path: str, *, follow: bool, folder: int | None) -> int:
    """Return the birth time of a file; 0 if libc or the filesystem does not report it."""
    statx = getattr(_libc(), "statx", None)
    if statx is None:
        return 0
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    flags = 0 if follow else _AT_SYMLINK_NOFOLLOW
    directory = _AT_FDCWD if folder is None else folder
    if statx(directory, os.fsencode(path), flags, _STATX_BTIME, buffer):
        return 0
    (mask,) = struct.unpack_from("=I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BIRTH_OFFSET)
    return int(seconds) * _NS + int(nanoseconds) if mask & _STATX_BTIME else 0


def remove_exact(path: str, identity: FileIdentity) -> bool:
    """Remove a file or an empty directory if its identity matches.

    It is checked and removed relative to the same open directory descriptor, so that no part of
    the path can be replaced in between.

    Returns:
        Whether the path no longer exists.
    """
    parent, _, name = path.rpartition("/")
    try:
        folder = os.open(parent or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        found = file_stat(name, follow=False, folder=folder)
        if found.identity != identity:
            return False
        if found.kind == "directory":
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            return False
        if error.errno != errno.ENOENT:
            raise
    finally:
        os.close(folder)
    return True


class LocalHeldDevice:
    """A block device held open by this process.

    fio opens devices without O_EXCL, so it can run while the device is held exclusively; mount,
    swapon, mkfs and detaching a loop device fail.

    Args:
        exclusive: whether to open it with O_EXCL.
    """

    def __init__(self, path: str, *, exclusive: bool) -> None:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_EXCL if exclusive else 0)
        try:
            if not stat.S_ISBLK(Path(path).stat().st_mode):
                raise _refusal(path, "not a block device")
            self._descriptor = os.open(path, flags)
        except OSError as error:
            raise _refusal(path, error.strerror or str(error)) from error
        self.is_exclusive = exclusive

    @property
    def number(self) -> tuple[int, int]:
        """(major, minor) of the device."""
        rdev = os.fstat(self._descriptor).st_rdev
        return os.major(rdev), os.minor(rdev)

    def digest(self, size_bytes: int) -> str:
        """Return the SHA-256 of the first and last MiB; "" on a read error."""
        length = min(EDGE_BYTES, size_bytes // 512 * 512)
        try:
            edges = b"".join(
                _read_at(self._descriptor, offset, length)
                for offset in (0, size_bytes // 512 * 512 - length)
            )
        except OSError:
            return ""
        return edges_digest(edges)

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)


def edges_digest(edges: bytes) -> str:
    """Return the SHA-256 of the first and last part of a device; `BLANK` if all zeros."""
    return hashlib.sha256(edges).hexdigest() if any(edges) else BLANK


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    parts = []
    while length and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def _refusal(path: str, reason: str) -> RefusedError:
    return RefusedError(
        f"{path} cannot be opened exclusively: {reason}",
        hint="end the process that uses it, or run volbench as a user who may write to it",
    )
