"""Files and folders: identity, atomic writes, and removal by identity."""

import base64
import contextlib
import errno
import hashlib
import itertools
import os
import re
import shutil
import stat as modes
import struct
import sys
import typing
import zlib
from collections.abc import Iterable, Iterator

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.installed_program import Program

SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of system tools such as blkid; not in every unprivileged user's PATH."""

OWN_FOLDER = "/proc/self/cwd"
"""TMPDIR of programs of a run: their working directory, whoever renames or replaces its path."""

FILE_KINDS = {
    modes.S_IFREG: "file",
    modes.S_IFDIR: "directory",
    modes.S_IFBLK: "block",
    modes.S_IFCHR: "char",
}

# Of available memory, left to fio and the host: a trade-off. Noticed by:
# tests/execute/agent/test_snapshot.py::test_a_tmpfs_is_no_larger_than_free_memory
_KEPT_MEMORY_PERCENT = 10
_READ_BYTES = 65_536  # Files below /proc/sys cannot be read into a buffer of megabytes: ENOMEM.
_MAX_READS = 1024  # 64 MiB: no file that volbench reads whole comes near, and memory is finite.

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BIRTH_OFFSET = 80  # Of stx_btime in struct statx (statx(2)): seconds as s64, nanoseconds as u32.

_libc = []  # type: list[object]

_RUN_INODES = 64  # Files of a run, its logs and control folder. Noticed by: test_host_faults.py
# Device major and minor, inode, and birth in ns since 1970 (0: not recorded by its filesystem)
FileIdentity = typing.Tuple[int, int, int, int]

CHUNK_BYTES = 65_536  # Over 64 kbit/s a compressed chunk of a log delays other replies by 1 to 2 s.
_LEVEL = 1  # The host may be measuring something else.


class FileStat(typing.NamedTuple):
    """Stat result of a path."""

    kind: str  # ``file``, ``directory``, ``block``, ``char`` or ``other``
    device: "tuple[int, int]"  # major and minor of the filesystem that holds it
    rdev: "tuple[int, int]"  # of a device node; (0, 0) for other files
    inode: int  # unique within `device` while the file exists
    size_bytes: int  # apparent size; 0 for a device
    born_ns: int = 0  # birth time in ns since 1970; 0 if the filesystem does not record it
    owner: int = 0  # user id
    mode: int = 0o600  # permission bits, such as 0o1777
    allocated_bytes: int = 0  # of its blocks on the filesystem

    @property
    def identity(self) -> "FileIdentity":
        """Device, inode and birth: unique even if the inode number is reused later."""
        return self.device[0], self.device[1], self.inode, self.born_ns


class NamedFile(typing.NamedTuple):
    """A path, and the identity of what is there; None if nothing is."""

    path: str
    identity: "FileIdentity | None"


class PrivateFolder(typing.NamedTuple):
    """A folder that was made, and its identity."""

    path: str
    identity: "FileIdentity"


class FolderPart(typing.NamedTuple):
    """Part of a folder in transit."""

    kind: str  # ``file`` (a new one begins), ``data`` or ``sha256`` (its end)
    text: str  # name of the file, compressed data in base64, or the digest
    size: int = 0  # of the whole file, when it begins
    offset: int = 0  # of its first data


def stat(path: str, *, follow: bool = True) -> "FileStat | None":
    """Return the stat result of a path; None if it does not exist."""
    try:
        return stat_in(path, follow=follow)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise of_os_error(error) from error


def stat_in(path: str, *, follow: bool = True, folder: "int | None" = None) -> FileStat:
    """Return the stat result of a path, or of a name in a folder; OSError if there is none."""
    status = os.stat(path, dir_fd=folder, follow_symlinks=follow)
    is_device = modes.S_ISBLK(status.st_mode) or modes.S_ISCHR(status.st_mode)
    return FileStat(
        FILE_KINDS.get(modes.S_IFMT(status.st_mode), "other"),
        (os.major(status.st_dev), os.minor(status.st_dev)),
        (os.major(status.st_rdev), os.minor(status.st_rdev)) if is_device else (0, 0),
        status.st_ino,
        status.st_size,
        _born_ns(path, follow=follow, folder=folder),
        status.st_uid,
        modes.S_IMODE(status.st_mode),
        status.st_blocks * 512,
    )


