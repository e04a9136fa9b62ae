"""Checks that a block device is not in use and that the user agreed to overwrite it.

fio only looks for the given name in the mount table, so it misses symlinks, mounted partitions,
swap and RAID members. These checks compare device numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from volbench.engine.guard.device_content import Content, Part, read_whole
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
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor

_Reason = tuple[str, str]  # Predicate that follows the name of the device, and a hint


# Maximum size of an extended partition in sysfs: two sectors or a logical block, whatever its real
# size (put_partition in block/partitions/msdos.c of the kernel)
_EXTENDED_BYTES = 4096


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
        campaign_dir: absolute path of the campaign folder; it may not exist yet.
        is_held: whether volbench itself holds it open exclusively.
    """
    if reason := _reason(executor, device, campaign_dir, is_held=is_held):
        problem, hint = reason
        raise RefusedError(f"{target} {problem}", hint=hint)


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
        lambda: _part_of_member(executor, shared.wholes),
        lambda: None if is_held else _not_exclusive(executor, device, ""),
        *(
            partial(_not_exclusive, executor, other, f" as {other.node}")
            for other in shared.independent
        ),
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


def _part_of_member(executor: Executor, wholes: Sequence[BlockDevice]) -> _Reason | None:
    for disk in wholes:
        whole = read_whole(executor, disk)
        if whole.is_member:
            return (
                f"is a partition of {disk.node}, a member of a larger volume: {whole.signature}",
                f"if that volume is gone, clear what is left of it: wipefs {disk.node}",
            )
    return None


def _loop_backing(executor: Executor, numbers: set[Number]) -> _Reason | None:
    for loop, backing in read_loop_files(executor).items():
        found = stat_visible(executor, backing)
        if found is not None and found.kind == "block" and found.rdev in numbers:
            return f"is in use by the loop device {loop}", f"detach it: losetup -d /dev/{loop}"
    return None


def _not_exclusive(executor: Executor, device: BlockDevice, name: str) -> _Reason | None:
    if error := executor.exclusive_error(device.node):
        return (
            f"cannot be opened exclusively{name}: {error}",
            "end the process that uses it, or run volbench as a user who may write to it",
        )
    return None


def check_content(target: str, content: Content, *, may_wipe: bool) -> None:
    """Check that a device holds nothing, or that the user agreed to overwrite what it holds.

    Args:
        may_wipe: whether filesystems, partition tables and members may be overwritten.
    """
    if reason := _unclear(content) or (None if may_wipe else _occupied(content)):
        problem, hint = reason
        raise RefusedError(f"{target} {problem}", hint=hint)


def _unclear(content: Content) -> _Reason | None:
    if node := content.unreadable:
        return (
            f"cannot be searched for signatures of LVM, RAID and similar: {node}",
            f"see what blkid reports: blkid -p {node} (it is part of util-linux)",
        )
    if part := content.ambivalent:
        return f"holds {part}", f"examine them: wipefs {part.node}"
    return None


def _occupied(content: Content) -> _Reason | None:
    if part := content.member:
        return _member(part), f"remove it from that volume; {_WIPE}"
    if content.mark or content.is_unidentified:
        return f"holds {content}", f"examine it with volbench probe; {_WIPE}"
    return None


_WIPE = "if it may be overwritten all the same: --wipe-signatures besides --allow-destroy"


def _member(part: Part) -> str:
    place = part.name or part.node
    if part.signature.type == "btrfs":
        return f"is part of a btrfs that spans several devices: {place}"
    return f"is a member of a larger volume: {place} holds {part.signature}"


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
