"""Locks on what campaigns of a machine measure, and records of the campaigns on each disk.

Both are files in a folder that every user of the machine can write to, but where only the owner of
a file can remove or rename it. Nothing there is trusted: no name is followed or written through,
and the content of a file counts only in the form of a lock. What another user planted and cannot be
removed is refused, with its path and owner. A lock is void after a restart, and where the number of
its device has gone to another disk, which the kernel's number of the attachment tells.
"""

import contextlib
import errno
import fcntl
import json
import os
import pwd
import re
import secrets
import stat
import threading
import time
import typing
import zlib

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.block_devices import BlockDevice, Devices
from volbench.execute.agent.files import first_line, free_space
from volbench.execute.agent.mounts import mount_of, stored_at
from volbench.execute.agent.snapshot import Snapshot
from volbench.execute.agent.supervisor import KEEPING, KEPT_OPEN, ticks_of

_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - only guarded folders, and no file is followed
_NAME = re.compile(r"(?:disk-|dir-)?[0-9]{1,8}:[0-9]{1,8}(?:-[0-9a-f]{1,16}){0,2}\Z")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
_MAX_BYTES = 1 << 20  # Of an announcement: the paths of a thousand files
_INITIAL = "4026531836"  # PID namespace that sees all processes (PROC_PID_INIT_INO of the kernel)
_TRIES = 3  # Of taking a void lock that other campaigns want too.
_TURNS, _TURN_S = 100, 0.05  # Of waiting for others who announce what they write
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


_reserved = {}  # type: dict[str, tuple[tuple[int, int], str]]
"""Files of the reservations of this process, with their identity and the campaign's work folder."""
_reserving = threading.Lock()
_END_S = 2.0  # A reservation that takes longer waits for a hung volume.


class Reservation(typing.NamedTuple):
    """Result of a reservation."""

    device: str  # or target that another campaign holds; empty if all are reserved
    holder: str  # of that device, see `take_lock`; nothing after it is locked or recorded
    # target to the other campaigns on its disk: key, user and process, if it ends with one
    shared: "dict[str, list[str]]"


class Room(typing.NamedTuple):
    """Space that a run is about to take on a filesystem."""

    place: "tuple[int, int]"  # number of the filesystem
    folder: str  # in it
    needed_bytes: int
    files: "tuple[str, ...]"  # that will have these bytes, where their blocks tell that


class Places(typing.NamedTuple):
    """Names under which what a campaign measures is locked and recorded."""

    locks: "dict[str, str]"  # name of a lock to the device or target
    disks: "dict[str, str]"  # name of a record to the device or target


def places(devices: "list[str]", targets: "list[str]") -> Places:
    """Return the names of locks and disks of devices, by number, and of files and folders."""
    snapshot = Snapshot()
    known = Devices(snapshot)
    locks, disks = {number: number for number in devices}, {}  # type: dict[str, str], dict[str, str]
    for number in devices:
        major, _, minor = number.partition(":")
        device = known.with_number((int(major), int(minor)))
        stack = [] if device is None else [device, *known.below(device, through_files=True)]
        disks.update((disk, number) for disk in _lowest(known, stack) or ["disk-" + number])
    for target in targets:
        locks.update((name, target) for name in _target_names(snapshot, target))
        near = snapshot.nearest(snapshot.real_path(target))
        unknown = [_numbered("disk", os.stat(near))]  # of tmpfs, NFS and similar
        disks.update((disk, target) for disk in _lowest(known, known.of_path(near)) or unknown)
    return Places(locks, disks)


def _lowest(known: Devices, stack: "list[BlockDevice]") -> "list[str]":
    """Return the names of the disks at the bottom of a stack of devices."""
    lowest = [device for device in stack if not known.below(device, through_files=True)]
    return ["disk-{}:{}".format(*device.number) for device in lowest]


