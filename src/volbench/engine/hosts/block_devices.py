"""Block devices in sysfs: attributes, partitions, holders, backing devices.

Devices are identified by number, never by name, because a device can have many names. See
Documentation/ABI/stable/sysfs-block of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from volbench.engine.hosts.mounts import Number, number_under, stat_visible
from volbench.execute.protocol import Executor

_SECTOR_BYTES = 512  # Unit of the attribute ``size``, whatever the sector size of the device


@dataclass(frozen=True)
class BlockDevice:
    """One block device."""

    number: Number  # (major, minor)
    name: str  # kernel name, such as ``sdb1``
    node: str  # its node in /dev
    sysfs: str  # its resolved folder in /sys


def block_device(executor: Executor, number: Number) -> BlockDevice | None:
    """Return the device with a given number; None if there is none."""
    return _at(executor, executor.real_path(f"/sys/dev/block/{number[0]}:{number[1]}"))


def named_device(executor: Executor, name: str) -> BlockDevice | None:
    """Return the device with a kernel name; None if there is none."""
    return _at(executor, executor.real_path(f"/sys/class/block/{name}"))


def attribute(executor: Executor, device: BlockDevice, name: str) -> str:
    """Return an attribute of a device, stripped; empty if it has no such attribute."""
    return _read(executor, f"{device.sysfs}/{name}")


def size_bytes(executor: Executor, device: BlockDevice) -> int:
    """Return the capacity; 0 without a medium."""
    text = attribute(executor, device, "size")
    return int(text) * _SECTOR_BYTES if text.isdecimal() else 0


def is_read_only(executor: Executor, device: BlockDevice) -> bool:
    """Return whether the kernel refuses writes to the device."""
    return attribute(executor, device, "ro") == "1"


def whole_disk(executor: Executor, device: BlockDevice) -> BlockDevice:
    """Return the disk of a partition; for any other device the device itself."""
    if attribute(executor, device, "partition"):
        return _at(executor, device.sysfs.rpartition("/")[0]) or device
    return device


def partitions(executor: Executor, device: BlockDevice) -> tuple[BlockDevice, ...]:
    """Return the partitions of a disk."""
    names = executor.list_directory(device.sysfs)
    found = (
        _at(executor, f"{device.sysfs}/{name}")
        for name in names
        if _read(executor, f"{device.sysfs}/{name}/partition")
    )
    return tuple(part for part in found if part is not None)


def holders(executor: Executor, device: BlockDevice) -> tuple[str, ...]:
    """Return the kernel names of the devices built on a device, such as dm, md and bcache."""
    return executor.list_directory(f"{device.sysfs}/holders")


def slaves(executor: Executor, device: BlockDevice) -> tuple[BlockDevice, ...]:
    """Return the devices that a dm or md device is built on."""
    found = (
        named_device(executor, name) for name in executor.list_directory(f"{device.sysfs}/slaves")
    )
    return tuple(part for part in found if part is not None)


def backing_devices(
    executor: Executor, device: BlockDevice, *, through_files: bool
) -> tuple[BlockDevice, ...]:
    """Return every device under a device, nearest first, without itself."""
    found: dict[Number, BlockDevice] = {}
    waiting = [device]
    while waiting:
        here = waiting.pop(0)
        disk = whole_disk(executor, here)
        lower = [*slaves(executor, here), *([] if disk == here else [disk])]
        lower += _under_loop(executor, here, through_files=through_files)
        fresh = [part for part in lower if part.number not in found and part != device]
        found.update((part.number, part) for part in fresh)
        waiting += fresh
    return tuple(found.values())


def devices_of_path(executor: Executor, path: str) -> tuple[BlockDevice, ...]:
    """Return the devices that hold the file system of a path, nearest first."""
    number = number_under(executor, path)
    device = None if number is None else block_device(executor, number)
    if device is None:
        return ()
    return (device, *backing_devices(executor, device, through_files=True))


def serial_and_model(executor: Executor, device: BlockDevice) -> tuple[str, str]:
    """Return serial number and model of a device; for a partition those of its disk.

    The model of a loop device is its backing file, the serial of dm and md devices their UUID.
    """
    disk = whole_disk(executor, device)

    def first(*names: str) -> str:
        texts = (_printable(attribute(executor, disk, name)) for name in names)
        return next(filter(None, texts), "")

    serial = first("device/serial", "serial", "device/vpd_pg80", "device/wwid", "wwid")
    backing = first("loop/backing_file")
    return (
        serial or first("dm/uuid", "md/uuid"),
        f"file {backing}" if backing else first("device/model", "dm/name"),
    )


def _under_loop(
    executor: Executor, device: BlockDevice, *, through_files: bool
) -> list[BlockDevice]:
    """Return the device that a loop device is on, or the one that holds its file."""
    backing = attribute(executor, device, "loop/backing_file")
    file = stat_visible(executor, backing) if backing else None
    if file is not None and file.kind == "block":
        number: Number | None = file.rdev
    else:
        number = number_under(executor, backing) if backing and through_files else None
    found = None if number is None else block_device(executor, number)
    return [] if found is None else [found]


def _at(executor: Executor, sysfs: str) -> BlockDevice | None:
    """Return the device of a sysfs folder; None if the folder does not describe a device."""
    major, colon, minor = _read(executor, f"{sysfs}/dev").partition(":")
    if not (colon and major.isdecimal() and minor.isdecimal()):
        return None
    name = sysfs.rpartition("/")[2]
    return BlockDevice((int(major), int(minor)), name, "/dev/" + name.replace("!", "/"), sysfs)


def _read(executor: Executor, path: str) -> str:
    return (executor.read_text(path) or "").strip()


def _printable(text: str) -> str:
    """Return text without control characters; SCSI page 0x80 begins with a binary header."""
    return "".join(c for c in text if c.isascii() and c.isprintable()).strip()
