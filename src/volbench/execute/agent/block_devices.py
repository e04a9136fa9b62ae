"""Block devices in sysfs: partitions, holders, lower devices and other names.

Devices are identified by number, never by name, because a device can have many names. See
Documentation/ABI/stable/sysfs-block of the kernel.

The kernel takes devices that show the same storage for different ones: a disk with two paths and no
multipathd is two disks, an image that was attached twice is two loop devices, a loop device on a
disk shows the disk again. A use of one is a use of all (`SharedStorage`).
"""

import re
from typing import Iterable, Iterator, NamedTuple

from volbench.execute.agent.files import FileStat
from volbench.execute.agent.mounts import LoopFile, number_under, read_loop_files
from volbench.execute.agent.snapshot import SECTOR_BYTES, Snapshot

_SERIALS = ("device/serial", "serial", "device/vpd_pg80", "device/wwid", "wwid")
_WWIDS = ("wwid", "device/wwid", "uuid", "nguid", "eui")
_PATH_WWIDS = ("wwid", "device/wwid")  # equal for two paths to one disk

_CONTROLLER = re.compile("nvme[0-9]+")
_CODED = 0.8  # 8b/10b of SATA, of USB at 5 Gbit/s, and of PCIe up to 5 GT/s; 128b/130b above
_LAST_CODED_GT = 5.0


class BlockDevice(NamedTuple):
    """One block device."""

    number: "tuple[int, int]"
    name: str  # of the kernel, such as sdb1
    node: str  # in /dev
    sysfs: str  # its resolved folder in /sys


class DeviceIdentity(NamedTuple):
    """Identity of a block device across time; see `DevicePin` of the plan."""

    path: str
    major: int
    minor: int
    size_bytes: int
    serial: str
    model: str
    wwid: str
    by_id: str
    backing: str
    start_sector: int
    boot_id: str
    diskseq: int