def reserve(
    key: str,
    devices: "list[str]",
    targets: "list[str]",
    folder: str = "",
    *,
    is_attached: bool = False,
) -> Reservation:
    """Lock devices and targets for a campaign, and record that it uses their disks.

    Args:
        devices: major and minor of each device, such as ``8:0``.
        targets: files and directories, which may not exist yet.
        folder: work folder of the campaign; see `release_unused`.
        is_attached: whether its runs end with this process, and so do its locks on targets.
    """
    process = os.getpid(), ticks_of(os.getpid()), _pid_namespace("self")
    owner = "~{}.{}.{}".format(*process) if is_attached else ""
    names, others = places(devices, targets), {}  # type: Places, dict[str, list[str]]
    with _reserving:
        for name, target in names.locks.items():
            with _noted("volbench-" + name, key, folder):
                holder = take_lock(name, key, "" if name in devices else owner)
            if holder:
                return Reservation(target, holder, {})
        for name, target in names.disks.items():
            with _noted("volbench-{}.{}".format(name, key), key, folder):
                others[target] = join_disk(name, key, owner)
    return Reservation("", "", {target: keys for target, keys in others.items() if keys})


@contextlib.contextmanager
def _noted(file: str, key: str, work_folder: str) -> "typing.Iterator[None]":
    """Record a lock file; recreate it if this campaign created it."""
    with _Folder(_base()) as folder:
        held = folder.read(file)
        boot = _boot(file[len("volbench-") :].partition(".")[0])
        if held in (boot, boot + " " + key) and not folder.foreign_owner(file):
            folder.replace(file, held)
        yield
        identity = folder.identity(file)
        if identity is not None:
            _reserved[file] = identity, work_folder


def release_unused() -> bool:
    """Take back the reservations of this process, which ends, unless a run of them is here.

    Its controller is gone, or has given up this host, which was frozen meanwhile. One that comes
    back reserves anew, and what it made then has another identity. Returns whether there were
    some, and all were taken back.
    """
    _reserving.acquire(timeout=_END_S)  # for good: nothing is reserved after it
    is_released = bool(_reserved)
    while _reserved:
        file, (identity, work_folder) = _reserved.popitem()
        with contextlib.suppress(OSError):  # there is none
            if not work_folder or os.listdir(work_folder):
                is_released = False
                continue
            os.rmdir(work_folder)
        try:
            with _Folder(_base()) as folder:
                is_released = folder.remove_exact(file, identity) and is_released
        except AgentError:  # another user's
            is_released = False
    return is_released


def release(key: str) -> None:
    """Release all that a campaign holds, and remove its records on disks."""
    left = ""
    _keep("." + key)
    with _Folder(_base()) as folder:
        for name in (each for each in folder.names() if each.startswith("volbench-")):
            if (name.partition(".")[2] or folder.read(name).rpartition(" ")[2]) == key:
                try:
                    folder.remove(name)
                except AgentError as error:
                    if not folder.foreign_owner(name):  # who may have planted it
                        left = "{}/{}: {}".format(folder.path, name, error.message)
    if left:
        raise AgentError("failed", left)


def _target_names(snapshot: Snapshot, path: str) -> "list[str]":
    """Return the names of the lock of a file or folder: by its places, and itself if it exists."""
    stored = stored_at(snapshot, path)
    mount, names = mount_of(snapshot, stored), []
    if mount is not None:
        inner = zlib.crc32(os.fsencode(mount.inner(stored)))
        names.append("dir-{}:{}-0-{:x}".format(*mount.number, inner))
    for each in dict.fromkeys([path, stored]):
        folder, _, name = each.rpartition("/")
        with contextlib.suppress(OSError):  # what is not there, or no more, is not measured
            place = _numbered("dir", os.stat(folder or "/"), inode=True)
            names.append("{}-{:x}".format(place, zlib.crc32(os.fsencode(name))))
            names.append(_numbered("dir", os.stat(each), inode=True))
    return names


def _numbered(kind: str, status: os.stat_result, *, inode: bool = False) -> str:
    number = os.major(status.st_dev), os.minor(status.st_dev)
    return "{}-{}:{}".format(kind, *number) + ("-{:x}".format(status.st_ino) if inode else "")


