"""Table of expectations with their answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.model.frames.expectation import ALL_JOBS
from volbench.present.formatting import MISSING, short_target
from volbench.present.tables.table import IDENTITY, MAX_ROWS, SCREEN_ROWS, Column, Table
from volbench.units import counted_noun, format_count, format_latency, format_rate

_STYLES = {Answer.PASS.value: "green", Answer.FAIL.value: "red", Answer.UNDECIDED.value: "yellow"}
_MAX_NAMED = 2  # Expectations in a sentence. Noticed by: test_first_screen.py
_ON_A_PAGE = ("expectation", "answer", "job", "direction", "value", "repeats", "reason")


def expectations_page_table(verdicts: Sequence[Verdict]) -> Table[Verdict]:
    """Return the table for a page, which has room for all columns."""
    return replace(expectations_table(verdicts).with_columns(_ON_A_PAGE), title="Expectations")


def expectation_words(verdicts: Sequence[Verdict]) -> str:
    """Return the answer of all expectations together, with the first numbers that decide it."""
    if not verdicts:
        return ""
    answers = [verdict.answer for verdict in verdicts]
    worst = next(each for each in (Answer.FAIL, Answer.UNDECIDED, Answer.PASS) if each in answers)
    deciding = [verdict for verdict in verdicts if verdict.answer is worst]
    name = verdict_names(verdicts)
    named = [  # with what was measured, and what makes it doubtful
        f"{name(each)} ({'; '.join(filter(None, (measured, why)))})"
        for each in deciding[:_MAX_NAMED]
        for found in [measured_words(each)]
        for measured in [f"measured {found}" if found != MISSING else ""]
        for why in [each.reason if worst is Answer.UNDECIDED or not measured else each.doubt]
    ]
    more = len(deciding) - len(named)
    sentence = (
        f"{worst.value.capitalize()}: {', '.join(named)}{f' and {more} more' if more else ''}."
    )
    if worst is Answer.PASS:
        return sentence
    met, many = answers.count(Answer.PASS), counted_noun(len(verdicts), "expectation")
    return f"{sentence} {met} of {many} {'is' if met == 1 else 'are'} met."


def verdict_names(verdicts: Sequence[Verdict]) -> Callable[[Verdict], str]:
    """Return the name of a verdict: its expectation, with job and direction where it has others."""
    job_of = _short_jobs(verdicts)
    directions: dict[tuple[str, str], set[str]] = {}
    for verdict in verdicts:
        place = (verdict.expectation.text, verdict.job)
        directions.setdefault(place, set()).add(verdict.direction)

    def name(verdict: Verdict) -> str:
        text, job = verdict.expectation.text, verdict.job
        of_job = "" if job in {verdict.expectation.job, ALL_JOBS} else f"{job_of(verdict)}: "
        one_of = f" ({verdict.direction})" if len(directions[text, job]) > 1 else ""
        return f"{of_job}{text}{one_of}"

    return name


def _short_jobs(verdicts: Sequence[Verdict]) -> Callable[[Verdict], str]:
    """Return the label of a verdict's job, with the ends of long paths where these are distinct."""
    short = {
        verdict.job: " ".join(
            short_target(word) if word.startswith(("/", "nbd")) else word
            for word in verdict.job.split(" ")
        )
        for verdict in verdicts
    }
    is_distinct = len({*short.values()}) == len(short)
    return lambda verdict: short[verdict.job] if is_distinct else verdict.job


def expectations_table(verdicts: Sequence[Verdict], *, is_brief: bool = False) -> Table[Verdict]:
    """Return a row for each expectation, job and direction, with its answer."""
    columns = (
        Column[Verdict](
            "answer", lambda verdict: verdict.answer.value, priority=IDENTITY, styles=_STYLES
        ),
        Column[Verdict]("expectation", verdict_names(verdicts), priority=IDENTITY),
        Column[Verdict]("job", _short_jobs(verdicts), priority=2),
        Column[Verdict]("direction", lambda verdict: verdict.direction, priority=3),
        Column[Verdict]("value", measured_words, header="measured", is_right=True, is_folded=True),
        Column[Verdict]("repeats", lambda verdict: str(verdict.repeats), priority=4, is_right=True),
        Column[Verdict](
            "reason", lambda verdict: verdict.reason, priority=1, is_folded=True, is_optional=True
        ),
    )
    if not is_brief or len(verdicts) <= MAX_ROWS:
        return Table("expectations", columns, verdicts, record=_record)
    places = [Answer.FAIL, Answer.UNDECIDED, Answer.PASS]
    worst = sorted(verdicts, key=lambda verdict: places.index(verdict.answer))
    counts = Counter(verdict.answer for verdict in verdicts)
    left_out = len(verdicts) - SCREEN_ROWS
    words = ", ".join(f"{counts[answer]:,} {answer.value}" for answer in places if counts[answer])
    return Table(
        "expectations",
        columns,
        worst[:SCREEN_ROWS],
        title=f"{counted_noun(len(verdicts), 'answer')}: {words}.",
        notes=[f"{left_out:,} more: --format csv lists all, --where selects some"],
    )


def _words(verdict: Verdict, value: float) -> str:
    column = verdict.expectation.column
    if math.isnan(value):
        return MISSING
    if column.endswith("bytes_per_s"):
        return format_rate(value)
    return format_latency(value) if column.endswith("_s") else format_count(value)


def measured_words(verdict: Verdict) -> str:
    """Return what was measured, with its interval if there is one."""
    interval = verdict.interval
    if verdict.words:
        return verdict.words
    text = _words(verdict, interval.estimate)
    if math.isnan(interval.low):
        return text
    return f"{text} [{_words(verdict, interval.low)}, {_words(verdict, interval.high)}]"


def _record(verdict: Verdict) -> dict[str, object]:
    expectation, interval = verdict.expectation, verdict.interval
    return {
        "expectation": expectation.text,
        "campaign": verdict.campaign,
        "job": verdict.job,
        "direction": verdict.direction,
        "metric": expectation.column,
        "bound": expectation.bound,
        "answer": verdict.answer.value,
        "value": verdict.words or interval.estimate,
        "value_low": interval.low,
        "value_high": interval.high,
        "repeats": verdict.repeats,
        "reason": verdict.reason,
    }
