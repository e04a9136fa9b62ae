"""Partition tables read from a device itself: MBR with its logical partitions, and GPT.

The kernel may not have scanned a disk, such as a loop device attached without ``-P``. Layouts: UEFI
Specification 2.10, chapter 5.
"""

import struct
from typing import Callable, Iterable, Iterator, NamedTuple

_SECTOR = 512
_BLOCKS = (512, 4096)  # Logical block sizes; an image may be made for another than the device's.
_MBR_ENTRIES = 446
_MBR_MARK = b"\x55\xaa"
_EXTENDED = (0x05, 0x0F, 0x85)
_PROTECTIVE = 0xEE
_BOOT_FLAGS = (0x00, 0x80)
_MBR_ENTRY = struct.Struct("<B3xB3xII")  # Boot flag, type, first sector, number of sectors.
_MAX_LOGICAL = 128  # Ends a chain of tables that leads in a circle; Linux numbers at most 60.

_GPT_MARK = b"EFI PART"
_GPT_HEADER = struct.Struct("<72xQII")  # First block of the entries, their number and length.
_GPT_RANGE = struct.Struct("<QQ")
_GPT_RANGE_OFFSET = 32
_MAX_GPT = 1024  # Entries read from a damaged header; the specification reserves 128.
_MAX_ENTRY_BYTES = 4096  # Of a damaged header; the specification has 128.


class Region(NamedTuple):
    """A partition, in bytes from the start of its disk."""

    number: int  # as the kernel would number it
    offset: int
    size_bytes: int  # at most to the end of the disk


class PartitionTable(NamedTuple):
    """A partition table; without a kind there is none."""

    kind: str
    regions: "list[Region]"


class _Entry(NamedTuple):
    """An entry of an MBR, in sectors from the start of the disk."""

    number: int
    kind: int
    first: int
    sectors: int


def read_table(read: "Callable[[int, int], bytes]", size_bytes: int) -> PartitionTable:
    """Return the partition table of a device of some size, by a function that reads it."""
    for block in _BLOCKS:
        for header in (block, size_bytes - block):
            if read(header, len(_GPT_MARK)) == _GPT_MARK:
                return PartitionTable("gpt", _inside(_gpt(read, header, block), size_bytes))
    entries = _mbr_entries(read(0, _SECTOR), size_bytes)
    if not entries:
        return PartitionTable("", [])
    kind = "gpt" if any(entry.kind == _PROTECTIVE for entry in entries) else "dos"
    return PartitionTable(kind, _inside(_mbr(read, entries, size_bytes), size_bytes))


def _inside(regions: "Iterable[Region]", size_bytes: int) -> "list[Region]":
    return [
        Region(region.number, region.offset, min(region.size_bytes, size_bytes - region.offset))
        for region in regions
        if 0 < region.offset < size_bytes
    ]


def _gpt(read: "Callable[[int, int], bytes]", header: int, block: int) -> "Iterator[Region]":
    fields = read(header, _GPT_HEADER.size)
    if len(fields) < _GPT_HEADER.size:
        return
    first, count, length = _GPT_HEADER.unpack(fields)
    if not _GPT_RANGE_OFFSET + _GPT_RANGE.size <= length <= _MAX_ENTRY_BYTES:
        return
    table = read(first * block, min(count, _MAX_GPT) * length)
    for number in range(len(table) // length):
        entry = table[number * length : (number + 1) * length]
        if any(entry[:16]):
            start, end = _GPT_RANGE.unpack_from(entry, _GPT_RANGE_OFFSET)
            if end >= start:
                yield Region(number + 1, start * block, (end - start + 1) * block)


def _mbr_entries(sector: bytes, size_bytes: int) -> "list[_Entry]":
    """Return the entries of an MBR that are in use.

    Nothing for a boot sector of a filesystem, which ends with the same two bytes.
    """
    if len(sector) < _SECTOR or sector[510:] != _MBR_MARK:
        return []
    entries = []
    for number in range(4):
        flag, kind, first, count = _MBR_ENTRY.unpack_from(sector, _MBR_ENTRIES + 16 * number)
        if not kind or not count:
            continue
        if flag not in _BOOT_FLAGS or not first or first * _SECTOR >= size_bytes:
            return []
        entries.append(_Entry(number + 1, kind, first, count))
    return entries


def _mbr(
    read: "Callable[[int, int], bytes]", entries: "Iterable[_Entry]", size_bytes: int
) -> "Iterator[Region]":
    for entry in entries:
        if entry.kind in _EXTENDED:
            yield from _logical(read, entry.first, size_bytes)
        elif entry.kind != _PROTECTIVE:
            yield Region(entry.number, entry.first * _SECTOR, entry.sectors * _SECTOR)


def _logical(read: "Callable[[int, int], bytes]", base: int, size_bytes: int) -> "Iterator[Region]":
    """Yield the logical partitions, a chain of tables within the extended partition."""
    here, seen = base, set()  # type: int, set[int]
    while here not in seen and len(seen) < _MAX_LOGICAL:
        seen.add(here)
        following = 0
        sector = read(here * _SECTOR, _SECTOR)
        if len(sector) < _SECTOR or sector[510:] != _MBR_MARK:
            return
        for number in range(2):
            _, kind, first, count = _MBR_ENTRY.unpack_from(sector, _MBR_ENTRIES + 16 * number)
            if not kind or not count:
                continue
            if kind in _EXTENDED:
                following = base + first
            elif (here + first) * _SECTOR < size_bytes:
                yield Region(4 + len(seen), (here + first) * _SECTOR, count * _SECTOR)
        if not following:
            return
        here = following
