"""Planned load of a run, section by section, with the defaults of fio.

Defaults are fio's (HOWTO of 3.33): rw=read, bs=4k, ioengine=psync, direct=0, iodepth=1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.option_policy import MEMORY_ENGINES

# Engines that wait for each I/O (FIO_SYNCIO), so that their queue depth is 1
SYNCHRONOUS = frozenset(
    {
        *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"),
        *("http", "gfapi", "mtd", "dev-dax", "libpmem", "pmemblk"),
    }
)

_SPDK = frozenset({"spdk", "spdk_nvme", "spdk_bdev"})  # Names that its engines give themselves
# Engines whose I/O passes neither the page cache nor the block layer's counters of the host
_OUTSIDE_KERNEL = MEMORY_ENGINES | {
    *("filecreate", "filedelete"),
    *("nbd", "rbd", "rados", "http", "gfapi", "gfapi_async", "libhdfs", "libiscsi", "nfs", "dfs"),
    *("io_uring_cmd", "sg", "libblkio", "rdma", "mtd", "dev-dax", "libpmem", "pmemblk"),
    *_SPDK,
}
# Longest runtime: fio counts microseconds in 64 bits. A damaged plan may name a longer one.
_MAX_RUNTIME_S = 2**63 / 1e6
_PAUSES = ("thinktime", "latency_target")
_RATES = ("rate", "rate_iops")
# Options that let fio, the kernel or a driver poll: each keeps a CPU busy whatever the volume does
_POLLS = ("sqthread_poll", "hipri", "hipri_percentage", "userspace_reap")
_MAY_POLL = frozenset({"io_uring", "io_uring_cmd", "pvsync2"})  # Engines that know these options
# Engines whose drivers poll, or may: an external engine may be SPDK
_POLLING_ENGINES = _SPDK | {"external", "xnvme", "libblkio", "rdma"}
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "sync")


@dataclass(frozen=True)
class WorkloadSpec:
    """One section of a run, with the tool's defaults."""

    section: str  # its name
    options: Mapping[str, str]  # canonical options that hold in it
    engine: str  # ioengine; ``nbd`` for an export
    pattern: str  # access pattern without its parameter, such as ``randwrite``
    kind: VolumeKind  # of the volume
    targets: int = 1  # devices or files of the volume
    # whether all its options are known, so that fio's defaults hold for the rest
    is_complete: bool = True
    # options that may be set although the result does not list them
    unreported_flags: frozenset[str] = frozenset()

    def number(self, name: str, *, default: int) -> int:
        """Return a whole number among the options; the default where it is none."""
        text = self.options.get(name, "")
        return int(text) if text.isdecimal() else default

    def size_of(self, name: str, volume_bytes: float, *, unset: str = "100%") -> float:
        """Return a size, in bytes or as a share of the volume; NaN where it is neither.

        Args:
            volume_bytes: size of the volume; NaN where it is unknown.
            unset: what holds without the option.
        """
        text = self.options.get(name, unset)
        if text.isdecimal():
            return float(text)
        return volume_bytes * float(text[:-1]) / 100 if text.endswith("%") else math.nan

    def is_on(self, name: str) -> bool:
        """Return whether an option is given and not 0."""
        return self.options.get(name, "0") not in {"0", "", "none"}

    @property
    def numjobs(self) -> int:
        """Jobs in parallel."""
        return self.number("numjobs", default=1)

    @property
    def depth(self) -> int:
        """I/Os to keep in flight, by each job."""
        return self.number("iodepth", default=1)

    @property
    def block_bytes(self) -> int:
        """Greatest plain block size."""
        sizes = [size for size in self.options.get("bs", "").split(",") if size.isdecimal()]
        return max(map(int, sizes), default=4096)

    @property
    def reads(self) -> bool:
        """Whether it reads."""
        return self.pattern in {"read", "randread", "rw", "readwrite", "randrw"}

    @property
    def writes(self) -> bool:
        """Whether it writes data."""
        return "write" in self.pattern or self.pattern in {"rw", "randrw"}

    @property
    def is_random(self) -> bool:
        """Whether its offsets are random."""
        return self.pattern.startswith("rand")

    @property
    def is_buffered(self) -> bool:
        """Whether its I/O goes through the page cache of the host."""
        if self.engine == "mmap":
            return True
        if not self.is_complete and "direct" not in self.options:
            return False
        return not bypasses_page_cache(self.engine, self.options)

    @property
    def syncs_each_write(self) -> bool:
        """Whether it only writes, and each write is on the volume before the next one begins."""
        flags = set(self.options.get("oflag", "").split(","))
        each = {self.options.get("fsync"), self.options.get("fdatasync")}
        is_synced = "1" in each or self.is_on("sync") or bool(flags & {"sync", "dsync"})
        return is_synced and self.writes and not self.reads

    @property
    def is_cached(self) -> bool:
        """Whether the page cache may hide the volume: buffered, and not each write is synced."""
        return self.is_buffered and not self.syncs_each_write

    @property
    def may_be_buffered(self) -> bool:
        """Whether it is not known to go past the page cache of the host."""
        return self.is_buffered or not (
            self.is_complete or "direct" in self.options or self.engine in _OUTSIDE_KERNEL
        )

    @property
    def disks(self) -> int:
        """Number of disks and files that it opens by name, at least 1."""
        names = re.split(r"(?<!\\):", self.options.get("filename", ""))
        return max(self.targets, len({name for name in names if name}))

    @property
    def asked_iops(self) -> Mapping[str, float]:
        """Rates of all jobs that ``rate_iops`` asks for, by direction; without unlimited ones."""
        texts = self.options.get("rate_iops", "").split(",")
        asked = zip(("read", "write", "trim"), [*texts, *texts[-1:] * 2], strict=False)
        return {name: float(text) * self.numjobs for name, text in asked if text.isdecimal()}

    @property
    def is_counted(self) -> bool:
        """Whether the block layer of the host counts its I/O."""
        return self.engine not in _OUTSIDE_KERNEL

    @property
    def is_synced(self) -> bool:
        """Whether data is on the volume before the clock stops, or before each write returns."""
        flags = {
            *self.options.get("oflag", "").split(","),
            *self.options.get("conv", "").split(","),
        }
        return any(self.is_on(name) for name in (*_SYNCS, "end_fsync", "fsync_on_close")) or bool(
            flags & {"sync", "dsync", "fsync", "fdatasync"}
        )

    @property
    def waits_for_sync(self) -> bool:
        """Whether it flushes while it runs, which empties the queue."""
        return any(self.is_on(name) for name in _SYNCS)

    @property
    def is_paced(self) -> bool:
        """Whether it was asked to be slower than it could be."""
        return self.pauses or any(self.is_on(name) for name in _RATES)

    @property
    def pauses(self) -> bool:
        """Whether it was asked to stop now and then, or to change its depth."""
        return any(self.is_on(name) for name in _PAUSES)

    @property
    def polls(self) -> bool:
        """Whether it may poll for completions, so that a busy CPU says nothing."""
        may_be = self.engine in _MAY_POLL and not self.unreported_flags.isdisjoint(_POLLS)
        return self.surely_polls or may_be

    @property
    def surely_polls(self) -> bool:
        """Whether it polls by what is known of it."""
        is_asked = any(self.is_on(name) for name in _POLLS)
        is_asked = is_asked or self.options.get("iodepth_batch_complete_min") == "0"
        return is_asked or self.engine in _POLLING_ENGINES

    @property
    def is_time_based(self) -> bool:
        """Whether it was to go on until its runtime was over."""
        return self.is_on("time_based") and bool(self.runtime_s)

    @property
    def runtime_s(self) -> float:
        """Maximum runtime; 0 for none."""
        text = self.options.get("runtime", "0")
        digits = text.rstrip("msu")
        factor = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}[text[len(digits) :]]
        return min(float(digits) * factor, _MAX_RUNTIME_S)