def _born_ns(path: str, *, follow: bool, folder: "int | None") -> int:
    """Return the birth time of a file; 0 if libc or the file system does not report it."""
    if not _libc:
        try:
            import ctypes  # noqa: PLC0415 - a minimal Python lacks it

            _libc.append(getattr(ctypes.CDLL(None), "statx", None))
        except (ImportError, OSError):
            _libc.append(None)
    statx = _libc[0]
    if not callable(statx):
        return 0
    buffer = bytearray(_STATX_BYTES)
    import ctypes  # noqa: PLC0415 - loaded above

    target = (ctypes.c_char * _STATX_BYTES).from_buffer(buffer)
    flags = 0 if follow else _AT_SYMLINK_NOFOLLOW
    directory = _AT_FDCWD if folder is None else folder
    if statx(directory, os.fsencode(path), flags, _STATX_BTIME, target):
        return 0
    (mask,) = struct.unpack_from("=I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BIRTH_OFFSET)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else 0


def _is_of_process(path: str, seen: "set[str]") -> bool:
    """Return whether a link on a path leads through one in /proc, which differs by process."""
    folder = os.path.dirname(path)
    if path in seen or folder in (path, "/proc"):
        return False
    seen.add(path)
    if _is_of_process(folder, seen):
        return True
    if not os.path.islink(path):
        return False
    is_its_own = os.path.realpath(folder).startswith("/proc/")
    return is_its_own or _is_of_process(os.path.join(folder, os.readlink(path)).rstrip("/"), seen)


def user_id() -> int:
    """Return the id of the user who runs this program."""
    return os.getuid()


def real_path(path: str) -> str:
    """Return the path with all symlinks resolved; nonexistent components are kept."""
    try:
        real = os.path.realpath(path)
        is_own = real != path and _is_of_process(path.rstrip("/"), set())
        return "/proc/self" + real if is_own else real
    except OSError as error:  # the target of a link of another user's process
        message = "{} cannot be examined: {}".format(path, error.strerror)
        raise AgentError("denied", message) from error


def read_files(paths: "list[str]") -> "list[str | None]":
    """Return the texts of regular files; None for each that is missing or unreadable."""
    return [read_text(path) for path in paths]


def read_text(path: str) -> "str | None":
    """Return the text of a regular file; None if there is none or it is unreadable."""
    content = read_bytes(path)
    return None if content is None else content.decode("utf-8", "replace")


def read_bytes(path: str) -> "bytes | None":
    """Return the content of a regular file; None if there is none or it is unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not modes.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            parts = [os.read(descriptor, _READ_BYTES)]
            while parts[-1] and len(parts) < _MAX_READS:
                parts.append(os.read(descriptor, _READ_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return b"".join(parts)


def first_line(path: str) -> str:
    """Return the first line of a kernel file, stripped; empty if it cannot be read."""
    return (read_text(path) or "").partition("\n")[0].strip()


def list_directory(path: str) -> "list[str]":
    """Return the sorted names in a directory; empty if it does not exist."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def free_space(path: str) -> "tuple[int, int]":
    """Return bytes and files that users can add to a filesystem beside the logs of a run."""
    try:
        status = os.statvfs(path)
    except OSError as error:
        raise of_os_error(error) from error
    free_files = status.f_favail - _RUN_INODES if status.f_files else sys.maxsize
    return (0, 0) if free_files < 0 else (status.f_bavail * status.f_frsize, free_files)


def free_memory(path: str) -> int:
    """Return bytes of memory that files of a tmpfs may take; no limit on other filesystems."""
    number = os.stat(path).st_dev
    mounts = read_text("/proc/self/mountinfo") or ""
    device = r"^\d+ \d+ {}:{} .* - (tmpfs|ramfs) ".format(os.major(number), os.minor(number))
    left = re.search(r"MemAvailable: *(\d+) kB", read_text("/proc/meminfo") or "")
    if left is None or not re.search(device, mounts, re.MULTILINE):
        return sys.maxsize
    return int(left.group(1)) * 1024 * (100 - _KEPT_MEMORY_PERCENT) // 100


def search_path() -> str:
    """Return PATH with the folders of system tools."""
    return os.pathsep.join([os.environ.get("PATH") or os.defpath, *SYSTEM_PATH])


def which(program: str) -> "str | None":
    """Return the absolute path of a program, or None."""
    path = shutil.which(program, path=search_path())
    return None if path is None else os.path.abspath(path)


def write_files(files: "dict[str, str]") -> None:
    """Write small files atomically, creating their folders; a path that ends with / is a folder."""
    for path, text in files.items():
        folder = os.path.dirname(path) or "."
        try:
            refuse_foreign(folder)
            os.makedirs(folder, exist_ok=True)
            refuse_foreign(folder)  # somebody may have been faster
            if not path.endswith("/"):
                write_file(path, text)
        except OSError as error:
            failure = of_os_error(error)
            raise AgentError(failure.kind, "{}: {}".format(path, failure.message)) from error


def refuse_foreign(folder: str) -> None:
    """Refuse a folder for the files of runs where another user could lead root to other files.

    Those are all but root and the user of sudo, with their groups. The folder may not exist yet. On
    the controller's machine, the campaign folder itself is held instead.
    """
    if os.geteuid() or not Program.data:
        return
    users, groups = ((0, int(os.environ.get("SUDO_" + kind) or 0)) for kind in ("UID", "GID"))
    place, reason = place_of_others(os.path.realpath(folder), users, groups)
    if place:
        raise AgentError("refused", "{} {}, who could redirect root".format(place, reason))


def place_of_others(
    path: str, users: "Iterable[int]", groups: "Iterable[int]" = ()
) -> "tuple[str, str]":
    """Return the lowest folder of a path in which others can rename files, and why they can.

    Args:
        path: absolute, without symbolic links; its last parts may not exist yet.
        users: ids of the owners that are trusted.
        groups: ids of the groups that may write.
    """
    while True:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        else:
            if status.st_uid not in users:
                return path, "belongs to user {}".format(status.st_uid)
            by_group = status.st_mode & modes.S_IWGRP and status.st_gid not in groups
            # In a sticky folder nobody but its owner can rename files of other users.
            if (by_group or status.st_mode & modes.S_IWOTH) and not status.st_mode & modes.S_ISVTX:
                return path, "can be written by other users"
        if path == "/":
            return "", ""
        path = os.path.dirname(path)


def write_file(path: str, text: str) -> None:
    """Write a file that appears whole or not at all; OSError if that fails."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, ".{}.{}.tmp".format(name, os.urandom(8).hex()))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def remove(path: str) -> None:
    """Remove a file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_exactly(files: "list[NamedFile]") -> "list[bool]":
    """Remove files and empty directories in order, each if its identity matches.

    The identity is (major, minor, inode, birth time in ns); with None, the path is only looked at.
    Return for each whether the path no longer exists.
    """
    return [
        stat(path, follow=False) is None if identity is None else remove_exact(path, identity)
        for path, identity in files
    ]


def remove_exact(path: str, identity: "typing.Iterable[int]") -> bool:
    """Remove a file or an empty directory if its identity matches; OSError if that is refused.

    It is checked and removed relative to the same open directory, so that no part of the path can
    be replaced in between.
    """
    parent, _, name = path.rpartition("/")
    try:
        folder = os.open(parent or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        status = stat_in(name, follow=False, folder=folder)
        if status.identity != tuple(identity):
            return False
        if status.kind == "directory":
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        if error.errno != errno.ENOENT:
            raise
    finally:
        os.close(folder)
    return True


_owed = []  # type: list[NamedFile]
"""What a campaign that is over leaves to this process; see `owe`."""


def owe(files: "list[NamedFile]") -> None:
    """Remove files as `remove_exactly` does, but only once the controller is gone."""
    _owed[:] = [NamedFile(*file) for file in files]


def make_private_folder(parent: str, name: str, owner: "int | None" = None) -> PrivateFolder:
    """Create a directory with mode 0700 in another one; return its path and identity.

    If the name is taken, even by a symlink, ``name-1`` is tried, ``name-2`` and so on. As root,
    give the directory to the user with the id `owner`.
    """
    first = "{}/{}".format(parent.rstrip("/"), name)
    for number in itertools.count():
        path = "{}-{}".format(first, number) if number else first
        try:
            os.mkdir(path, 0o700)
            if owner is not None:
                os.chown(path, owner, -1, follow_symlinks=False)
            _made_folders.append(PrivateFolder(path, stat_in(path, follow=False).identity))
            return _made_folders[-1]
        except FileExistsError:
            continue
    raise AssertionError


_made_folders = []  # type: list[PrivateFolder]
"""Private folders that this process made, with their identities."""


def remove_unused() -> None:
    """Remove owed files, and empty private folders that this process made.

    Its controller is gone, and may never have heard of them; it makes another where it needs one.
    """
    for path, identity in [*_owed, *_made_folders]:
        with contextlib.suppress(OSError):  # it is on a volume that failed
            remove_exact(path, identity or ())


def remove_work_folder(base: str, path: str) -> None:
    """Remove a folder below `base`; that too if it is called ``.volbench`` and is empty then."""
    base = os.path.realpath(base)
    parts = path.split("/")
    if not path.startswith(base + "/") or ".." in parts or os.path.normpath(path) == base:
        raise AgentError("refused", "it is not below {}".format(base))
    refuse_foreign(os.path.dirname(path))
    refuse_mounts(path)
    while os.path.lexists(path):
        with contextlib.suppress(
            FileNotFoundError
        ):  # another removal got to one of its files first
            shutil.rmtree(path)
    if os.path.basename(base) == ".volbench":
        with contextlib.suppress(OSError):  # other work folders are in it
            os.rmdir(base)


def refuse_mounts(path: str) -> None:
    """Refuse to remove a folder on or below which something is mounted."""
    place = path.replace("\\", r"\134").replace(" ", r"\040")  # as the kernel writes it
    if re.search(" {}[/ ]".format(re.escape(place)), read_text("/proc/self/mountinfo") or ""):
        raise AgentError("refused", "something is mounted below it; unmount that first")


def fetch_folder(path: str, have: "dict[str, int]") -> "Iterator[FolderPart]":
    """Yield all regular files below a folder: a header, chunks, and the SHA-256 of each.

    Args:
        path: the folder; symlinks in it are not followed.
        have: bytes of each file that arrived before a connection broke, by its name.
    """
    if not os.path.isdir(path):
        raise AgentError("missing", "No such file or directory")
    try:
        for name in _names_below(path):
            yield from _file(path, name, have.get(name, 0))
    except OSError as error:
        failure = of_os_error(error)
        name = os.path.relpath(os.fsdecode(error.filename), path) if error.filename else ""
        raise AgentError(failure.kind, "{}: {}".format(name, failure.message)) from error


def _names_below(path: str) -> "list[str]":
    """Return the names of the files below a folder, relative to it, without control folders."""

    def refuse(error: OSError) -> None:
        raise error

    names = []
    for folder, folders, files in os.walk(path, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [os.path.relpath(os.path.join(folder, name), path) for name in files]
    return sorted(n for n in names if modes.S_ISREG(os.lstat(os.path.join(path, n)).st_mode))


def _file(path: str, name: str, offset: int) -> "Iterator[FolderPart]":
    descriptor = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        offset = offset if offset <= size else 0
        digest = hashlib.sha256()
        yield FolderPart("file", name, size, offset)
        position = 0
        while position < size:
            limit = offset if position < offset else size  # what arrived before is only hashed
            chunk = file.read(min(CHUNK_BYTES, limit - position))
            if not chunk:
                raise AgentError("damaged", "{} became shorter".format(name))
            digest.update(chunk)
            if position >= offset:
                data = base64.b64encode(zlib.compress(chunk, _LEVEL)).decode()
                yield FolderPart("data", data)
            position += len(chunk)
        yield FolderPart("sha256", digest.hexdigest())
