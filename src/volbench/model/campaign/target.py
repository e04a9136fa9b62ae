"""Target of a run: the volume, and the identity that pins a block device."""

from __future__ import annotations

from enum import StrEnum

from volbench.model.base import Frozen


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
    """

    path: str
    major: int
    minor: int
    size_bytes: int
    serial: str = ""
    model: str = ""


class Volume(Frozen):
    """A storage target under the name a profile uses for it.

    Attributes:
        role: such as ``data`` or ``os``.
        kind: device, file, directory or nbd; unknown of some imported results.
        target: the path or NBD URI as the user gave it, made absolute.
        pin: identity of a device; None for the other kinds.
    """

    role: str
    kind: VolumeKind
    target: str
    pin: DevicePin | None = None
