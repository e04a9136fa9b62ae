"""Block devices that are held open, and identified by their first and last MiB."""

import hashlib
import os
import stat

from volbench.execute.agent.agent_error import AgentError, of_os_error

EDGE_BYTES = 1 << 20  # Holds partition tables, file system headers and RAID metadata at both ends.
BLANK = "blank"
"""Digest of a device whose edges are all zeros."""


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


def _open_device(path: str, flags: int) -> int:
    try:
        if not stat.S_ISBLK(os.stat(path).st_mode):
            raise AgentError("refused", "not a block device")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as error:
        raise of_os_error(error) from error
