"""Mounts, swap areas, backing files of loop devices and fstab of a machine.

See proc_pid_mountinfo(5), proc_swaps(5) and fstab(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from volbench.errors import InputError, RefusedError
from volbench.execute.protocol import Executor, FileStat

Number = tuple[int, int]  # (major, minor) of a device

_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")
_BLANKS = re.compile(r"[ \t]+")  # the kernel escapes only these; names may contain others
_DELETED = " (deleted)"


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    # device number of the file system; major 0 for btrfs, overlay, tmpfs and similar
    number: Number
    mount_point: str  # its mount point
    options: str  # of the mount and of the file system, comma-separated, without duplicates
    filesystem: str  # its type
    source: str  # what was mounted, as given to mount(8)


def read_mounts(executor: Executor) -> tuple[Mount, ...]:
    """Return every mount, oldest first."""
    text = executor.read_text(_MOUNTINFO) or ""
    try:
        mounts = tuple(_mount(line) for line in text.split("\n") if line)
    except (IndexError, ValueError):
        mounts = ()
    if not mounts:
        raise RefusedError(
            f"{_MOUNTINFO} cannot be read, so mounted devices are unknown",
            hint="mount /proc, and see what it holds: findmnt",
        )
    return mounts


def _mount(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    own, rest = before.split(" "), after.split(" ")
    major, _, minor = own[2].partition(":")
    options = dict.fromkeys([*own[5].split(","), *rest[2].split(",")])
    return Mount(
        (int(major), int(minor)), unescape(own[4]), ",".join(options), rest[0], unescape(rest[1])
    )


def unescape(text: str) -> str:
    """Return a field of a kernel table with its octal escapes resolved."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


def stat_visible(executor: Executor, path: str) -> FileStat | None:
    """Return the status of a path from a kernel table; None if it is missing or inaccessible.

    An unprivileged user cannot access every folder. Files in such folders are not the user's own,
    and device nodes are accessible to all users.
    """
    try:
        return executor.stat(path)
    except InputError:
        return None


def mount_of(executor: Executor, path: str) -> Mount | None:
    """Return the mount of a path: the newest one on the longest mount point above it."""
    real = executor.real_path(path)
    above = [m for m in read_mounts(executor) if is_inside(real, m.mount_point)]
    longest = max((len(m.mount_point) for m in above), default=0)
    return next((m for m in reversed(above) if len(m.mount_point) == longest), None)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is a folder or is below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_numbers(executor: Executor, mount: Mount) -> set[Number]:
    """Return the device numbers of a mount: the filesystem's and that of its source."""
    found = {mount.number}
    if mount.source.startswith("/") and (source := stat_visible(executor, mount.source)):
        found.add(source.rdev)
    return {number for number in found if number[0]}


def number_under(executor: Executor, path: str) -> Number | None:
    """Return the number of the block device that holds a path; None for tmpfs, NFS and similar."""
    mount = mount_of(executor, path)
    if mount is None:
        return None
    # The name of the source may have been given to another device since.
    return mount.number if mount.number[0] else min(mount_numbers(executor, mount), default=None)


def mount_points(executor: Executor, numbers: set[Number]) -> tuple[str, ...]:
    """Return the mount points of any of these devices, under any of their names."""
    return tuple(
        mount.mount_point
        for mount in read_mounts(executor)
        if mount_numbers(executor, mount) & numbers
    )


def read_swaps(executor: Executor) -> tuple[str, ...]:
    """Return the devices and files in use as swap."""
    lines = (executor.read_text("/proc/swaps") or "").split("\n")[1:]
    return tuple(unescape(_BLANKS.split(line)[0]) for line in lines if line)


def swap_numbers(executor: Executor) -> set[Number]:
    """Return the numbers of the block devices in use as swap."""
    found = (stat_visible(executor, path) for path in read_swaps(executor))
    return {swap.rdev for swap in found if swap is not None and swap.kind == "block"}


def read_loop_files(executor: Executor) -> dict[str, str]:
    """Return the backing file of each active loop device, by the device's kernel name."""
    found = {}
    for name in executor.list_directory("/sys/block"):
        text = executor.read_text(f"/sys/block/{name}/loop/backing_file")
        if text:
            found[name] = text.rstrip("\n").removesuffix(_DELETED)
    return found


def unmounted_above(executor: Executor, path: str) -> str:
    """Return the mount point of fstab at or above a path that is not mounted; empty for none.

    Writing there would fill the disk that holds the mount point.
    """
    real = executor.real_path(path)
    mounted = {mount.mount_point for mount in read_mounts(executor)}
    for line in (executor.read_text("/etc/fstab") or "").splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith("#") or not fields[1].startswith("/"):
            continue
        point = executor.real_path(unescape(fields[1]))
        if is_inside(real, point) and point not in mounted:
            return point
    return ""
