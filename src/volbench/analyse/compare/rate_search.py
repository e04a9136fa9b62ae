"""Search for the highest rate that a volume holds while latencies keep a bound.

The first trial has no limit. The next have an asked rate: half the last that missed the bound, or
between the highest that kept it and the lowest that missed it, until these are 5 % apart. Both ends
are then repeated. The search depends on the trials alone, so that a resume repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, takewhile
from statistics import fmean
from typing import cast

from volbench.analyse.frames.run_options import TURN, WITHIN
from volbench.model.campaign.planned_run import Run
from volbench.model.frames.expectation import parse_expectation

# Ends of the bracket this close are repeated instead of divided; the answer is the lower one.
# Noticed by: tests/analyse/compare/test_rate_search.py::test_answers_are_within_five_percent
_CLOSE = 1.05
# First asked rate, as a share of the rate without a limit: most volumes are at a limit of IOPS
# there, and keep their latencies below it. Noticed by: the same
_FIRST = 0.9
# A trial that reaches less of its asked rate did not hold it. Noticed by: the same
_HELD = 0.97
# Lowest asked rate, as a share of that without a limit: latencies do not fall with it any more.
# Noticed by: test_rate_search.py::test_a_bound_that_no_rate_keeps_ends_the_search
_LOWEST = 1 / 32
# Trials at the answer, and at the rate above it. Noticed by: the same
_REPEATS, _REPEATS_ABOVE = 3, 2


@dataclass(frozen=True)
class Trial:
    """One run of the search, on all clients."""

    asked: float  # I/Os a second that fio was asked for, of all clients; 0 for no limit
    rate: float  # I/Os a second that were done
    values: tuple[float, ...]  # the worst of all clients for each condition
    met: bool  # whether each client met every condition

    @property
    def is_kept(self) -> bool:
        """Whether the conditions were met at the asked rate."""
        return self.met and self.rate >= _HELD * self.asked


@dataclass(frozen=True)
class Level:
    """The trials of one asked rate."""

    trials: tuple[Trial, ...]

    @property
    def asked(self) -> float:
        """Asked rate; infinite without a limit."""
        return self.trials[0].asked or math.inf

    @property
    def rate(self) -> float:
        """Mean rate that was done."""
        return fmean(trial.rate for trial in self.trials)

    @property
    def kept(self) -> int:
        """Number of trials that kept the conditions."""
        return sum(trial.is_kept for trial in self.trials)

    @property
    def is_kept(self) -> bool:
        """Whether most trials kept the conditions."""
        return 2 * self.kept > len(self.trials)

    @property
    def is_held(self) -> bool:
        """Whether the volume did what it was asked for."""
        return math.isinf(self.asked) or self.rate >= _HELD * self.asked

    def value(self, place: int) -> float:
        """Return the mean value of one condition."""
        return fmean(trial.values[place] for trial in self.trials)


@dataclass(frozen=True)
class RateSearch:
    """What a search knows after some trials."""

    trials: Sequence[Trial]  # in their order

    @cached_property
    def levels(self) -> list[Level]:
        """The asked rates, ascending."""
        ordered = sorted(self.trials, key=lambda trial: trial.asked or math.inf)
        return [Level(tuple(same)) for _, same in groupby(ordered, lambda each: each.asked)]

    @property
    def missed(self) -> Level | None:
        """The lowest rate that did not keep the conditions; None if all did."""
        return next((level for level in self.levels if not level.is_kept), None)

    @property
    def kept(self) -> Level | None:
        """The highest rate below it; None if none kept the conditions."""
        return (None, *takewhile(lambda level: level.is_kept, self.levels))[-1]

    @property
    def free(self) -> Level | None:
        """The trials without a limit."""
        return next((level for level in self.levels if math.isinf(level.asked)), None)

    @property
    def is_contradictory(self) -> bool:
        """Whether runs at the highest rate differ, or a rate above a missed one kept the bounds."""
        kept, missed = self.kept, self.missed
        if missed is None:
            return False
        above = [level for level in self.levels if level.asked > missed.asked]
        is_split = missed.kept > 0 if kept is None else kept.kept < len(kept.trials)
        return is_split or any(level.is_kept for level in above)

    def next_rate(self) -> float | None:
        """Return the rate to ask for next, 0 for no limit; None when the search is over."""
        kept, missed, free = self.kept, self.missed, self.free
        if free is None:
            return 0.0
        if missed is None or kept is None:
            return self._at_the_end(kept)
        # A rate without a limit is an end of the bracket as well.
        top = missed.rate if math.isinf(missed.asked) else missed.asked
        if top > _CLOSE * kept.asked:
            return _whole(math.sqrt(top * kept.asked))
        if len(kept.trials) < _REPEATS:
            return kept.asked
        return missed.asked if len(missed.trials) < _REPEATS_ABOVE and top == missed.asked else None

    def _at_the_end(self, kept: Level | None) -> float | None:
        """Return the next rate while all rates kept the conditions, or none did."""
        if kept is not None:
            return 0.0 if len(kept.trials) < _REPEATS else None
        lowest, free_rate = self.levels[0], self.levels[-1].rate
        if math.isinf(lowest.asked):
            return _whole(_FIRST * free_rate)
        half = lowest.asked / 2
        return _whole(half) if half >= max(1.0, _LOWEST * free_rate) else None


@dataclass(frozen=True)
class FoundRate:
    """The search of one job, and the conditions of its bounds."""

    within: tuple[str, ...]  # bounds, such as ``p99 < 5ms``
    places: tuple[int, ...]  # of its rows
    search: RateSearch

    @property
    def words(self) -> str:
        """The bounds as the end of a workload's name, such as ``within p99 < 5ms``."""
        return f"within {' and '.join(self.within)}"


