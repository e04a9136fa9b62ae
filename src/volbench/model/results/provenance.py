"""Facts about host and volume, as reported by the machine.

None or an empty text always means "not reported". Sizes are in bytes.
"""

from __future__ import annotations

from volbench.model.base import Count, Frozen
from volbench.model.campaign.target import VolumeKind

MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})


class HostFacts(Frozen):
    """Facts about a host.

    Attributes:
        host: name in the plan; ``local`` for the controller itself.
        machine: unique identifier of the machine; a digest, not its machine-id.
        kernel: release, such as ``6.1.0-18-amd64``.
        os: operating system, such as ``Debian GNU/Linux 12 (bookworm)``.
        cpu_model: CPU model, as reported by the kernel.
        cpus: number of CPUs online.
        memory_bytes: total memory.
        fio_version: such as ``fio-3.33``; empty without fio.
        virtualization: ``none`` on bare metal, ``vm``, or the hypervisor's or container's name.
    """

    host: str
    machine: str = ""
    kernel: str = ""
    os: str = ""
    cpu_model: str = ""
    cpus: Count = 1
    memory_bytes: Count | None = None
    fio_version: str = ""
    virtualization: str = ""


class BlockSample(Frozen):
    """What was known, right before a run that reads, of the blocks that it reads.

    Attributes:
        sampled: blocks that were read.
        zeros: of them, those that held only zeros.
        unmapped_share: share of the range that the storage has no data for; None if it was not
            asked or does not know.
        reported_by: source of that share; empty for none.
        problem: why no block was read; empty where some were.
    """

    sampled: int = 0
    zeros: int = 0
    unmapped_share: float | None = None
    reported_by: str = ""
    problem: str = ""


class VolumeFacts(Frozen):
    """A volume and the block device under it.

    Attributes:
        role: role of the volume in the profile.
        target: target in the plan.
        kind: device, file, directory or nbd.
        path: target with every symlink resolved; the URI of an nbd volume.
        device: kernel name of the block device, such as ``sdb``; empty for tmpfs, NFS or nbd.
        major: device number.
        minor: device number.
        model: model of the device, or of the disk that contains it.
        serial: serial number, from the same source as `model`.
        size_bytes: capacity of the device.
        rotational: True for a spinning disk, as reported by the kernel.
        scheduler: the I/O scheduler in use.
        logical_block_bytes: smallest addressable unit.
        physical_block_bytes: smallest unit written without read-modify-write.
        write_cache: ``write back`` or ``write through``.
        read_only: whether the device refuses writes.
        filesystem: type of the filesystem that holds the file or directory, or that is mounted
            from the device.
        mount_point: mount point of the filesystem.
        mount_options: options of the mount and of its filesystem, comma-separated.
        free_bytes: space available to unprivileged users.
        backing: kernel names of the devices under a partition, loop, dm or md, nearest first.
        content: content of a device, as reported by blkid, such as ``ext4 "backup"``.
        blocks: sample of the blocks that a run reads; None where none was taken.
        memory_below: filesystem in memory that holds the file of a loop device; empty for none.
    """

    role: str
    target: str
    kind: VolumeKind
    path: str
    device: str = ""
    major: Count | None = None
    minor: Count | None = None
    model: str = ""
    serial: str = ""
    size_bytes: Count | None = None
    rotational: bool | None = None
    scheduler: str = ""
    logical_block_bytes: Count | None = None
    physical_block_bytes: Count | None = None
    write_cache: str = ""
    read_only: bool | None = None
    filesystem: str = ""
    mount_point: str = ""
    mount_options: str = ""
    free_bytes: Count | None = None
    backing: tuple[str, ...] = ()
    content: str = ""
    blocks: BlockSample | None = None
    memory_below: str = ""

    @property
    def in_memory(self) -> str:
        """What in the host's memory holds the volume; empty where nothing is known to."""
        if self.filesystem in MEMORY_FILESYSTEMS:
            return self.filesystem
        names = (name for name in (self.device, *self.backing) if name.startswith(("ram", "zram")))
        return next(names, self.memory_below)
