"""Expectations as they are written, and their answers from repeats."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from volbench.analyse.compare.expected_bounds import Answer, Verdict, verdicts_of
from volbench.errors import InputError
from volbench.model.frames.expectation import check_jobs, parse_expectation

COLUMNS = ("job", "iops", "bw_bytes_per_s", "lat_p99_s", "lat_mean_s")


@pytest.mark.parametrize(
    ("text", "job", "direction", "column", "bound"),
    [
        ("p99 < 5ms", "", "", "lat_p99_s", 0.005),
        ("reads.iops >= 3000", "reads", "", "iops", 3000.0),
        ("wal.fdatasync_p99<10ms", "wal", "sync", "lat_p99_s", 0.01),
        ("write_bw > 125MB/s", "", "write", "bw_bytes_per_s", 125e6),
        ("a-b_1.read_lat_mean <= 100us", "a-b_1", "read", "lat_mean_s", 1e-4),
    ],
)
def test_expectations_are_read(
    text: str, job: str, direction: str, column: str, bound: float
) -> None:
    """A job, a direction, a metric by its usual name, and a bound in the metric's unit."""
    expectation = parse_expectation(text, COLUMNS)
    assert (expectation.job, expectation.direction) == (job, direction)
    assert expectation.column == column
    assert expectation.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99", "is not an expectation"),
        ("p99 < 5", "has no unit"),
        ("p99 < 5 parsecs", "parsecs"),
        ("iops >= many", "is not a number"),
        ("iops >= nan", "is not a number"),
        ("speed > 3", "there is no column 'speed'"),
        ("1ms < p99 < 5ms", "is not an expectation"),
    ],
)
def test_wrong_expectations_are_refused(text: str, message: str) -> None:
    """Unknown metrics, missing units and contradictions end before anything is read."""
    with pytest.raises(InputError, match=message) as caught:
        parse_expectation(text, COLUMNS)
    assert caught.value.hint


def test_an_unknown_job_is_refused() -> None:
    """A typing error must not pass silently."""
    with pytest.raises(InputError, match="there is no job 'raeds'") as caught:
        check_jobs([parse_expectation("raeds.iops > 1", COLUMNS)], ["reads", "writes"])
    assert "reads" in caught.value.hint


def answers(text: str, *values: float, invalid: bool = False, direction: str = "read") -> Verdict:
    """Return the verdict on repeats of one job."""
    runs = [f"r{number}" for number in range(len(values))]
    summary = pd.DataFrame(
        {
            "campaign": "c",
            "profile": "p",
            "host": "local",
            "volume": "/v",
            "job": "reads",
            "group": "reads",
            "run": runs,
            "direction": direction,
            "phase": "measured",
            "status": "finished",
            "iops": list(values),
        }
    )
    findings = pd.DataFrame({"run": runs[:1], "severity": ["invalid" if invalid else "warning"]})
    expectation = parse_expectation(text, list(summary.columns))
    (verdict,) = verdicts_of([expectation], summary, findings)
    return verdict


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("iops >= 900", Answer.PASS),
        ("iops > 1100", Answer.FAIL),
        ("iops > 1000", Answer.UNDECIDED),
        ("iops < 1000", Answer.UNDECIDED),
        ("iops < 900", Answer.FAIL),
    ],
)
def test_the_interval_decides(text: str, answer: Answer) -> None:
    """The whole interval keeps the bound, breaks it, or contains it."""
    verdict = answers(text, 980.0, 1000.0, 1010.0, 990.0, 1020.0)
    assert verdict.answer is answer
    assert verdict.interval.low < 1000 < verdict.interval.high
    assert bool(verdict.reason) == (answer is Answer.UNDECIDED)


def test_an_undecided_result_names_the_repeats_needed() -> None:
    """The same scatter with as many repeats would be decided; a bound on the mean never is."""
    scatter = (900.0, 1000.0, 1100.0)
    few = answers("iops > 950", *scatter)
    assert few.answer is Answer.UNDECIDED
    assert few.reason == "about 17 more repeats would decide"
    assert answers("iops > 950", *scatter * 7).answer is Answer.PASS
    close = answers("iops > 998", *scatter)
    assert close.reason == "more than 100 repeats would be needed"


def test_a_single_run_has_no_interval() -> None:
    """It is judged by its value, and says so."""
    verdict = answers("iops > 900", 1000.0)
    assert (verdict.answer, verdict.reason) == (Answer.PASS, "no interval: 3 repeats give one")
    assert math.isnan(verdict.interval.low)


def test_an_invalid_or_missing_result_decides_nothing() -> None:
    """A number that a finding rejects never passes."""
    assert answers("iops > 900", 1000.0, invalid=True).answer is Answer.UNDECIDED
    assert "invalid" in answers("iops > 900", 1000.0, invalid=True).reason
    assert answers("iops > 900", math.nan).reason == "not reported"
    assert answers("sync_iops > 900", 1000.0).reason == "no finished sync result"
    assert answers("iops > 900", 1000.0, direction="sync").reason == "no finished result"
