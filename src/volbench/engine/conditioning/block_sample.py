"""Sample of the blocks that a run is about to read: how many were never written.

Storage answers reads of such blocks without looking anything up, many times faster than it can
read. The sample reads at most 64 blocks in at most 0.1 s and asks the filesystem, the backing file
of a loop device, a thin pool and an NBD server what they know. It never writes.
"""

from __future__ import annotations

import math
from importlib.resources import files

from volbench.analyse.frames.workload_spec import workloads_of
from volbench.engine.hosts.volume_probe import probe_volume
from volbench.engine.sampling.sampler import python_of
from volbench.errors import TransportError
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import planned_files
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.profile_model import Phase
from volbench.model.results.provenance import BlockSample, VolumeFacts

BLOCKS = 64
_SHELL_BLOCKS = 16
_LIMIT_S = 0.1
_TIMEOUT_S = 5.0
_NBD_TIMEOUT_S = 1.0
_SECTOR_BYTES = 512
_THIN = "thin"


class BlockSampler:
    """Samples the blocks of each volume until they are known to hold data."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._filled: set[str] = set()

    def added_to(self, run: Run) -> VolumeFacts:
        """Return the facts of a run's volume with a sample of the blocks that the run reads."""
        facts = probe_volume(self._executor, run.volume)
        if not reads_blocks(run) or run.volume.target in self._filled:
            return facts
        blocks = sample_blocks(self._executor, run, facts)
        if blocks is not None and blocks.sampled and not (blocks.zeros or blocks.unmapped_share):
            self._filled.add(run.volume.target)
        return facts.model_copy(update={"blocks": blocks})


def reads_blocks(run: Run) -> bool:
    """Return whether a run measures reads of blocks that were there before it."""
    return run.phase is Phase.MEASURED and any(load.reads for load in workloads_of(run))


def sample_blocks(executor: Executor, run: Run, facts: VolumeFacts) -> BlockSample | None:
    """Return what is known of the blocks that a run reads; None where nothing can be asked."""
    try:
        if run.volume.kind is VolumeKind.NBD:
            return _nbd_mapping(executor, run.volume.target)
        for path in _paths(executor, run):
            first, length = _range(run, facts)
            found = _read(executor, path, first, length)
            if found is not None:
                return _with_mapping(executor, facts, found)
    except TransportError as error:
        if error.transient:
            raise
        return BlockSample(problem=error.message)
    return None


def _paths(executor: Executor, run: Run) -> list[str]:
    """Return the device, or the first file that exists."""
    if run.volume.kind is VolumeKind.DEVICE:
        return [run.volume.target]
    planned = [run.volume.target, *planned_files(run)]
    stats = ((path, executor.stat(path)) for path in planned)
    return [path for path, found in stats if found is not None and found.kind == "file"][:1]


def _range(run: Run, facts: VolumeFacts) -> tuple[int, int]:
    """Return offset and length of the range that the reading jobs share; 0 for all of it."""
    if run.volume.kind is not VolumeKind.DEVICE:
        return 0, 0
    whole = float(facts.size_bytes or 0)
    loads = [load for load in workloads_of(run) if load.reads]
    firsts = [load.size_of("offset", whole) for load in loads if "offset" in load.options]
    sizes = [load.size_of("size", whole) for load in loads if "size" in load.options]
    first = min(firsts, default=0.0) if len(firsts) == len(loads) else 0.0
    length = max(sizes, default=0.0) if len(sizes) == len(loads) and len(loads) == 1 else 0.0
    known = [0.0 if math.isnan(value) else value for value in (first, length)]
    return int(known[0]), int(known[1] or whole - known[0])


def _read(executor: Executor, path: str, first: int, length: int) -> BlockSample | None:
    source = files("volbench.engine.conditioning")
    own = python_of(executor)
    if own is not None:
        script = source.joinpath("block_reads.py").read_text(encoding="utf-8")
        argv = [own, "-I", "-S", "-c", script, path, str(first), str(length)]
        argv += [str(BLOCKS), f"{_LIMIT_S}"]
    elif (shell := executor.which("sh")) is not None and length:
        script = source.joinpath("block_reads.sh").read_text(encoding="utf-8")
        argv = [shell, "-c", script, "block_reads", path, str(first), str(length)]
        argv.append(str(_SHELL_BLOCKS))
    else:
        return None
    done = executor.run(argv, timeout_s=_TIMEOUT_S)
    words = [line.split() for line in done.stdout.splitlines()]
    numbers = {parts[0]: parts[1:] for parts in words if len(parts) == 3}
    if done.exit_status or "blocks" not in numbers:
        lines = done.stderr.strip().splitlines()
        return BlockSample(problem=lines[-1] if lines else "no block could be read")
    read, zeros = (int(number) for number in numbers["blocks"])
    data = numbers.get("data")
    share = None if data is None else 1 - int(data[0]) / max(1, int(data[1]))
    reporter = "" if data is None else "the filesystem"
    return BlockSample(sampled=read, zeros=zeros, unmapped_share=share, reported_by=reporter)


def _with_mapping(executor: Executor, facts: VolumeFacts, found: BlockSample) -> BlockSample:
    """Add what a loop device's file or a thin pool knows of a device."""
    if facts.kind is not VolumeKind.DEVICE or not facts.device:
        return found
    backing = executor.read_text(f"/sys/class/block/{facts.device}/loop/backing_file")
    if backing is not None:
        below = _read(executor, backing.rstrip("\n"), 0, 0)
        if below is not None and below.unmapped_share is not None:
            return found.model_copy(
                update={
                    "unmapped_share": below.unmapped_share,
                    "reported_by": "the file of the loop",
                }
            )
    name = (executor.read_text(f"/sys/class/block/{facts.device}/dm/name") or "").strip()
    dmsetup = executor.which("dmsetup") if name else None
    if dmsetup is None:
        return found
    done = executor.run([dmsetup, "status", name], timeout_s=_TIMEOUT_S)
    share = _thin_share(done.stdout)
    return (
        found
        if share is None
        else found.model_copy(update={"unmapped_share": share, "reported_by": "the thin pool"})
    )


def _thin_share(status: str) -> float | None:
    """Return the unmapped share of a thin volume: ``0 LENGTH thin MAPPED HIGHEST``, in sectors."""
    words = status.split()
    if words[2:3] != [_THIN] or not all(word.isdecimal() for word in (words[1], *words[3:4])):
        return None
    return 1 - int(words[3]) / max(1, int(words[1])) if len(words) > 3 else None


def _nbd_mapping(executor: Executor, uri: str) -> BlockSample | None:
    """Return the share of holes by base:allocation, if libnbd's nbdinfo is installed."""
    nbdinfo = executor.which("nbdinfo")
    if nbdinfo is None:
        return None
    done = executor.run([nbdinfo, "--map", "--totals", uri], timeout_s=_NBD_TIMEOUT_S)
    holes = whole = 0
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) > 2 and words[0].isdecimal():
            whole += int(words[0])
            holes += int(words[0]) * (int(words[2]) & 1) if words[2].isdecimal() else 0
    if not whole:
        return None
    return BlockSample(unmapped_share=holes / whole, reported_by="the NBD server")
