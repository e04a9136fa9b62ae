"""Warming a volume: extents and what was measured of them in; parallelism, progress, proof out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.engine.guard import check_space
from volbench.engine.single import read_run_output
from volbench.errors import CampaignError, InputError, OutputError, RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.files import planned_files, writes
from volbench.fio.merge import merge_clones
from volbench.model.profile import Job, Profile
from volbench.model.result import DirectionResult
from volbench.model.run import Campaign, Run, RunState
from volbench.model.target import Volume, VolumeKind
from volbench.plan.extents import LADDER, with_clones
from volbench.store.layout import Layout
from volbench.units import format_duration, format_rate, format_size

GAIN = 0.1
"""How much faster twice the clones must be to be worth it: less is noise on a cloud volume."""


def sizes_of(
    executor: Executor, profiles: Sequence[Profile], volumes: Mapping[str, Volume]
) -> dict[str, int]:
    """Return the size of each volume that a job warms and that does not name a size itself.

    Raises:
        InputError: a size can't be found out.
    """
    warming = [job for profile in profiles for job in profile.jobs if job.warming]
    return {
        job.role: _size_of(executor, volumes[job.role], job)
        for job in warming
        if job.role in volumes and not job.options.get("size")
    }


def _size_of(executor: Executor, volume: Volume, job: Job) -> int:
    if volume.pin is not None:
        return volume.pin.size_bytes
    found = executor.stat(volume.target) if volume.kind is VolumeKind.FILE else None
    if found is not None and found.size_bytes:
        return found.size_bytes
    if volume.kind is VolumeKind.NBD and executor.which("nbdinfo"):
        done = executor.run(["nbdinfo", "--size", volume.target])
        if done.exit_status == 0 and done.stdout.strip().isdecimal():
            return int(done.stdout)
    raise InputError(
        f"job {job.name}: the size of {volume.target} can't be found out",
        hint="name it: --size 10g, or size: 10g in the job",
        context={"path": volume.target},
    )


def make_room(executor: Executor, run: Run) -> None:
    """Make the file of a warm-up as long as it has to be, which writes nothing.

    fio removes a file that is shorter than its range and makes it anew; then earlier extents would
    be lost.

    Raises:
        RefusedError: there is too little room, a file to read is missing or short, or it can't be
            made longer.
    """
    if run.extent is None:
        return
    for path in planned_files(run):
        found = executor.stat(path)
        size_bytes = run.extent.volume_bytes
        if found is not None and found.size_bytes >= size_bytes:
            continue
        if not writes(run):
            raise RefusedError(
                f"{path} is shorter than the {format_size(size_bytes)} to read",
                hint="write it first (mode write-read), or name a smaller size",
                context={"path": path},
            )
        check_space(executor, path, needed_bytes=size_bytes)
        done = executor.run(["truncate", "-s", str(size_bytes), "--", path])
        if done.exit_status:
            raise RefusedError(
                f"{path} can't be made {size_bytes} bytes long: {done.stderr.strip()}",
                hint="check its filesystem and permissions",
                context={"path": path},
            )


def with_parallelism(layout: Layout, campaign: Campaign, run: Run, *, is_done: IsDone) -> Run:
    """Return a Run with the number of clones that the extents before it speak for.

    Only Runs that finished decide, in the order of the plan, so that a resumed campaign decides as
    one that was never interrupted.

    Args:
        layout: where their results are.
        campaign: the plan.
        run: about to start.
        is_done: whether a Run is finished.
    """
    if run.extent is None or not run.extent.auto:
        return run
    rates = []
    for other in campaign.runs:
        if other.id == run.id:
            break
        if other.extent and other.extent.auto and _is_same_pass(other, run) and is_done(other):
            rates.append(_rate(_moved(layout, other)))
    section, most = run.sections[0], int(run.effective(run.sections[0])["numjobs"])
    clones = min(choose_clones(rates, most=most), most)
    return run.model_copy(update={"sections": (with_clones(section, run.extent, clones),)})


IsDone = Callable[[Run], bool]


def choose_clones(rates_bytes_per_s: Sequence[float], *, most: int) -> int:
    """Return how many clones the next extent gets: twice as many, until that gains too little.

    Args:
        rates_bytes_per_s: of the extents so far, in order.
        most: that an extent can be divided among.
    """
    ladder = [clones for clones in LADDER if clones <= most]
    best = 0
    for step in range(1, len(ladder)):
        if step > len(rates_bytes_per_s) - 1:
            return ladder[min(step, len(rates_bytes_per_s))]
        if rates_bytes_per_s[step] < (1 + GAIN) * rates_bytes_per_s[best]:
            return ladder[best]
        best = step
    return ladder[best]


def _is_same_pass(one: Run, other: Run) -> bool:
    if one.extent is None or other.extent is None:
        return False
    return (one.job, one.profile, one.volume.target, one.repeat, one.extent.direction) == (
        other.job,
        other.profile,
        other.volume.target,
        other.repeat,
        other.extent.direction,
    )


def _moved(layout: Layout, run: Run) -> tuple[DirectionResult, ...]:
    jobs = merge_clones(read_run_output(run, layout.run(run.id)).jobs)
    return tuple(direction for job in jobs for direction in job.directions)


def _rate(moved: Sequence[DirectionResult]) -> float:
    seconds = max((part.runtime_s for part in moved), default=0.0)
    return sum(part.io_bytes for part in moved) / max(seconds, 1e-3)


@dataclass(frozen=True)
class Warmed:
    """One pass over a volume.

    Attributes:
        volume: its target.
        job: of the plan.
        direction: ``write``, ``read``, or ``sample`` for blocks read back at the end.
        size_bytes: to be moved.
        moved_bytes: as fio counted them.
        seconds: that fio took, without pauses between extents.
        rates_bytes_per_s: of each extent.
        unfinished: extents that are not done.
    """

    volume: str
    job: str
    direction: str
    size_bytes: int
    moved_bytes: int
    seconds: float
    rates_bytes_per_s: tuple[float, ...]
    unfinished: int

    @property
    def is_proven(self) -> bool:
        """Whether exactly the bytes that make up the volume were moved."""
        return not self.unfinished and self.moved_bytes == self.size_bytes

    @property
    def words(self) -> str:
        """The pass in one sentence."""
        name = "read back at random and checked" if self.direction == "sample" else self.direction
        if not self.rates_bytes_per_s:
            return f"{self.job}: no {name} yet"
        mean = self.moved_bytes / max(self.seconds, 1e-3)
        return (
            f"{name}: {self.moved_bytes} of {self.size_bytes} bytes in "
            f"{_spoken(self.seconds)}, {format_rate(mean)} on average, extents "
            f"from {format_rate(min(self.rates_bytes_per_s))} to "
            f"{format_rate(max(self.rates_bytes_per_s))}"
        )


def passes_of(layout: Layout, campaign: Campaign, *, is_done: IsDone) -> tuple[Warmed, ...]:
    """Return what every pass of the warm-ups in a campaign moved, in order."""
    groups: list[list[Run]] = []
    for run in campaign.runs:
        if run.extent is None:
            continue
        if groups and _is_same_pass(groups[-1][0], run):
            groups[-1].append(run)
        else:
            groups.append([run])
    return tuple(_warmed(layout, runs, is_done) for runs in groups)


def _warmed(layout: Layout, runs: Sequence[Run], is_done: IsDone) -> Warmed:
    done = [_moved(layout, run) for run in runs if is_done(run)]
    extents = [run.extent for run in runs if run.extent]
    return Warmed(
        volume=runs[0].volume.target,
        job=runs[0].job,
        direction=extents[0].direction,
        size_bytes=sum(extent.size_bytes for extent in extents),
        moved_bytes=sum(part.io_bytes for moved in done for part in moved),
        seconds=sum(max((part.runtime_s for part in moved), default=0.0) for moved in done),
        rates_bytes_per_s=tuple(_rate(moved) for moved in done),
        unfinished=len(runs) - len(done),
    )


def tell_warmed(passes: Sequence[Warmed]) -> str:
    """Return the proof as a paragraph; empty for a campaign that warms nothing.

    Raises:
        CampaignError: a pass did not move exactly the bytes of its volume.
    """
    lacking = [one for one in passes if not one.is_proven]
    if lacking:
        raise CampaignError(
            f"{lacking[0].volume} is not proven warm: {lacking[0].words}, "
            f"{lacking[0].unfinished} extents not done",
            hint="go on with: volbench resume DIR",
        )
    lines = {one.volume: [p.words for p in passes if p.volume == one.volume] for one in passes}
    return "\n".join(f"warm: {volume}. {'; '.join(words)}." for volume, words in lines.items())


def progress_words(
    layout: Layout, campaign: Campaign, run: Run, *, states: Mapping[str, RunState]
) -> str:
    """Return how far the pass of a Run is: share of the volume, rate and time left."""

    def is_done(one: Run) -> bool:
        return states.get(one.id) is RunState.FINISHED

    try:
        passes = passes_of(layout, _only_pass(campaign, run), is_done=is_done)
    except OutputError:
        return ""
    one = passes[0]
    if not one.moved_bytes or one.direction == "sample":
        return ""
    rate = one.moved_bytes / max(one.seconds, 1e-3)
    left_s = (one.size_bytes - one.moved_bytes) / rate
    return (
        f"{one.direction} {one.moved_bytes / one.size_bytes:.0%} of {one.volume}, "
        f"{format_rate(rate)}, about {format_duration(round(left_s))} left"
    )


def _spoken(seconds: float) -> str:
    """Return a time to a tenth of a second where that counts."""
    return f"{seconds:.1f} s" if seconds < 60 else format_duration(round(seconds))


def _only_pass(campaign: Campaign, run: Run) -> Campaign:
    runs = tuple(one for one in campaign.runs if one.extent and _is_same_pass(one, run))
    return campaign.model_copy(update={"runs": runs})
