"""Blocks of a volume that hold data, as its filesystem or its server reports."""

import fcntl
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from volbench.execute.agent.block_reads import export_map, holes
from volbench.execute.agent.mounts import mount_of, read_mounts
from volbench.execute.agent.snapshot import SECTOR_BYTES, Snapshot

REPORT_S = 900.0  # A filesystem of a cold volume reads its own maps block by block.
# Request, header with both keys, and records of ioctl_getfsmap(2)
_GETFSMAP, _RECORDS = 0xC0C0583B, 10000
_HEAD, _RECORD = struct.Struct("=4I48x"), struct.Struct("=2I4Q24x")
_SPECIAL, _LAST, _FREE = 0x10, 0x20, 1  # FMR_OF_SPECIAL_OWNER, FMR_OF_LAST, FMR_OWN_FREE


class UsedBlocks(NamedTuple):
    """Ranges of a volume that hold data."""

    ranges: "list[tuple[int, int]]"  # first byte and end of each, in order
    note: str = ""  # what reports them, and why some or all blocks count as used


def used_blocks(path: str, size_bytes: int, gap_bytes: int) -> UsedBlocks:
    """Return the ranges of a volume that hold data; free ranges below `gap_bytes` count as used."""
    snapshot = Snapshot()
    status = None if path.startswith("nbd") else snapshot.stat(path)
    notes, free = {}, []
    parts = [(path, 0)]
    if status is not None and status.kind == "block":
        parts = [*_partitions(snapshot, status.rdev)] or parts
    for node, start in parts:
        try:
            if status is None:
                found, reporter = _free_of_export(snapshot, path), "the NBD server"
            elif status.kind == "file":
                with open(path, "rb") as file:
                    found, reporter = [*holes(file.fileno(), 0, size_bytes)], "the filesystem"
            else:
                found, reporter = _free_of_device(snapshot, node)
            free += [(start + first, start + end) for first, end in found]
            notes["used blocks as {} reports".format(reporter)] = True
        except (OSError, ValueError) as error:
            reason = str(error).partition("] ")[2] or error
            notes["all of {} is read: {}".format(node, reason)] = True
    return UsedBlocks([*_between(free, size_bytes, gap_bytes)], "; ".join(notes))


def _between(free: "list[tuple[int, int]]", size: int, gap: int) -> "Iterator[tuple[int, int]]":
    """Yield what is between large free ranges, which may touch each other, in whole MiB."""
    at = begin = end = 0  # what follows the last one, and the one so far
    for first, last in [*sorted(free), (size << 1, 0)]:
        if first > end:
            low, high = -(-begin >> 20) << 20, end >> 20 << 20
            if high - low >= gap:
                if at < low:
                    yield at, low
                at = high
            begin = end = first
        end = max(end, last)
    if at < size:
        yield at, size


def _partitions(snapshot: Snapshot, number: "tuple[int, int]") -> "Iterator[tuple[str, int]]":
    """Yield node and first byte of each partition of a disk."""
    folder = snapshot.real_path("/sys/dev/block/{}:{}".format(*number))
    for name in snapshot.names(folder):
        start = snapshot.text("{}/{}/start".format(folder, name)).strip()
        if start.isdigit():
            yield "/dev/" + name, int(start) * SECTOR_BYTES


def _free_of_export(snapshot: Snapshot, uri: str) -> "list[tuple[int, int]]":
    extents = export_map(snapshot, uri, REPORT_S)
    if extents:
        return [(first, first + length) for first, length, is_hole in extents if is_hole]
    raise ValueError("no block status by nbdinfo of libnbd")


def _free_of_device(snapshot: Snapshot, node: str) -> "tuple[list[tuple[int, int]], str]":
    """Return what the filesystem that is mounted from a device reports as free, and its name."""
    status = snapshot.stat(node)
    for mount in read_mounts(snapshot):
        is_seen = status and mount.number == status.rdev
        if is_seen and mount_of(snapshot, mount.mount_point) == mount:
            return list(_free_of_mount(mount.mount_point)), mount.filesystem
    raise ValueError("no filesystem of it is mounted: mount it, read-only (ext4, xfs)")


def _free_of_mount(folder: str) -> "Iterator[tuple[int, int]]":
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        number = os.fstat(descriptor).st_dev
        minor = os.minor(number)
        device = minor & 0xFF | os.major(number) << 8 | (minor & ~0xFF) << 12
        low, flags, count = bytes(_RECORD.size), 0, 1
        high = b"\xff" * (_RECORD.size - 24) + bytes(24)
        while count and not flags & _LAST:
            request = bytearray(_HEAD.pack(0, 0, _RECORDS, 0) + low + high)
            request += bytes(_RECORD.size * _RECORDS)
            fcntl.ioctl(descriptor, _GETFSMAP, request)
            count, place = _HEAD.unpack_from(request)[3], _HEAD.size + _RECORD.size
            for _ in range(count):
                place += _RECORD.size
                of, flags, first, owner, _, length = _RECORD.unpack_from(request, place)
                if of == device and flags & _SPECIAL and owner == _FREE:
                    yield first, first + length
            low = bytes(request[place : place + _RECORD.size])
    finally:
        os.close(descriptor)
