"""What the numbers were measured on: facts about a host and a volume, as the machine tells them.

None, or an empty text, always means that the machine did not tell. Sizes are bytes.
"""

from __future__ import annotations

from volbench.model.base import Frozen
from volbench.model.campaign.target import VolumeKind


class HostFacts(Frozen):
    """A machine.

    Attributes:
        host: its name in the plan; ``local`` for the controller itself.
        machine: tells this machine from others; a digest, not its machine-id.
        kernel: release, such as ``6.1.0-18-amd64``.
        os: such as ``Debian GNU/Linux 12 (bookworm)``.
        cpu_model: as the kernel names it.
        cpus: how many are online.
        memory_bytes: all of it.
        fio_version: such as ``fio-3.33``; empty without fio.
        virtualization: ``none`` on bare metal, ``vm``, or the hypervisor's or container's name.
    """

    host: str
    machine: str = ""
    kernel: str = ""
    os: str = ""
    cpu_model: str = ""
    cpus: int = 1
    memory_bytes: int | None = None
    fio_version: str = ""
    virtualization: str = ""


class VolumeFacts(Frozen):
    """A volume and the block device under it.

    Attributes:
        role: its name in the profile.
        target: as planned.
        kind: device, file, directory or nbd.
        path: target with every symlink resolved; the URI of an nbd volume.
        device: kernel name of the block device, such as ``sdb``; empty for tmpfs, NFS or nbd.
        major: device number.
        minor: device number.
        model: of the device, or of the whole disk it is a part of.
        serial: as `model`.
        size_bytes: capacity of the device.
        rotational: True for a spinning disk, as the kernel believes.
        scheduler: the I/O scheduler in use.
        logical_block_bytes: least addressable unit.
        physical_block_bytes: unit the device writes without reading first.
        write_cache: ``write back`` or ``write through``.
        read_only: whether the device refuses writes.
        filesystem: type of the filesystem a directory or file is on, or that a device is mounted
            as.
        mount_point: where.
        mount_options: of the mount and of its filesystem, comma-separated.
        free_bytes: what an ordinary user may still write.
        backing: kernel names of the devices under a partition, loop, dm or md, nearest first.
        content: what is on a device, as blkid reports it, such as ``ext4 "backup"``.
    """

    role: str
    target: str
    kind: VolumeKind
    path: str
    device: str = ""
    major: int | None = None
    minor: int | None = None
    model: str = ""
    serial: str = ""
    size_bytes: int | None = None
    rotational: bool | None = None
    scheduler: str = ""
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    write_cache: str = ""
    read_only: bool | None = None
    filesystem: str = ""
    mount_point: str = ""
    mount_options: str = ""
    free_bytes: int | None = None
    backing: tuple[str, ...] = ()
    content: str = ""
