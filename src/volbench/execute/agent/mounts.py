"""Mounts, swap areas, backing files of loop devices and fstab of this machine.

See proc_pid_mountinfo(5), proc_swaps(5) and fstab(5).
"""

import re
from typing import NamedTuple

from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.files import FileStat
from volbench.execute.agent.snapshot import Snapshot

_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")
_BLANKS = re.compile(r"[ \t]+")  # the kernel escapes only these; names may contain others
_DELETED = re.compile(r" \(deleted\)\Z")
# Filesystems that pass on files of others; so do the drivers of FUSE that are known to
_LAYERED = (
    *("overlay", "aufs", "ecryptfs", "fuse.fuse-overlayfs", "fuse.bindfs", "fuse.mergerfs"),
    *("fuse.unionfs", "fuse.rclone", "fuse.gocryptfs", "fuse.encfs", "virtiofs", "9p"),
)


class Mount(NamedTuple):
    """One line of mountinfo."""

    number: "tuple[int, int]"  # of the filesystem; major 0 for btrfs, overlay, tmpfs and similar
    mount_point: str
    options: str  # of the mount and of the filesystem, comma-separated, without duplicates
    filesystem: str
    source: str  # what was mounted, as given to mount(8)


class LoopFile(NamedTuple):
    """File or device that a loop device shows."""

    path: str  # its name when it was attached; it may have others now, or none
    stat: FileStat
    offset: int  # its first byte on the loop device
    is_layered: bool  # see `is_layered`


def read_mounts(snapshot: Snapshot) -> "list[Mount]":
    """Return every mount, oldest first."""
    try:
        mounts = [_mount(line) for line in snapshot.text(_MOUNTINFO).split("\n") if line]
    except (IndexError, ValueError):
        mounts = []
    if not mounts:
        message = "{} cannot be read, so mounted devices are unknown".format(_MOUNTINFO)
        raise AgentError("refused", message)
    return mounts


def _mount(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    mount, filesystem = before.split(" "), after.split(" ")
    major, _, minor = mount[2].partition(":")
    options = dict.fromkeys(mount[5].split(",") + filesystem[2].split(","))
    return Mount(
        (int(major), int(minor)),
        unescape(mount[4]),
        ",".join(options),
        filesystem[0],
        unescape(filesystem[1]),
    )


def unescape(text: str) -> str:
    """Return a field of a kernel table with its octal escapes resolved."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is a folder or is below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_of(snapshot: Snapshot, path: str) -> "Mount | None":
    """Return the mount of a path: the newest one on the longest mount point above it."""
    real = snapshot.real_path(path)
    above = [mount for mount in read_mounts(snapshot) if is_inside(real, mount.mount_point)]
    above.reverse()  # of several with the longest name, max takes the first
    return max(above, key=lambda mount: len(mount.mount_point), default=None)


def mount_numbers(snapshot: Snapshot, mount: Mount) -> "set[tuple[int, int]]":
    """Return the device numbers of a mount: of the filesystem and of its source."""
    numbers = {mount.number}
    source = snapshot.stat_visible(mount.source) if mount.source.startswith("/") else None
    if source is not None:
        numbers.add(source.rdev)
    return {number for number in numbers if number[0]}


def number_under(snapshot: Snapshot, path: str) -> "tuple[int, int] | None":
    """Return the number of the block device that holds a path; None for tmpfs, NFS and similar."""
    mount = mount_of(snapshot, path)
    if mount is None:
        return None
    # The name of the source may have been given to another device since.
    return mount.number if mount.number[0] else min(mount_numbers(snapshot, mount), default=None)


def mount_points(snapshot: Snapshot, numbers: "set[tuple[int, int]]") -> "list[str]":
    """Return the mount points of any of these devices, under any of their names."""
    return [m.mount_point for m in read_mounts(snapshot) if mount_numbers(snapshot, m) & numbers]


def read_swaps(snapshot: Snapshot) -> "list[str]":
    """Return the devices and files in use as swap."""
    lines = snapshot.text("/proc/swaps").split("\n")[1:]
    return [unescape(_BLANKS.split(line)[0]) for line in lines if line]


def swap_numbers(snapshot: Snapshot) -> "set[tuple[int, int]]":
    """Return the numbers of the block devices in use as swap."""
    swaps = [snapshot.stat_visible(path) for path in read_swaps(snapshot)]
    return {swap.rdev for swap in swaps if swap is not None and swap.kind == "block"}


def read_loop_files(snapshot: Snapshot) -> "dict[str, LoopFile]":
    """Return the backing file of each active loop device, by the device's kernel name.

    Those that this user can neither open nor see are left out.
    """
    files = {}
    for name in snapshot.names("/sys/block"):
        path = snapshot.text("/sys/block/{}/loop/backing_file".format(name)).rstrip("\n")
        if not path:
            continue
        path = _DELETED.sub("", path)
        seen, offset = snapshot.stat_visible(path), 0
        attached = snapshot.attached_file("/dev/" + name)
        if attached is not None:
            stat, offset = attached
            is_seen = seen is not None and seen.identity[:3] == stat.identity[:3]
            seen = seen if is_seen else stat
        if seen is not None:
            files[name] = LoopFile(path, seen, offset, is_layered(snapshot, path))
    return files


def is_layered(snapshot: Snapshot, path: str) -> bool:
    """Return whether a path may show a file of another filesystem under a number of its own."""
    mount = mount_of(snapshot, path)
    return mount is not None and mount.filesystem in _LAYERED


def unmounted_above(snapshot: Snapshot, path: str) -> str:
    """Return the mount point of fstab at or above a path that is not mounted; empty for none.

    Writing there would fill the disk that holds the mount point.
    """
    real = snapshot.real_path(path)
    mounted = {mount.mount_point for mount in read_mounts(snapshot)}
    for line in snapshot.text("/etc/fstab").splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith("#") or not fields[1].startswith("/"):
            continue
        point = snapshot.real_path(unescape(fields[1]))
        if is_inside(real, point) and point not in mounted:
            return point
    return ""