def announce(room: Room, key: str, client: "int | None") -> "tuple[int, tuple[str, ...]]":
    """Announce what a run is to write, instead of its client's last; with None, look only.

    An announcement counts as long as this process, or a program started since, has it locked. The
    second campaign sees the first; where another user keeps the turn, both see each other.

    Returns:
        The bytes that other campaigns leave free, and the keys of those about to write.
    """
    place, path, needed_bytes, files = room
    prefix = "volbench-room-{}:{}-".format(*place)
    name = "{}{}.{}".format(prefix, client, key)
    with _Folder(_base()) as folder:
        for _ in range(_TURNS):
            with contextlib.suppress(OSError):
                fcntl.flock(folder.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_TURN_S)
        if client is not None and _KEY.match(key):  # a survey has none, and writes next to nothing
            text = json.dumps([needed_bytes + _allocated_bytes(files), files])
            _keep(name, folder.keep_locked(name, text))
        announced = {}  # type: dict[str, int]
        for other in folder.names():
            holder = other.partition(".")[2]
            if other.startswith(prefix) and holder != key and folder.is_locked(other):
                with contextlib.suppress(TypeError, ValueError):  # no campaign wrote it
                    size_bytes, files = json.loads(folder.read(other))
                    announced[other] = max(0, int(size_bytes) - _allocated_bytes(files))
        # What is written meanwhile counts twice
        left_bytes = free_space(path)[0] - sum(announced.values())
        holders = {other.partition(".")[2] for other in announced if announced[other]}
    return max(0, left_bytes), tuple(sorted(holders))


def _keep(ending: str, descriptor: "int | None" = None) -> None:
    """Close announcements, by the ends of their names; or keep another open in their place."""
    with KEEPING:
        for name in [each for each in KEPT_OPEN if each.endswith(ending)]:
            os.close(KEPT_OPEN.pop(name))
        if descriptor is not None:
            KEPT_OPEN[ending] = descriptor


def _allocated_bytes(files: "typing.Iterable[str]") -> int:
    found = [os.lstat(str(path)) for path in files if os.path.lexists(str(path))]
    return 512 * sum({(each.st_dev, each.st_ino): each.st_blocks for each in found}.values())


def take_lock(name: str, key: str, owner: str = "") -> str:
    """Lock a device, file or folder for a campaign.

    Args:
        name: major and minor of the device, such as ``8:0``.
        owner: process with which the lock ends; see `_is_valid`.

    Returns the key of another campaign that holds it, with owner and path of a lock of another
    user; empty if this one holds it now.
    """
    file = "volbench-" + _matching(_NAME, name)
    wanted = _boot(name) + owner + " " + _matching(_KEY, key)
    with _Folder(_base()) as folder:
        for _ in range(_TRIES):
            if folder.create(file, wanted):
                return ""
            held = folder.read(file)
            owner = folder.foreign_owner(file)
            if held == wanted and not owner:
                return ""
            boot, _space, holder = held.rpartition(" ")
            try:
                if holder == key and boot.startswith(_boot(name)):
                    folder.replace(file, wanted)  # who owns it could remove it meanwhile
                    return ""
                if _is_valid(boot, name) and _KEY.match(holder):
                    return holder if not owner else "{}; {}".format(holder, owner)
                folder.remove_void(file, held)
            except AgentError:
                break  # a folder, or another user's file
        owner = folder.foreign_owner(file)
        raise AgentError("refused", owner or "{}/{} is not a lock".format(folder.path, file))


def lock_holder(name: str) -> str:
    """Return the key of the campaign that holds a device; empty if none does."""
    with _Folder(_base()) as folder:
        boot, _, holder = folder.read("volbench-" + _matching(_NAME, name)).rpartition(" ")
    return holder if _is_valid(boot, name) and _KEY.match(holder) else ""


