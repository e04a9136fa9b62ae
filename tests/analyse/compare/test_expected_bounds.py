"""Expectations as they are written, and their answers from repeats."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from volbench.analyse.compare.expected_bounds import Answer, Measurements, Verdict, verdicts_of
from volbench.errors import InputError
from volbench.model.frames.expectation import check_expectations, parse_expectation


@pytest.mark.parametrize(
    ("text", "job", "direction", "column", "bound"),
    [
        ("p99 < 5ms", "*", "", "lat_p99_s", 0.005),
        ("reads.iops >= 3000", "reads", "", "iops", 3000.0),
        ("wal.fdatasync_p99<10ms", "wal", "sync", "lat_p99_s", 0.01),
        ("write_bw > 125MB/s", "*", "write", "bw_bytes_per_s", 125e6),
        ("p99.9 < 1s", "*", "", "lat_p999_s", 1.0),
        ("read-*.steady = yes", "read-*", "", "steady", 1.0),
        ("cpu_usr < 50%", "*", "", "cpu_usr", 50.0),
        ("aggregate_write_iops > 5", "*", "write", "iops", 5.0),
        ("a-b_1.read_lat_mean <= 100us", "a-b_1", "read", "lat_mean_s", 1e-4),
    ],
)
def test_expectations_are_read(
    text: str, job: str, direction: str, column: str, bound: float
) -> None:
    """A job, a direction, a metric by its usual name, and a bound in the metric's unit."""
    expectation = parse_expectation(text)
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
        ("speed > 3", "there is no metric 'speed'"),
        ("iops = 3", "never exactly"),
        ("bw > 125", "has no unit"),
        ("iodepth > 3", "there is no metric"),
        ("steady > 3", "is not a number"),
        ("steady = no", "can only be yes"),
        ("bottleneck = cpu", "there is no metric"),
        ("1ms < p99 < 5ms", "is not an expectation"),
    ],
)
def test_wrong_expectations_are_refused(text: str, message: str) -> None:
    """Unknown metrics, missing units and contradictions end before anything is read."""
    with pytest.raises(InputError, match=message) as caught:
        parse_expectation(text)
    assert caught.value.hint


def test_a_job_is_named_with_any_number_of_clients() -> None:
    """An expectation of a profile holds for each number that it is run with, or for one of them."""
    jobs = ["reads-clients1", "reads-clients8", "reads-clients"]
    each, one = parse_expectation("reads.iops > 1"), parse_expectation("reads-clients8.iops > 1")
    check_expectations([each, one], jobs)
    assert [job for job in jobs if each.matches(job)] == ["reads-clients1", "reads-clients8"]
    assert [job for job in jobs if one.matches(job)] == ["reads-clients8"]


def test_an_unknown_job_is_refused() -> None:
    """A typing error must not pass silently."""
    with pytest.raises(InputError, match="there is no job 'raeds'") as caught:
        check_expectations([parse_expectation("raeds.iops > 1")], ["reads", "writes"])
    assert "reads" in caught.value.hint


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        ("iops > 3000", "reads.iops < 2000", True),
        ("p50 > 10ms", "p99 < 5ms", True),
        ("p99 > 10ms", "p50 < 5ms", False),
        ("p99 > 10ms", "read_p99 <= 10ms", True),
        ("p99 >= 10ms", "read_p99 <= 10ms", False),
        ("fsync_p99 > 10ms", "p99 < 5ms", False),
        ("aggregate_iops > 3000", "iops < 2000", False),
        ("reads.iops > 3000", "writes.iops < 2000", False),
        ("error = 0", "error > 3", True),
    ],
)
def test_contradictions_are_refused(first: str, second: str, *, is_refused: bool) -> None:
    """No result of one job and direction could keep both; other pairs are accepted."""
    both = [parse_expectation(first), parse_expectation(second)]
    for order in (both, both[::-1]):
        if is_refused:
            with pytest.raises(InputError, match="contradicts"):
                check_expectations(order, ["reads", "writes"])
        else:
            check_expectations(order, ["reads", "writes"])


