"""Mounts, swap areas, backing files of loop devices and fstab of this machine.

See proc_pid_mountinfo(5), proc_swaps(5) and fstab(5).
"""

import re
from functools import lru_cache
from typing import Iterator, NamedTuple

from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.files import FileStat
from volbench.execute.agent.snapshot import Snapshot

_UPPER = "upperdir=/"
_MAX_OVERLAYS = 8  # Upper folders that are in overlays themselves: no kernel allows so many
_MOUNTINFO = "/proc/self/mountinfo"
_CONFIG = "/sys/kernel/config/"
# Of LIO and nvmet: folder, folder in each of its folders, file with the path of what is exported
_EXPORTS = (("target/core", "/", "/udev_path"), ("nvmet/subsystems", "/namespaces", "/device_path"))
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
    root: str  # path in the filesystem that is mounted: not / for a bind mount
    ids: "tuple[str, str]"  # of the mount, and of the one on which it is mounted

    def inner(self, path: str) -> str:
        """Return where in the filesystem a path below the mount point is."""
        return self.root.rstrip("/") + path[len(self.mount_point.rstrip("/")) :]


class LoopFile(NamedTuple):
    """File or device that a loop device shows."""

    path: str  # its name when it was attached; it may have others now, or none
    stat: FileStat  # of what an overlay stores, where that is known
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


@lru_cache(maxsize=4096)
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
        unescape(mount[3]),
        (mount[0], mount[1]),
    )


def unescape(text: str) -> str:
    """Return a field of a kernel table with its octal escapes resolved."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is a folder or is below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_of(snapshot: Snapshot, path: str) -> "Mount | None":
    """Return the mount of a path, found as the kernel does: not one that a younger one hides."""
    real, found = snapshot.real_path(path), None
    above = following = [m for m in read_mounts(snapshot) if is_inside(real, m.mount_point)]
    while following:
        found = min(following, key=lambda mount: len(mount.mount_point))
        following = [m for m in above if m.ids[1] == found.ids[0] != m.ids[0]]
    return found


def stored_at(snapshot: Snapshot, path: str) -> str:
    """Return the path in the upper folder of an overlay, which may not exist yet; else the path.

    The upper folder has the time of birth that the overlay shows; where it is not found at its
    name, the path itself is returned.
    """
    path = snapshot.real_path(path)
    for _ in range(_MAX_OVERLAYS if _UPPER in snapshot.text(_MOUNTINFO) else 0):
        mount = mount_of(snapshot, path)
        options = mount.options.split(",") if mount and mount.filesystem == "overlay" else []
        upper = next((unescape(o[len(_UPPER) - 1 :]) for o in options if o.startswith(_UPPER)), "")
        if upper and not snapshot.stat_visible(upper):  # overlayfs escapes commas and backslashes
            upper = re.sub(r"\\(.)", r"\1", upper)
        shown = snapshot.stat_visible(mount.mount_point) if mount and upper else None
        stored = snapshot.stat_visible(upper + mount.root) if mount and shown else None
        if mount is None or shown is None or stored is None or shown.born_ns != stored.born_ns:
            break
        path = snapshot.real_path(upper + mount.inner(path))
    return path


def source_of(snapshot: Snapshot, mount: Mount) -> "FileStat | None":
    """Return the device or file that was mounted; None if nothing has its name."""
    found = snapshot.stat_visible(mount.source) if mount.source.startswith("/") else None
    if found is None or found.kind != "file":
        return found
    return snapshot.stat_visible(stored_at(snapshot, mount.source))


def sources_elsewhere(snapshot: Snapshot) -> "Iterator[tuple[str, FileStat | None]]":
    """Yield words on what is mounted in any mount namespace, or exported, and its device or file.

    None stands for a file that is not in sight.
    """
    texts = {}  # type: dict[str, str]
    for pid in filter(str.isdigit, snapshot.names("/proc")):
        texts.setdefault(snapshot.text("/proc/{}/mountinfo".format(pid)), pid)
    for text, pid in texts.items():
        for mount in (_mount(line) for line in text.split("\n") if line):
            if mount.filesystem == "erofs" and not mount.number[0]:
                source = "/proc/{}/root{}".format(pid, mount.source)
                words = "as erofs at {} of process {}".format(mount.mount_point, pid)
                yield words, snapshot.stat_visible(source)
    for base, below, file in _EXPORTS:
        for group in snapshot.names(_CONFIG + base):
            folder = _CONFIG + base + "/" + group + below
            for name in snapshot.names(folder):
                path = snapshot.text(folder + "/" + name + file).strip()
                if path:
                    yield "as export {} of {}".format(name, group), snapshot.stat_visible(path)


def mount_numbers(snapshot: Snapshot, mount: Mount) -> "set[tuple[int, int]]":
    """Return the device numbers of a mount: of the filesystem and of its source."""
    numbers = {mount.number}
    source = source_of(snapshot, mount)
    if source is not None:
        numbers.add(source.rdev)
    return {number for number in numbers if number[0]}


def number_under(snapshot: Snapshot, path: str) -> "tuple[int, int] | None":
    """Return the number of the block device that holds a path; None for tmpfs, NFS and similar."""
    mount = mount_of(snapshot, stored_at(snapshot, path))
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
        seen = snapshot.stat_visible(path)
        stat, offset = snapshot.attached_file("/dev/" + name) or (seen, 0)
        if seen is not None and stat is not None and seen.identity[:3] == stat.identity[:3]:
            stat = snapshot.stat_visible(stored_at(snapshot, path)) or seen
            files[name] = LoopFile(path, stat, offset, is_layered(snapshot, path))
        elif stat is not None:  # it has lost its name, or its mount is not here
            plain = (m.number for m in read_mounts(snapshot) if m.filesystem not in _LAYERED)
            is_unknown = not stat.device[0] and stat.device not in plain
            files[name] = LoopFile(path, stat, offset, is_unknown)
    return files


def is_layered(snapshot: Snapshot, path: str) -> bool:
    """Return whether a path shows a file of another filesystem, which is not known."""
    real, place = snapshot.real_path(path), stored_at(snapshot, path)
    mount = mount_of(snapshot, place)
    is_lower = place != real and snapshot.stat_visible(place) is None
    return is_lower or (mount is not None and mount.filesystem in _LAYERED)


def unmounted_above(snapshot: Snapshot, path: str) -> str:
    """Return the mount point of fstab at or above a path that is not mounted; empty for none.

    Writing there would fill the disk that holds the mount point.
    """
    real = snapshot.real_path(path)
    for line in snapshot.text("/etc/fstab").splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith("#") or not fields[1].startswith("/"):
            continue
        point = snapshot.real_path(unescape(fields[1]))
        mount = mount_of(snapshot, point) if is_inside(real, point) else None
        if mount is not None and mount.mount_point != point:
            return point
    return ""
