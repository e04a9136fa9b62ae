"""Stop criterion of queue depths: a deeper queue is tried only while it gains.

In the first repeat the jobs of a ladder run from the shallowest queue on. Later repeats run those
that reach the highest rate. The decision depends on the files alone, so that a resume repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from statistics import fmean

from volbench.analyse.bottleneck.sustained_level import MAX_SAME_DISTANCE
from volbench.engine.campaign.round_stopping import Decision, ResultsJudge
from volbench.model.campaign.planned_run import Run
from volbench.units import format_percent

# Jobs of a ladder that always run: one depth alone shows no gain.
# Noticed by: test_depth_stopping.py::test_two_depths_are_always_tried
MIN_DEPTHS = 2


class DepthJudge(ResultsJudge):
    """Judges the jobs of a campaign that differ in their queue depth."""

    @cached_property
    def _rates(self) -> dict[str, float]:
        return {}

    def before(self, run: Run) -> Decision | None:
        """Return the decision before a run that others may make needless; None for all others.

        Of several clients all take the same: a depth is needed while it gains for one of them.
        """
        ladder = next((jobs for jobs in self._campaign.ladders if run.job in jobs), ())
        if not ladder or (run.repeat == 1 and run.job in ladder[:MIN_DEPTHS]):
            return None
        names = dict.fromkeys((run.host, run.client) for run in self._campaign.runs)
        clients = [self._levels(ladder, client) for client in names]
        if run.repeat > 1:
            is_deep_enough = any(
                levels.get(run.job, 0.0) >= (1 - MAX_SAME_DISTANCE) * max(levels.values())
                for levels in clients
                if levels
            )
            words = f"another queue depth is faster than {run.job}"
            return None if is_deep_enough else Decision(True, words, frozenset({run.job}))
        words = _needless(ladder[: ladder.index(run.job)], clients)
        return Decision(True, words, frozenset({run.job})) if words else None

    def _levels(self, ladder: Sequence[str], client: tuple[str, int]) -> Mapping[str, float]:
        """Return the mean IOPS of the finished runs of each job on one client."""
        rates: dict[str, list[float]] = {}
        for run in self._campaign.runs:
            is_wanted = run.job in ladder and (run.host, run.client) == client
            if is_wanted and self._is_finished(run) and (rate := self._rate(run)):
                rates.setdefault(run.job, []).append(rate)
        return {job: fmean(values) for job, values in rates.items()}

    def _rate(self, run: Run) -> float:
        if run.id not in self._rates:
            jobs = chain(*self._jobs_of(run))
            each = (direction.iops or 0.0 for job in jobs for direction in job.directions)
            self._rates[run.id] = math.fsum(each)
        return self._rates[run.id]


def _needless(shallower: Sequence[str], clients: Sequence[Mapping[str, float]]) -> str:
    """Return why the next depth after some is not needed; empty if it is."""
    last, tried = shallower[-1], list(shallower)
    while len(tried) > 1 and not _gains(tried, clients):
        tried.pop()
    gain = max(_gains(tried, clients), default=math.nan)
    if gain > MAX_SAME_DISTANCE and tried[-1] == last:
        return ""
    if not gain <= MAX_SAME_DISTANCE:  # nothing kept it from running
        return f"{last} has no result"
    most = format_percent(MAX_SAME_DISTANCE)
    words = f"{tried[-1]} is at most {most} faster than shallower queues"
    return words if tried[-1] == last else f"{last} was not tried, because {words}"


def _gains(ladder: Sequence[str], clients: Sequence[Mapping[str, float]]) -> list[float]:
    """Return the gain of the deepest queue over the best shallower queue, for each client."""
    *shallow, last = ladder
    return [
        levels[last] / before - 1
        for levels in clients
        if last in levels and (before := max((levels.get(job, 0.0) for job in shallow), default=0))
    ]
