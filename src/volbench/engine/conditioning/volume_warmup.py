"""Warm-up of a volume: its size, room, number of parallel jobs, progress and verification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.engine.hosts.described_volumes import describe_files
from volbench.engine.hosts.host_facts import options_on
from volbench.errors import CampaignError, InputError, RefusedError
from volbench.execute.agent.block_reads import nbd_size
from volbench.execute.agent.used_blocks import used_blocks
from volbench.execute.agent.volumes import DescribedFile
from volbench.execute.protocol import Executor
from volbench.fio.jobs.render_job import writes
from volbench.ingest.run_files import read_run_output
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Campaign, Extent, Run, RunState, Volume, VolumeKind
from volbench.model.profile.option_policy import unknown_option
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import WarmingMode
from volbench.plan.expansion.extents import MIN_EXTENT_BYTES, Basis, given_bytes
from volbench.store.layout import Layout
from volbench.units import format_duration, format_rate, format_size

IsDone = Callable[[Run], bool]
_NAMES = {
    "sample": "random read-back, verified",
    "random": "writes in random order",
    "twice": "two sequential writes",
    "used": "reads of used blocks",
}


@dataclass(frozen=True)
class Moved:
    """Data moved by one extent."""

    bytes: int  # as fio counted them
    seconds: float  # runtime of its slowest job

    @property
    def bytes_per_s(self) -> float:
        """Its rate."""
        return self.bytes / max(self.seconds, 1e-3)


class Outcomes:
    """Data moved by finished runs; each result is read once, for a volume can have many extents."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: dict[str, Moved] = {}

    def of(self, run: Run) -> Moved:
        """Return the data moved by a finished run."""
        if run.id not in self._known:
            jobs = read_run_output(run, self._layout.run(run.id)).jobs
            parts = [direction for job in jobs for direction in job.directions]
            self._known[run.id] = Moved(
                bytes=sum(each.io_bytes for each in parts),
                seconds=max((each.runtime_s for each in parts), default=0.0),
            )
        return self._known[run.id]

    def forget(self, run: Run) -> None:
        """Drop the cached result of a run that is repeated."""
        self._known.pop(run.id, None)


def is_same_pass(first: Run, second: Run) -> bool:
    """Return whether two runs belong to the same pass of the same job over the same volume."""
    return bool(first.extent and second.extent) and _pass_of(first) == _pass_of(second)


def _pass_of(run: Run) -> tuple[object, ...]:
    volume = run.host, run.client, run.volume.target
    return (*volume, run.job, run.profile, run.repeat, run.extent and run.extent.direction)


@dataclass(frozen=True)
class Pass:
    """One pass over a volume."""

    volume: str  # its target, or the part of it
    job: str  # of the plan
    direction: str  # ``write``, ``read``, or ``sample`` for blocks read back at the end
    size_bytes: int  # bytes to move
    moved_bytes: int  # as fio counted them
    seconds: float  # runtime in fio, without pauses between extents
    rates_bytes_per_s: tuple[float, ...]  # of each extent
    unfinished: int  # number of extents that are not done
    unread_bytes: int = 0  # of a warm-up of used blocks: the others
    note: str = ""  # of its extents

    @property
    def is_verified(self) -> bool:
        """Whether exactly the bytes of the volume were moved, or by sprandom more."""
        return not self.unfinished and (self._has_more or self.moved_bytes == self.size_bytes)

    @property
    def _has_more(self) -> bool:
        return self.direction == "random" and self.moved_bytes > self.size_bytes

    @property
    def condition(self) -> str:
        """How it conditioned the volume; empty if it did not."""
        if self.direction == "sample" or not self.rates_bytes_per_s:
            return ""
        share = min(1.0, self.moved_bytes / (self.size_bytes + self.unread_bytes))
        return f"{_NAMES.get(self.direction, self.direction)}, {share:.0%}; {self.note}".strip("; ")

    @property
    def words(self) -> str:
        """The pass in one sentence."""
        name = _NAMES.get(self.direction, self.direction)
        if not self.rates_bytes_per_s:
            return f"{self.job}: no {name} yet"
        mean = self.moved_bytes / max(self.seconds, 1e-3)
        unread = f"; {self.note}" if self.note else ""
        if self.unread_bytes:
            left = format_duration(math.ceil(self.unread_bytes / mean))
            unread += f"; still cold: {format_size(self.unread_bytes)} that hold no data; reading "
            unread += f"them now takes about {left}: volbench warmup --mode read"
        long = self.seconds >= 60
        took = format_duration(round(self.seconds)) if long else f"{self.seconds:.1f} s"
        return (
            f"{name}: {self.moved_bytes} of {self.size_bytes} bytes in "
            f"{took}, {format_rate(mean)} on average, extents "
            f"from {format_rate(min(self.rates_bytes_per_s))} to "
            f"{format_rate(max(self.rates_bytes_per_s))}{unread}"
        )


def passes_of(outcomes: Outcomes, campaign: Campaign, *, is_done: IsDone) -> tuple[Pass, ...]:
    """Return every pass of the warm-ups in a campaign, in order."""
    groups: dict[object, list[Run]] = {}
    for run in (run for run in campaign.runs if run.extent is not None):
        groups.setdefault(_pass_of(run), []).append(run)
    return tuple(_pass(outcomes, runs, is_done) for runs in groups.values())