def bypasses_page_cache(engine: str, options: Mapping[str, str]) -> bool:
    """Return whether I/O goes past the page cache of the host.

    Engines in user space never use it, and mmap always does, whatever direct says.

    Args:
        engine: without its parameters; ``nbd`` for an export.
    """
    if engine in _OUTSIDE_KERNEL or engine == "mmap":
        return engine != "mmap"
    flags = f"{options.get('oflag', '')},{options.get('iflag', '')}".split(",")
    return options.get("direct", "0") not in {"0", "", "none"} or "direct" in flags


def engine_name(text: str) -> str:
    """Return the name of an engine without its parameters; of a file, ``external`` or SPDK's."""
    name = PurePosixPath(text.removeprefix("external:")).stem
    if name in _SPDK:
        return name
    return "external" if "/" in text else text.partition(":")[0]


def workloads_of(run: Run) -> tuple[WorkloadSpec, ...]:
    """Return the planned load of each section of a run, in the order of the job file."""
    workloads = []
    for section in run.sections:
        options = run.effective(section)
        is_complete = run.reports_options(section)
        engine = engine_name(options.get("ioengine", "psync" if is_complete else ""))
        workloads.append(
            WorkloadSpec(
                section=section.name,
                options=options,
                engine=engine,
                pattern=options.get("rw", "read" if is_complete else "").partition(":")[0],
                kind=run.volume.kind,
                targets=len(run.volume.each),
                is_complete=is_complete,
                unreported_flags=frozenset(run.imported.unreported_flags if run.imported else ()),
            )
        )
    return tuple(workloads)