def searches_in(rows: Sequence[Mapping[str, object]]) -> list[FoundRate]:
    """Return the searches that rows of results are trials of, in the order of the rows."""
    jobs: dict[tuple[object, ...], dict[object, list[int]]] = {}
    for place, row in enumerate(rows):
        if row.get(WITHIN):
            key = row["campaign"], row["profile"], row["job"], row.get(TURN)
            jobs.setdefault(key, {}).setdefault(row["repeat"], []).append(place)
    found = []
    for trials in jobs.values():
        most = max(map(len, trials.values()))  # a trial that clients are missing from is none
        whole = [repeat for repeat in trials.values() if len(repeat) == most]
        places = tuple(place for repeat in trials.values() for place in repeat)
        within = tuple(map(str, cast("Sequence[object]", rows[places[0]][WITHIN])))
        tried = (trial_of([rows[place] for place in repeat], within) for repeat in whole)
        if known := [trial for trial in tried if trial is not None]:
            found.append(FoundRate(within, places, RateSearch(known)))
    return found


def trial_of(rows: Sequence[Mapping[str, object]], within: Sequence[str]) -> Trial | None:
    """Return the trial that some rows are of; None if a rate or latency is not known."""
    values: list[float] = []
    is_met = True
    for condition in map(parse_expectation, within):
        known = [
            float(str(row[condition.column]))
            for row in rows
            if condition.direction in {"", row["direction"]}
            and row.get(condition.column) is not None
        ]
        if not known:
            return None
        values.append(max(known))
        is_met = is_met and all(map(condition.holds, known))
    rates = [float(str(row["iops"])) for row in rows if row.get("iops") is not None]
    asked = math.fsum({row["run"]: asked_of(row) for row in rows}.values())
    return Trial(asked, math.fsum(rates), tuple(values), is_met) if rates else None


def asked_of(row: Mapping[str, object]) -> float:
    """Return the I/Os a second that fio was asked for in all jobs of a run; 0 for no limit."""
    parts = str(row.get("rate_iops") or "").split(",")
    numbers = [float(part) for part in parts if part.strip().isdecimal()]
    return math.fsum(numbers) * int(str(row.get("numjobs") or 1))


def asked_iops(run: Run, rate: float) -> str:
    """Return fio's ``rate_iops`` with which all jobs of a run together do a rate."""
    (section, *_) = run.sections
    options = run.effective(section)
    each = max(1, round(rate / int(options.get("numjobs", "1"))))
    if options.get("rw", "read").partition(":")[0] not in {"rw", "readwrite", "randrw"}:
        return str(each)
    share = float(options.get("rwmixread", 100 - float(options.get("rwmixwrite", "50")))) / 100
    reads = min(max(1, round(each * share)), max(1, each - 1))
    return f"{reads},{max(1, each - reads)}"


def _whole(rate: float) -> float:
    return max(1.0, float(round(rate)))
