"""Target of a run: the volume, and the identity that pins a block device."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

from volbench.model.base import Count, FileName, Frozen

FileIdentity = tuple[int, int, int, int]
"""Device major and minor, inode, and birth in ns since 1970 (0: not recorded by its filesystem)."""


class VolumeKind(StrEnum):
    """Kind of target of a volume; unknown for some imported results."""

    DEVICE = "device"
    FILE = "file"
    DIRECTORY = "directory"
    NBD = "nbd"
    UNKNOWN = "unknown"


class DevicePin(Frozen):
    """Identity of a block device when the campaign was planned; verified before each run.

    Attributes:
        path: resolved, such as ``/dev/sdb``.
        major: device number.
        minor: device number.
        size_bytes: capacity.
        serial: empty when the device reports none.
        model: empty when the device reports none.
        wwid: World Wide Name or NVMe identifier; empty when the device reports none.
        by_id: its first name in /dev/disk/by-id; empty when udev gives it none.
        backing: device and inode of the file behind a loop device; empty for other devices.
        start_sector: first sector of a partition, in units of 512 bytes; 0 for other devices.
        boot_id: boot ID of the kernel that reported `diskseq`.
        diskseq: the kernel's number of this attachment of the disk, never used twice in one boot;
            0 before Linux 5.15.
        edges: digest of its first and last MiB; empty when they could not be read.
        signature: content detected by blkid; empty if none.
    """

    path: str
    major: Count
    minor: Count
    size_bytes: Count
    serial: str = ""
    model: str = ""
    wwid: str = ""
    by_id: str = ""
    backing: str = ""
    start_sector: Count = 0
    boot_id: str = ""
    diskseq: Count = 0
    edges: str = ""
    signature: str = ""


class Volume(Frozen):
    """A storage target under the name a profile uses for it.

    Attributes:
        role: such as ``data`` or ``os``.
        kind: device, file, directory or nbd; unknown for some imported results.
        target: the path or NBD URI as the user gave it, made absolute.
        pin: identity of a device; None for the other kinds.
        private_folder: folder that volbench created in a directory volume for its files; None
            where they are in the directory itself.
    """

    role: FileName
    kind: VolumeKind
    target: str
    pin: DevicePin | None = None
    private_folder: FileName | None = None

    @property
    def folder(self) -> str:
        """Folder of the files in a directory volume."""
        return str(PurePosixPath(self.target) / (self.private_folder or ""))
