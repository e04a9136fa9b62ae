"""Whether a block device may be measured: a pinned Volume enters, nothing or a refusal leaves.

fio compares only the text of the name with the mount table, so symlinks, mounted partitions, swap
and RAID members slip through it. Here everything is compared by device number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from volbench.engine.guard.path_checks import nearest_existing
from volbench.engine.hosts.block_devices import (
    BlockDevice,
    backing_devices,
    block_device,
    holders,
    is_read_only,
    partitions,
    under_path,
    whole_disk,
)
from volbench.engine.hosts.mounts import (
    Number,
    look,
    mount_points,
    read_loop_files,
    swap_numbers,
)
from volbench.engine.hosts.signatures import btrfs_devices, read_signature
from volbench.engine.hosts.volume_probe import pin_device
from volbench.errors import RefusedError
from volbench.execute.protocol import Executor
from volbench.model.campaign.target import DevicePin, Volume

_Reason = tuple[str, str]
"""Why not, to follow the name of the device; and the way out."""

_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}
"""Members of something larger that blkid does not class as ``raid``."""


def check_identity(executor: Executor, volume: Volume) -> BlockDevice:
    """Check that a target still is the block device that was planned.

    Returns:
        The device, by the name that fio will open.

    Raises:
        RefusedError: it is gone, is no block device, or is another one.
    """
    target, pin = volume.target, volume.pin
    found = executor.stat(target)
    if found is None or found.kind != "block":
        raise RefusedError(
            f"{target} is not there any more" if found is None else f"{target} is no block device",
            hint="attach it again, or plan a new campaign; lsblk shows the devices there are",
            context={"path": target},
        )
    now = pin_device(executor, target, found.rdev)
    changes = ["it was never pinned"] if pin is None else _changes(pin, now)
    device = block_device(executor, found.rdev)
    if changes or device is None:
        raise RefusedError(
            f"{target} is not the device that was planned: {', '.join(changes)}",
            hint="look at it with volbench probe, then plan a new campaign",
            context={"path": target},
        )
    return replace(device, node=target)


def _changes(pin: DevicePin, now: DevicePin) -> list[str]:
    pairs = (
        ("device number", f"{pin.major}:{pin.minor}", f"{now.major}:{now.minor}"),
        ("size in bytes", str(pin.size_bytes), str(now.size_bytes)),
        ("serial", pin.serial, now.serial),
        ("model", pin.model, now.model),
    )
    return [
        f"{what} was {before or 'unknown'}, is {after or 'unknown'}"
        for what, before, after in pairs
        if before != after
    ]


def check_unused(
    executor: Executor, target: str, device: BlockDevice, *, campaign_dir: str
) -> None:
    """Check that nobody would lose anything if a device were overwritten now.

    Args:
        executor: the machine.
        target: the name the user gave, for the message.
        device: what it is.
        campaign_dir: absolute path of the campaign folder; it may not exist yet.

    Raises:
        RefusedError: it is read-only, in use, or belongs to something larger.
    """
    if reason := _reason(executor, device, campaign_dir):
        what, way_out = reason
        raise RefusedError(f"{target} {what}", hint=way_out, context={"path": target})


def _reason(executor: Executor, device: BlockDevice, campaign_dir: str) -> _Reason | None:
    """Return why a device can't be overwritten and the way out, or None."""
    checks: tuple[Callable[[], _Reason | None], ...] = (
        lambda: _read_only(executor, device),
        lambda: _disk_of(executor, device, "/", "the disk under /"),
        lambda: _disk_of(executor, device, campaign_dir, "the disk under the campaign folder"),
        lambda: _mounted(executor, device),
        lambda: _swap(executor, device),
        lambda: _held(executor, device),
        lambda: _under_loop(executor, device),
        lambda: _member(executor, device),
        lambda: _not_exclusive(executor, device),
    )
    return next((reason for check in checks if (reason := check()) is not None), None)


