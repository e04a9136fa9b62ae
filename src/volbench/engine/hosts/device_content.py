"""Content of a block device, as the agent examined it: its signature and that of each partition."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.model.base import Count, Frozen
from volbench.units import format_capacity

# Members of larger volumes that blkid does not class as ``raid``
_OWNED_TYPES = {"bcache", "ceph_bluestore", "drbd", "stratis", "zfs_member"}


class Part(Frozen):
    """The whole device, or one of its partitions."""

    node: str  # its device node; that of the disk for a partition that the kernel has not scanned
    number: int  # of a partition that the kernel has not scanned; 0 otherwise
    offset: Count  # of such a partition
    size_bytes: Count  # of such a partition
    known: bool  # whether it could be examined
    type: str  # such as ext4, LVM2_member or btrfs; empty for none
    usage: str  # its class in blkid, such as filesystem or raid
    label: str
    table: str  # type of the partition table
    uuids: str  # UUIDs of content and partition table
    ambivalent: bool  # signatures contradict each other
    unidentified: bool  # data, on a host without blkid, that is no known signature
    siblings: Count  # number of devices of its btrfs; 1 for other content

    @property
    def signature(self) -> str:
        """Description; empty when it could not be examined."""
        if not self.known:
            return ""
        if self.ambivalent:
            return "several signatures that contradict each other"
        content = f'{self.type} "{self.label}"' if self.type and self.label else self.type
        table = f"partition table {self.table}" if self.table else ""
        return ", ".join(filter(None, (content, table))) or "no known signature"

    @property
    def name(self) -> str:
        """Name, such as ``/dev/sdb1`` or ``partition 2 (1m at 8m)``."""
        if not self.number:
            return self.node
        size, offset = format_capacity(self.size_bytes), format_capacity(self.offset)
        return f"partition {self.number} ({size} at {offset})"

    @property
    def mark(self) -> str:
        """Unique mark of its content; empty if there is none, or if not examined."""
        if self.ambivalent:
            return self.signature
        return " ".join(filter(None, (self.type, self.table, self.uuids)))

    @property
    def is_member(self) -> bool:
        """Whether it belongs to a larger volume."""
        is_owned = self.type.endswith("_member") or self.type in _OWNED_TYPES
        return self.usage == "raid" or is_owned or (self.type == "btrfs" and self.siblings != 1)


class Content:
    """What is on a block device.

    Args:
        parts: the device itself, then its partitions.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.is_unidentified = any(part.unidentified for part in parts)

    def __str__(self) -> str:
        """Return a description; empty when the device could not be examined."""
        if self.unreadable:
            return ""
        device, *partitions = self._parts
        if not device.mark and self.is_unidentified:
            return "data that cannot be identified without blkid"
        named = (f"{part.name}: {part.signature}" for part in partitions if part.mark)
        return "; ".join((device.signature, *named))

    @property
    def unreadable(self) -> str:
        """Node of the first part that could not be examined; empty if all could."""
        return next((part.node for part in self._parts if not part.known), "")

    @property
    def ambivalent(self) -> Part | None:
        """First part with signatures that contradict each other."""
        return next((part for part in self._parts if part.ambivalent), None)

    @property
    def member(self) -> Part | None:
        """First part that belongs to a larger volume."""
        return next((part for part in self._parts if part.is_member), None)

    @property
    def mark(self) -> str:
        """Unique mark of the content; empty if there is none, or if not examined."""
        return " ".join(filter(None, (part.mark for part in self._parts)))

    def describe(self, part: Part) -> str:
        """Return what a part holds, with its name unless it is the device itself."""
        is_device = part is self._parts[0]
        return part.signature if is_device else f"{part.name}: {part.signature}"
