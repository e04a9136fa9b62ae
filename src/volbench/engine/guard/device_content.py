"""Content of a block device: its own signature and that of each partition.

Read by blkid(8) where a host has it, and from the bytes of the device itself: a disk whose
partitions the kernel has not scanned is examined partition by partition as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from volbench.engine.guard.magic_bytes import btrfs_devices, find_magic, spans_of
from volbench.engine.guard.partition_tables import Region, read_table
from volbench.engine.hosts.block_devices import (
    BlockDevice,
    attribute,
    block_device,
    partitions,
    size_bytes,
)
from volbench.engine.hosts.mounts import stat_visible
from volbench.engine.hosts.signatures import Signature, read_signature
from volbench.execute.protocol import Executor
from volbench.units import format_capacity

_SECTOR = 512
# Print parts of a device in hexadecimal: node, then pairs of first sector and number of sectors.
# One process for each part: the guard reads them before every run.
_SCRIPT = (
    'n=$1; shift; while [ $# -gt 1 ]; do dd if="$n" bs=512 skip="$1" count="$2" 2>/dev/null; '
    "shift 2; done | od -A n -v -t x1"
)

# Members of larger volumes that blkid does not class as ``raid``
_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}


class _UnreadableError(Exception):
    """A device, or a part of it, cannot be read."""


@dataclass(frozen=True)
class Part:
    """The whole device, or one of its partitions."""

    name: str  # empty for the whole device, such as ``partition 2 (1m at 8m)`` otherwise
    node: str  # its device node; that of the disk for a partition that the kernel has not scanned
    signature: Signature  # what is on it
    # whether there is data, on a host without blkid, that is no known signature
    is_unidentified: bool = False
    siblings: int = 1  # number of devices of its btrfs; 1 for other content

    def __str__(self) -> str:
        """Return its name and what is on it."""
        return f"{self.name}: {self.signature}" if self.name else str(self.signature)

    @property
    def is_member(self) -> bool:
        """Whether it belongs to a larger volume."""
        kind = self.signature.type
        return (
            self.signature.usage == "raid" or kind.endswith("_member") or kind in _OWNED_TYPES
        ) or (kind == "btrfs" and self.siblings != 1)


@dataclass(frozen=True)
class Content:
    """What is on a block device."""

    parts: tuple[Part, ...]  # the device itself, then its partitions

    def __str__(self) -> str:
        """Return a description; empty when the device could not be examined."""
        if self.unreadable:
            return ""
        first, *others = self.parts
        if not first.signature.mark and self.is_unidentified:
            return "data that cannot be identified without blkid"
        return "; ".join(map(str, (first, *(part for part in others if part.signature.mark))))

    @property
    def unreadable(self) -> str:
        """Node of the first part that could not be examined; empty if all could."""
        return next((part.node for part in self.parts if not part.signature.known), "")

    @property
    def ambivalent(self) -> Part | None:
        """First part with signatures that contradict each other."""
        return next((part for part in self.parts if part.signature.ambivalent), None)

    @property
    def member(self) -> Part | None:
        """First part that belongs to a larger volume."""
        return next((part for part in self.parts if part.is_member), None)

    @property
    def is_unidentified(self) -> bool:
        """Whether it holds data that cannot be identified."""
        return any(part.is_unidentified for part in self.parts)

    @property
    def mark(self) -> str:
        """Unique mark of the content; empty if there is none, or if not examined."""
        return " ".join(filter(None, (part.signature.mark for part in self.parts)))


def content_of(executor: Executor, path: str) -> Content:
    """Return the content of the block device at a path."""
    found = stat_visible(executor, path)
    number = None if found is None or found.kind != "block" else found.rdev
    device = None if number is None else block_device(executor, number)
    if device is None:
        return Content((Part("", path, Signature()),))
    return read_content(executor, replace(device, node=path))


def read_content(executor: Executor, device: BlockDevice) -> Content:
    """Return the content of a block device and of its partitions, scanned or not."""
    try:
        whole = _Region(executor, device.node, 0, size_bytes(executor, device))
        table = read_table(whole.read, whole.size_bytes)
        first = _examine(whole, "")
    except _UnreadableError:
        return Content((Part("", device.node, Signature()),))
    if table.kind and not first.signature.mark:
        first = replace(first, signature=replace(first.signature, table=table.kind))
    scanned = {
        int(attribute(executor, part, "start") or 0) * _SECTOR: part
        for part in partitions(executor, device)
    }
    places = [
        (part.node, part.node, 0, size_bytes(executor, part)) for part in scanned.values()
    ] + [
        (_name_of(region), device.node, region.offset, region.size_bytes)
        for region in table.regions
        if region.offset not in scanned
    ]
    parts = (_examined(executor, *place) for place in places)
    return Content((first, *parts))


def read_whole(executor: Executor, device: BlockDevice) -> Part:
    """Return what is on a block device as a whole, without its partitions."""
    size = size_bytes(executor, device)
    return _examined(executor, "", device.node, 0, size)


def _name_of(region: Region) -> str:
    return (
        f"partition {region.number} "
        f"({format_capacity(region.size_bytes)} at {format_capacity(region.offset)})"
    )


def _examined(executor: Executor, name: str, node: str, offset: int, size: int) -> Part:
    try:
        return _examine(_Region(executor, node, offset, size), name)
    except _UnreadableError:
        return Part(name, node, Signature())


def _examine(region: _Region, name: str) -> Part:
    """Return what blkid finds, or what the magic bytes show where it finds nothing."""
    part = (region.offset, region.size_bytes) if region.offset else None
    by_blkid = read_signature(region.executor, region.node, part=part)
    signature = by_blkid or Signature(known=True)
    magic = find_magic(region.read, region.size_bytes)
    if signature.known and not signature.ambivalent and not signature.type and magic:
        kind, usage = next(iter(magic.items()))
        signature = replace(signature, type=kind, usage=usage)
    siblings = btrfs_devices(region.read) if signature.type == "btrfs" else 1
    is_unidentified = by_blkid is None and not region.is_blank and not signature.mark
    return Part(name, region.node, signature, is_unidentified=is_unidentified, siblings=siblings)


class _Region:
    """A device, or a part of it, whose bytes are read through the executor in few calls."""

    def __init__(self, executor: Executor, node: str, offset: int, size: int) -> None:
        self.executor, self.node, self.offset, self.size_bytes = executor, node, offset, size
        self._read: list[tuple[int, bytes]] = []
        self._fetch(spans_of(size))

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the region, fewer at its end."""
        length = min(length, self.size_bytes - offset)
        if offset < 0 or length <= 0:
            return b""
        for start, data in self._read:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start :][:length]
        first = offset // _SECTOR * _SECTOR
        self._fetch([(first, min(offset + length, self.size_bytes) - first)])
        return self.read(offset, length)

    @property
    def is_blank(self) -> bool:
        """Whether everything read so far is zeros."""
        return not any(any(data) for _, data in self._read)

    def _fetch(self, spans: Sequence[tuple[int, int]]) -> None:
        sectors = [
            str(number)
            for start, length in spans
            for number in ((self.offset + start) // _SECTOR, -(-length // _SECTOR))
        ]
        done = self.executor.run(["sh", "-c", _SCRIPT, "read", self.node, *sectors])
        try:
            data = bytes.fromhex(done.stdout)
        except ValueError as error:
            raise _UnreadableError from error
        if done.exit_status or len(data) != sum(map(int, sectors[1::2])) * _SECTOR:
            raise _UnreadableError
        for start, length in spans:
            whole = -(-length // _SECTOR) * _SECTOR
            self._read.append((start, data[:length]))
            data = data[whole:]
