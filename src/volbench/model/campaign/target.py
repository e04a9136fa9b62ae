"""Target of a run: the volume, and the identity that pins a block device."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

from volbench.model.base import Count, FileName, Frozen

# Device major and minor, inode, and birth in ns since 1970 (0: not recorded by its filesystem)
FileIdentity = tuple[int, int, int, int]


class VolumeKind(StrEnum):
    """Kind of target of a volume; unknown for some imported results."""

    DEVICE = "device"
    FILE = "file"
    DIRECTORY = "directory"
    NBD = "nbd"
    UNKNOWN = "unknown"


class DevicePin(Frozen):
    """Identity of a block device when the campaign was planned; verified before each run."""

    path: str  # resolved, such as ``/dev/sdb``
    major: Count  # device number
    minor: Count  # device number
    size_bytes: Count  # capacity
    serial: str = ""  # empty when the device reports none
    model: str = ""  # empty when the device reports none
    wwid: str = ""  # World Wide Name or NVMe identifier; empty when the device reports none
    by_id: str = ""  # its first name in /dev/disk/by-id; empty when udev gives it none
    backing: str = ""  # device and inode of the file behind a loop device; empty for other devices
    # first sector of a partition, in units of 512 bytes; 0 for other devices
    start_sector: Count = 0
    boot_id: str = ""  # boot ID of the kernel that reported `diskseq`
    # the kernel's number of this attachment of the disk, never used twice in one boot; 0 before
    # Linux 5.15
    diskseq: Count = 0
    edges: str = ""  # digest of its first and last MiB; empty when they could not be read
    signature: str = ""  # content detected by blkid; empty if none


class Volume(Frozen):
    """A storage target under the name a profile uses for it."""

    role: FileName  # such as ``data`` or ``os``
    kind: VolumeKind  # device, file, directory or nbd; unknown for some imported results
    target: str  # the path or NBD URI as the user gave it, made absolute
    pin: DevicePin | None = None  # identity of a device; None for the other kinds
    # folder that volbench created in a directory volume for its files; None where they are in the
    # directory itself
    private_folder: FileName | None = None

    @property
    def folder(self) -> str:
        """Folder of the files in a directory volume."""
        return str(PurePosixPath(self.target) / (self.private_folder or ""))
