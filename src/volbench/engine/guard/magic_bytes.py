"""Magic bytes of filesystems, encrypted volumes, swap areas and members of larger volumes.

They are read in addition to blkid(8), which a host may lack. Offsets and values are those of the
superblocks in the kernel (``include/uapi/linux/magic.h`` and the filesystems' own headers) and of
libblkid 2.38.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

# Returns the bytes at an offset with a length; fewer at the end of a device
Reader = Callable[[int, int], bytes]

KIB = 1024
_FILESYSTEM, _CRYPTO, _RAID, _OTHER = "filesystem", "crypto", "raid", "other"

# Offset, value, type as in blkid, and usage as in blkid
_MAGIC: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"LUKS\xba\xbe", "crypto_LUKS", _CRYPTO),
    (16 * KIB, b"SKUL\xba\xbe", "crypto_LUKS", _CRYPTO),
    (3, b"-FVE-FS-", "BitLocker", _CRYPTO),
    *((512 * sector, b"LABELONE", "LVM2_member", _RAID) for sector in range(4)),
    (0, b"\xfc\x4e\x2b\xa9", "linux_raid_member", _RAID),
    (4 * KIB, b"\xfc\x4e\x2b\xa9", "linux_raid_member", _RAID),
    (4 * KIB + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache", _OTHER),
    (0, b"bluestore block device", "ceph_bluestore", _OTHER),
    (0, b"dmvdo001", "vdo", _RAID),
    (0, b"XFSB", "xfs", _FILESYSTEM),
    (3, b"NTFS    ", "ntfs", _FILESYSTEM),
    (3, b"EXFAT   ", "exfat", _FILESYSTEM),
    (54, b"FAT1", "vfat", _FILESYSTEM),
    (82, b"FAT32   ", "vfat", _FILESYSTEM),
    (32, b"NXSB", "apfs", _FILESYSTEM),
    (0, b"hsqs", "squashfs", _FILESYSTEM),
    (KIB, b"\x10\x20\xf5\xf2", "f2fs", _FILESYSTEM),
    (32 * KIB, b"JFS1", "jfs", _FILESYSTEM),
    (32 * KIB + 1, b"CD001", "iso9660", _FILESYSTEM),
    (64 * KIB + 52, b"ReIsEr", "reiserfs", _FILESYSTEM),
    (64 * KIB + 64, b"_BHRfS_M", "btrfs", _FILESYSTEM),
    *(
        (page * KIB - 10, mark, "swap", _OTHER)
        for page in (4, 8, 16, 64)
        for mark in (b"SWAPSPACE2", b"SWAP-SPACE")
    ),
)

# Offset of num_devices in struct btrfs_super_block; the first copy is at 64 KiB
_BTRFS_DEVICES = 64 * KIB + 0x88

_ZFS_LABEL = 16 * KIB
# First name in the list of a ZFS label, in XDR, whose version is always first
_ZFS_NAME = b"\0\0\0\x07version"

# Members whose superblock is at the end: offset from the size in bytes, value, type
_TAILS: tuple[tuple[Callable[[int], int], bytes, str], ...] = (
    (lambda size: (size // 512 - 16) // 8 * 8 * 512, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
    (lambda size: size // 65536 * 65536 - 65536, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
    (lambda size: size - 1024, b"Intel Raid ISM Cfg Sig. ", "isw_raid_member"),
    (lambda size: size - 512, b"\xde\x11\xde\x11", "ddf_raid_member"),
)

_EXT_SUPERBLOCK = KIB
# s_inodes_count, s_log_block_size, s_magic: offsets 0, 24 and 56 of struct ext4_super_block
_EXT_FIELDS = struct.Struct("<I20xI28xH")
_EXT_MAGIC = 0xEF53
_EXT_MAX_LOG_BLOCK = 6


def spans_of(size_bytes: int) -> list[tuple[int, int]]:
    """Return the parts of a device, as offset and length, that hold all magic bytes and tables."""
    sectors = {0: 40, 32 * KIB: 1, 64 * KIB - 512: 2, size_bytes - 33 * 512: 33}
    for offset_of, *_ in _TAILS:
        start = offset_of(size_bytes) // 512 * 512
        sectors[start] = max(1, sectors.get(start, 0))
    return [
        (offset, min(count * 512, size_bytes - offset))
        for offset, count in sorted(sectors.items())
        if 0 <= offset < size_bytes
    ]


def find_magic(read: Reader, size_bytes: int) -> Mapping[str, str]:
    """Return the types of content whose magic bytes are on a device, each with its usage."""
    found = {name: usage for offset, mark, name, usage in _MAGIC if read(offset, len(mark)) == mark}
    for offset_of, mark, name in _TAILS:
        offset = offset_of(size_bytes)
        if offset > 0 and read(offset, len(mark)) == mark:
            found[name] = _RAID
    if _ZFS_NAME in read(_ZFS_LABEL, 128):
        found["zfs_member"] = _RAID
    if _is_ext(read(_EXT_SUPERBLOCK, _EXT_FIELDS.size)):
        found["ext4"] = _FILESYSTEM
    return found


def btrfs_devices(read: Reader) -> int:
    """Return the number of devices in a btrfs, from its superblock."""
    return int.from_bytes(read(_BTRFS_DEVICES, 8), "little")


def _is_ext(superblock: bytes) -> bool:
    """Return whether a superblock of ext2, ext3 or ext4 is plausible; its magic has 2 bytes."""
    if len(superblock) < _EXT_FIELDS.size:
        return False
    inodes, log_block, magic = _EXT_FIELDS.unpack(superblock)
    return bool(magic == _EXT_MAGIC and inodes > 0 and log_block <= _EXT_MAX_LOG_BLOCK)
