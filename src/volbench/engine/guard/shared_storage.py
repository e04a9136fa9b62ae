"""Devices that show the same storage under other names, which the kernel takes for different ones.

A disk with two paths and no multipathd is two disks; an image that was attached twice is two loop
devices; a loop device on a disk shows the disk again. A use of one is a use of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from volbench.engine.hosts.block_devices import (
    BlockDevice,
    attribute,
    backing_devices,
    block_device,
    named_device,
    partitions,
    whole_disk,
)
from volbench.engine.hosts.mounts import read_loop_files, stat_visible
from volbench.execute.protocol import Executor, FileStat

_WWID_FILES = ("wwid", "device/wwid")


class SharedStorage:
    """Devices of a machine by the storage that they show."""

    def __init__(self, executor: Executor, device: BlockDevice) -> None:
        self._executor = executor
        self._device = device

    @cached_property
    def same(self) -> tuple[BlockDevice, ...]:
        """The device itself, then all others with exactly the same content."""
        return self._same_as(self._device)

    @cached_property
    def parts(self) -> tuple[BlockDevice, ...]:
        """Partitions of the same devices, and all others with exactly the content of one."""
        found = [part for device in self.same for part in partitions(self._executor, device)]
        return _distinct(same for part in found for same in self._same_as(part))

    @cached_property
    def overlapping(self) -> tuple[BlockDevice, ...]:
        """The same devices, their partitions, and the disks that they are a part of."""
        wholes = (same for disk in self.wholes for same in self._same_as(disk))
        return _distinct((*self.same, *self.parts, *wholes))

    @cached_property
    def wholes(self) -> tuple[BlockDevice, ...]:
        """The disks of which the same devices are partitions."""
        disks = (whole_disk(self._executor, device) for device in self.same)
        return tuple(disk for disk in _distinct(disks) if disk not in self.same)

    @cached_property
    def independent(self) -> tuple[BlockDevice, ...]:
        """Devices that the kernel lets others use while it gives this one exclusively."""
        known = {device.number for device in self.same}
        names = {whole_disk(self._executor, device).number for device in self.same}
        parts = (
            part
            for part in self.parts
            if part.number not in known and whole_disk(self._executor, part).number not in names
        )
        # A whole disk with the same partition is known through that.
        wholes = (
            whole
            for disk in self.wholes
            for whole in self._same_as(disk)
            if whole.number not in names
        )
        return _distinct((*self.same[1:], *parts, *wholes))

    @cached_property
    def elsewhere(self) -> tuple[BlockDevice, ...]:
        """Other names of the devices on which this one is built: those it does not use itself."""
        below = backing_devices(self._executor, self._device, through_files=False)
        own = {device.number for device in (*below, *self.overlapping)}
        found = _distinct(other for device in below for other in self._same_as(device))
        return tuple(device for device in found if device.number not in own)

    def _same_as(self, device: BlockDevice) -> tuple[BlockDevice, ...]:
        found = {device.number: device}
        waiting = [device]
        while waiting:
            for other in self._other_names(waiting.pop(0)):
                if other.number not in found:
                    found[other.number] = other
                    waiting.append(other)
        return tuple(found.values())

    def _other_names(self, device: BlockDevice) -> Iterator[BlockDevice]:
        disk = whole_disk(self._executor, device)
        if disk != device:
            yield from self._same_parts(device, disk)
        else:
            yield from self._other_paths(device)
        own = self._loops.get(device.name)
        for name, file in self._loops.items():
            is_on_device = file.kind == "block" and file.rdev == device.number
            is_same_file = own is not None and _identity(own) == _identity(file)
            loop = named_device(self._executor, name) if is_on_device or is_same_file else None
            if loop is not None:
                yield loop
        lower = block_device(self._executor, own.rdev) if own and own.kind == "block" else None
        if lower is not None:
            yield lower

    def _same_parts(self, part: BlockDevice, disk: BlockDevice) -> Iterator[BlockDevice]:
        """Yield the partitions with the same place on the other names of a disk."""
        place = self._place(part)
        for other in self._same_as(disk):
            for found in partitions(self._executor, other):
                if self._place(found) == place:
                    yield found

    def _place(self, part: BlockDevice) -> tuple[str, str]:
        return (
            attribute(self._executor, part, "start"),
            attribute(self._executor, part, "size"),
        )

    def _other_paths(self, disk: BlockDevice) -> Iterator[BlockDevice]:
        """Yield the disks with the World Wide Name of a disk."""
        wwid = self._wwid(disk)
        if not wwid:
            return
        for name in self._executor.list_directory("/sys/block"):
            other = None if name in self._loops else named_device(self._executor, name)
            if other is not None and self._wwid(other) == wwid:
                yield other

    def _wwid(self, disk: BlockDevice) -> str:
        texts = (attribute(self._executor, disk, name) for name in _WWID_FILES)
        return next(filter(None, texts), "")

    @cached_property
    def _loops(self) -> dict[str, FileStat]:
        """What the visible files of loop devices are, by the names of the loop devices."""
        files = read_loop_files(self._executor)
        found = {name: stat_visible(self._executor, path) for name, path in files.items()}
        return {name: file for name, file in found.items() if file is not None}


def _distinct(devices: Iterable[BlockDevice]) -> tuple[BlockDevice, ...]:
    return tuple({device.number: device for device in devices}.values())


def _identity(file: FileStat) -> tuple[object, ...]:
    """Return what identifies a file, or the device of a node, whatever its name."""
    return ("block", file.rdev) if file.kind == "block" else ("file", file.device, file.inode)
