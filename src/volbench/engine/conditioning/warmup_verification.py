"""The proof of a warm-up: what its Runs moved in; progress, and words that hold, out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.errors import CampaignError
from volbench.fio.jobs.output_files import planned_files
from volbench.ingest.run_files import read_run_output
from volbench.model.campaign.planned_run import Campaign, Extent, Run, RunState
from volbench.model.campaign.target import VolumeKind
from volbench.store.layout import Layout
from volbench.units import format_duration, format_rate

IsDone = Callable[[Run], bool]


@dataclass(frozen=True)
class Moved:
    """What one extent moved.

    Attributes:
        bytes: as fio counted them.
        seconds: of its slowest clone.
    """

    bytes: int
    seconds: float

    @property
    def rate_bytes_per_s(self) -> float:
        """Bytes a second; fio tells times to a millisecond."""
        return self.bytes / max(self.seconds, 1e-3)


class Outcomes:
    """What finished Runs moved. Each result is read once, for a large volume has many extents.

    Args:
        layout: where they are.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: dict[str, Moved] = {}

    def of(self, run: Run) -> Moved:
        """Return what a finished Run moved.

        Raises:
            OutputError: its result is missing or damaged.
        """
        if run.id not in self._known:
            jobs = read_run_output(run, self._layout.run(run.id)).jobs
            parts = [direction for job in jobs for direction in job.directions]
            self._known[run.id] = Moved(
                bytes=sum(part.io_bytes for part in parts),
                seconds=max((part.runtime_s for part in parts), default=0.0),
            )
        return self._known[run.id]

    def forget(self, run: Run) -> None:
        """Forget a Run that is done again."""
        self._known.pop(run.id, None)


def is_same_pass(one: Run, other: Run) -> bool:
    """Tell whether two Runs go over the same volume in the same pass of the same job."""
    if one.extent is None or other.extent is None:
        return False
    return _pass_of(one, one.extent) == _pass_of(other, other.extent)


def _pass_of(run: Run, extent: Extent) -> tuple[object, ...]:
    place = run.host, run.client, run.volume.target
    return (*place, run.job, run.profile, run.repeat, extent.direction)


@dataclass(frozen=True)
class Warmed:
    """One pass over a volume.

    Attributes:
        volume: its target, or which part of it.
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


def passes_of(outcomes: Outcomes, campaign: Campaign, *, is_done: IsDone) -> tuple[Warmed, ...]:
    """Return what every pass of the warm-ups in a campaign moved, in order."""
    groups: list[list[Run]] = []
    for run in campaign.runs:
        if run.extent is None:
            continue
        if groups and is_same_pass(groups[-1][0], run):
            groups[-1].append(run)
        else:
            groups.append([run])
    return tuple(_warmed(outcomes, runs, is_done) for runs in groups)


def _warmed(outcomes: Outcomes, runs: Sequence[Run], is_done: IsDone) -> Warmed:
    done = [outcomes.of(run) for run in runs if is_done(run)]
    extents = [run.extent for run in runs if run.extent]
    return Warmed(
        volume=_named(runs[0], extents[0]),
        job=runs[0].job,
        direction=extents[0].direction,
        size_bytes=sum(extent.size_bytes for extent in extents),
        moved_bytes=sum(moved.bytes for moved in done),
        seconds=sum(moved.seconds for moved in done),
        rates_bytes_per_s=tuple(moved.rate_bytes_per_s for moved in done),
        unfinished=len(runs) - len(done),
    )


def _named(run: Run, extent: Extent) -> str:
    """Return what a pass covers: a part is never told as the whole."""
    target = (*planned_files(run), run.volume.target)[0]
    if extent.volume_bytes < extent.whole_bytes and run.volume.kind is not VolumeKind.DIRECTORY:
        return f"the first {extent.volume_bytes} of {extent.whole_bytes} bytes of {target}"
    if not extent.whole_bytes and run.volume.kind is VolumeKind.NBD:
        return f"the first {extent.volume_bytes} bytes of {target} (its size was not found out)"
    return target


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
    outcomes: Outcomes, campaign: Campaign, run: Run, *, states: Mapping[str, RunState]
) -> str:
    """Return how far the pass of a Run is: share of the volume, rate and time left."""

    def is_done(one: Run) -> bool:
        return states.get(one.id) is RunState.FINISHED

    one = passes_of(outcomes, _only_pass(campaign, run), is_done=is_done)[0]
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
    runs = tuple(one for one in campaign.runs if one.extent and is_same_pass(one, run))
    return campaign.model_copy(update={"runs": runs})
