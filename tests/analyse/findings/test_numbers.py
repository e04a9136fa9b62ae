"""Impossible numbers, contradictions of rate and latency, and empty logs are reported."""

import pytest

from tests.analyse.findings.conftest import a_run, a_view, found, summary_row
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import failure_row
from volbench.model.results.finding import Severity


def test_impossible_values_are_reported() -> None:
    """What was left out is named, with its direction."""
    run = a_run()
    text = "clat of 70,266 s in a run of 41 s"
    view = a_view(run, summary=[summary_row(run, impossible=text)])
    (entry,) = found(view, rule="impossible-values")
    assert (text in entry.message, entry.direction) == (True, "write")
    assert entry.severity is Severity.WARNING
    assert not found(a_view(), rule="impossible-values")


@pytest.mark.parametrize(
    "text",
    [
        "clat p99 and above > 17.1 s (the last bin of fio)",
        "clat percentiles, as completion is only 4 % of the mean latency",
    ],
)
def test_unknown_percentiles_are_a_note(text: str) -> None:
    """They are not wrong, or true of completion, and the rest of the result counts."""
    view = a_view(summary=[summary_row(a_run(), impossible=text)])
    (entry,) = found(view, rule="impossible-values")
    assert entry.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("columns", "options", "in_flight"),
    [
        ({}, {}, None),
        ({"lat_mean_s": 0.0175}, {}, None),
        ({"lat_mean_s": 0.018}, {}, 18.0),
        ({"lat_mean_s": 0.018, "numjobs": 2}, {"numjobs": "2"}, None),
        ({"lat_mean_s": 0.018, "runtime_s": 1.9}, {}, None),
        ({"lat_mean_s": 0.002}, {"ioengine": "psync"}, 2.0),
        ({"lat_mean_s": None}, {}, None),
    ],
)
def test_more_ios_in_flight_than_the_queue_depth_is_a_contradiction(
    columns: dict[str, object], options: dict[str, str], in_flight: float | None
) -> None:
    """1,000 IOPS of 18 ms are 18 I/Os in flight, of 16 that the job may submit."""
    run = a_run(options)
    row = summary_row(run, **{"numjobs": 1, **columns})
    entries = found(a_view(run, summary=[row]), rule="contradicting-latency")
    assert [entry.evidence["in_flight"] for entry in entries] == (
        [] if in_flight is None else [pytest.approx(in_flight)]
    )


def test_empty_logs_are_reported() -> None:
    """Logs without a line are counted once for each section, not once for each direction."""
    run = a_run()
    rows = [summary_row(run, empty_logs=3), summary_row(run, direction="read", empty_logs=3)]
    (entry,) = found(a_view(run, summary=rows, series=[]), rule="empty-logs")
    assert entry.message == "3 logs of fio are empty. There is no series."
    assert not found(a_view(), rule="empty-logs")


def test_a_run_that_cannot_be_judged_says_why() -> None:
    """The error is the finding of its run."""
    view = a_view()
    error = ZeroDivisionError("float division by zero")
    row = failure_row(view, error, severity=Severity.INVALID)
    assert (row["run"], row["severity"]) == (view.run.id, "invalid")
    assert "ZeroDivisionError: float division by zero" in str(row["message"])
    assert Context((view,)).finished
