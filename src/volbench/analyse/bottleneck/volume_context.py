"""Context of a run's volume: kind of its device, and earlier runs on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from volbench.analyse.frames.run_view import RunView, total
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_model import Phase

_NETWORK_ENGINES = frozenset(
    {"nbd", "rbd", "rados", "gfapi", "gfapi_async", "http", "libhdfs", "libiscsi", "nfs", "dfs"}
)
_VIRTUAL_MODELS = ("elastic block", "persistentdisk", "virtual", "qemu", "vmware", "vbox", "msft")
_CONTAINERS = frozenset({"docker", "podman", "lxc", "containerd", "container", "kubernetes"})

# Share of empty blocks from which to warn: 2 of 64 samples.
# Noticed by: test_memory.py::test_sampled_blocks_without_data_are_reported_from_three_percent_on
MIN_EMPTY = 0.03
# Share of empty blocks from which a result is invalid: most reads need no lookup.
# Noticed by: test_causes.py::test_empty_blocks_found_by_the_probe_are_reported
MIN_INVALID_EMPTY = 0.5


class DeviceKind(StrEnum):
    """Kind of a volume's device, from facts of host and results; the values complete a sentence."""

    LOCAL_SSD = "a local SSD"
    NVME = "an NVMe device of an unknown host"
    HARD_DISK = "a local hard disk"
    VIRTUAL = "a virtual or provisioned volume"
    NETWORK = "a network volume"
    LOOP = "a loop device"
    MEMORY = "a device in memory"
    UNKNOWN = "a device of unknown kind"


# Kinds without burst credits, neighbours and allocation of blocks at the first touch
LOCAL = frozenset({DeviceKind.LOCAL_SSD, DeviceKind.HARD_DISK, DeviceKind.MEMORY})
FLASH = frozenset({DeviceKind.LOCAL_SSD, DeviceKind.NVME})
REMOTE = frozenset({DeviceKind.NETWORK, DeviceKind.VIRTUAL})

_BY_NAME = {
    "loop": DeviceKind.LOOP,
    "nbd": DeviceKind.NETWORK,
    "rbd": DeviceKind.NETWORK,
    "drbd": DeviceKind.NETWORK,
    "vd": DeviceKind.VIRTUAL,
    "xvd": DeviceKind.VIRTUAL,
}


def device_kind(view: RunView) -> DeviceKind:
    """Return the kind of device of a run's volume."""
    facts, volume = view.volume, view.run.volume
    is_remote = any(workload.engine in _NETWORK_ENGINES for workload in view.workloads)
    if volume.kind is VolumeKind.NBD or is_remote:
        return DeviceKind.NETWORK
    if facts is not None and facts.in_memory:
        return DeviceKind.MEMORY
    name = facts.device if facts is not None else ""
    if not name and volume.kind is VolumeKind.DEVICE:
        name = PurePosixPath(volume.target).name
    below = facts.backing if facts is not None else ()
    if any(disk.startswith(("ram", "zram")) for disk in (name, *below)):
        return DeviceKind.MEMORY
    named = (kind for prefix, kind in _BY_NAME.items() if name.startswith(prefix))
    return next(named, None) or _kind_by_facts(view, is_nvme=name.startswith("nvme"))


def _kind_by_facts(view: RunView, *, is_nvme: bool) -> DeviceKind:
    """Return the kind of a disk whose name may be that of a local or of a virtual one."""
    facts, limits = view.volume, view.run.limits
    hypervisor = view.host.virtualization if view.host is not None else ""
    model = facts.model.lower() if facts is not None else ""
    rotational = facts.rotational if facts is not None else None
    is_provisioned = bool(limits.iops or limits.bandwidth_bytes_per_s)
    if is_provisioned or any(word in model for word in _VIRTUAL_MODELS):
        return DeviceKind.VIRTUAL
    if hypervisor == "none":
        if is_nvme or rotational is False:
            return DeviceKind.LOCAL_SSD
        return DeviceKind.HARD_DISK if rotational else DeviceKind.UNKNOWN
    if hypervisor in {"", *_CONTAINERS}:
        return DeviceKind.NVME if is_nvme else DeviceKind.UNKNOWN
    return DeviceKind.VIRTUAL


@dataclass(frozen=True)
class Range:
    """Part of a volume that a workload works on."""

    name: str  # file name, as the job file says; empty where it says none
    words: tuple[str, str]  # offset and size, as the job file says
    first: float = field(compare=False)  # offset of its first byte; NaN where it is unknown
    size: float = field(compare=False)  # bytes; NaN where it is unknown

    def is_within(self, other: Range) -> bool:
        """Return whether all of it is known to lie in another range."""
        is_inside = other.first <= self.first and self.end <= other.end
        return self.name == other.name and (self.words == other.words or is_inside)

    @property
    def end(self) -> float:
        """Offset behind its last byte; NaN where it is unknown."""
        return self.first + self.size


@dataclass(frozen=True)
class Earlier:
    """Runs that finished on a volume before another one."""

    is_prepared: bool = False  # whether one of them was a preparation or a warm-up
    is_written: bool = False  # whether one of them writes
    holds_data: bool = False  # whether a sample of blocks before one of them found data in all
    # range to the bytes that were written to it
    written_bytes: Mapping[Range, float] = field(default_factory=dict)

    def then(self, view: RunView) -> Earlier:
        """Return the same after one more run."""
        written = dict(self.written_bytes)
        moved = total(view, "io_bytes", direction="write")
        if view.writes and moved > 0:
            for region in set(_ranges(view)):
                written[region] = written.get(region, 0.0) + moved
        return Earlier(
            is_prepared=self.is_prepared or view.run.phase is not Phase.MEASURED,
            is_written=self.is_written or view.writes,
            holds_data=self.holds_data or holds_data(view),
            written_bytes=written,
        )

    def has_filled(self, view: RunView) -> bool:
        """Return whether the ranges of a run lie in ranges that were written as often as whole.

        Where the size of a range is unknown, any run that wrote to the same one counts.
        """
        full = [area for area, moved in self.written_bytes.items() if not moved < area.size]
        return all(any(map(needed.is_within, full)) for needed in _ranges(view))


def holds_data(view: RunView) -> bool:
    """Return whether blocks were sampled right before a run, and nearly all of them held data."""
    blocks = None if view.volume is None else view.volume.blocks
    return blocks is not None and blocks.sampled > 0 and blocks.empty_share < MIN_EMPTY


def _ranges(view: RunView) -> Iterator[Range]:
    for workload in view.workloads:
        offset, size = (workload.options.get(name, "") for name in ("offset", "size"))
        first = workload.size_of("offset", view.size_bytes, unset="0")
        size_bytes, room = workload.size_of("size", view.size_bytes), view.size_bytes - first
        yield Range(
            name=workload.options.get("filename", ""),
            words=(offset, size),
            first=first,
            size=min(size_bytes, room),
        )