def join_disk(name: str, key: str, owner: str = "") -> "list[str]":
    """Record that a campaign uses a disk, and return the others that do, with users and processes.

    Args:
        name: ``disk-`` with major and minor of the disk, or of a file system without a device.
    """
    boot, prefix = _boot(_matching(_NAME, name)) + owner, "volbench-{}.".format(name)
    mine = prefix + _matching(_KEY, key)
    with _Folder(_base()) as folder:
        try:
            folder.replace(mine, boot)
        except AgentError as error:
            owner = folder.foreign_owner(mine)
            raise AgentError("refused", owner or "{}: {}".format(mine, error.message)) from error
        return [folder.described(name, other) for other in _users(folder, [name], key)]


def campaigns_beside(key: str) -> "list[str]":
    """Return the keys of other campaigns on the disks of a campaign."""
    with _Folder(_base()) as folder:
        records = (name.partition(".") for name in folder.names())
        mine = [name[len("volbench-") :] for name, _, holder in records if holder == key]
        return _users(folder, mine, key)


def _users(folder: "_Folder", disks: "list[str]", key: str) -> "list[str]":
    """Return the keys of the campaigns on some disks, without one of them."""
    found = set()
    for name in folder.names():
        disk, _, holder = name.partition(".")
        disk = disk[len("volbench-") :] if disk.startswith("volbench-disk-") else ""
        if disk in disks and holder != key and _is_valid(folder.read(name), disk):
            found.add(holder)
    return sorted(found)


def _matching(pattern: "typing.Pattern[str]", text: str) -> str:
    if not pattern.match(text):
        raise AgentError("refused", "{!r} is not a valid name of a lock".format(text[:200]))
    return text


def _base() -> str:
    """Return the folder of the locks, where other users can neither remove nor rename ours."""
    for path in _FOLDERS:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        is_guarded = bool(status.st_mode & stat.S_ISVTX) or not status.st_mode & 0o22
        if stat.S_ISDIR(status.st_mode) and is_guarded and os.access(path, os.W_OK | os.X_OK):
            return path
    raise AgentError("refused", "no folder for locks: {}".format(" or ".join(_FOLDERS)))


def _boot(name: str) -> str:
    """Return the boot of the machine and the attachment of a device."""
    disk = "/sys/dev/block/" + name
    if not os.path.exists(disk + "/diskseq"):
        disk += "/.."  # of a partition
    return first_line("/proc/sys/kernel/random/boot_id") + ":" + first_line(disk + "/diskseq")


def _is_valid(text: str, name: str) -> bool:
    """Return whether a lock is of this boot and attachment, and its process, if any, is alive."""
    boot, _, owner = text.partition("~")
    return boot == _boot(name) and (not owner or _is_alive(*(owner + "..").split(".")[:3]))


def _is_alive(pid: str, ticks: str, namespace: str) -> bool:
    """Return whether the process of a lock is alive, or may be in a PID namespace out of sight."""
    own = _pid_namespace("self")
    if namespace in ("", own):
        return pid.isdigit() and str(ticks_of(int(pid))) == ticks
    return own != _INITIAL or any(_pid_namespace(each) == namespace for each in os.listdir("/proc"))


