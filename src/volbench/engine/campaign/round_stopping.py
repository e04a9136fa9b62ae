"""Stop criterion of the rounds of a campaign, judged from raw results.

The decision depends on the files alone, so that a resume repeats it. It is taken before the first
run of a round, from the fifth round on, and covers the preceding rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from volbench.analyse.time.steady_state import (
    MAX_RANGE,
    MAX_SLOPE,
    ROUNDS,
    Determination,
    Part,
    combined,
    determine,
)
from volbench.errors import OutputError
from volbench.fio.results.merge_jobs import merge_jobs
from volbench.ingest.run_files import read_run_output
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase
from volbench.model.results.result import Direction, DirectionResult, JobResult
from volbench.store.layout import Layout
from volbench.units import format_percent

_NAN = float("nan")


@dataclass(frozen=True)
class Decision:
    """Decision before a round, or a repeat of a job."""

    is_over: bool  # whether it is not needed, nor those after it
    words: str  # the reason, or what is not steady or precise yet
    jobs: frozenset[str] = frozenset()  # those that it is about; empty for all of the profile


class ResultsJudge(ABC):
    """Base of the judges of a campaign's raw results."""

    def __init__(
        self, layout: Layout, campaign: Campaign, *, is_finished: Callable[[Run], bool]
    ) -> None:
        self._layout = layout
        self._campaign = campaign
        self._is_finished = is_finished

    @abstractmethod
    def before(self, run: Run) -> Decision | None:
        """Return the decision before a run; None where nothing is decided."""

    def chosen(self, run: Run) -> Run:
        """Return a run that is about to begin, with the options that earlier results decide."""
        return run

    def outcome(self) -> Iterable[str]:
        """Return a sentence for each outcome that the user must know."""
        return self.missed()

    def missed(self) -> Iterable[str]:
        """Return a sentence for each workload that did not become precise."""
        return ()

    def _jobs_of(self, *runs: Run) -> list[Sequence[JobResult]]:
        """Return the jobs of each run; none at all where a result is damaged.

        It then yields no value, as in the frames, which report it in `damage`.
        """
        with suppress(OutputError):
            return [read_run_output(run, self._layout.run(run.id)).jobs for run in runs]
        return []


class RoundJudge(ResultsJudge):
    """Judges the rounds of the profiles in a campaign."""

    def __init__(
        self, layout: Layout, campaign: Campaign, *, is_finished: Callable[[Run], bool]
    ) -> None:
        super().__init__(layout, campaign, is_finished=is_finished)
        self._decided: set[tuple[str, int]] = set()
        self._parts: dict[str, tuple[Part, ...]] = {}

    def before(self, run: Run) -> Decision | None:
        """Return the decision before the first run of a round; None at all other times."""
        is_repeated = run.phase is not Phase.PRECONDITION and run.repeat > ROUNDS
        key = run.profile, run.repeat
        if run.profile not in self._campaign.rounds or not is_repeated or key in self._decided:
            return None
        self._decided.add(key)
        determined = self.so_far(run.profile, last=run.repeat - 1)
        return Decision(
            determined.is_steady,
            determined.words if determined.is_steady else _unsteady_words(determined),
        )

    def outcome(self) -> Iterator[str]:
        """Yield a sentence for each profile."""
        for profile in self._campaign.rounds:
            yield f"{profile}: {self.so_far(profile).words}"

    def so_far(self, profile: str, *, last: int | None = None) -> Determination:
        """Judge the finished rounds of a profile up to round `last`."""
        rounds = self._campaign.rounds[profile]
        tracked = {
            (run.job, run.repeat): run
            for run in self._campaign.runs
            if run.profile == profile and run.phase is Phase.MEASURED and self._is_finished(run)
        }
        by_round = {
            track: {
                number: combined(self._results_of(run), track.metric)
                for (job, number), run in tracked.items()
                if job == track.job and number <= (last or rounds.max_rounds)
            }
            for track in rounds.track
        }
        values = {
            track: [known.get(number, _NAN) for number in range(1, max(known, default=0) + 1)]
            for track, known in by_round.items()
        }
        return determine(values, max_rounds=rounds.max_rounds)

    def _results_of(self, run: Run) -> tuple[Part, ...]:
        if run.id not in self._parts:
            self._parts[run.id] = tuple(
                _part(direction)
                for jobs in self._jobs_of(run)
                for job in merge_jobs(jobs)
                for direction in job.directions
                if direction.direction is not Direction.SYNC
            )
        return self._parts[run.id]


def _unsteady_words(determined: Determination) -> str:
    unsteady = [
        f"{variable.track.name} ranges over {format_percent(variable.judged.range_ratio)}"
        f" (at most {format_percent(MAX_RANGE)}) and drifts by"
        f" {format_percent(variable.judged.slope_ratio)}"
        f" (at most {format_percent(MAX_SLOPE)})"
        for variable in determined.variables
        if not variable.judged.steady
    ]
    return f"not steady after round {determined.rounds}: {'; '.join(unsteady)}"


def _part(direction: DirectionResult) -> Part:
    mean_s = None if direction.lat is None else direction.lat.mean_s
    return Part(
        iops=_NAN if direction.iops is None else direction.iops,
        bw_bytes_per_s=_NAN if direction.bw_bytes_per_s is None else direction.bw_bytes_per_s,
        lat_mean_s=_NAN if mean_s is None else mean_s,
        total_ios=float(direction.total_ios or 0),
    )
