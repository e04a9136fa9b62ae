"""Expectations as they are written, and their answers from repeats."""

import math

import numpy as np
import pandas as pd
import pytest

from volbench.analyse.compare.expected_bounds import Answer, Verdict, repeats_to_decide, verdicts_of
from volbench.analyse.compare.measurements import Measurements
from volbench.analyse.compare.repeat_statistics import location_interval
from volbench.errors import InputError
from volbench.model.frames.expectation import check_expectations, parse_expectation

TRIALS = 300


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
        ("iops >= 3k", "*", "", "iops", 3000.0),
        ("iops >= 1.5M", "*", "", "iops", 1.5e6),
        ("drift_percent > -5%", "*", "", "drift_percent", -5.0),
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
        ("bottleneck = disk", "there is no metric"),
        ("steady: yes", "is not an expectation"),
        ("iops >= -5", "always true"),
        ("p99 < -5ms", "never true"),
        ("p99 < 0ms", "never true"),
        ("iops >= 0", "always true"),
        ("iops >= 3 k k", "is not a number"),
        ("iops >= 3ms", "is not a number"),
        ("bw > 3k", "has no unit"),
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
    ("name", "near"), [("iosp", "iops"), ("fdatasnyc_p99", "fdatasync_p99"), ("stedy", "steady")]
)
def test_an_unknown_metric_hints_at_the_nearest(name: str, near: str) -> None:
    """Also with the prefix of a direction or a sync."""
    with pytest.raises(InputError) as caught:
        parse_expectation(f"{name} < 5ms")
    assert f"did you mean `{near}`?" in caught.value.hint


def frames(runs: int, **columns: object) -> dict[str, pd.DataFrame]:
    """Return the frames of steady repeats of one job, without findings and several clients."""
    names = [f"r{number}" for number in range(runs)]
    identity = {"campaign": "c", "profile": "p", "host": "local", "volume": "/v", "job": "reads"}
    summary = pd.DataFrame(
        {"run": names, "repeat": [*range(1, runs + 1)]}
        | {name: [value] * runs for name, value in identity.items()}
        | {"group": ["reads"] * runs, "direction": ["read"] * runs}
        | {"phase": ["measured"] * runs, "status": ["finished"] * runs}
        | {"client": [math.nan] * runs, "runtime_s": [10.0] * runs}
        | {"sync_calls": [None] * runs}
        | columns
    )
    verdicts = summary.drop(columns="client").assign(
        verdict="steady", bottleneck="unknown", limited_by=None, spread_percent=3.0
    )
    nothing = pd.DataFrame(columns=["run", "severity", "direction", "rule"])
    sums = summary.head(0).drop(
        columns=["run", "host", "volume", "client", "runtime_s", "sync_calls"]
    )
    return {"summary": summary, "verdicts": verdicts, "findings": nothing, "aggregate": sums}


def verdict_on(text: str, known: dict[str, pd.DataFrame]) -> Verdict:
    """Return the only verdict."""
    (verdict,) = verdicts_of([parse_expectation(text)], Measurements(known))
    return verdict


def answers(text: str, *values: float, invalid: bool = False, direction: str = "read") -> Verdict:
    """Return the verdict on the IOPS of repeats of one job."""
    known = frames(len(values), iops=list(values), direction=[direction] * len(values))
    severity = "invalid" if invalid else "warning"
    known["findings"] = pd.DataFrame(
        {"run": ["r0"], "severity": [severity], "direction": [None], "rule": ["stall"]}
    )
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
    assert few.reason == "about 46 more repeats would decide"
    assert answers("iops > 950", *scatter * 17).answer is Answer.PASS
    close = answers("iops > 998", *scatter)
    assert close.reason == "more than 100 repeats would be needed"


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_the_advised_repeats_decide_in_most_cases(repeats: int) -> None:
    """Of results that are undecided, at least 3 in 4 are decided by as many repeats as advised."""
    rng = np.random.default_rng(29)
    decided: list[bool] = []
    while len(decided) < TRIALS:
        distance = math.exp(rng.uniform(math.log(0.3), math.log(3)))  # in standard deviations
        few = np.exp(rng.normal(distance, 1.0, repeats))
        more = repeats_to_decide(few, 1.0)
        if more is not None and not location_interval(few).excludes(1.0):
            every = np.append(few, np.exp(rng.normal(distance, 1.0, more)))
            decided.append(location_interval(every).excludes(1.0))
    assert np.mean(decided) >= 0.75


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
    found = {"run": ["r0"], "severity": ["invalid"], "rule": ["io-errors"]}
    known["findings"] = pd.DataFrame({**found, "direction": ["write"]})
    assert verdict_on("iops > 900", known).answer is Answer.PASS
    known["findings"] = pd.DataFrame({**found, "direction": ["read"]})
    assert verdict_on("iops > 900", known).answer is Answer.UNDECIDED
    assert verdict_on("aggregate_iops > 900", known).answer is Answer.UNDECIDED
    assert verdict_on("steady = yes", known).answer is Answer.UNDECIDED


def test_a_percentile_of_too_few_ios_decides_nothing() -> None:
    """Neither pass nor fail where fewer than ten I/Os are above it; syncs count no I/Os."""
    known = frames(3, lat_p99_s=[0.001, 0.0011, 0.00105], total_ios=[5000.0, 999.0, 2000.0])
    for text in ("p99 < 5ms", "p99 < 1us"):
        assert verdict_on(text, known).answer is Answer.UNDECIDED
    assert verdict_on(text, known).reason == "p99 needs 1,000 I/Os, a run has 999: run it longer"
    known["summary"]["total_ios"] = 1000.0
    assert verdict_on("p99 < 5ms", known).answer is Answer.PASS


