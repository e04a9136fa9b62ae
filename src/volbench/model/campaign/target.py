"""Where a Run works: Volume and the identity that pins a block device."""

from __future__ import annotations

from enum import StrEnum

from volbench.model.base import Frozen


class VolumeKind(StrEnum):
    """What the target of a volume is; nobody told of some that were imported."""

    DEVICE = "device"
    FILE = "file"
    DIRECTORY = "directory"
    NBD = "nbd"
    UNKNOWN = "unknown"


class DevicePin(Frozen):
    """What a block device was when the campaign was planned; it must still be that before each Run.

    Attributes:
        path: resolved, such as ``/dev/sdb``.
        major: device number.
        minor: device number.
        size_bytes: capacity.
        serial: empty when the device tells none.
        model: empty when the device tells none.
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
        target: the path or NBD uri as the user gave it, made absolute.
        pin: identity of a device; None for the other kinds.
    """

    role: str
    kind: VolumeKind
    target: str
    pin: DevicePin | None = None
