"""Stop criterion of repeats: each workload stops once its median IOPS are known closely enough.

Like that of rounds, the decision depends on the files alone, so that a resume repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from threading import RLock

import numpy as np

from volbench.analyse.compare.repeat_precision import Precision, judge_precision
from volbench.engine.campaign.round_stopping import Decision, ResultsJudge
from volbench.fio.results.merge_jobs import merge_jobs
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase
from volbench.model.results.result import Direction, JobResult
from volbench.store.layout import Layout
from volbench.units import format_percent

_Series = tuple[str, str]
"""A direction, and the arm whose ratio to the base it is; or no arm."""
_Workload = tuple[str, str]
"""A profile and the name of its jobs without the arm."""
_Repeat = dict[tuple[int, int], list[Run]]
"""Place of the arm and of the hosts' turn, to the runs of all clients."""


class PrecisionJudge(ResultsJudge):
    """Judges the repeats of each workload of the profiles in a campaign that have ``until``.

    The clients of a repeat count together: their IOPS are added. Where a
    workload has arms, variants or hosts in turns, the ratios to the first of them are judged.
    """

    def __init__(
        self, layout: Layout, campaign: Campaign, *, is_finished: Callable[[Run], bool]
    ) -> None:
        super().__init__(layout, campaign, is_finished=is_finished)
        self._lock = RLock()
        self._values: dict[tuple[str, ...], dict[str, float]] = {}
        self._decided: dict[tuple[_Workload, int], str | None] = {}
        self._said: set[tuple[_Workload, int]] = set()
        self._over: set[_Workload] = set()
        self._planned: dict[_Workload, dict[int, _Repeat]] = {}
        turns = {host.name: host.turn for host in campaign.hosts}
        for run in campaign.runs:
            if run.phase is Phase.MEASURED and run.profile in campaign.repeats:
                by_repeat = self._planned.setdefault((run.profile, run.workload), {})
                by_arm = by_repeat.setdefault(run.repeat, {})
                place = campaign.arms.index(run.arm) if run.arm in campaign.arms else 0
                by_arm.setdefault((place, turns.get(run.host, 0)), []).append(run)

    def before(self, run: Run) -> Decision | None:
        """Return the decision before a repeat of a workload; None where nothing new is decided.

        All clients stop at the same repeat. A warm-up is not needed once no measured workload of
        its profile is.
        """
        repeat = self._campaign.repeats.get(run.profile)
        if repeat is None or run.phase is Phase.PRECONDITION or run.repeat <= repeat.least:
            return None
        with self._lock:
            if run.phase is Phase.WARMUP:
                own = [each for each in self._planned if each[0] == run.profile]
                is_over = all(self._decide(each, run.repeat) is None for each in own)
                jobs = frozenset({run.job})
                return Decision(True, "no workload needs it", jobs) if is_over else None
            workload = run.profile, run.workload
            widest = None if workload in self._over else self._decide(workload, run.repeat)
            is_known = (workload, run.repeat) in self._said
            self._said.add((workload, run.repeat))
        if widest is not None and is_known:
            return None
        jobs = frozenset(
            other.job
            for arms in self._planned[workload].values()
            for other in chain(*arms.values())
        )
        reached = (
            f"{workload[1]} is precise to {format_percent(repeat.until or 0)} after"
            f" {len(self._complete(workload, None))} repeats"
        )
        return Decision(widest is None, widest or reached, jobs)

    def missed(self) -> Iterator[str]:
        """Yield a sentence for each workload that did not become precise."""
        for workload in self._planned:
            if words := self._imprecision(workload, None):
                count = len(self._complete(workload, None))
                yield f"{workload[1]}: not precise after {count} repeats: {words}"

    def _decide(self, workload: _Workload, before: int) -> str | None:
        """Judge once before each repeat, for all clients and arms."""
        key = workload, before
        if key not in self._decided:
            self._decided[key] = self._imprecision(workload, before)
            if self._decided[key] is None:
                self._over.add(workload)
        return self._decided[key]

    def _complete(self, workload: _Workload, before: int | None) -> list[_Repeat]:
        """Return the repeats before one of which every client and arm is finished."""
        return [
            arms
            for number, arms in self._planned[workload].items()
            if (before is None or number < before)
            and all(map(self._is_finished, chain(*arms.values())))
        ]

    def _imprecision(self, workload: _Workload, before: int | None) -> str | None:
        """Return why the repeats of a workload are not precise yet; None if they are."""
        repeat = self._campaign.repeats[workload[0]]
        series: dict[_Series, list[float]] = {}
        complete = self._complete(workload, before)
        for arms in complete:
            for key, value in self._iops_or_ratios(arms).items():
                series.setdefault(key, []).append(value)
        if len(complete) < repeat.least or not series:
            return f"{len(complete)} of at least {repeat.least} repeats"
        judged = {
            key: judge_precision(np.array(values), repeat.until or 0.0)
            for key, values in series.items()
        }
        key, widest = max(judged.items(), key=lambda item: item[1].half_width)
        return None if widest.is_reached else precision_words(key, widest)

    def _iops_or_ratios(self, arms: _Repeat) -> dict[_Series, float]:
        """Return the IOPS of a repeat; with arms, their ratios to the first arm."""
        first, *others = (arms[place] for place in sorted(arms))
        base = self._iops(first)
        if not others:
            return {(direction, ""): value for direction, value in base.items()}
        return {
            (direction, runs[0].arm or runs[0].host): value / base[direction]
            for runs in others
            for direction, value in self._iops(runs).items()
            if direction in base
        }

    def _iops(self, runs: Sequence[Run]) -> dict[str, float]:
        """Return the IOPS of an arm by direction, summed over clients."""
        ids = tuple(run.id for run in runs)
        if ids not in self._values:
            self._values[ids] = {
                each.direction.value: iops
                for job in self._merged(runs)
                for each in job.directions
                if each.direction is not Direction.SYNC
                and (iops := (each.iops_parallel if len(runs) > 1 else each.iops) or 0.0) > 0
            }
        return self._values[ids]

    def _merged(self, runs: Sequence[Run]) -> Sequence[JobResult]:
        """Return the results of all clients, each section merged over them."""
        own = [merge_jobs(jobs) for jobs in self._jobs_of(*runs)]
        return own[0] if len(own) == 1 else merge_jobs([*chain(*own)])


def precision_words(key: _Series, judged: Precision) -> str:
    """Return how precise the IOPS are, as progress shows it."""
    direction, arm = key
    width = judged.half_width
    known = f"is known to {format_percent(width)}"
    if width >= 1:
        known = (
            f"is known to within a factor of {1 + width:.2g}" if width < 98 else "is not known yet"
        )
    wanted = format_percent(judged.within)
    what = f"the ratio of {arm} in iops" if arm else "iops"
    return f"{what} of {direction}s {known} (wanted: {wanted}; {judged.reason})"
