"""Answers to expectations: pass, fail or undecided, from the interval of the repeats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from volbench.analyse.compare.measurements import STEP, Measurements, joined
from volbench.analyse.compare.repeat_statistics import MIN_REPEATS, Interval, location_interval
from volbench.analyse.frames.resample import Floats
from volbench.analyse.significance import needed_samples, student_quantile
from volbench.model.frames.columns import PERCENTILES
from volbench.model.frames.expectation import FLAGS, SYNC, Expectation
from volbench.model.profile.expect_setting import Expect, expectations_in
from volbench.units import counted_noun, folded_names

# Beyond so many repeats of a run nobody waits for an answer. Noticed by:
# tests/analyse/compare/test_expected_bounds.py::test_an_undecided_result_names_the_repeats_needed
_MAX_REPEATS = 100
# Power that the advice on repeats aims at. Their scatter is estimated from a few, so that it is
# right in 80 to 88 % of the cases; without any power in 65 %. Noticed by:
# tests/analyse/compare/test_expected_bounds.py::test_the_advised_repeats_decide_in_most_cases
_POWER = 0.90
_NOTHING = Interval(math.nan, math.nan, math.nan)


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
    doubt: str = ""  # what disturbed all runs of a failure, which is among its reasons
    campaign: str = ""  # of the results; of several, all their names
    runtime_s: float = 0.0  # of the judged runs, without other clients of a repeat


def verdicts_of(
    expectations: Iterable[Expectation],
    results: Measurements,
    *,
    campaign: str = "",
    profile: str = "",
) -> Iterator[Verdict]:
    """Yield a verdict for each expectation, job and direction, in this order."""
    for expectation in expectations:
        rows = results.rows(expectation, campaign, profile)
        lost = results.lost(expectation, campaign, profile)
        if rows.empty:
            kind = f"{expectation.direction} " if expectation.direction else ""
            reason = f"no finished {kind}result"
            if expectation.frame == "verdicts":
                reason = "no verdict: no series of the rate, or too short"
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
            unfinished = sum(lost.get(str(job), 0) for job in repeats["job"].unique())
            lost_runs = f"{counted_noun(unfinished, 'run')} did not finish" if unfinished else ""
            verdict = _verdict(expectation, (str(label), str(direction)), repeats)
            if lost_runs and not _is_final(expectation, verdict.answer):
                verdict = replace(verdict, answer=Answer.UNDECIDED, reason=lost_runs)
            if verdict.answer is Answer.PASS and (absent := results.left_out(repeats)):
                reason = f"{folded_names(absent)} {'were' if absent[1:] else 'was'} left out"
                verdict = replace(verdict, answer=Answer.UNDECIDED, reason=reason)
            yield verdict


def verdicts_on_plans(
    plans: Mapping[str, Mapping[str, Expect]], results: Measurements
) -> list[Verdict]:
    """Return the verdicts on the expectations of profiles."""
    return [
        verdict
        for campaign, profiles in plans.items()
        for profile, expect in profiles.items()
        for verdict in verdicts_of(
            expectations_in(expect), results, campaign=campaign, profile=profile
        )
    ]


def _is_final(expectation: Expectation, answer: Answer) -> bool:
    """Return whether an answer stands whatever further repeats measure: one was too much."""
    column, relation = expectation.column, expectation.relation
    is_exact = relation == "=" and column not in FLAGS
    is_largest = column.endswith("_max_s") and "<" in relation
    return answer is Answer.FAIL and (is_exact or is_largest)


def _doubt(expectation: Expectation, rows: pd.DataFrame) -> str:
    """Return what slowed all runs of a bound that was missed; empty for a bound on the top rate."""
    is_latency = "lat_" in expectation.column
    if "_slowed" not in rows or rows["_slowed"].isna().any():
        return ""
    if is_latency != ("<" in expectation.relation) or expectation.relation == "=":
        return ""
    rules = sorted({rule for each in rows["_slowed"] for rule in each.split(", ")})
    return f"other load slowed each run ({', '.join(rules)}): measure again on an idle host"


def _verdict(expectation: Expectation, name: tuple[str, str], rows: pd.DataFrame) -> Verdict:
    column, note = _reported_column(expectation, rows)
    numbers = _repeat_numbers(expectation, rows)
    repeats, clients = numbers.nunique(), int(numbers.value_counts().max())
    answer, interval, words = Answer.UNDECIDED, _NOTHING, ""
    runtime_s = float(rows["runtime_s"].groupby(numbers).max().sum())
    calls = "" if expectation.direction != SYNC else joined(rows["sync_calls"])
    job, direction = name[0], calls or name[1]
    if rows["_invalid"].fillna(value=False).astype(bool).any():
        note = "invalid result, see volbench check"
    elif expectation.sync_call and calls != expectation.sync_call:
        measured_call = f"{calls}, not {expectation.sync_call}" if calls else "an unreported sync"
        note = f"measured {measured_call}"
    elif "clients" in rows and (rows["clients"] < rows["clients_planned"]).any():
        note = "some clients did not finish"
    elif column not in rows or rows[column].isna().any():
        note = "not reported"
        if column == "steady":
            note = "no verdict: the runs are too short"
        if expectation.frame == "aggregate" and not column.startswith(("lat_", "clat_")):
            note = "the runs have no common interval: too short, or not at the same time"
    elif few := too_few(column, rows):
        note = few
    else:
        values = _worst_of_clients(expectation, rows[column], numbers)
        if column in FLAGS:
            answer, words = _answer_by_verdict(expectation, values)
            more = "" if answer is not Answer.UNDECIDED else "the repeats differ"
        else:
            answer, interval, more = _answer_by_number(expectation, values)
        worst = f"worst of {clients} clients" if clients > 1 else ""
        note = "; ".join(filter(None, (more, note, worst)))
    doubt = _doubt(expectation, rows) if answer is Answer.FAIL else ""
    note, campaign = "; ".join(filter(None, (note, doubt))), joined(rows["campaign"])
    about = (words, doubt, campaign, runtime_s)
    return Verdict(expectation, job, direction, answer, interval, repeats, note, *about)


def too_few(column: str, rows: pd.DataFrame) -> str:
    """Return why the I/Os of a run are too few for a percentile; empty if they are not."""
    percentile = PERCENTILES.get(column.partition("lat_")[2].removesuffix("_s"), 0.0)
    needed = needed_samples(percentile) * (1 - 1e-9) if percentile >= 50 else 0.0
    counts = rows.get("total_ios", pd.Series(dtype="float64"))[rows["direction"] != SYNC]
    if not (counts < needed).any():
        return ""
    return f"p{percentile:g} needs {needed:,.0f} I/Os, a run has {counts.min():,.0f}: run it longer"


def _repeat_numbers(expectation: Expectation, rows: pd.DataFrame) -> pd.Series[int]:
    if expectation.frame == "aggregate":
        return pd.Series(range(len(rows)), index=rows.index)
    # Rows without a client, or of the same one, are never clients of one repeat.
    nth = rows.groupby([*STEP, "client"], dropna=False).cumcount()
    return rows.groupby([*STEP, nth], sort=False, dropna=False).ngroup()


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


def _reported_column(expectation: Expectation, rows: pd.DataFrame) -> tuple[str, str]:
    """Return the column of a metric, and what is to be said of it.

    Imported results may have percentiles of the completion latency only.
    """
    column, completion = expectation.column, f"c{expectation.column}"
    has_both = column.startswith("lat_") and column in rows and completion in rows
    if has_both and rows[column].isna().all() and rows[completion].notna().all():
        return completion, "judged by completion latency"
    return column, ""


def _answer_by_verdict(expectation: Expectation, values: Floats) -> tuple[Answer, str]:
    held = [expectation.holds(float(value)) for value in values]
    answer = _all_or_none(held)
    if answer is Answer.UNDECIDED:
        return answer, f"in {sum(held)} of {len(held)}"
    return answer, "yes" if answer is Answer.PASS else "no"


def _all_or_none(held: list[bool]) -> Answer:
    if all(held):
        return Answer.PASS
    return Answer.UNDECIDED if any(held) else Answer.FAIL


def _answer_by_number(expectation: Expectation, values: Floats) -> tuple[Answer, Interval, str]:
    """Return the answer of numbers, their interval, and what is missing for one.

    A maximum is the largest of all repeats, and a number that has to be exact is so in each.
    """
    held = [expectation.holds(float(value)) for value in values]
    if expectation.relation == "=":
        worst = float(values[0 if all(held) else held.index(False)])
        answer = Answer.PASS if all(held) else Answer.FAIL
        return answer, Interval(math.nan, worst, math.nan), ""
    if expectation.column.endswith("_max_s"):
        largest = float(values.max())
        answer = Answer.PASS if expectation.holds(largest) else Answer.FAIL
        return answer, Interval(math.nan, largest, math.nan), f"largest of {len(values)}"
    interval = location_interval(values)
    if math.isnan(interval.low):
        reason = f"no interval (needs {MIN_REPEATS} repeats)"
        if len(values) >= MIN_REPEATS:
            reason = "no interval (some repeats are 0)"
        return _all_or_none(held), interval, reason
    answer = _all_or_none([expectation.holds(end) for end in (interval.low, interval.high)])
    if answer is not Answer.UNDECIDED:
        return answer, interval, ""
    more = repeats_to_decide(values, expectation.bound)
    if more is None:
        return answer, interval, f"more than {_MAX_REPEATS} repeats would be needed"
    return answer, interval, f"about {counted_noun(more, 'more repeat')} would decide"


def repeats_to_decide(values: Floats, bound: float) -> int | None:
    """Return how many more repeats of this scatter would decide; None for more than 100."""
    logarithms = np.log(values)
    distance = abs(float(logarithms.mean()) - math.log(bound)) if bound > 0 else math.inf
    deviation = float(logarithms.std(ddof=1))
    for count in range(len(values) + 1, _MAX_REPEATS + 1):
        quantiles = student_quantile(count - 1, 0.975) + student_quantile(count - 1, _POWER)
        if quantiles * deviation / math.sqrt(count) < distance:
            return count - len(values)
    return None
