"""Checks that a block device is not in use and that the user agreed to overwrite it.

fio only looks for the given name in the mount table, so it misses symlinks, mounted partitions,
swap and RAID members. These checks compare device numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.engine.guard.path_checks import nearest_existing
from volbench.engine.guard.shared_storage import SharedStorage
from volbench.engine.hosts.block_devices import (
    BlockDevice,
    backing_devices,
    devices_of_path,
    holders,
    is_read_only,
    partitions,
    size_bytes,
    whole_disk,
)
from volbench.engine.hosts.mounts import (
    Number,
    mount_points,
    read_loop_files,
    stat_visible,
    swap_numbers,
)
from volbench.engine.hosts.signatures import btrfs_devices, read_signature
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor

_Reason = tuple[str, str]
"""Predicate that follows the name of the device, and a hint."""

_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}
"""Members of larger volumes that blkid does not class as ``raid``."""


_EXTENDED_BYTES = 4096
"""Maximum size of an extended partition in sysfs: two sectors or a logical block, whatever its real
size (put_partition in block/partitions/msdos.c of the kernel)."""


def check_unused(
    executor: Executor,
    target: str,
    device: BlockDevice,
    *,
    campaign_dir: str,
    is_held: bool = False,
) -> None:
    """Check that a device is neither in use nor part of a larger volume.

    Args:
        executor: the machine.
        target: name as given by the user, for the message.
        device: the device.
        campaign_dir: absolute path of the campaign folder; it may not exist yet.
        is_held: whether volbench itself holds it open exclusively.

    Raises:
        RefusedError: it is read-only, in use, or part of a larger volume.
    """
    if reason := _reason(executor, device, campaign_dir, is_held=is_held):
        problem, hint = reason
        raise RefusedError(f"{target} {problem}", hint=hint, context={"path": target})


def _reason(
    executor: Executor, device: BlockDevice, campaign_dir: str, *, is_held: bool
) -> _Reason | None:
    """Return the reason why a device must not be overwritten, with a hint; None if it may be."""
    shared = SharedStorage(executor, device)
    family = _family(executor, device)
    used = (*shared.overlapping, *shared.elsewhere)
    numbers = {part.number for part in used}
    checks: tuple[Callable[[], _Reason | None], ...] = (
        lambda: _read_only(executor, device),
        lambda: _extended(executor, device),
        lambda: _disk_of(executor, device, "/", "the disk of /"),
        lambda: _disk_of(executor, device, campaign_dir, "the disk of the campaign folder"),
        lambda: _mounted(executor, numbers),
        lambda: _swap(executor, numbers),
        lambda: _held(executor, device, used),
        lambda: _loop_backing(executor, {part.number for part in family}),
        lambda: _member(executor, device),
        lambda: _not_exclusive(executor, shared.same[is_held:1] + shared.independent),
    )
    return next((reason for check in checks if (reason := check()) is not None), None)


def _family(executor: Executor, device: BlockDevice) -> tuple[BlockDevice, ...]:
    """Return a device, its partitions, and for a partition its disk."""
    disk = whole_disk(executor, device)
    above = () if disk == device else (disk,)
    return (device, *partitions(executor, device), *above)


def _read_only(executor: Executor, device: BlockDevice) -> _Reason | None:
    if is_read_only(executor, device):
        return "is read-only", f"make it writable: blockdev --setrw {device.node}"
    return None


def _extended(executor: Executor, device: BlockDevice) -> _Reason | None:
    if whole_disk(executor, device) != device and size_bytes(executor, device) <= _EXTENDED_BYTES:
        return (
            "is an extended partition: it holds the partition table of the logical ones",
            "name one of the logical partitions; lsblk lists them",
        )
    return None


def _disk_of(executor: Executor, device: BlockDevice, path: str, name: str) -> _Reason | None:
    lower = backing_devices(executor, device, through_files=False)
    used = devices_of_path(executor, nearest_existing(executor, executor.real_path(path)))
    if {part.number for part in (device, *lower)} & {part.number for part in used}:
        return f"is {name}, or part of it", "use a separate disk, or measure through a file"
    return None


def _mounted(executor: Executor, numbers: set[Number]) -> _Reason | None:
    points = mount_points(executor, numbers)
    if not points:
        return None
    places = ", ".join(dict.fromkeys(points))
    return f"is mounted, or one of its partitions is: {places}", f"unmount it: umount {points[-1]}"


def _swap(executor: Executor, numbers: set[Number]) -> _Reason | None:
    if numbers & swap_numbers(executor):
        return "is in use as swap, or one of its partitions is", "disable it: swapoff DEVICE"
    return None


def _held(executor: Executor, device: BlockDevice, used: Sequence[BlockDevice]) -> _Reason | None:
    below = backing_devices(executor, device, through_files=False)
    own = {part.name for part in (device, *below)}
    names = {name for part in used for name in holders(executor, part)} - own
    if names:
        return (
            f"is held by {', '.join(sorted(names))} (LVM, RAID, device mapper or similar)",
            "remove it from the stack that uses it, as shown by lsblk",
        )
    return None


def _loop_backing(executor: Executor, numbers: set[Number]) -> _Reason | None:
    for loop, backing in read_loop_files(executor).items():
        found = stat_visible(executor, backing)
        if found is not None and found.kind == "block" and found.rdev in numbers:
            return f"is in use by the loop device {loop}", f"detach it: losetup -d /dev/{loop}"
    return None


def _member(executor: Executor, device: BlockDevice) -> _Reason | None:
    for part in (device, *partitions(executor, device)):
        found = read_signature(executor, part.node)
        if not found.known:
            return (
                f"cannot be searched for signatures of LVM, RAID and similar: {part.node}",
                f"see what blkid reports: blkid -p {part.node} (it is part of util-linux)",
            )
        owned = found.usage == "raid" or found.type.endswith("_member")
        if owned or found.type in _OWNED_TYPES:
            return (
                f"is a member of a larger volume: {part.node} holds {found}",
                f"remove it from that volume, then clear it: wipefs -a {part.node}",
            )
        if found.ambivalent:
            return f"holds {found}", f"examine them: wipefs {part.node}"
        if found.type == "btrfs" and btrfs_devices(executor, part.node) != 1:
            return (
                f"is part of a btrfs that spans several devices: {part.node}",
                "remove it from the file system: btrfs device remove",
            )
    return None


def _not_exclusive(executor: Executor, devices: Sequence[BlockDevice]) -> _Reason | None:
    for device in devices:
        if error := executor.exclusive_error(device.node):
            return (
                f"cannot be opened exclusively: {error} ({device.node})",
                "end the process that uses it, or run volbench as a user who may write to it",
            )
    return None


def is_allowed_device(
    executor: Executor, target: str, device: BlockDevice, allow_destroy: Sequence[str]
) -> bool:
    """Return whether the user named this device, by its resolved path and its number."""
    real = executor.real_path(target)
    for entry in allow_destroy:
        found = stat_visible(executor, entry)
        same = found is not None and found.kind == "block" and found.rdev == device.number
        if same and executor.real_path(entry) == real:
            return True
    return False
