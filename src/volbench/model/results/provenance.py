"""Facts about host and volume, as reported by the machine.

None or an empty text always means "not reported". Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.frozen_model import Count, Frozen

MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})


class HostFacts(Frozen):
    """Facts about a host."""

    host: str  # name in the plan; ``local`` for the controller itself
    machine: str = ""  # unique identifier of the machine; a digest, not its machine-id
    marks: tuple[str, ...] = ()  # its boot id and the serial numbers of its volumes
    kernel: str = ""  # release, such as ``6.1.0-18-amd64``
    os: str = ""  # operating system, such as ``Debian GNU/Linux 12 (bookworm)``
    cpu_model: str = ""  # CPU model, as reported by the kernel
    cpus: Count = 1  # number of CPUs online
    memory_bytes: Count | None = None  # total memory
    memory_limit_bytes: Count | None = None  # of the container or cgroup; None if there is no limit
    fio_version: str = ""  # such as ``fio-3.33``; empty without fio
    # ``none`` on bare metal, ``vm``, or the hypervisor's or container's name
    virtualization: str = ""
    machine_type: str = ""  # of a pod's node, such as ``Standard_D4s_v5``
    zone: str = ""  # of a pod's node
    persistent_volume: str = ""  # of a pod, and the driver and name of its disk at the provider
    csi_driver: str = ""
    volume_handle: str = ""
    volume_bytes: Count | None = None  # of a pod's volume
    ephemeral_limit_bytes: Count | None = None  # of a pod's files outside volumes

    @property
    def usable_memory_bytes(self) -> int | None:
        """Memory that programs and their page cache can have; None if unknown."""
        return self.memory_bytes if self.memory_limit_bytes is None else self.memory_limit_bytes


class BlockSample(Frozen):
    """What was known, right before a run that reads, of the blocks that it reads."""

    sampled: int = 0  # blocks that were read
    zeros: int = 0  # of them, those that held only zeros
    # share of the range that the storage has no data for; None if it was not asked or does not know
    unmapped_share: float | None = None
    reported_by: str = ""  # source of that share; empty for none
    problem: str = ""  # why no block was read; empty where some were

    @property
    def empty_share(self) -> float:
        """Share of the blocks without data, by the samples or by the storage."""
        return max(self.zeros / max(self.sampled, 1), self.unmapped_share or 0.0)


class VolumeFacts(Frozen):
    """A volume and the block device under it."""

    role: str  # role of the volume in the profile
    target: str  # target in the plan
    kind: VolumeKind  # device, file, directory or nbd
    path: str  # target with every symlink resolved; the URI of an nbd volume
    # kernel name of the block device, such as ``sdb``; empty for tmpfs, NFS or nbd
    device: str = ""
    major: Count | None = None  # device number
    minor: Count | None = None  # device number
    model: str = ""  # model of the device, or of the disk that contains it
    serial: str = ""  # serial number, from the same source as `model`
    size_bytes: Count | None = None  # capacity of the device
    rotational: bool | None = None  # True for a spinning disk, as reported by the kernel
    scheduler: str = ""  # the I/O scheduler in use
    logical_block_bytes: Count | None = None  # smallest addressable unit
    physical_block_bytes: Count | None = None  # smallest unit written without read-modify-write
    write_cache: str = ""  # ``write back`` or ``write through``
    link: str = ""  # of the disk to its controller, such as ``SATA 6.0 Gbps``
    link_bytes_per_s: Count = 0  # what the link carries; 0 when unknown
    read_only: bool | None = None  # whether the device refuses writes
    # type of the filesystem that holds the file or directory, or that is mounted from the device
    filesystem: str = ""
    mount_point: str = ""  # mount point of the filesystem
    mount_options: str = ""  # options of the mount and of its filesystem, comma-separated
    free_bytes: Count | None = None  # space available to unprivileged users
    # kernel names of the devices under a partition, loop, dm or md, nearest first
    backing: tuple[str, ...] = ()
    content: str = ""  # content of a device, as reported by blkid, such as ``ext4 "backup"``
    # sample of the blocks that a run reads; None where none was taken
    blocks: BlockSample | None = None
    # filesystem in memory that holds the file of a loop device; empty for none
    memory_below: str = ""
    # keys of other campaigns that used the disk when the run began or ended
    other_campaigns: tuple[str, ...] = ()

    @property
    def in_memory(self) -> str:
        """What in the host's memory holds the volume; empty where nothing is known to."""
        if self.filesystem in MEMORY_FILESYSTEMS:
            return self.filesystem
        names = (name for name in (self.device, *self.backing) if name.startswith(("ram", "zram")))
        return next(names, self.memory_below)


# Share of all-zero blocks above which a volume was not filled: filesystems leave a few.
# Noticed by: test_cold_volume.py::test_zeros_are_reported
MAX_ZERO_SHARE = 0.01


@dataclass(frozen=True)
class ColdProbe:
    """Result of reading a sample of blocks twice."""

    pairs: int  # blocks that were read both times
    median_ratio: float  # median latency of first reads over that of second reads
    p99_ratio: float  # the same for the 99th percentile
    p_value: float  # how likely first reads are that much slower by chance alone
    cold: bool  # whether first reads were clearly slower
    first_median_s: float  # median latency of first reads
    second_median_s: float  # median latency of second reads
    slower_share: float  # of the blocks, those whose first read was slower; by chance half of them
    # share of sampled blocks that hold only zeros; None if it was not recorded
    zero_share: float | None = None

    @property
    def never_written(self) -> bool:
        """Whether a part of the volume holds nothing, or was filled with zeros."""
        return self.zero_share is not None and self.zero_share > MAX_ZERO_SHARE


def joined_facts(volume: Volume, each: Sequence[VolumeFacts]) -> VolumeFacts:
    """Return the facts of a volume of several: all devices, and what they have in common."""
    facts = [one.model_dump() for one in each]
    alike = {key: value for key, value in facts[0].items() if all(f[key] == value for f in facts)}
    names = dict.fromkeys(one.device for one in each if one.device)
    below = dict.fromkeys(name for one in each for name in (one.device, *one.backing) if name)
    own = {"target": volume.target, "path": volume.target, "device": "+".join(names)}
    alike |= own | {"size_bytes": volume.size_bytes, "backing": tuple(below)}
    return VolumeFacts.model_validate(alike)