def _pass(outcomes: Outcomes, runs: Sequence[Run], is_done: IsDone) -> Pass:
    done = [outcomes.of(run) for run in runs if is_done(run)]
    extents = [run.extent for run in runs if run.extent]
    size_bytes = sum(extent.size_bytes for extent in extents)
    return Pass(
        volume=_extent_words(runs[0], extents[0]),
        job=runs[0].job,
        direction=extents[0].direction,
        size_bytes=size_bytes,
        moved_bytes=sum(moved.bytes for moved in done),
        seconds=sum(moved.seconds for moved in done),
        rates_bytes_per_s=tuple(moved.bytes_per_s for moved in done),
        unfinished=len(runs) - len(done),
        unread_bytes=extents[0].volume_bytes - size_bytes if extents[0].direction == "used" else 0,
        note=extents[0].note,
    )


def _extent_words(run: Run, extent: Extent) -> str:
    """Return the name of the range covered by a pass: the volume or a part of it."""
    host = "" if run.host == LOCAL else f"{run.host}:"
    target = f"{host}{(*planned_files(run), run.volume.target)[0]}"
    part, whole = (format_size(size) for size in (extent.volume_bytes, extent.whole_bytes))
    if extent.volume_bytes < extent.whole_bytes and run.volume.kind is not VolumeKind.DIRECTORY:
        return f"the first {part} of {whole} of {target}"
    if not extent.whole_bytes and run.volume.kind is VolumeKind.NBD:
        return f"the first {part} of {target} (size not detected)"
    return target


def verification_text(passes: Sequence[Pass]) -> str:
    """Return a line for each volume and one for each of its passes; empty without a warm-up."""
    failed = next((done for done in passes if not done.is_verified), None)
    if failed is not None:
        raise CampaignError(
            f"{failed.volume} is not verified as warm: {failed.words}, "
            f"{failed.unfinished} extents not done",
            hint="continue with: volbench resume DIR",
        )
    lines: dict[str, list[str]] = {}
    for done in passes:
        lines.setdefault(done.volume, []).append(done.words)
    return "\n".join(
        "\n  ".join([f"warm: {volume}.", *sentences]) for volume, sentences in lines.items()
    )


def progress_words(
    outcomes: Outcomes, campaign: Campaign, run: Run, *, states: Mapping[str, RunState]
) -> str:
    """Return the progress of a run's pass: share of the volume, rate and time left."""
    runs = tuple(other for other in campaign.runs if is_same_pass(other, run))
    current = _pass(outcomes, runs, lambda other: states.get(other.id) is RunState.FINISHED)
    if not current.moved_bytes or current.direction == "sample":
        return ""
    rate = current.moved_bytes / max(current.seconds, 1e-3)
    left_bytes = max(0, current.size_bytes - current.moved_bytes)
    name = _NAMES.get(current.direction, current.direction)
    return (
        f"{name} {current.moved_bytes / current.size_bytes:.0%} of {current.volume}, "
        f"{format_rate(rate)}, {format_size(left_bytes)} left, "
        f"about {format_duration(round(left_bytes / rate))}"
    )


def bases_of(
    executor: Executor, profiles: Sequence[Profile], volumes: Mapping[str, Volume]
) -> dict[str, Basis]:
    """Return what is known of the volumes that jobs warm up, by role."""
    bases = {}
    for defaults, job in ((each.defaults, job) for each in profiles for job in each.jobs):
        if job.warming is None or job.role not in volumes:
            continue
        volume = volumes[job.role]
        size_bytes = _size_of(executor, volume)
        if not (size_bytes or given_bytes(job, defaults)):
            raise InputError(
                f"job {job.name}: the size of {volume.target} cannot be detected",
                hint="give it: --size 10g, or size: 10g in the job",
            )
        bases[job.role] = _basis(executor, job.warming.mode, volume.target, size_bytes)
    return bases


def _basis(executor: Executor, mode: WarmingMode, target: str, size_bytes: int) -> Basis:
    if mode in {WarmingMode.RANDOM, WarmingMode.SPRANDOM}:
        table = options_on(executor)
        if "sprandom" in table.options:
            return Basis(size_bytes, note="by sprandom", has_sprandom=True)
        why = unknown_option(table, "sprandom")
        how = "twice, in order" if mode is WarmingMode.SPRANDOM else "once, in random order"
        words = f"each block is written {how}: {why.message} ({why.hint})"
        return Basis(size_bytes, note=words)
    if mode is not WarmingMode.READ_WRITTEN or not size_bytes:
        return Basis(size_bytes)
    # 4,096 ranges at most, each of which costs a start of fio
    used = executor.ask(used_blocks, target, size_bytes, max(MIN_EXTENT_BYTES, size_bytes >> 12))
    return Basis(size_bytes, used.ranges, used.note)


def _size_of(executor: Executor, volume: Volume) -> int:
    if volume.pin is not None:
        return volume.pin.size_bytes
    if volume.kind is VolumeKind.FILE:
        (file,) = describe_files(executor, [volume.target])
        return file.stat.size_bytes if file.stat else 0
    if volume.kind is VolumeKind.NBD:
        return executor.ask(nbd_size, volume.target)
    return 0


def make_room(executor: Executor, run: Run, files: Mapping[str, DescribedFile]) -> bool:
    """Extend the file of a warm-up to its full length without data; return whether that was due.

    fio replaces a file that is shorter than the range of a job, which would lose earlier extents.
    """
    if run.extent is None:
        return False
    size_bytes, is_changed = run.extent.volume_bytes, False
    for path in planned_files(run):
        file = files[path].stat
        if file is not None and file.size_bytes >= size_bytes:
            continue
        if not writes(run):
            raise RefusedError(
                f"{path} is shorter than the {format_size(size_bytes)} to read",
                hint="write it first (mode write-read), or give a smaller size",
            )
        done = executor.run(["truncate", "-s", str(size_bytes), "--", path])
        if done.exit_status:
            raise RefusedError(
                f"{path} cannot be extended to {size_bytes} bytes: {done.stderr.strip()}",
                hint="check its file system and permissions",
            )
        is_changed = True
    return is_changed