def frames(runs: int, **columns: object) -> dict[str, pd.DataFrame]:
    """Return the frames of steady repeats of one job, without findings and several clients."""
    names = [f"r{number}" for number in range(runs)]
    identity = {"campaign": "c", "profile": "p", "host": "local", "volume": "/v", "job": "reads"}
    summary = pd.DataFrame(
        {"run": names, "repeat": [*range(1, runs + 1)]}
        | {name: [value] * runs for name, value in identity.items()}
        | {"group": ["reads"] * runs, "direction": ["read"] * runs}
        | {"phase": ["measured"] * runs, "status": ["finished"] * runs}
        | {"client": [math.nan] * runs}
        | columns
    )
    verdicts = summary.drop(columns="client").assign(
        verdict="steady", bottleneck="unknown", spread_percent=3.0
    )
    nothing = pd.DataFrame(columns=["run", "severity", "direction"])
    sums = summary.head(0).drop(columns=["run", "host", "volume", "client"])
    return {"summary": summary, "verdicts": verdicts, "findings": nothing, "aggregate": sums}


def verdict_on(text: str, known: dict[str, pd.DataFrame]) -> Verdict:
    """Return the only verdict."""
    (verdict,) = verdicts_of([parse_expectation(text)], Measurements(known))
    return verdict


def answers(text: str, *values: float, invalid: bool = False, direction: str = "read") -> Verdict:
    """Return the verdict on the IOPS of repeats of one job."""
    known = frames(len(values), iops=list(values), direction=[direction] * len(values))
    severity = "invalid" if invalid else "warning"
    known["findings"] = pd.DataFrame({"run": ["r0"], "severity": [severity], "direction": [None]})
    return verdict_on(text, known)


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


def test_a_finding_on_writes_does_not_invalidate_reads() -> None:
    """An invalid result of one direction decides nothing about that direction only."""
    known = frames(1, iops=[1000.0])
    found = {"run": ["r0"], "severity": ["invalid"]}
    known["findings"] = pd.DataFrame({**found, "direction": ["write"]})
    assert verdict_on("iops > 900", known).answer is Answer.PASS
    known["findings"] = pd.DataFrame({**found, "direction": ["read"]})
    assert verdict_on("iops > 900", known).answer is Answer.UNDECIDED
    assert verdict_on("aggregate_iops > 900", known).answer is Answer.UNDECIDED
    assert verdict_on("steady = yes", known).answer is Answer.UNDECIDED


def test_repeats_that_differ_without_an_interval_are_undecided() -> None:
    """Two repeats on both sides of a bound do not pass by their median."""
    assert answers("iops > 900", 1000.0, 850.0).answer is Answer.UNDECIDED
    zeros = answers("iops > 900", 1000.0, 0.0, 950.0)
    assert zeros.answer is Answer.UNDECIDED
    assert zeros.reason == "no interval: some repeats have 0"


def test_a_failed_repeat_does_not_pass() -> None:
    """The other repeats pass, but a disk that fails once is not good enough."""
    known = frames(4, iops=[1000.0] * 4, status=["finished"] * 3 + ["failed"])
    verdict = verdict_on("iops > 900", known)
    assert (verdict.answer, verdict.reason) == (Answer.UNDECIDED, "1 run did not finish")
    assert verdict_on("iops > 1100", known).answer is Answer.FAIL


def test_verdicts_can_be_required() -> None:
    """Every repeat has to be steady; one that is too short says nothing."""
    known = frames(3, iops=[1000.0] * 3)
    assert verdict_on("steady=yes", known).answer is Answer.PASS
    assert verdict_on("spread_percent < 5%", known).answer is Answer.PASS
    known["verdicts"]["verdict"] = ["steady", "noisy", "steady"]
    mixed = verdict_on("steady=yes", known)
    assert (mixed.answer, mixed.words) == (Answer.UNDECIDED, "in 2 of 3")
    known["verdicts"]["verdict"] = "noisy"
    assert verdict_on("steady=yes", known).answer is Answer.FAIL
    known["verdicts"]["verdict"] = "too-short"
    assert verdict_on("steady=yes", known).reason == "no verdict: the runs are too short"


