"""Results that contradict themselves, impossible numbers and empty logs are reported."""

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    a_run,
    a_view,
    found,
    series_rows,
    summary_row,
)
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import failure_row
from volbench.model.results.finding import Severity


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"iops": 999_999.5}, "999,999.5 IOPS, but its other numbers imply 1,000 IOPS"),
        (
            {"bw_bytes_per_s": 819_000.0},
            "819,000 bytes/s, but its other numbers imply 4,096,000 bytes/s",
        ),
        ({"total_ios": 1_000_000}, "1,000 IOPS, but its other numbers imply 16,666.667 IOPS"),
        ({"io_bytes": 1}, "4,096,000 bytes/s, but"),
    ],
)
def test_a_contradictory_number_makes_the_result_invalid(
    columns: dict[str, object], words: str
) -> None:
    """One false number stands beside others that it does not follow from."""
    run = a_run()
    entries = found(a_view(run, summary=[summary_row(run, **columns)]), rule="inconsistent-result")
    assert {entry.severity for entry in entries if "log" not in entry.message} == {Severity.INVALID}
    assert any(f"The result states {words}" in entry.message for entry in entries)


def test_bytes_and_blocks_must_agree() -> None:
    """Twice the bytes for the same I/Os: IOPS x block size is not the bandwidth."""
    run, double = a_run(), 2 * IOPS * BLOCK
    moved = {"bw_bytes_per_s": double, "io_bytes": int(double * SECONDS), "block_min_bytes": BLOCK}
    row = summary_row(run, **moved, block_max_bytes=BLOCK)
    (entry,) = found(a_view(run, summary=[row]), rule="inconsistent-result")
    assert " bytes, but its other numbers imply" in entry.message
    varying = summary_row(run, **moved, block_max_bytes=4 * BLOCK)
    assert found(a_view(run, summary=[varying]), rule="inconsistent-result") == []


@pytest.mark.parametrize(
    ("version", "ramp", "count"),
    [("fio-2.17", "10s", 0), ("fio-3.33", "10s", 1), ("fio-2.17", None, 1)],
)
def test_fio_2_counts_the_ios_of_the_ramp(version: str, ramp: str | None, count: int) -> None:
    """A third more I/Os than bytes are those of a ramp, if there was one."""
    run, ios = a_run({"ramp_time": ramp}), int(IOPS * SECONDS * 4 / 3)
    blocks = {"block_min_bytes": BLOCK, "block_max_bytes": BLOCK, "fio_version": version}
    row = summary_row(run, total_ios=ios, iops=ios / SECONDS, **blocks)
    assert len(found(a_view(run, summary=[row], series=[]), rule="inconsistent-result")) == count


@pytest.mark.parametrize(
    ("options", "ios", "severity"),
    [
        ({"ramp_time": "1s", "iodepth": "64"}, 386, Severity.NOTE),
        ({"ramp_size": "1m", "iodepth": "32", "numjobs": "2"}, 386, Severity.NOTE),
        ({"ramp_time": "1s", "iodepth": "64"}, 380, Severity.INVALID),
        ({"iodepth": "64"}, 386, Severity.INVALID),
    ],
)
def test_ios_in_flight_at_the_end_of_the_ramp_count_in_the_bytes_alone(
    options: dict[str, str], ios: int, severity: Severity
) -> None:
    """As fio 3.33 counts them on a volume that takes 500 ms for each of 64 I/Os in flight."""
    run = a_run(options)
    columns = {"io_bytes": 449 * BLOCK, "bw_bytes_per_s": 449 * BLOCK / 3.5, "runtime_s": 3.5}
    columns |= {"block_min_bytes": BLOCK, "block_max_bytes": BLOCK, "total_ios": ios}
    row = summary_row(run, **columns, numjobs=int(options.get("numjobs", 1)), iops=ios / 3.5)
    (entry,) = found(a_view(run, summary=[row], series=[]), rule="inconsistent-result")
    assert entry.severity is severity
    assert ("14 % too low" in entry.message) == (severity is Severity.NOTE)


@pytest.mark.parametrize(("factor", "count"), [(1.0, 0), (0.9, 0), (1.5, 1), (0.5, 1)])
def test_the_log_adds_up_to_the_result(factor: float, count: int) -> None:
    """A lost last window is usual; half of the I/Os is not."""
    run = a_run()
    view = a_view(run, series=series_rows(run, [IOPS * factor] * SECONDS))
    entries = found(view, rule="inconsistent-result")
    assert [entry.severity for entry in entries] == [Severity.WARNING] * count
    part = summary_row(run, runtime_s=10.886, total_ios=10_029)  # a last window without a line
    view = a_view(run, summary=[part], series=series_rows(run, [829.6 * min(factor, 1.0)] * 10))
    said = str(found(view, rule="inconsistent-result"))
    assert ("IOPS log" in said) is (factor < 1)


def test_rounding_is_not_a_contradiction() -> None:
    """Fio 2 prints whole KiB/s; a run of a few ms has no comparable rate."""
    run = a_run()
    rounded = summary_row(run, bw_bytes_per_s=IOPS * BLOCK - 1000)
    short = summary_row(run, runtime_s=0.002, iops=1.0)
    for row in (rounded, short):
        assert found(a_view(run, summary=[row], series=[]), rule="inconsistent-result") == []


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


@pytest.mark.parametrize(
    ("version", "count"), [("fio-3.32", 1), ("fio-3.36-42-gabc", 0), (None, 0)]
)
def test_a_defect_of_the_version_is_named_with_its_void_numbers(
    version: str | None, count: int
) -> None:
    """Completion latencies of a polling thread were wrong until 3.36."""
    run = a_run({"ioengine": "io_uring", "sqthread_poll": "1"})
    view = a_view(run, summary=[summary_row(run, fio_version=version)])
    words = "fio 3.32 with ioengine=io_uring, sqthread_poll=1 reports wrong completion latency"
    found_words = [entry.message.startswith(words) for entry in found(view, rule="fio-defect")]
    assert found_words == [True] * count
