"""Preparation of a volume for a run: write-back of dirty pages, sample of its blocks.

Storage answers reads of blocks that were never written without looking anything up, many times
faster than it can read. The sample reads at most 64 blocks in at most 0.1 s and asks the
filesystem, the backing file of a loop device, a thin pool and an NBD server what they know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from volbench.analyse.frames.workload_spec import workloads_of
from volbench.errors import TransportError
from volbench.execute.agent import block_reads
from volbench.execute.agent.block_reads import SampledBlocks, sample_nbd
from volbench.execute.agent.volumes import DescribedFile
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Run, VolumeKind
from volbench.model.profile.profile_model import Phase
from volbench.model.results.provenance import BlockSample, VolumeFacts

# Longest flush: a full cache of a provider holds back writes for 8 minutes ("Disk performance on
# Azure Kubernetes Service, part 1", Stian Øvrevåge, 2019).
# Noticed by: tests/execute/agent/test_snapshot.py::test_a_flush_that_fails_says_why
FLUSH_S = 600.0


@dataclass
class DirtyData:
    """Record of volumes that may have dirty pages of earlier runs.

    The kernel, which keeps dirty pages for about 30 s, would write them during the next run, where
    they count as its load.
    """

    writes: int  # number of runs so far that may have left dirty pages
    # volume to the value of `writes` at its last flush
    flushed: dict[str, int] = field(default_factory=dict)

    def needs_flush(self, target: str) -> bool:
        """Return whether a volume needs a flush, and record it as flushed."""
        is_due = self.flushed.get(target, 0) < self.writes
        self.flushed[target] = self.writes
        return is_due


class BlockSampler:
    """Samples the blocks of each volume until they are known to hold data."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._filled: set[str] = set()

    def added_to(
        self, facts: VolumeFacts, run: Run, files: Mapping[str, DescribedFile]
    ) -> VolumeFacts:
        """Return the facts of a run's volume with a sample of the blocks that the run reads."""
        is_missing = all(files[path].stat is None for path in planned_files(run))
        if run.volume.kind is VolumeKind.DIRECTORY and is_missing:
            return facts
        if not reads_blocks(run) or run.volume.target in self._filled:
            return facts
        samples = [sample_blocks(self._executor, part, facts) for part in run.parts]
        known = [each for each in samples if each is not None]
        blocks = max(known, key=lambda each: (each.unmapped_share or 0.0, each.zeros), default=None)
        if blocks is not None and blocks.sampled and not (blocks.zeros or blocks.unmapped_share):
            self._filled.add(run.volume.target)
        return facts.model_copy(update={"blocks": blocks})


def reads_blocks(run: Run) -> bool:
    """Return whether a run measures reads of blocks that were there before it."""
    return run.phase is Phase.MEASURED and any(load.reads for load in workloads_of(run))


def sample_blocks(executor: Executor, run: Run, facts: VolumeFacts) -> BlockSample | None:
    """Return a sample of the blocks that a run reads; None where nothing can be asked."""
    volume = run.volume
    files = [] if volume.kind is VolumeKind.DEVICE else planned_files(run)
    first, length = _shared_range(run, facts)
    try:
        if volume.kind is VolumeKind.NBD:
            sample: SampledBlocks | None = executor.ask(sample_nbd, volume.target)
        else:
            paths = [volume.target, *files]
            sample = executor.ask(block_reads.sample_blocks, paths, first, length)
    except TransportError as error:
        if error.transient:
            raise
        return BlockSample(problem=error.message)
    return None if sample is None else BlockSample(**sample._asdict())


def _shared_range(run: Run, facts: VolumeFacts) -> tuple[int, int]:
    """Return offset and length of the range that the reading jobs share; 0 for all of it."""
    if run.volume.kind is not VolumeKind.DEVICE:
        return 0, 0
    whole = float(run.volume.size_bytes or facts.size_bytes or 0)
    loads = [load for load in workloads_of(run) if load.reads]
    firsts = [load.size_of("offset", whole) for load in loads if "offset" in load.options]
    sizes = [load.size_of("size", whole) for load in loads if "size" in load.options]
    first = min(firsts, default=0.0) if len(firsts) == len(loads) else 0.0
    length = max(sizes, default=0.0) if len(sizes) == len(loads) and len(loads) == 1 else 0.0
    known = [0.0 if math.isnan(value) else value for value in (first, length)]
    return int(known[0]), int(known[1] or whole - known[0])