def test_completion_latency_stands_in_where_total_latency_is_not_reported() -> None:
    """Results of plain fio have percentiles of completion latency only, and the reason says so."""
    known = frames(3, lat_p99_s=[math.nan] * 3, clat_p99_s=[0.001, 0.0011, 0.0012])
    verdict = verdict_on("p99 < 5ms", known)
    assert (verdict.answer, verdict.reason) == (Answer.PASS, "completion latency")


def test_sums_over_clients() -> None:
    """Clients are judged together; without one of them nothing is decided."""
    known = frames(3, iops=[400.0] * 3)
    assert verdict_on("aggregate_iops > 900", known).answer is Answer.FAIL  # of one client its own
    sums = known["summary"].drop(columns=["run", "host", "volume", "client"])
    known["aggregate"] = sums.assign(iops=1200.0, clients=3, clients_planned=3)
    assert verdict_on("aggregate_iops > 900", known).answer is Answer.PASS
    assert verdict_on("iops > 900", known).answer is Answer.FAIL
    known["aggregate"]["clients"] = [3, 2, 3]
    lost = verdict_on("aggregate_iops > 900", known)
    assert (lost.answer, lost.reason) == (Answer.UNDECIDED, "some clients did not finish")


@pytest.mark.parametrize(
    ("text", "answer", "value"),
    [
        ("iops >= 800", Answer.PASS, 800.0),
        ("iops > 900", Answer.FAIL, 800.0),
        ("iops <= 1100", Answer.PASS, 1100.0),
        ("iops < 1000", Answer.FAIL, 1100.0),
        ("error = 0", Answer.FAIL, 5.0),
        ("error = 5", Answer.FAIL, 0.0),
    ],
)
def test_clients_are_no_repeats(text: str, answer: Answer, value: float) -> None:
    """Clients of a single repeat give no interval: the worst of them is its value."""
    iops = [1000.0, 800.0, 1100.0, 1050.0]
    known = frames(4, iops=iops, error=[0, 0, 5, 0], repeat=[1] * 4, client=[1, 2, 3, 4])
    verdict = verdict_on(text, known)
    assert (verdict.answer, verdict.interval.estimate, verdict.repeats) == (answer, value, 1)
    assert math.isnan(verdict.interval.low)
    assert verdict.reason == "no interval: 3 repeats give one, worst of 4 clients"


def test_the_worst_client_of_each_repeat_is_judged() -> None:
    """Three repeats of two clients have the interval of three values; all have to be steady."""
    worst, best = [980.0, 1000.0, 1020.0], [5000.0, 6000.0, 7000.0]
    clients, repeats = [1] * 3 + [2] * 3, [1, 2, 3] * 2
    known = frames(6, iops=worst + best, repeat=repeats, client=clients)
    verdict = verdict_on("iops > 900", known)
    assert (verdict.answer, verdict.repeats) == (Answer.PASS, 3)
    assert verdict.interval == answers("iops > 900", *worst).interval
    assert verdict.reason == "worst of 2 clients"
    steady = verdict_on("steady = yes", known)
    assert (steady.answer, steady.repeats) == (Answer.PASS, 3)
    known["verdicts"]["verdict"] = ["noisy"] + ["steady"] * 5
    mixed = verdict_on("steady = yes", known)
    assert (mixed.answer, mixed.words) == (Answer.UNDECIDED, "in 2 of 3")
    assert mixed.reason == "the repeats differ, worst of 2 clients"


def test_the_last_five_rounds_are_the_measurement() -> None:
    """Rounds before the window of SNIA's criterion are not steady yet, and are not judged."""
    known = frames(8, iops=[100.0, 200.0, 500.0, 1000.0, 1001.0, 1002.0, 1003.0, 1004.0])
    expectation = parse_expectation("iops > 900")
    (all_of_them,) = verdicts_of([expectation], Measurements(known))
    assert (all_of_them.answer, all_of_them.repeats) == (Answer.UNDECIDED, 8)
    (steady,) = verdicts_of([expectation], Measurements(known, in_rounds=["p"]))
    assert (steady.answer, steady.repeats) == (Answer.PASS, 5)
