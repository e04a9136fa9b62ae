"""Made-up machines with stacked block devices, and what on them is in use.

The world knows which storage holds the content of each device and who uses it, because it made both
up. From that alone follows which devices must not be overwritten; no code of the guard is asked.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

Block = tuple[str, int]
"""A part of a disk or of an image: its name, and an index from 0."""

DISK_BLOCKS = 64
BLOCK_SECTORS = 2048


@dataclass(eq=False)
class Device:
    """A block device."""

    name: str  # of the kernel, such as ``sdb1``
    number: tuple[int, int]  # (major, minor)
    blocks: frozenset[Block]  # storage that holds its content
    disk: Device | None = None  # the disk of a partition
    lower: tuple[Device, ...] = ()  # devices that it is built on
    file: str = ""  # backing file of a loop device
    start: int = 0  # first block of a partition on its disk
    wwid: str = ""  # World Wide Name of a disk; empty for none
    is_extended: bool = False  # whether it is an extended partition of a DOS partition table
    is_read_only: bool = False  # whether the kernel refuses writes

    @property
    def node(self) -> str:
        """Its path below /dev."""
        return "/dev/" + self.name.replace("!", "/")


@dataclass(frozen=True)
class Use:
    """A use that overwriting would harm."""

    device: Device  # what is used
    how: str  # mount, swap, held, member or holder
    # the device through which its storage may be written; None for no other
    by: Device | None = None
    claims: bool = True  # whether the kernel knows an exclusive user


@dataclass
class World:
    """Devices and their uses."""

    chance: random.Random  # source of randomness
    devices: list[Device] = field(default_factory=list)  # all of them
    uses: list[Use] = field(default_factory=list)  # of devices
    root: Device | None = None  # device of the filesystem of ``/``
    campaign: Device | None = None  # device of the filesystem of the campaign folder
    # image file to the device of the filesystem that holds it
    file_hosts: dict[str, Device] = field(default_factory=dict)
    # type and usage of signatures, as blkid reports them, by the storage they are on
    contents: dict[frozenset[Block], tuple[str, str]] = field(default_factory=dict)

    def harm(self, device: Device, *, wipe: bool) -> str:
        """Return what overwriting a device would harm, or an empty text."""
        for use in self.uses:
            is_wiped = wipe and use.how == "member" and use.device.blocks <= device.blocks
            if self._is_harmed(use, device) and not is_wiped:
                return f"{use.how} of {use.device.name}"
        if not wipe and self.holds_something(device):
            return "its content"
        under_root = self._foundation(self.root) | self._foundation(self.campaign)
        if self._foundation(device, through_files=False) & under_root:
            return "disk of / or of the campaign"
        return ""

    def holds_something(self, device: Device) -> bool:
        """Return whether there is a partition or a known signature on a device."""
        parts = [o for o in self.devices if o.disk is not None and o.disk.blocks == device.blocks]
        return bool(parts) or bool(self.contents.get(device.blocks, ("", ""))[0])

    def _is_harmed(self, use: Use, device: Device) -> bool:
        if not device.blocks & use.device.blocks:
            return False
        if use.by is None:
            return True
        if use.by.file:
            # A loop device that nobody uses is harmed only by what knows nothing of it.
            return use.device in {device, device.disk} or use.device.disk is device
        if device in self._above(use.by):
            return False
        others = {
            other.by
            for other in self.uses
            if other.by not in {None, use.by} and other.device is use.device
        }
        taken = frozenset().union(*(other.blocks for other in others if other and not other.file))
        return bool(device.blocks & (use.device.blocks - taken))

    def _above(self, device: Device) -> set[Device]:
        found = {device}
        for other in self.devices:  # made in order: what is built on another comes later
            if other.disk in found or found & set(other.lower):
                found.add(other)
        return found

    def _foundation(self, device: Device | None, *, through_files: bool = True) -> set[Device]:
        if device is None:
            return set()
        lower = [*device.lower, *([device.disk] if device.disk else [])]
        if through_files and device.file in self.file_hosts:
            lower.append(self.file_hosts[device.file])
        found = {device}
        for other in lower:
            found |= self._foundation(other, through_files=through_files)
        return found

    def is_claimed(self, device: Device) -> bool:
        """Return whether the kernel refuses to open a device exclusively.

        A partition is refused while its disk is claimed, and a disk while one of its partitions is
        (bd_may_claim in block/bdev.c of the kernel).
        """
        claimed = {use.device for use in self.uses if use.claims}
        parts = {other for other in self.devices if other.disk is device}
        return bool(claimed & ({device, device.disk} | parts))

    def free(self) -> list[Device]:
        """Return the devices that a sane administrator would give to a new user."""
        harmful = [use for use in self.uses if use.by is None or not use.by.file]
        return [
            device
            for device in self.devices
            if not (self.is_claimed(device) or device.is_extended or device.is_read_only)
            and len(device.blocks) > 2
            and not any(self._is_harmed(use, device) for use in harmful)
        ]

    def add(self, device: Device) -> Device:
        """Add a device, and the uses of what it is built on."""
        self.devices.append(device)
        for lower in device.lower:
            self.uses.append(
                Use(lower, "holder", by=device, claims=not device.name.startswith("loop"))
            )
        return device

    def number(self, major: int) -> tuple[int, int]:
        """Return a number that no device has."""
        return (major, len(self.devices) + 1)


_DISK_NAMES = (
    ("sd{letter}", 8, "{disk}{n}"),
    ("nvme{index}n1", 259, "{disk}p{n}"),
    ("vd{letter}", 252, "{disk}{n}"),
    ("cciss!c0d{index}", 104, "{disk}p{n}"),
    ("mmcblk{index}", 179, "{disk}p{n}"),
)
_MEMBERS = (
    ("LVM2_member", "raid"),
    ("linux_raid_member", "raid"),
    ("isw_raid_member", "raid"),
    ("ddf_raid_member", "raid"),
    ("mpath_member", "raid"),
    ("zfs_member", "filesystem"),
    ("bcache", "other"),
    ("ceph_bluestore", "other"),
    ("drbd", "other"),
    ("stratis", "other"),
)
_CONTENTS = (("", ""), ("ext4", "filesystem"), ("xfs", "filesystem"), ("swap", "other"))


def made_up(chance: random.Random) -> World:
    """Return a random machine."""
    world = World(chance)
    for index in range(chance.randint(1, 4)):
        _add_disk(world, index)
    for _ in range(chance.randint(0, 4)):
        _add_stacked(world)
    _use_some(world)
    return world


def _add_disk(world: World, index: int) -> None:
    """Add a disk with its partitions, sometimes under two names, as without multipathd."""
    chance = world.chance
    pattern, major, part_pattern = chance.choice(_DISK_NAMES)
    name = pattern.format(letter="abcdefgh"[index], index=index)
    wwid = f"naa.5000c500{chance.getrandbits(32):08x}" if chance.random() < 0.5 else ""
    blocks = frozenset((name, n) for n in range(DISK_BLOCKS))
    disk = world.add(Device(name, world.number(major), blocks, wwid=wwid))
    disk.is_read_only = chance.random() < 0.05
    parts = _table(chance)
    _add_parts(world, disk, part_pattern, parts)
    if wwid and chance.random() < 0.3:
        other = f"sd{'pqrstuvw'[index]}"
        twin = world.add(Device(other, world.number(65), blocks, wwid=wwid))
        twin.is_read_only = disk.is_read_only
        _add_parts(world, twin, "{disk}{n}", parts)


def _table(chance: random.Random) -> list[tuple[int, int, int, bool]]:
    parts = []
    begin = 1
    for number in range(1, chance.choice((1, 1, 2, 3, 4))):
        end = chance.randint(begin + 4, begin + 15)
        parts.append((number, begin, end, False))
        begin = end
    if parts and chance.random() < 0.25:
        parts.append((4, begin, DISK_BLOCKS, True))
        middle = chance.randint(begin + 3, DISK_BLOCKS - 2)
        parts += [(5, begin + 1, middle, False), (6, middle + 1, DISK_BLOCKS, False)]
    return parts


def _add_parts(
    world: World, disk: Device, pattern: str, parts: Sequence[tuple[int, int, int, bool]]
) -> None:
    storage = sorted(disk.blocks, key=lambda block: block[1])
    for number, begin, end, is_extended in parts:
        part = Device(
            pattern.format(disk=disk.name, n=number),
            world.number(disk.number[0]),
            frozenset(storage[begin:end]),
            disk=disk,
            start=begin,
            is_extended=is_extended,
            is_read_only=disk.is_read_only,
        )
        world.add(part)


def _add_stacked(world: World) -> None:
    free = world.free()
    build = world.chance.choice((_mapped, _mapped, _multipath, _raid, _cached, _loop, _image))
    if free or build is _image:
        build(world, free)


def _mapped(world: World, free: list[Device]) -> None:
    lower = world.chance.choice(free)
    world.contents[lower.blocks] = ("LVM2_member", "raid")
    rest = sorted(lower.blocks)[1:]
    world.chance.shuffle(rest)
    for share in range(world.chance.randint(1, 3)):
        number = world.number(253)
        part = frozenset(rest[share::3])
        if not part:
            return
        world.add(Device(f"dm-{number[1]}", number, part, lower=(lower,)))


def _multipath(world: World, free: list[Device]) -> None:
    first = world.chance.choice(free)
    paths = tuple(device for device in free if device.blocks == first.blocks)
    number = world.number(253)
    top = world.add(Device(f"dm-{number[1]}", number, first.blocks, lower=paths))
    if world.chance.random() < 0.5:
        number = world.number(253)
        half = frozenset(sorted(top.blocks)[2:])
        world.add(Device(f"dm-{number[1]}", number, half, lower=(top,)))


def _raid(world: World, free: list[Device]) -> None:
    members = tuple(world.chance.sample(free, min(len(free), world.chance.randint(1, 3))))
    members = tuple(m for m in members if not any(m.disk is other for other in members))
    for member in members:
        world.contents[member.blocks] = ("linux_raid_member", "raid")
    number = world.number(9)
    blocks = frozenset(block for member in members for block in sorted(member.blocks)[1:])
    top = world.add(Device(f"md{number[1]}", number, blocks, lower=members))
    if world.chance.random() < 0.3:
        part = frozenset(sorted(blocks)[1:])
        name = f"{top.name}p1"
        world.add(Device(name, world.number(259), part, disk=top, start=1))


def _behind(lower: Device) -> frozenset[Block]:
    return frozenset(sorted(lower.blocks)[1:])


def _cached(world: World, free: list[Device]) -> None:
    lower = world.chance.choice(free)
    world.contents[lower.blocks] = ("bcache", "other")
    number = world.number(251)
    world.add(Device(f"bcache{number[1]}", number, _behind(lower), lower=(lower,)))


def _loop(world: World, free: list[Device]) -> None:
    """Add a loop device on a device; the kernel claims nothing for it."""
    lower = world.chance.choice(free)
    number = world.number(7)
    world.add(Device(f"loop{number[1]}", number, lower.blocks, lower=(lower,), file=lower.node))


def _image(world: World, free: list[Device]) -> None:
    del free
    name = f"image{len(world.devices)}"
    blocks = frozenset((name, n) for n in range(DISK_BLOCKS))
    for _ in range(world.chance.choice((1, 1, 2))):
        number = world.number(7)
        world.add(Device(f"loop{number[1]}", number, blocks, file=f"/images/{name}"))


def _use_some(world: World) -> None:
    chance = world.chance
    for place in ("root", "campaign"):
        free = world.free()
        if place == "root":  # images are files below it
            free = [device for device in free if not _is_on_image(device)]
        if free and chance.random() < 0.8:
            device = chance.choice(free)
            world.uses.append(Use(device, "mount"))
            setattr(world, place, device)
    if world.root is not None:
        world.file_hosts = {
            device.file: world.root for device in world.devices if not device.lower and device.file
        }
    for _ in range(chance.randint(0, 4)):
        free = world.free()
        if not free:
            return
        device = chance.choice(free)
        how = chance.choice(("mount", "hidden mount", "swap", "held", "member"))
        world.uses.append(Use(device, how, claims=how != "member"))
        if how == "member":
            world.contents[device.blocks] = chance.choice(_MEMBERS)
    for device in world.free():
        world.contents.setdefault(device.blocks, chance.choice(_CONTENTS))


def _is_on_image(device: Device) -> bool:
    return any(name.startswith("image") for name, _ in device.blocks)