def test_repeats_that_differ_without_an_interval_are_undecided() -> None:
    """Two repeats on both sides of a bound do not pass by their median."""
    assert answers("iops > 900", 1000.0, 850.0).answer is Answer.UNDECIDED
    zeros = answers("iops > 900", 1000.0, 0.0, 950.0)
    assert zeros.answer is Answer.UNDECIDED
    assert zeros.reason == "no interval (some repeats are 0)"


def test_runs_that_did_not_finish_decide_nothing() -> None:
    """Neither pass nor fail while runs failed or never started, unless one run was too slow."""
    known = frames(4, iops=[1000.0] * 4, lat_max_s=[1.0] * 4)
    known["summary"]["status"] = ["finished"] * 3 + ["failed"]
    waiting = [{"campaign": "c", "profile": "p", "job": "reads", "run": "r5"}]
    for text, answer in (
        ("iops > 900", Answer.UNDECIDED),
        ("iops > 1100", Answer.UNDECIDED),
        ("max < 2s", Answer.UNDECIDED),
        ("max < 1ms", Answer.FAIL),
    ):
        results = Measurements(known, unstarted=waiting)
        (verdict,) = verdicts_of([parse_expectation(text)], results)
        assert verdict.answer is answer
        assert (verdict.reason == "2 runs did not finish") is (answer is Answer.UNDECIDED)


def test_a_failure_of_runs_that_the_host_slowed_says_so() -> None:
    """If all of them were; what is too fast was not slowed."""
    known = frames(3, iops=[1000.0] * 3)
    for runs, text, is_doubtful in ((3, "> 1100", True), (2, "> 1100", False), (3, "< 900", False)):
        known["findings"] = pd.DataFrame(
            [{"run": f"r{n}", "severity": "warning", "rule": "cpu-bound"} for n in range(runs)]
        ).assign(direction=None)
        verdict = verdict_on(f"iops {text}", known)
        assert verdict.answer is Answer.FAIL
        assert ("slowed each run (cpu-bound)" in verdict.reason) is is_doubtful


def test_an_absent_host_does_not_pass() -> None:
    """The others had the storage to themselves; what is too slow even so, is."""
    results = Measurements(frames(3, iops=[1000.0] * 3), absent={"c": ["vm3", "vm4", "vm5"]})
    answers = {}
    for text in ("iops > 900", "iops > 1100"):
        (verdict,) = verdicts_of([parse_expectation(text)], results)
        answers[text] = verdict.answer, verdict.reason
    assert answers["iops > 900"] == (Answer.UNDECIDED, "vm3 to vm5 were left out")
    assert answers["iops > 1100"][0] is Answer.FAIL


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
    assert (verdict.answer, verdict.reason) == (Answer.PASS, "judged by completion latency")


def test_the_sync_that_was_measured_is_named() -> None:
    """Syncs of fdatasync do not answer for fsync; where both were called, for neither."""
    known = frames(
        3, lat_p99_s=[0.002, 0.0021, 0.0022], direction=["sync"] * 3, sync_calls=["fdatasync"] * 3
    )
    passed = verdict_on("fdatasync_p99 < 10ms", known)
    assert (passed.answer, passed.direction) == (Answer.PASS, "fdatasync")
    assert verdict_on("sync_p99 < 10ms", known).answer is Answer.PASS
    other = verdict_on("fsync_p99 < 10ms", known)
    assert (other.answer, other.reason) == (Answer.UNDECIDED, "measured fdatasync, not fsync")
    known["summary"]["sync_calls"] = "fsync, fdatasync"
    assert verdict_on("fsync_p99 < 10ms", known).answer is Answer.UNDECIDED
    known["summary"]["sync_calls"] = None
    assert verdict_on("fsync_p99 < 10ms", known).reason == "measured an unreported sync"


def test_the_largest_of_all_repeats_is_the_maximum() -> None:
    """One I/O of 2 s breaks `max < 1s`, whatever the other repeats had."""
    known = frames(5, lat_max_s=[0.1, 0.1, 0.1, 2.0, 0.1])
    verdict = verdict_on("max < 1s", known)
    assert (verdict.answer, verdict.interval.estimate) == (Answer.FAIL, 2.0)
    assert verdict.reason == "largest of 5"


def test_sums_over_clients() -> None:
    """Clients are judged together; without one of them nothing is decided."""
    known = frames(3, iops=[400.0] * 3)
    assert verdict_on("aggregate_iops > 900", known).answer is Answer.FAIL  # of one client its own
    sums = known["summary"].drop(
        columns=["run", "host", "volume", "client", "runtime_s", "sync_calls"]
    )
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
    interval = "" if text.startswith("error") else "no interval (needs 3 repeats); "
    assert verdict.reason == f"{interval}worst of 4 clients"


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
    assert mixed.reason == "the repeats differ; worst of 2 clients"


def test_the_last_five_rounds_are_the_measurement() -> None:
    """Rounds before the window of SNIA's criterion are not steady yet, and are not judged."""
    known = frames(8, iops=[100.0, 200.0, 500.0, 1000.0, 1001.0, 1002.0, 1003.0, 1004.0])
    expectation = parse_expectation("iops > 900")
    (all_of_them,) = verdicts_of([expectation], Measurements(known))
    assert (all_of_them.answer, all_of_them.repeats) == (Answer.UNDECIDED, 8)
    (steady,) = verdicts_of([expectation], Measurements(known, in_rounds=["p"]))
    assert (steady.answer, steady.repeats) == (Answer.PASS, 5)
