"""Block devices that are held open, and identified by their first and last MiB."""

import _signal as signal  # type: ignore[import-not-found]  # as in `supervisor`
import fcntl
import hashlib
import os
import stat
import struct
import time

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.files import FileStat

EDGE_BYTES = 1 << 20  # Holds partition tables, file system headers and RAID metadata at both ends.
BLANK = "blank"
"""Digest of a device whose edges are all zeros."""


_LOOP_GET_STATUS64 = 0x4C05
_LOOP_STATUS = struct.Struct("=4Q200x")  # device, inode, device of a node and offset of the file

_LEASE_TRIES = 3  # Programs such as indexers open a new file for an instant.
_LEASE_PAUSE_S = 0.1


class HeldDevice:
    """A block device that is open, exclusively or not.

    fio opens devices without O_EXCL, so it can run while the device is held exclusively; mount,
    swapon, mkfs and detaching a loop device fail.
    """

    def __init__(self, path: str, *, exclusive: bool) -> None:
        self._descriptor = _open_device(path, os.O_EXCL if exclusive else 0)

    @property
    def number(self) -> "tuple[int, int]":
        """(major, minor) of the device."""
        rdev = os.fstat(self._descriptor).st_rdev
        return os.major(rdev), os.minor(rdev)

    def digest(self, size_bytes: int) -> str:
        """Return the SHA-256 of the first and last MiB; "" on a read error."""
        last = size_bytes // 512 * 512
        length = min(EDGE_BYTES, last)
        try:
            edges = self._read_text(0, length) + self._read_text(last - length, length)
        except OSError:
            return ""
        return hashlib.sha256(edges).hexdigest() if any(edges) else BLANK

    def _read_text(self, offset: int, length: int) -> bytes:
        parts = []
        while length:
            block = os.pread(self._descriptor, length, offset)
            if not block:
                break
            parts.append(block)
            offset, length = offset + len(block), length - len(block)
        return b"".join(parts)

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)


def edges_digest(path: str, size_bytes: int) -> str:
    """Return the digest of a device; "" if it cannot be read."""
    try:
        device = HeldDevice(path, exclusive=False)
    except AgentError:
        return ""
    try:
        return device.digest(size_bytes)
    finally:
        device.close()


def exclusive_error(path: str) -> str:
    """Return the error of opening a block device with O_EXCL; "" on success."""
    try:
        HeldDevice(path, exclusive=True).close()
    except AgentError as error:
        return error.message
    return ""


def attached_file(node: str) -> "tuple[FileStat, int] | None":
    """Return the file that a loop device shows, and its first byte; None if it cannot be opened.

    The kernel knows the file by its inode, whatever has become of its name.
    """
    try:
        descriptor = _open_device(node, 0)
    except AgentError:
        return None
    try:
        status = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_STATUS.size))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    holder, inode, number, offset = _LOOP_STATUS.unpack(status)
    kind = "block" if number else "file"
    holder, number = ((os.major(each), os.minor(each)) for each in (holder, number))
    return FileStat(kind, holder, number, inode, 0), offset


def is_open(path: str) -> bool:
    """Return whether anything else has a file open: a process, or the kernel for a loop device.

    The kernel grants a write lease only on a file that is open once. False where there are no
    leases: on network filesystems, and for files of other users.
    """
    for attempt in range(_LEASE_TRIES):
        time.sleep(_LEASE_PAUSE_S if attempt else 0)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # SIGIO would end this program
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            continue
        except OSError:
            return False
        else:
            return False
        finally:
            os.close(descriptor)
    return True


def _open_device(path: str, flags: int) -> int:
    try:
        if not stat.S_ISBLK(os.stat(path).st_mode):
            raise AgentError("refused", "not a block device")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as error:
        raise of_os_error(error) from error
