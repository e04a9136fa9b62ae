"""Partition tables read from a device itself: MBR with its logical partitions, and GPT.

The kernel may not have scanned a disk, such as a loop device attached without ``-P``. Layouts: UEFI
Specification 2.10, chapter 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from volbench.engine.guard.magic_bytes import Reader

_SECTOR = 512
# Logical block sizes; an image may have been made for another than that of the device
_SECTORS = (512, 4096)
_MBR_ENTRIES = 446
_MBR_MARK = b"\x55\xaa"
_EXTENDED = {0x05, 0x0F, 0x85}
_PROTECTIVE = 0xEE
_BOOT_FLAGS = {0x00, 0x80}
_MBR_ENTRY = struct.Struct("<B3xB3xII")  # Boot flag, type, first sector, number of sectors
_MOST_LOGICAL = 128

_GPT_MARK = b"EFI PART"
# First block of the entries, their number, their length in bytes
_GPT_HEADER = struct.Struct("<72xQII")
_GPT_RANGE = struct.Struct("<QQ")
_GPT_RANGE_OFFSET = 32
_MOST_GPT = 1024
_MOST_ENTRY_BYTES = 4096


@dataclass(frozen=True)
class Region:
    """A partition, in bytes from the start of its disk."""

    number: int  # as the kernel would number it
    offset: int  # first byte
    size_bytes: int  # its length, at most to the end of the disk


@dataclass(frozen=True)
class PartitionTable:
    """A partition table; without a kind there is none."""

    kind: str = ""
    regions: tuple[Region, ...] = ()


def read_table(read: Reader, size_bytes: int) -> PartitionTable:
    """Return the partition table of a device."""
    for block in _SECTORS:
        for header in (block, size_bytes - block):
            if read(header, len(_GPT_MARK)) == _GPT_MARK:
                return PartitionTable("gpt", _inside(_gpt(read, header, block), size_bytes))
    entries = _mbr_entries(read(0, _SECTOR), size_bytes)
    if not entries:
        return PartitionTable()
    kind = "gpt" if any(kind == _PROTECTIVE for kind, *_ in entries.values()) else "dos"
    return PartitionTable(kind, _inside(_mbr(read, entries, size_bytes), size_bytes))


def _inside(regions: Iterator[Region], size_bytes: int) -> tuple[Region, ...]:
    return tuple(
        Region(part.number, part.offset, min(part.size_bytes, size_bytes - part.offset))
        for part in regions
        if 0 < part.offset < size_bytes
    )


def _gpt(read: Reader, header: int, block: int) -> Iterator[Region]:
    fields = read(header, _GPT_HEADER.size)
    if len(fields) < _GPT_HEADER.size:
        return
    first, count, length = _GPT_HEADER.unpack(fields)
    if not _GPT_RANGE_OFFSET + _GPT_RANGE.size <= length <= _MOST_ENTRY_BYTES:
        return
    table = read(first * block, min(count, _MOST_GPT) * length)
    for number in range(len(table) // length):
        entry = table[number * length : (number + 1) * length]
        if any(entry[:16]):
            start, end = _GPT_RANGE.unpack_from(entry, _GPT_RANGE_OFFSET)
            if end >= start:
                yield Region(number + 1, start * block, (end - start + 1) * block)


_Entries = dict[int, tuple[int, int, int]]


def _mbr_entries(sector: bytes, size_bytes: int, start: int = 0) -> _Entries:
    """Return type, first sector and number of sectors of the entries, by number from 1.

    Nothing for a boot sector of a filesystem, which ends with the same two bytes.
    """
    if len(sector) < _SECTOR or sector[510:] != _MBR_MARK:
        return {}
    found: _Entries = {}
    for number in range(4):
        flag, kind, first, count = _MBR_ENTRY.unpack_from(sector, _MBR_ENTRIES + 16 * number)
        if not kind or not count:
            continue
        is_beyond = (start + first) * _SECTOR >= size_bytes
        if flag not in _BOOT_FLAGS or not first or is_beyond:
            return {}
        found[number + 1] = kind, start + first, count
    return found


def _mbr(read: Reader, entries: _Entries, size_bytes: int) -> Iterator[Region]:
    for number, (kind, first, count) in entries.items():
        if kind in _EXTENDED:
            yield from _logical(read, first, size_bytes)
        elif kind != _PROTECTIVE:
            yield Region(number, first * _SECTOR, count * _SECTOR)


def _logical(read: Reader, extended: int, size_bytes: int) -> Iterator[Region]:
    """Yield the logical partitions, a chain of tables within the extended partition."""
    here, seen = extended, set[int]()
    while here not in seen and len(seen) < _MOST_LOGICAL:
        seen.add(here)
        following = 0
        for kind, first, count in _mbr_chain(read(here * _SECTOR, _SECTOR)):
            if kind in _EXTENDED:
                following = extended + first
            elif (here + first) * _SECTOR < size_bytes:
                yield Region(4 + len(seen), (here + first) * _SECTOR, count * _SECTOR)
        if not following:
            return
        here = following


def _mbr_chain(sector: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield type, first sector and number of sectors of the two entries of a logical table."""
    if len(sector) < _SECTOR or sector[510:] != _MBR_MARK:
        return
    for number in range(2):
        _, kind, first, count = _MBR_ENTRY.unpack_from(sector, _MBR_ENTRIES + 16 * number)
        if kind and count:
            yield kind, first, count
