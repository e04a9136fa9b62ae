"""Scripted host that shows a made-up world as Linux would: sysfs, mounts, swap areas and blkid."""

import random
import struct
from collections.abc import Iterable
from zlib import crc32

from tests.execute.fake import FakeExecutor
from tests.torture.device_world import BLOCK_SECTORS, Block, Device, World
from volbench.execute.agent.files import FileStat
from volbench.execute.protocol import Completed

CAMPAIGN = "/campaign/new"
_NODE_FOLDER = (0, 6)


class ScriptedDevices:
    """The host of a world, as far as the guard looks at it."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self.executor = FakeExecutor()
        self.executor.answers |= {"blkid": self._blkid}
        self.executor.content = self._read  # type: ignore[method-assign]  # scripted
        self._tables: dict[frozenset[Block], dict[int, bytes]] = {}
        for device in world.devices:
            if device.disk is None and (table := _table(world, device)):
                self._tables[device.blocks] = table
        for number, device in enumerate(world.devices, 1):
            self._add(device, number)
        for use in world.uses:
            if use.by is not None and not use.by.file:
                low, top = self._folder(use.device), self._folder(use.by)
                self.executor.links[f"{low}/holders/{use.by.name}"] = top
                self.executor.links[f"{top}/slaves/{use.device.name}"] = low
        self.executor.files |= {
            "/campaign/.keep": "",
            "/proc/self/mountinfo": "".join(self._mounts()),
            "/proc/swaps": "Filename Type Size Used Priority\n" + "".join(self._swaps()),
            "/proc/sys/kernel/random/boot_id": "b00t\n",
        }

    def names(self, device: Device) -> tuple[str, ...]:
        """Return paths that lead to a device."""
        by_id = f"/dev/disk/by-id/{device.name}"
        return (
            device.node,
            by_id,
            f"/tmp/node-{device.name}",
            f"/dev/../dev/./{device.node.removeprefix('/dev/')}",
        )

    def _folder(self, device: Device) -> str:
        above = "/sys/devices" if device.disk is None else self._folder(device.disk)
        return f"{above}/{device.name}"

    def _add(self, device: Device, diskseq: int) -> None:
        folder, text = self._folder(device), f"{device.number[0]}:{device.number[1]}"
        attributes = {
            "dev": text,
            "size": str(_kernel_sectors(device)),
            "ro": str(int(device.is_read_only)),
        }
        if device.disk is not None:
            attributes |= {"partition": "1", "start": str(device.start * BLOCK_SECTORS)}
        else:
            attributes["diskseq"] = str(diskseq)
            self.executor.links[f"/sys/block/{device.name}"] = folder
        if device.wwid:
            attributes["wwid" if device.name.startswith("nvme") else "device/wwid"] = device.wwid
        if device.file:
            attributes["loop/backing_file"] = device.file
        for name, value in attributes.items():
            self.executor.files[f"{folder}/{name}"] = f"{value}\n"
        self.executor.links[f"/sys/dev/block/{text}"] = folder
        self.executor.links[f"/sys/class/block/{device.name}"] = folder
        self._add_nodes(device)
        if device.file.startswith("/images/"):
            root = self._world.root
            on, inode = (0, 30) if root is None else root.number, crc32(device.file.encode())
            self.executor.files[device.file] = ""
            self.executor.stats[device.file] = FileStat("file", on, (0, 0), inode, 0)

    def _add_nodes(self, device: Device) -> None:
        node, by_id, other, _ = self.names(device)
        for path in (node, other):
            inode = 1 + hash((device.number, path)) % 2**31
            self.executor.stats[path] = FileStat("block", _NODE_FOLDER, device.number, inode, 0)
            if self._world.is_claimed(device):
                self.executor.busy[path] = "Device or resource busy"
        self.executor.links[by_id] = node

    def _mounts(self) -> list[str]:
        lines = []
        if self._world.root is None:
            lines.append("20 1 0:30 / / rw - overlay overlay rw,lowerdir=/lower\n")
        points = {self._world.root: "/", self._world.campaign: "/campaign"}
        if self._world.root is not None:
            lines.append(self._mount(self._world.root, "/"))
        for number, use in enumerate(self._world.uses):
            if use.how == "mount" and use.device is not self._world.root:
                point = points.get(use.device, f"/mnt/with\\040blank{number}")
                lines.append(self._mount(use.device, point))
        return lines

    def _mount(self, device: Device, point: str) -> str:
        number = f"{device.number[0]}:{device.number[1]}"
        source = self._chance.choice((*self.names(device)[:2], "/dev/root"))
        kind = "ext4"
        if source != "/dev/root" and self._chance.random() < 0.3:
            number, kind = "0:47", "btrfs"
        ids = "20 1" if point == "/" else "30 20"
        return f"{ids} {number} / {point} rw,relatime - {kind} {source} rw\n"

    def _swaps(self) -> list[str]:
        deleted = "\\040(deleted)"
        return [
            self._chance.choice((*self.names(use.device)[:2], use.device.node + deleted))
            + " partition 1024 0 -2\n"
            for use in self._world.uses
            if use.how == "swap"
        ]

    def _blkid(self, argv: tuple[str, ...]) -> Completed:
        device = self._device(argv[-1])
        blocks = device.blocks
        if "-O" in argv:
            start, size = (int(argv[argv.index(option) + 1]) // _BLOCK for option in ("-O", "-S"))
            blocks = frozenset(sorted(blocks)[start : start + size])
        kind, usage = self._world.contents.get(blocks, ("", ""))
        table = "dos" if self._tables.get(blocks) or device.is_extended else ""
        tags = {"TYPE": kind, "USAGE": usage, "PTTYPE": table}
        text = "".join(f"{name}={value}\n" for name, value in tags.items() if value)
        return Completed(argv, 0 if text else 2, text, "")

    def _read(self, node: str, offset: int, length: int) -> bytes:
        """Return bytes of a device: partition tables, and zeros elsewhere."""
        table = self._tables.get(self._device(node).blocks, {})
        first, end = offset // 512, -(-(offset + length) // 512)
        data = b"".join(table.get(sector, bytes(512)) for sector in range(first, end))
        return data[offset - 512 * first :][:length]

    def _device(self, path: str) -> Device:
        found = self.executor.stat(path)
        assert found is not None, path
        return next(device for device in self._world.devices if device.number == found.rdev)


_BLOCK = BLOCK_SECTORS * 512


def _table(world: World, disk: Device) -> dict[int, bytes]:
    """Return the sectors of the DOS partition table of a disk; none without partitions."""
    parts = [device for device in world.devices if device.disk is disk]
    extended = next((part for part in parts if part.is_extended), None)
    primary = [part for part in parts if not (extended and part.start > extended.start)]
    logical = [part for part in parts if part not in primary]
    table = {0: _sector(_entry(part, 0) for part in primary)} if parts else {}
    for part, *following in (logical[n:] for n in range(len(logical))):
        assert extended is not None
        links = [
            _record(5, other.start - 1 - extended.start, len(other.blocks) + 1)
            for other in following[:1]
        ]
        table[(part.start - 1) * BLOCK_SECTORS] = _sector([_entry(part, part.start - 1), *links])
    return table


def _entry(part: Device, base: int) -> bytes:
    return _record(5 if part.is_extended else 0x83, part.start - base, len(part.blocks))


def _record(kind: int, start: int, length: int) -> bytes:
    sectors = start * BLOCK_SECTORS, length * BLOCK_SECTORS
    return struct.pack("<B3xB3xII", 0, kind, *sectors)


def _sector(records: Iterable[bytes]) -> bytes:
    return bytes(446) + b"".join(records).ljust(64, b"\0") + b"\x55\xaa"


def _kernel_sectors(device: Device) -> int:
    """Return the size that the kernel reports: two sectors for an extended partition."""
    return 2 if device.is_extended else len(device.blocks) * BLOCK_SECTORS
