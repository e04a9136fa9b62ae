"""Content of a block device: the signatures of it and of each partition, scanned or not.

Read by blkid(8) where a host has it, and from the bytes of the device itself. Offsets and values of
magic bytes are those of the superblocks in the kernel (``include/uapi/linux/magic.h`` and the
filesystems' own headers) and of libblkid 2.38.
"""

import errno
import struct
from typing import Callable, NamedTuple

from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.block_devices import BlockDevice, Devices
from volbench.execute.agent.partition_tables import read_table
from volbench.execute.agent.snapshot import READ_S, SECTOR_BYTES, Snapshot, within

_KIB = 1024
_FILESYSTEM, _CRYPTO, _RAID, _OTHER = "filesystem", "crypto", "raid", "other"

# Offset, value, type as in blkid, and usage as in blkid.
_MAGIC = (
    (0, b"LUKS\xba\xbe", "crypto_LUKS", _CRYPTO),
    (16 * _KIB, b"SKUL\xba\xbe", "crypto_LUKS", _CRYPTO),
    (3, b"-FVE-FS-", "BitLocker", _CRYPTO),
    (0, b"LABELONE", "LVM2_member", _RAID),
    (512, b"LABELONE", "LVM2_member", _RAID),
    (1024, b"LABELONE", "LVM2_member", _RAID),
    (1536, b"LABELONE", "LVM2_member", _RAID),
    (0, b"\xfc\x4e\x2b\xa9", "linux_raid_member", _RAID),
    (4 * _KIB, b"\xfc\x4e\x2b\xa9", "linux_raid_member", _RAID),
    (4 * _KIB + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache", _OTHER),
    (0, b"bluestore block device", "ceph_bluestore", _OTHER),
    (0, b"dmvdo001", "vdo", _RAID),
    (0, b"XFSB", "xfs", _FILESYSTEM),
    (3, b"NTFS    ", "ntfs", _FILESYSTEM),
    (3, b"EXFAT   ", "exfat", _FILESYSTEM),
    (54, b"FAT1", "vfat", _FILESYSTEM),
    (82, b"FAT32   ", "vfat", _FILESYSTEM),
    (32, b"NXSB", "apfs", _FILESYSTEM),
    (0, b"hsqs", "squashfs", _FILESYSTEM),
    (_KIB, b"\x10\x20\xf5\xf2", "f2fs", _FILESYSTEM),
    (32 * _KIB, b"JFS1", "jfs", _FILESYSTEM),
    (32 * _KIB + 1, b"CD001", "iso9660", _FILESYSTEM),
    (64 * _KIB + 52, b"ReIsEr", "reiserfs", _FILESYSTEM),
    (64 * _KIB + 64, b"_BHRfS_M", "btrfs", _FILESYSTEM),
)
_SWAP_MARKS = (b"SWAPSPACE2", b"SWAP-SPACE")
_SWAP_PAGES = (4, 8, 16, 64)  # KiB; the mark is at the end of the first page
_BTRFS_DEVICES = 64 * _KIB + 0x88  # num_devices in struct btrfs_super_block, first copy
_ZFS_LABEL = 16 * _KIB
_ZFS_NAME = b"\0\0\0\x07version"  # first name in the list of a ZFS label, in XDR

_EXT_SUPERBLOCK = _KIB
_EXT_FIELDS = struct.Struct("<I20xI28xH")  # inodes, log_block_size, magic (struct ext4_super_block)
_EXT_MAGIC = 0xEF53
_EXT_MAX_LOG_BLOCK = 6

_PAGE = 4 * _KIB
_GPT_BYTES = 33 * 512  # backup of a GPT at the end of a device
_NOTHING_FOUND, _AMBIVALENT = 2, 8  # exit statuses of blkid


def _tails(size_bytes: int) -> "list[tuple[int, bytes, str]]":
    """Return offset, value and type of members whose superblock is at the end."""
    return [
        ((size_bytes // 512 - 16) // 8 * 8 * 512, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
        (size_bytes // 65536 * 65536 - 65536, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
        (size_bytes - 1024, b"Intel Raid ISM Cfg Sig. ", "isw_raid_member"),
        (size_bytes - 512, b"\xde\x11\xde\x11", "ddf_raid_member"),
    ]


def find_magic(read: "Callable[[int, int], bytes]", size_bytes: int) -> "dict[str, str]":
    """Return the types of content whose magic bytes are on a device, each with its usage."""
    marks = {name: usage for offset, mark, name, usage in _MAGIC if read(offset, len(mark)) == mark}
    for page in _SWAP_PAGES:
        if read(page * _KIB - 10, 10) in _SWAP_MARKS:
            marks["swap"] = _OTHER
    for offset, mark, name in _tails(size_bytes):
        if offset > 0 and read(offset, len(mark)) == mark:
            marks[name] = _RAID
    if _ZFS_NAME in read(_ZFS_LABEL, 128):
        marks["zfs_member"] = _RAID
    superblock = read(_EXT_SUPERBLOCK, _EXT_FIELDS.size)
    if len(superblock) == _EXT_FIELDS.size:
        # The magic of ext2, ext3 and ext4 has only 2 bytes, so the rest must be plausible.
        inodes, log_block, magic = _EXT_FIELDS.unpack(superblock)
        if magic == _EXT_MAGIC and inodes > 0 and log_block <= _EXT_MAX_LOG_BLOCK:
            marks["ext4"] = _FILESYSTEM
    return marks


class _Region:
    """A device, or a part of it; an OSError where it cannot be read."""

    def __init__(self, snapshot: Snapshot, node: str, offset: int, size_bytes: int) -> None:
        self.snapshot, self.node, self.offset, self.size_bytes = snapshot, node, offset, size_bytes
        self.is_blank = True  # whether everything read so far is zeros
        self._pages = {}  # type: dict[int, bytes]
        for start, length in ((0, 20 * _KIB), (size_bytes - _GPT_BYTES, _GPT_BYTES)):
            self.read(max(0, start), length)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the region, fewer at its end."""
        length = min(length, self.size_bytes - offset)
        if offset < 0 or length <= 0:
            return b""
        first = offset // _PAGE
        last = (offset + length - 1) // _PAGE
        data = b"".join(map(self._page, range(first, last + 1)))
        return data[offset - first * _PAGE :][:length]

    def _page(self, number: int) -> bytes:
        if number not in self._pages:
            start = number * _PAGE
            length = min(_PAGE, self.size_bytes - start)
            data = self.snapshot.read(self.node, self.offset + start, length)
            self.is_blank = self.is_blank and not any(data)
            self._pages[number] = data
        return self._pages[number]


class Part(NamedTuple):
    """The whole device, or one of its partitions."""

    node: str  # its device node; that of the disk for a partition that the kernel has not scanned
    number: int = 0  # of a partition that the kernel has not scanned; 0 otherwise
    offset: int = 0  # of such a partition
    size_bytes: int = 0  # of such a partition
    known: bool = False  # whether it could be examined
    type: str = ""  # such as ext4, LVM2_member or btrfs; empty for none
    usage: str = ""  # its class in blkid, such as filesystem or raid
    label: str = ""
    table: str = ""  # type of the partition table
    uuids: str = ""  # UUIDs of content and partition table
    ambivalent: bool = False  # signatures contradict each other
    unidentified: bool = False  # data, on a host without blkid, that is no known signature
    siblings: int = 1  # number of devices of its btrfs; 1 for other content


def read_content(
    snapshot: Snapshot, devices: Devices, device: BlockDevice, node: str
) -> "list[Part]":
    """Return the content of a block device: the device itself, then its partitions."""
    try:
        return within(READ_S, _read_parts, snapshot, devices, device, node)
    except OSError:
        return [Part(node)]


def _read_parts(snapshot: Snapshot, devices: Devices, disk: BlockDevice, node: str) -> "list[Part]":
    size_bytes = devices.size_bytes(disk)
    whole = _Region(snapshot, node, 0, size_bytes)
    table = read_table(whole.read, size_bytes)
    first = _examined(whole)
    if not _is_marked(first):
        first = first._replace(table=table.kind)
    scanned = {
        (devices.number_in(partition, "start") or 0) * SECTOR_BYTES: partition
        for partition in devices.partitions(disk)
    }
    parts = [first]
    parts += [
        _examine(snapshot, partition.node, 0, devices.size_bytes(partition))
        for partition in scanned.values()
    ]
    for region in table.regions:
        if region.offset not in scanned:
            partition = _examine(snapshot, node, region.offset, region.size_bytes)
            parts.append(partition._replace(**region._asdict()))
    return parts


def read_whole(snapshot: Snapshot, path: str, size_bytes: int) -> Part:
    """Return the content of a device or file as a whole, without its partitions."""
    try:
        return within(READ_S, _examine, snapshot, path, 0, size_bytes)
    except OSError:
        return Part(path)


def _examine(snapshot: Snapshot, node: str, offset: int, size_bytes: int) -> Part:
    try:
        return _examined(_Region(snapshot, node, offset, size_bytes))
    except OSError:
        return Part(node)


def _examined(region: _Region) -> Part:
    """Return the result of blkid, or of the magic bytes where blkid finds nothing."""
    by_blkid = _blkid(region)
    part = by_blkid or Part(region.node, known=True)
    magic = find_magic(region.read, region.size_bytes)
    if part.known and not part.ambivalent and not part.type and magic:
        kind, usage = next(iter(magic.items()))
        part = part._replace(type=kind, usage=usage)
    if part.type == "btrfs":
        siblings = int.from_bytes(region.read(_BTRFS_DEVICES, 8), "little")
        part = part._replace(siblings=siblings)
    is_data = by_blkid is None and not region.is_blank and not _is_marked(part)
    return part._replace(unidentified=is_data)


def _is_marked(part: Part) -> bool:
    return bool(part.ambivalent or part.type or part.table or part.uuids)


def _blkid(region: _Region) -> "Part | None":
    """Return the signature that blkid reads from a region, bypassing its cache.

    None without the blkid of util-linux: that of busybox knows no ``-p``, and prints nothing.
    """
    blkid = region.snapshot.which("blkid")
    if not blkid:
        return None
    span = ["-O", str(region.offset), "-S", str(region.size_bytes)] if region.offset else []
    try:
        done = region.snapshot.run([blkid, "-p", "-o", "export", *span, region.node])
    except AgentError as error:
        raise OSError(errno.EIO, error.message) from error
    if not done.status and not done.stdout.strip():
        return None
    if done.status:
        is_empty = done.status == _NOTHING_FOUND and not done.stderr.strip()
        is_ambivalent = done.status == _AMBIVALENT
        return Part(region.node, known=is_ambivalent or is_empty, ambivalent=is_ambivalent)
    tags = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return Part(
        region.node,
        known=True,
        type=tags.get("TYPE", ""),
        usage=tags.get("USAGE", ""),
        label=tags.get("LABEL", ""),
        table=tags.get("PTTYPE", ""),
        uuids=" ".join(tags[name] for name in ("UUID", "PTUUID") if name in tags),
    )
