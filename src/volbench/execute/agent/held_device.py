"""Block devices that are held open, and identified by their first and last MiB."""

import _signal as signal  # type: ignore[import-not-found]  # as in `supervisor`
import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import re
import stat
import struct
import time
from typing import Iterable, Iterator

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.files import FileStat, first_line, list_directory, read_bytes, stat_in

EDGE_BYTES = 1 << 20  # Holds partition tables, file system headers and RAID metadata at both ends.
BLANK = "blank"
"""Digest of a device whose edges are all zeros."""

_LOOP_GET_STATUS64 = 0x4C05
_LOOP_STATUS = struct.Struct("=4Q200x")  # device, inode, device of a node and offset of the file

_FS_IOC_FIEMAP = 0xC020660B  # Documentation/filesystems/fiemap.rst of the kernel
_EXTENTS = struct.Struct("=QQI4xI4x")  # first byte, length, flags and places for extents
_SYNC = 1  # FIEMAP_FLAG_SYNC: blocks of dirty pages are chosen when these are written
_COUNT_OFFSET = 20  # of the number of extents in its reply
_EXTENT = struct.Struct("=Q8xQ16xI12x")  # first byte in the file, length and flags
_SHARED = 0x2000  # FIEMAP_EXTENT_SHARED: also of another file, so that it is copied when written
_BLOCK_BYTES = 4096  # A file of one byte has a block.
_MAX_EXTENTS = 1000  # of a request: 56 kB

# Lines of proc_pid_maps(5) with a file: ends of the addresses; device, inode and path
_MAPPED = re.compile(rb"(\w+)-(\w+) \S+ \S+ (\S+ \d+ +/.*)")
_MAPPED_TO_WRITE = re.compile(rb"(\w+)-(\w+) .w.s \S+ (\S+ \d+ +/.*)")

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
            edges = read_at(self._descriptor, 0, length)
            edges += read_at(self._descriptor, last - length, length)
        except OSError:
            return ""
        return hashlib.sha256(edges).hexdigest() if any(edges) else BLANK

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Return bytes of an open device; OSError if it has fewer."""
    parts = []
    while length:
        block = os.pread(descriptor, length, offset)
        if not block:
            raise OSError(errno.EIO, "the device is shorter than reported")
        parts.append(block)
        offset, length = offset + len(block), length - len(block)
    return b"".join(parts)


def edges_digest(path: str, size_bytes: int) -> str:
    """Return the digest of a device; empty if it cannot be read."""
    try:
        with contextlib.closing(HeldDevice(path, exclusive=False)) as device:
            return device.digest(size_bytes)
    except AgentError:
        return ""


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


def allocated_bytes(path: str, size_bytes: int) -> int:
    """Return the bytes of a file that have blocks of its own, without blocks behind its end.

    Those that are on disk count, as on filesystems that do not tell where their blocks are.
    """
    allocated, position = 0, 0
    end = -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
    with open(path, "rb") as file:
        while position < size_bytes:
            request = bytearray(_EXTENTS.size + _MAX_EXTENTS * _EXTENT.size)
            _EXTENTS.pack_into(request, 0, position, size_bytes - position, _SYNC, _MAX_EXTENTS)
            try:
                fcntl.ioctl(file, _FS_IOC_FIEMAP, request)
            except OSError:
                return os.fstat(file.fileno()).st_blocks * 512
            count = struct.unpack_from("=I", request, _COUNT_OFFSET)[0]
            for number in range(count):
                place = _EXTENTS.size + number * _EXTENT.size
                start, length, flags = _EXTENT.unpack_from(request, place)
                position = start + length
                allocated += 0 if flags & _SHARED else min(position, end) - start
            if count < _MAX_EXTENTS:
                break
    return allocated


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
            pass
        finally:
            os.close(descriptor)
        return False
    return True


def opener_of(
    pids: "Iterable[str]", file: "FileStat | None", devices: "Iterable[tuple[int, int]]"
) -> str:
    """Return a program that has a file open or mapped, or may write to a device; empty for none.

    A loop device has its file open itself, so no lease tells.
    """
    for pid in pids:
        process = "/proc/" + pid
        descriptors = ("{}/fd/{}".format(process, name) for name in list_directory(process + "/fd"))
        mapped = _mapped(process, _MAPPED if file else _MAPPED_TO_WRITE)
        for link in itertools.chain(descriptors, mapped):
            if _shows(link, file) if file else _writes(link, devices):
                return "{} (PID {})".format(first_line(process + "/comm"), pid)
    return ""


def _mapped(process: str, wanted: "re.Pattern[bytes]") -> "Iterator[str]":
    """Yield a link to each file that a process has mapped."""
    seen = set()  # type: set[bytes]
    try:
        with open(process + "/maps", "rb") as lines:
            for match in filter(None, map(wanted.match, lines)):
                if match.group(3) not in seen:
                    seen.add(match.group(3))
                    ends = (end.lstrip(b"0").decode() or "0" for end in match.group(1, 2))
                    yield "{}/map_files/{}".format(process, "-".join(ends))
    except OSError:  # a kernel thread, or a process of another user or that ended
        return


def _shows(link: str, file: FileStat) -> bool:
    """Return whether a file is open: an overlay shows it by its birth, under another number."""
    try:
        status = os.stat(link)
        is_alike = status.st_ino == file.inode or status.st_size == file.size_bytes
        seen = stat_in(link) if is_alike else None
    except OSError:
        seen = None
    if seen is None or seen.device == file.device:
        return seen is not None and seen.inode == file.inode
    is_same = 0 < file.born_ns == seen.born_ns and file.size_bytes == seen.size_bytes
    return is_same and not seen.device[0]


def _writes(link: str, devices: "Iterable[tuple[int, int]]") -> bool:
    """Return whether a program may write a device: none of volbench, nor the server of NBD."""
    try:
        is_file = os.lstat(link).st_mode & stat.S_IWUSR and os.readlink(link).startswith("/")
        status = os.stat(link) if is_file else None
    except OSError:
        status = None
    number = (os.major(status.st_rdev), os.minor(status.st_rdev)) if status else (0, 0)
    if status is None or not stat.S_ISBLK(status.st_mode) or number not in devices:
        return False
    process, server = link.rsplit("/", 2)[0], "/sys/dev/block/{}:{}/pid".format(*number)
    is_own = b"VOLBENCH_CONTROL=" in (read_bytes(process + "/environ") or b"")
    if is_own or os.path.exists("{}/task/{}".format(process, first_line(server) or "none")):
        return False
    time.sleep(_LEASE_PAUSE_S)  # Some programs open it for an instant.
    return os.path.lexists(link)


def _open_device(path: str, flags: int) -> int:
    try:
        if not stat.S_ISBLK(os.stat(path).st_mode):
            raise AgentError("refused", "not a block device")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as error:
        raise of_os_error(error) from error