def _family(executor: Executor, device: BlockDevice) -> tuple[BlockDevice, ...]:
    """Return a device, its partitions and the disk it is a partition of."""
    disk = whole_disk(executor, device)
    above = () if disk == device else (disk,)
    return (device, *partitions(executor, device), *above)


def _numbers(executor: Executor, device: BlockDevice) -> set[Number]:
    return {part.number for part in _family(executor, device)}


def _read_only(executor: Executor, device: BlockDevice) -> _Reason | None:
    if is_read_only(executor, device):
        return "is read-only", f"make it writable: blockdev --setrw {device.node}"
    return None


def _disk_of(executor: Executor, device: BlockDevice, place: str, name: str) -> _Reason | None:
    own = {
        device.number,
        *(d.number for d in backing_devices(executor, device, through_files=False)),
    }
    held = under_path(executor, nearest_existing(executor, executor.real_path(place)))
    if own & {lower.number for lower in held}:
        return f"is {name}, or part of it", "use a disk of its own, or measure through a file"
    return None


def _mounted(executor: Executor, device: BlockDevice) -> _Reason | None:
    points = mount_points(executor, _numbers(executor, device))
    if points:
        places = ", ".join(dict.fromkeys(points))
        return (
            f"is mounted, or a part of it: {places}",
            f"unmount it: umount {points[-1]}",
        )
    return None


def _swap(executor: Executor, device: BlockDevice) -> _Reason | None:
    if _numbers(executor, device) & swap_numbers(executor):
        return "is in use as swap, or a part of it", "stop that first: swapoff DEVICE"
    return None


def _held(executor: Executor, device: BlockDevice) -> _Reason | None:
    names = {name for part in _family(executor, device) for name in holders(executor, part)}
    if names:
        return (
            f"is held by {', '.join(sorted(names))} (LVM, RAID, device mapper or their kin)",
            "take it out of what is built on it: lsblk shows that",
        )
    return None


def _under_loop(executor: Executor, device: BlockDevice) -> _Reason | None:
    numbers = _numbers(executor, device)
    for loop, backing in read_loop_files(executor).items():
        found = look(executor, backing)
        if found is not None and found.kind == "block" and found.rdev in numbers:
            return f"is in use by the loop device {loop}", f"detach that: losetup -d /dev/{loop}"
    return None


def _member(executor: Executor, device: BlockDevice) -> _Reason | None:
    for part in (device, *partitions(executor, device)):
        found = read_signature(executor, part.node)
        if not found.known:
            return (
                f"can't be searched for signatures of LVM, RAID and their kin: {part.node}",
                f"see what blkid says: blkid -p {part.node} (it is part of util-linux)",
            )
        owned = found.usage == "raid" or found.type.endswith("_member")
        if owned or found.type in _OWNED_TYPES:
            return (
                f"belongs to something larger: {part.node} holds {found}",
                f"take it out of that, then clear it: wipefs -a {part.node}",
            )
        if found.ambivalent:
            return f"holds {found}", f"look at them: wipefs {part.node}"
        if found.type == "btrfs" and btrfs_devices(executor, part.node) != 1:
            return (
                f"belongs to a btrfs of several devices: {part.node}",
                "take it out: btrfs device remove",
            )
    return None


def _not_exclusive(executor: Executor, device: BlockDevice) -> _Reason | None:
    if error := executor.exclusive_error(device.node):
        return (
            f"can't be opened exclusively: {error}",
            "end what uses it, or run volbench as a user who may write to it",
        )
    return None


def is_allowed_device(
    executor: Executor, target: str, device: BlockDevice, allow_destroy: Sequence[str]
) -> bool:
    """Tell whether the user named this device, by its resolved path and its number."""
    real = executor.real_path(target)
    for entry in allow_destroy:
        found = look(executor, entry)
        same = found is not None and found.kind == "block" and found.rdev == device.number
        if same and executor.real_path(entry) == real:
            return True
    return False
