"""Answers to expectations: pass, fail or undecided, from the interval of the repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from volbench.analyse.frames.job_frames import labels, measured
from volbench.analyse.frames.resample import Floats
from volbench.model.frames.expectation import Expectation
from volbench.model.results.finding import Severity

# Beyond so many repeats of a run nobody waits for an answer. Noticed by:
# tests/analyse/compare/test_expected_bounds.py::test_an_undecided_result_names_the_repeats_needed
_MAX_REPEATS = 100


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
    repeats: int
    reason: str  # of an answer without an interval, or of none; may be empty


def verdicts_of(
    expectations: Sequence[Expectation], summary: pd.DataFrame, findings: pd.DataFrame
) -> list[Verdict]:
    """Return a verdict for each expectation, job and direction, in this order.

    Args:
        findings: of the same runs; results that they mark invalid decide nothing.
    """
    rows = measured(summary)
    rows = rows.assign(_label=labels(rows))
    invalid = set(findings.loc[findings["severity"] == Severity.INVALID, "run"])
    return [
        verdict for expectation in expectations for verdict in _each(expectation, rows, invalid)
    ]


def _each(expectation: Expectation, rows: pd.DataFrame, invalid: set[str]) -> Iterator[Verdict]:
    of_job = rows[rows["job"] == expectation.job] if expectation.job else rows
    wanted = expectation.direction
    is_wanted = of_job["direction"] == wanted if wanted else of_job["direction"] != "sync"
    groups = of_job[is_wanted].groupby(["_label", "direction"], sort=False)
    for (label, direction), repeats in groups:
        yield _verdict(expectation, str(label), str(direction), repeats, invalid)
    if not len(groups):
        nothing = Interval(math.nan, math.nan, math.nan)
        kind = f"{wanted} " if wanted else ""
        reason = f"no finished {kind}result"
        yield Verdict(expectation, expectation.job, wanted, Answer.UNDECIDED, nothing, 0, reason)


def _verdict(
    expectation: Expectation, label: str, direction: str, rows: pd.DataFrame, invalid: set[str]
) -> Verdict:
    values: Floats = rows[expectation.column].to_numpy(dtype=np.float64, na_value=math.nan)
    answer, interval, reason = Answer.UNDECIDED, Interval(math.nan, math.nan, math.nan), ""
    if rows["run"].isin(list(invalid)).any():
        reason = "invalid result, see volbench check"
    elif not np.isfinite(values).all():
        reason = "not reported"
    elif (values <= 0).any() or len(values) < MIN_REPEATS:
        middle = float(np.median(values))
        interval = Interval(math.nan, middle, math.nan)
        answer = Answer.PASS if expectation.holds(middle) else Answer.FAIL
        reason = f"no interval: {MIN_REPEATS} repeats give one"
    else:
        interval = location_interval(values)
        ends = [expectation.holds(end) for end in (interval.low, interval.high)]
        if all(ends):
            answer = Answer.PASS
        elif not any(ends):
            answer = Answer.FAIL
        else:
            reason = _more_repeats(values, expectation.bound)
    return Verdict(expectation, label, direction, answer, interval, len(values), reason)


def _more_repeats(values: Floats, bound: float) -> str:
    """Return how many more repeats of this scatter would decide."""
    logarithms = np.log(values)
    distance = abs(float(logarithms.mean()) - math.log(bound)) if bound > 0 else math.inf
    deviation = float(logarithms.std(ddof=1))
    for count in range(len(values) + 1, _MAX_REPEATS + 1):
        if student_quantile(count - 1, 0.975) * deviation / math.sqrt(count) < distance:
            return f"about {count - len(values)} more repeats would decide"
    return f"more than {_MAX_REPEATS} repeats would be needed"
