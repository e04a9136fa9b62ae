"""Answers to expectations: pass, fail or undecided, from the interval of the repeats."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from volbench.analyse.compare.repeat_statistics import (
    MIN_REPEATS,
    Interval,
    location_interval,
    student_quantile,
)
from volbench.analyse.frames.job_frames import labels, measured, of_measured
from volbench.analyse.frames.resample import Floats
from volbench.analyse.time.steady_state import State
from volbench.model.frames.expectation import Expectation
from volbench.model.profile.expect_setting import Expect, expectations_in
from volbench.model.profile.profile_settings import MIN_ROUNDS
from volbench.model.results.finding import Severity
from volbench.units import counted_noun

# Beyond so many repeats of a run nobody waits for an answer. Noticed by:
# tests/analyse/compare/test_expected_bounds.py::test_an_undecided_result_names_the_repeats_needed
_MAX_REPEATS = 100
_NOTHING = Interval(math.nan, math.nan, math.nan)
_STEP = ["campaign", "profile", "job", "repeat"]


class Answer(StrEnum):
    """Answer to an expectation."""

    PASS = "pass"  # noqa: S105 - an answer, not a password
    FAIL = "fail"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Verdict:
    """Answer to an expectation for one job and direction."""

    expectation: Expectation
    job: str  # label of the job
    direction: str
    answer: Answer
    interval: Interval  # of the repeats; ends are NaN without one
    repeats: int  # the clients of one job are one
    reason: str  # of an answer without an interval, or of none; may be empty
    words: str = ""  # what was measured, where it is not a number


class Measurements:
    """Finished measured results, with the runs that decide nothing marked.

    Args:
        frames: ``summary``, ``verdicts``, ``aggregate`` and ``findings`` of the same runs.
        in_rounds: profiles that repeat until steady; their last rounds are the measurement.
    """

    def __init__(
        self, frames: Mapping[str, pd.DataFrame], *, in_rounds: Collection[str] = ()
    ) -> None:
        summary, findings = _last_rounds(frames["summary"], in_rounds), frames["findings"]
        invalid = findings.loc[findings["severity"] == Severity.INVALID, ["run", "direction"]]
        self._invalid = {(str(run), direction) for run, direction in invalid.to_numpy(object)}
        rows = summary[summary["phase"] == "measured"]
        self.unfinished = rows[rows["status"].isin(["failed", "interrupted", "damaged"])]
        self.jobs = {str(job) for job in rows["job"].dropna().unique()}
        finished = measured(summary)
        runs = finished.assign(_invalid=self._is_invalid(finished))
        verdicts = of_measured(frames["verdicts"], summary)
        clients = finished.drop_duplicates("run").set_index("run")["client"]
        verdicts = verdicts.assign(
            client=verdicts["run"].map(clients),
            _invalid=self._is_invalid(verdicts),
            steady=verdicts["verdict"].map(
                lambda state: math.nan if state == State.TOO_SHORT else float(state == State.STEADY)
            ),
        )
        steps = runs.groupby(_STEP, dropna=False)["_invalid"].any().rename("_invalid")
        sums = frames["aggregate"].assign(host="", volume="", client=math.nan)
        sums = sums.join(steps, on=_STEP)
        self.frames = {
            name: rows.assign(_label=labels(rows))
            for name, rows in (("summary", runs), ("verdicts", verdicts), ("aggregate", sums))
        }

    def _is_invalid(self, rows: pd.DataFrame) -> list[bool]:
        """Return which rows a finding on their run or direction invalidates."""
        whole = {run for run, direction in self._invalid if pd.isna(direction)}
        return [
            run in whole or (run, direction) in self._invalid
            for run, direction in zip(rows["run"], rows["direction"], strict=True)
        ]

    def rows(self, expectation: Expectation, campaign: str, profile: str) -> pd.DataFrame:
        """Return the rows that an expectation is about; of one client its own for the sum."""
        of_jobs = self._of_jobs(self.frames[expectation.frame], expectation, campaign, profile)
        if expectation.frame == "aggregate" and of_jobs.empty:
            of_jobs = self._of_jobs(self.frames["summary"], expectation, campaign, profile)
        wanted = expectation.direction
        is_wanted = of_jobs["direction"] == wanted if wanted else of_jobs["direction"] != "sync"
        return of_jobs[is_wanted.fillna(value=False).astype(bool)]

    def lost(self, expectation: Expectation, campaign: str, profile: str) -> dict[str, int]:
        """Return the number of measured runs that did not finish, by job."""
        rows = self._of_jobs(self.unfinished, expectation, campaign, profile)
        return {str(job): int(n) for job, n in rows.groupby("job")["run"].nunique().items()}

    @staticmethod
    def _of_jobs(
        rows: pd.DataFrame, expectation: Expectation, campaign: str, profile: str
    ) -> pd.DataFrame:
        wanted = rows["job"].map(lambda job: expectation.matches(str(job))).astype(bool)
        for column, name in (("campaign", campaign), ("profile", profile)):
            if name:
                wanted &= (rows[column] == name).fillna(value=False)
        return rows[wanted]


def _last_rounds(summary: pd.DataFrame, in_rounds: Collection[str]) -> pd.DataFrame:
    """Return a summary without the rounds before the window of the steady-state criterion."""
    last = measured(summary).groupby(["campaign", "profile"])["repeat"].max().rename("_last")
    first = summary.join(last, on=["campaign", "profile"])["_last"] - MIN_ROUNDS
    is_early = summary["profile"].isin(list(in_rounds)) & (summary["repeat"] <= first)
    return summary[~is_early.fillna(value=False).astype(bool)]


def verdicts_of(
    expectations: Iterable[Expectation],
    results: Measurements,
    *,
    campaign: str = "",
    profile: str = "",
) -> Iterator[Verdict]:
    """Yield a verdict for each expectation, job and direction, in this order.

    Args:
        campaign: whose results are judged; empty for all.
        profile: same.
    """
    for expectation in expectations:
        rows = results.rows(expectation, campaign, profile)
        lost = results.lost(expectation, campaign, profile)
        if rows.empty:
            kind = f"{expectation.direction} " if expectation.direction else ""
            reason = f"no finished {kind}result"
            if expectation.frame == "verdicts":
                reason = "no verdict: the runs are too short"
            yield Verdict(
                expectation,
                expectation.job,
                expectation.direction,
                Answer.UNDECIDED,
                _NOTHING,
                0,
                reason,
            )
        for (label, direction), repeats in rows.groupby(["_label", "direction"], sort=False):
            job = str(repeats["job"].iloc[0])
            yield _verdict(expectation, (str(label), str(direction)), repeats, lost.get(job, 0))


def verdicts_on_plans(
    plans: Mapping[str, Mapping[str, Expect]], results: Measurements
) -> list[Verdict]:
    """Return the verdicts on the expectations of profiles.

    Args:
        plans: campaign to profile to its expectations.
    """
    return [
        verdict
        for campaign, profiles in plans.items()
        for profile, expect in profiles.items()
        for verdict in verdicts_of(
            expectations_in(expect), results, campaign=campaign, profile=profile
        )
    ]


def _verdict(
    expectation: Expectation, name: tuple[str, str], rows: pd.DataFrame, lost: int
) -> Verdict:
    """Return the verdict on the repeats of one job and direction."""
    column, note = _column_of(expectation, rows)
    numbers = _repeat_numbers(expectation, rows)
    repeats, clients = numbers.nunique(), int(numbers.value_counts().max())
    answer, interval, words = Answer.UNDECIDED, _NOTHING, ""
    if rows["_invalid"].fillna(value=False).any():
        note = "invalid result, see volbench check"
    elif _lacks_clients(rows):
        note = "some clients did not finish"
    elif column not in rows or rows[column].isna().any():
        note = "no verdict: the runs are too short" if column == "steady" else "not reported"
    else:
        values = _worst_of_clients(expectation, rows[column], numbers)
        if column in {"steady", "snia_steady"}:
            answer, words = _by_verdict(expectation, values)
            more = "" if answer is not Answer.UNDECIDED else "the repeats differ"
        else:
            answer, interval, more = _by_number(expectation, values)
        worst = f"worst of {clients} clients" if clients > 1 else ""
        note = ", ".join(filter(None, (more, note, worst)))
    if lost and answer is Answer.PASS:
        answer, note = Answer.UNDECIDED, f"{counted_noun(lost, 'run')} did not finish"
    return Verdict(expectation, *name, answer, interval, repeats, note, words)


def _repeat_numbers(expectation: Expectation, rows: pd.DataFrame) -> pd.Series[int]:
    """Return a number for each row, the same for the clients of a repeat."""
    if expectation.frame == "aggregate":
        return pd.Series(range(len(rows)), index=rows.index)
    # Rows without a client, or of the same one, are never clients of one repeat.
    nth = rows.groupby([*_STEP, "client"], dropna=False).cumcount()
    return rows.groupby([*_STEP, nth], sort=False, dropna=False).ngroup()


def _worst_of_clients(
    expectation: Expectation, values: pd.Series, numbers: pd.Series[int]
) -> Floats:
    """Return a value for each repeat: the one of its clients that is worst for the bound."""
    clients = values.astype("float64").groupby(numbers.to_numpy())
    low, high = clients.min(), clients.max()
    if expectation.relation == "=":
        is_low = (low - expectation.bound).abs() > (high - expectation.bound).abs()
        worst = low.where(is_low, high)
    else:
        worst = high if "<" in expectation.relation else low
    return np.asarray(worst, dtype=np.float64)


def _column_of(expectation: Expectation, rows: pd.DataFrame) -> tuple[str, str]:
    """Return the column of a metric, and what is to be said of it.

    Imported results may have percentiles of the completion latency only.
    """
    column, completion = expectation.column, f"c{expectation.column}"
    has_both = column.startswith("lat_") and column in rows and completion in rows
    if has_both and rows[column].isna().all() and rows[completion].notna().all():
        return completion, "completion latency"
    return column, ""


def _lacks_clients(rows: pd.DataFrame) -> bool:
    return "clients" in rows and bool((rows["clients"] < rows["clients_planned"]).any())


def _by_verdict(expectation: Expectation, values: Floats) -> tuple[Answer, str]:
    """Return the answer to a verdict that every repeat has to have."""
    held = [expectation.holds(float(value)) for value in values]
    answer = _all_or_none(held)
    if answer is Answer.UNDECIDED:
        return answer, f"in {sum(held)} of {len(held)}"
    return answer, "yes" if answer is Answer.PASS else "no"


def _all_or_none(held: list[bool]) -> Answer:
    if all(held):
        return Answer.PASS
    return Answer.UNDECIDED if any(held) else Answer.FAIL


def _by_number(expectation: Expectation, values: Floats) -> tuple[Answer, Interval, str]:
    """Return the answer of numbers, their interval, and what is missing for one."""
    if len(values) < MIN_REPEATS or (values <= 0).any():
        answer = _all_or_none([expectation.holds(float(value)) for value in values])
        reason = f"no interval: {MIN_REPEATS} repeats give one"
        if len(values) >= MIN_REPEATS:
            reason = "no interval: some repeats have 0"
        return answer, Interval(math.nan, float(np.median(values)), math.nan), reason
    interval = location_interval(values)
    answer = _all_or_none([expectation.holds(end) for end in (interval.low, interval.high)])
    undecided = answer is Answer.UNDECIDED
    return answer, interval, _more_repeats(values, expectation.bound) if undecided else ""


def _more_repeats(values: Floats, bound: float) -> str:
    """Return how many more repeats of this scatter would decide."""
    logarithms = np.log(values)
    distance = abs(float(logarithms.mean()) - math.log(bound)) if bound > 0 else math.inf
    deviation = float(logarithms.std(ddof=1))
    for count in range(len(values) + 1, _MAX_REPEATS + 1):
        if student_quantile(count - 1, 0.975) * deviation / math.sqrt(count) < distance:
            return f"about {count - len(values)} more repeats would decide"
    return f"more than {_MAX_REPEATS} repeats would be needed"
