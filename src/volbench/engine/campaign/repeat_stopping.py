"""Stop criterion of repeats: each workload stops once its medians are known closely enough.

Like that of rounds, the decision depends on the files alone, so that a resume repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from volbench.analyse.compare.repeat_precision import Precision, judge_precision
from volbench.engine.campaign.round_stopping import Decision
from volbench.errors import OutputError
from volbench.fio.results.merge_jobs import merge_jobs
from volbench.ingest.run_files import read_run_output
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.frames.column_names import BIN_ERROR
from volbench.model.profile.profile_model import Phase
from volbench.model.results.result import Direction, DirectionResult
from volbench.store.layout import Layout
from volbench.units import format_percent

_Series = tuple[str, str]
"""A direction and the name of a metric."""


class PrecisionJudge:
    """Judges the repeats of each workload of the profiles in a campaign that have ``until``.

    Args:
        is_finished: returns whether a run is finished.
    """

    def __init__(
        self, layout: Layout, campaign: Campaign, *, is_finished: Callable[[Run], bool]
    ) -> None:
        self._layout = layout
        self._campaign = campaign
        self._is_finished = is_finished
        self._values: dict[str, dict[_Series, float]] = {}
        self._over: set[tuple[str, str]] = set()

    def before(self, run: Run) -> Decision | None:
        """Return the decision before a repeat of a workload; None where nothing is decided.

        A warm-up is not needed once no measured workload of its profile is.
        """
        repeat = self._campaign.repeats.get(run.profile)
        if repeat is None or run.phase is Phase.PRECONDITION or run.repeat <= repeat.least:
            return None
        if run.phase is Phase.WARMUP:
            jobs = {r.job for r in self._runs(run.profile)}
            is_over = all(self._judge(run.profile, job, run.repeat) is None for job in jobs)
            return Decision(True, "no workload needs it", run.job) if is_over else None
        if (run.profile, run.job) in self._over:
            return None
        widest = self._judge(run.profile, run.job, run.repeat)
        return Decision(widest is None, widest or self._reached(run), run.job)

    def outcome(self) -> Iterator[str]:
        """Yield a sentence for each workload that did not get there."""
        for profile in self._campaign.repeats:
            for job in dict.fromkeys(run.job for run in self._runs(profile)):
                if words := self._judge(profile, job, None):
                    yield f"{job}: not precise after {self._count(profile, job)} repeats: {words}"

    def _reached(self, run: Run) -> str:
        repeat = self._campaign.repeats[run.profile]
        return (
            f"{run.job} is precise to {format_percent(repeat.until or 0)} after"
            f" {self._count(run.profile, run.job)} repeats"
        )

    def _runs(self, profile: str) -> Iterator[Run]:
        measured = (run for run in self._campaign.runs if run.phase is Phase.MEASURED)
        return (run for run in measured if run.profile == profile)

    def _count(self, profile: str, job: str) -> int:
        return sum(run.job == job and self._is_finished(run) for run in self._runs(profile))

    def _judge(self, profile: str, job: str, before: int | None) -> str | None:
        """Return what is not precise yet of the repeats of a job; None if all is."""
        repeat = self._campaign.repeats[profile]
        series: dict[_Series, list[float]] = {}
        count = 0
        for run in self._runs(profile):
            if run.job == job and self._is_finished(run) and run.repeat < (before or 1 << 31):
                count += 1
                for key, value in self._of(run, repeat.of).items():
                    series.setdefault(key, []).append(value)
        if count < repeat.least or not series:
            return f"{count} of at least {repeat.least} repeats"
        judged = {
            key: judge_precision(
                np.array(values),
                repeat.until or 0.0,
                resolution=BIN_ERROR if key[1].startswith("p") else 0.0,
            )
            for key, values in series.items()
        }
        key, widest = max(judged.items(), key=lambda item: item[1].half_width)
        if widest.is_reached:
            self._over.add((profile, job))
            return None
        return _words(key, widest)

    def _of(self, run: Run, metrics: tuple[str, ...]) -> dict[_Series, float]:
        if run.id not in self._values:
            self._values[run.id] = {}
            # A damaged result yields no value, as in the frames, which report it in `damage`.
            with suppress(OutputError):
                jobs = merge_jobs(read_run_output(run, self._layout.run(run.id)).jobs)
                self._values[run.id] = {
                    (direction.direction.value, metric): value
                    for job in jobs
                    for direction in job.directions
                    for metric in metrics
                    if direction.direction is not Direction.SYNC
                    and (value := _value(direction, metric)) > 0
                }
        return self._values[run.id]


def _words(key: tuple[str, str], judged: Precision) -> str:
    direction, metric = key
    width = judged.half_width
    known = (
        f"is known to {format_percent(width)}"
        if width < 1
        else "is uncertain by more than a factor of 2"
    )
    wanted = format_percent(judged.within)
    return f"{metric} of {direction}s {known} (wanted: {wanted}; {judged.reason})"


def _value(direction: DirectionResult, metric: str) -> float:
    """Return a metric; 0 where the tool does not report it."""
    latency = direction.lat or direction.clat
    match metric:
        case "iops":
            return direction.iops or 0.0
        case "bw":
            return direction.bw_bytes_per_s or 0.0
        case "lat_mean":
            return latency.mean_s if latency else 0.0
    return latency.percentiles.get(float(metric.removeprefix("p")), 0.0) if latency else 0.0