def _pid_namespace(process: str) -> str:
    """Return the number of the PID namespace of a process; empty if there is none."""
    with contextlib.suppress(OSError):
        return str(os.stat("/proc/{}/ns/pid".format(process)).st_ino)
    return ""


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class _Folder:
    """An open folder, in which no name is ever followed to another place."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self.descriptor = os.open(path, flags)
            self._both = {"src_dir_fd": self.descriptor, "dst_dir_fd": self.descriptor}
        except OSError as error:
            raise of_os_error(error) from error

    def __enter__(self) -> "_Folder":  # noqa: PYI034 - Python 3.6 knows no Self
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.descriptor)

    def names(self) -> "list[str]":
        """Return all names in the folder."""
        return os.listdir(self.descriptor)

    def foreign_owner(self, name: str) -> str:
        """Return path and owner of a file of another user, but root; else an empty string."""
        with contextlib.suppress(OSError):
            uid = os.lstat(name, dir_fd=self.descriptor).st_uid
            if uid not in (0, os.geteuid()):
                return "{}/{} belongs to user {}".format(self.path, name, _user_name(uid))
        return ""

    def described(self, disk: str, key: str) -> str:
        """Return the campaign of a record on a disk, with its user and its process, if known."""
        name = "volbench-{}.{}".format(disk, key)
        pid = self.read(name).partition("~")[2].partition(".")[0]
        user = ""
        with contextlib.suppress(OSError):
            user = " of " + _user_name(os.lstat(name, dir_fd=self.descriptor).st_uid)
        return key + user + (", PID " + pid if pid else "")

    def create(self, name: str, text: str) -> bool:
        """Write a file that appears whole; return False if the name is taken."""
        temporary = self._write_lock(text)
        try:
            os.link(temporary, name, follow_symlinks=False, **self._both)
        except FileExistsError:
            return False
        except OSError as error:
            raise of_os_error(error) from error
        finally:
            os.unlink(temporary, dir_fd=self.descriptor)
        return True

    def replace(self, name: str, text: str) -> None:
        """Write a file that appears whole, in place of one of the same name."""
        temporary = self._write_lock(text)
        try:
            os.rename(temporary, name, **self._both)
        except OSError as error:
            os.unlink(temporary, dir_fd=self.descriptor)
            raise of_os_error(error) from error

    def keep_locked(self, name: str, text: str) -> int:
        """Write a file that is locked as long as the returned descriptor is open anywhere."""
        temporary = self._write_lock(text)
        descriptor = os.open(temporary, _READ, dir_fd=self.descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.rename(temporary, name, **self._both)
        return descriptor

    def is_locked(self, name: str) -> bool:
        """Return whether a process has a file locked."""
        try:
            with open(os.open(name, _READ, dir_fd=self.descriptor)) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.EWOULDBLOCK
        return False

    def _write_lock(self, text: str) -> str:
        """Write a new file, and return its name."""
        name = ".volbench-" + secrets.token_hex(12)
        try:
            with os.fdopen(os.open(name, _CREATE, 0o644, dir_fd=self.descriptor), "w") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(text + "\n")
        except OSError as error:
            raise of_os_error(error) from error
        return name

    def read(self, name: str) -> str:
        """Return the first line of a regular file; empty if there is none."""
        try:
            descriptor = os.open(name, _READ, dir_fd=self.descriptor)
        except OSError:
            return ""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.read(descriptor, _MAX_BYTES).decode("ascii", "replace").partition("\n")[0]
        except OSError:
            return ""
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise of_os_error(error) from error

    def identity(self, name: str) -> "tuple[int, int] | None":
        """Return inode and time of change of a file; None if there is none."""
        with contextlib.suppress(OSError):
            status = os.lstat(name, dir_fd=self.descriptor)
            return status.st_ino, status.st_mtime_ns
        return None

    def remove_void(self, name: str, text: str) -> None:
        """Remove a file with a known content; a lock that another campaign took meanwhile stays."""
        self._remove_if(name, lambda moved: self.read(moved) == text)

    def remove_exact(self, name: str, identity: "tuple[int, int]") -> bool:
        """Remove a file if it has a known identity, and return whether it had."""
        if self.identity(name) != identity:
            return False
        self._remove_if(name, lambda moved: self.identity(moved) == identity)
        return True

    def _remove_if(self, name: str, is_meant: "typing.Callable[[str], bool]") -> None:
        """Remove a file; another one that took its place meanwhile is put back."""
        moved = ".volbench-" + secrets.token_hex(12)
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=self.descriptor).st_mode):
                raise AgentError("refused", "{}/{} is a folder".format(self.path, name))
            os.rename(name, moved, **self._both)
        except FileNotFoundError:
            return
        except OSError as error:
            raise of_os_error(error) from error
        if not is_meant(moved):
            with contextlib.suppress(FileExistsError):  # a third campaign was faster
                os.link(moved, name, follow_symlinks=False, **self._both)
        self.remove(moved)