class Devices:
    """Block devices of this machine, as one snapshot shows them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._loops = None  # type: dict[str, LoopFile] | None

    def with_number(self, number: "tuple[int, int]") -> "BlockDevice | None":
        """Return the device with a number; None if there is none."""
        return self._at(self._snapshot.real_path("/sys/dev/block/{}:{}".format(*number)))

    def named(self, name: str) -> "BlockDevice | None":
        """Return the device with a kernel name; None if there is none."""
        return self._at(self._snapshot.real_path("/sys/class/block/" + name))

    def attribute(self, device: BlockDevice, *names: str) -> str:
        """Return the first attribute that is not empty, stripped; empty if there is none."""
        texts = (self._snapshot.text(device.sysfs + "/" + name).strip() for name in names)
        return next(filter(None, texts), "")

    def number_in(self, device: BlockDevice, name: str) -> "int | None":
        """Return a numeric attribute; None if there is none."""
        text = self.attribute(device, name)
        return int(text) if text.isdigit() else None

    def size_bytes(self, device: BlockDevice) -> int:
        """Return the capacity; 0 without a medium."""
        return (self.number_in(device, "size") or 0) * SECTOR_BYTES

    def whole_disk(self, device: BlockDevice) -> BlockDevice:
        """Return the disk of a partition; for any other device the device itself."""
        if self.attribute(device, "partition"):
            return self._at(device.sysfs.rpartition("/")[0]) or device
        return device

    def partitions(self, device: BlockDevice) -> "list[BlockDevice]":
        """Return the partitions of a disk."""
        folders = [device.sysfs + "/" + name for name in self._snapshot.names(device.sysfs)]
        parts = (self._at(path) for path in folders if self._snapshot.text(path + "/partition"))
        return [each for each in parts if each is not None]

    def holders(self, device: BlockDevice) -> "list[str]":
        """Return the kernel names of the devices built on a device: dm, md, bcache and similar."""
        return self._snapshot.names(device.sysfs + "/holders")

    def below(self, device: BlockDevice, *, through_files: bool) -> "list[BlockDevice]":
        """Return every device that a device is built on, nearest first, without itself.

        `through_files`: continue from a loop device on a file to the disk that holds the file.
        """
        devices = {}  # type: dict[tuple[int, int], BlockDevice]
        waiting = [device]
        while waiting:
            here = waiting.pop(0)
            disk = self.whole_disk(here)
            slaves = (self.named(name) for name in self._snapshot.names(here.sysfs + "/slaves"))
            lower = [slave for slave in slaves if slave is not None]
            lower += ([] if disk == here else [disk]) + self.under_loop(
                here, through_files=through_files
            )
            fresh = [part for part in lower if part.number not in devices and part != device]
            devices.update((part.number, part) for part in fresh)
            waiting += fresh
        return list(devices.values())

    def of_path(self, path: str) -> "list[BlockDevice]":
        """Return the devices that hold the file system of a path, nearest first."""
        number = number_under(self._snapshot, path)
        device = None if number is None else self.with_number(number)
        return [] if device is None else [device, *self.below(device, through_files=True)]

    def serial_and_model(self, disk: BlockDevice) -> "tuple[str, str]":
        """Return serial number and model of a disk.

        The model of a loop device is its backing file, the serial of dm and md devices their UUID.
        """

        def first(*names: str) -> str:
            texts = (self.attribute(disk, name) for name in names)
            # SCSI page 0x80 begins with a binary header
            plain = ("".join(c for c in text if " " <= c <= "~").strip() for text in texts)
            return next(filter(None, plain), "")

        backing = first("loop/backing_file")
        model = "file " + backing if backing else first("device/model", "dm/name")
        return first(*_SERIALS) or first("dm/uuid", "md/uuid"), model

    def link(self, disk: BlockDevice) -> "tuple[str, int]":
        """Return the link of a disk, and the bytes a second that it carries; 0 if not known."""
        text = self._snapshot.text
        parts = disk.sysfs.split("/")
        above = ["/".join(parts[:end]) for end in range(len(parts) - 1, 3, -1)]
        ata = next((part[3:] for part in parts if part[:3] == "ata" and part[3:].isdigit()), "")
        if ata:
            speed = text("/sys/class/ata_link/link{}/sata_spd".format(ata)).strip()
            return "SATA " + speed, int(_number(speed) * 1e9 * _CODED / 8)
        if disk.name.startswith("nvme"):
            # below one controller, or below a subsystem beside its only controller
            folder = disk.sysfs.rpartition("/")[0]
            names = [name for name in self._snapshot.names(folder) if _CONTROLLER.fullmatch(name)]
            pci = folder + ("/" + names[0] if len(names) == 1 else "") + "/device"
            speed = text(pci + "/current_link_speed").strip().replace(" PCIe", "")
            lanes = text(pci + "/current_link_width").strip()
            rate = _number(speed) * 1e9 * _number(lanes) / 8
            share = _CODED if _number(speed) <= _LAST_CODED_GT else 128 / 130
            return "PCIe {} x{}".format(speed, lanes), int(rate * share)
        speeds = (text(folder + "/speed").strip() for folder in above if text(folder + "/busnum"))
        speed = next(speeds, "")
        share = _CODED if speed == "5000" else 1.0
        return "USB {} Mbit/s".format(speed), int(_number(speed) * 1e6 * share / 8)

    def loops(self) -> "dict[str, LoopFile]":
        """Return the files of loop devices, by the names of the devices."""
        if self._loops is None:
            self._loops = read_loop_files(self._snapshot)
        return self._loops

    def hidden_user(self, file: FileStat, *, layered: bool) -> str:
        """Return a loop device whose file may be this one under another number; or ""."""
        for name, loop in self.loops().items():
            is_elsewhere = loop.stat.kind == "file" and loop.stat.device != file.device
            device = self.named(name)
            end = loop.offset + (self.size_bytes(device) if device else 0)
            is_elsewhere &= not file.size_bytes or end < file.size_bytes + SECTOR_BYTES
            if is_elsewhere and (layered or loop.is_layered):
                return name
        return ""

    def identity(self, device: BlockDevice, path: str) -> DeviceIdentity:
        """Return the identity of a device across time."""
        disk = self.whole_disk(device)
        serial, model = self.serial_and_model(disk)
        loop = self.loops().get(disk.name)
        return DeviceIdentity(
            path=self._snapshot.real_path(path),
            major=device.number[0],
            minor=device.number[1],
            size_bytes=self.size_bytes(device),
            serial=serial,
            model=model,
            wwid=self.attribute(disk, *_WWIDS),
            by_id=self._by_id(device),
            backing="" if loop is None else ":".join(map(str, (*loop.stat.identity, loop.offset))),
            start_sector=self.number_in(device, "start") or 0,
            boot_id=boot_id(self._snapshot),
            diskseq=self.number_in(disk, "diskseq") or 0,
        )

    def _by_id(self, device: BlockDevice) -> str:
        """Return the first name of a device in /dev/disk/by-id."""
        for name in self._snapshot.names("/dev/disk/by-id"):
            node = self._snapshot.stat_visible("/dev/disk/by-id/" + name)
            if node is not None and node.kind == "block" and node.rdev == device.number:
                return name
        return ""

    def under_loop(self, device: BlockDevice, *, through_files: bool) -> "list[BlockDevice]":
        """Return the device that a loop device is on, or the one that holds its file."""
        loop = self.loops().get(device.name)
        number = None  # type: tuple[int, int] | None
        if loop is not None and loop.stat.kind == "block":
            number = loop.stat.rdev
        elif loop is not None and through_files:
            number = loop.stat.device
            number = number if number[0] else number_under(self._snapshot, loop.path)
        lower = None if number is None else self.with_number(number)
        return [] if lower is None else [lower]

    def _at(self, sysfs: str) -> "BlockDevice | None":
        """Return the device of a sysfs folder; None if the folder does not describe a device."""
        major, _, minor = self._snapshot.text(sysfs + "/dev").strip().partition(":")
        if not (major.isdigit() and minor.isdigit()):
            return None
        name = sysfs.rpartition("/")[2]
        return BlockDevice((int(major), int(minor)), name, "/dev/" + name.replace("!", "/"), sysfs)


class SharedStorage:
    """Devices of this machine by the storage that they show, seen from one device."""

    def __init__(self, snapshot: Snapshot, devices: Devices, device: BlockDevice) -> None:
        self._snapshot = snapshot
        self._devices = devices
        whole_disk = devices.whole_disk
        same = self._same_as(device)  # the device itself, then all with exactly the same content
        disks = _distinct(whole_disk(each) for each in same)
        self.wholes = [disk for disk in disks if disk not in same]
        """The disks of which the same devices are partitions."""
        parts = _distinct(
            other
            for each in same
            for part in devices.partitions(each)
            for other in self._same_as(part)
        )
        whole_names = _distinct(other for disk in self.wholes for other in self._same_as(disk))
        self.overlapping = _distinct(same + parts + whole_names)
        """The same devices, their partitions, and the disks that they are a part of."""
        known, names = {each.number for each in same}, {disk.number for disk in disks}
        self.independent = _distinct(
            same[1:]
            + [p for p in parts if p.number not in known and whole_disk(p).number not in names]
            # A whole disk with the same partition is known through that.
            + [whole for whole in whole_names if whole.number not in names]
        )
        """Devices that the kernel lets others use while it gives this one exclusively."""
        below = devices.below(device, through_files=False)
        used = {each.number for each in below + self.overlapping}
        others = _distinct(other for each in below for other in self._same_as(each))
        self.elsewhere = [other for other in others if other.number not in used]
        """Other names of the devices on which this one is built: those it does not use itself."""

    def _same_as(self, device: BlockDevice) -> "list[BlockDevice]":
        same = {device.number: device}
        waiting = [device]
        while waiting:
            for other in self._other_names(waiting.pop(0)):
                if other.number not in same:
                    same[other.number] = other
                    waiting.append(other)
        return list(same.values())

    def _other_names(self, device: BlockDevice) -> "Iterator[BlockDevice]":
        disk = self._devices.whole_disk(device)
        if disk != device:
            yield from self._same_parts(device, disk)
        else:
            yield from self._other_paths(device)
        loops = {name: loop.stat for name, loop in self._devices.loops().items()}
        image = loops.get(device.name)
        for name, file in loops.items():
            is_on_device = file.kind == "block" and file.rdev == device.number
            is_same_file = image is not None and _storage_of(image) == _storage_of(file)
            loop = self._devices.named(name) if is_on_device or is_same_file else None
            if loop is not None:
                yield loop
        yield from self._devices.under_loop(device, through_files=False)

    def _same_parts(self, partition: BlockDevice, disk: BlockDevice) -> "Iterator[BlockDevice]":
        """Yield the partitions with the same extent on the other names of a disk."""
        extent = self._extent(partition)
        for other in self._same_as(disk):
            for twin in self._devices.partitions(other):
                if self._extent(twin) == extent:
                    yield twin

    def _extent(self, device: BlockDevice) -> "tuple[str, str]":
        return self._devices.attribute(device, "start"), self._devices.attribute(device, "size")

    def _other_paths(self, disk: BlockDevice) -> "Iterator[BlockDevice]":
        """Yield the disks with the World Wide Name of a disk."""
        wwid = self._devices.attribute(disk, *_PATH_WWIDS)
        if not wwid:
            return
        for name in self._snapshot.names("/sys/block"):
            other = None if name in self._devices.loops() else self._devices.named(name)
            if other is not None and self._devices.attribute(other, *_PATH_WWIDS) == wwid:
                yield other


def boot_id(snapshot: Snapshot) -> str:
    """Return the boot ID of the running kernel."""
    return snapshot.text("/proc/sys/kernel/random/boot_id").strip()


def _distinct(devices: "Iterable[BlockDevice]") -> "list[BlockDevice]":
    return list({device.number: device for device in devices}.values())


def _storage_of(file: FileStat) -> "tuple[object, ...]":
    """Return the identity of a file, or of the device of a node, whatever its name."""
    if file.kind == "block":
        return "block", file.rdev
    return "file", file.device, file.inode


def _number(text: str) -> float:
    found = re.match("[0-9.]+", text)
    return float(found.group()) if found else 0.0
