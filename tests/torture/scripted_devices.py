"""Scripted host that shows a made-up world as Linux would: sysfs, mounts, swap areas and blkid."""

from __future__ import annotations

import random

from tests.torture.device_world import BLOCK_SECTORS, DISK_BLOCKS, Device, World
from volbench.execute.fake import FakeExecutor
from volbench.execute.protocol import Completed, FileStat

CAMPAIGN = "/campaign/new"
_NODE_FOLDER = (0, 6)


class ScriptedDevices:
    """The host of a world, as far as the guard looks at it.

    Args:
        world: its devices and their uses.
        chance: decides which of several names of a device is shown.
    """

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self.executor = FakeExecutor()
        self.executor.answers["blkid"] = self._blkid
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
            self.executor.files[device.file] = ""

    def _add_nodes(self, device: Device) -> None:
        node, by_id, other, _ = self.names(device)
        for path in (node, other):
            inode = 1 + hash((device.number, path)) % 2**31
            self.executor.stats[path] = FileStat("block", _NODE_FOLDER, device.number, inode, 0)
            if self._world.is_claimed(device):
                self.executor.busy[path] = "Device or resource busy"
        self.executor.links[by_id] = node

    def _mounts(self) -> list[str]:
        """Return lines of mountinfo."""
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
        """Return the line of a mount, by its number or by its source, sometimes by both."""
        number = f"{device.number[0]}:{device.number[1]}"
        source = self._chance.choice((*self.names(device)[:2], "/dev/root"))
        kind = "ext4"
        if source != "/dev/root" and self._chance.random() < 0.3:
            number, kind = "0:47", "btrfs"
        return f"30 20 {number} / {point} rw,relatime - {kind} {source} rw\n"

    def _swaps(self) -> list[str]:
        deleted = "\\040(deleted)"
        return [
            self._chance.choice((*self.names(use.device)[:2], use.device.node + deleted))
            + " partition 1024 0 -2\n"
            for use in self._world.uses
            if use.how == "swap"
        ]

    def _blkid(self, argv: tuple[str, ...]) -> Completed:
        found = self.executor.stat(argv[-1])
        assert found is not None, argv
        device = next(d for d in self._world.devices if d.number == found.rdev)
        kind, usage = self._world.contents.get(device.blocks, ("", ""))
        tags = {"DEVNAME": argv[-1], "TYPE": kind, "USAGE": usage}
        if device.disk is not None:
            tags["PART_ENTRY_TYPE"] = "0x5" if device.is_extended else "0x83"
        if device.is_extended or any(other.disk is device for other in self._world.devices):
            tags["PTTYPE"] = "dos"
        text = "".join(f"{name}={value}\n" for name, value in tags.items() if value)
        return Completed(argv, 0 if len(text.splitlines()) > 1 else 2, text, "")


def _kernel_sectors(device: Device) -> int:
    """Return the size that the kernel reports: two sectors for an extended partition."""
    if device.is_extended:
        return 2
    return (len(device.blocks) or DISK_BLOCKS) * BLOCK_SECTORS
