"""Rules on what a job was asked to do, and whether it did it."""

import re

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    SECONDS,
    Phase,
    Section,
    Until,
    VolumeKind,
    a_run,
    a_view,
    found,
    percentile_rows,
    summary_row,
)
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.model.campaign.planned_run import Imported
from volbench.model.results.finding import Severity

UP_TO_SIZE: dict[str, str | None] = {"runtime": None, "time_based": None, "size": "10g"}
WARNING, NOTE = Severity.WARNING, Severity.NOTE


@pytest.mark.parametrize(
    ("options", "severity"),
    [
        ({"zero_buffers": "1"}, WARNING),
        ({"refill_buffers": None, "buffer_pattern": "0xab"}, WARNING),
        ({"buffer_compress_percentage": "100"}, WARNING),
        ({"buffer_compress_percentage": "50"}, NOTE),
        ({"dedupe_percentage": "30"}, NOTE),
        ({"refill_buffers": None}, NOTE),
        ({}, None),
        ({"refill_buffers": None, "verify": "crc32c"}, None),
        ({"refill_buffers": None, "bs": str(2**24)}, None),
    ],
)
def test_compressible_or_repeated_buffers_are_reported(
    options: dict[str, str | None], severity: Severity | None
) -> None:
    """Zeros and patterns are a warning, reuse is a note; fresh or verified buffers are fine."""
    entries = found(a_view(a_run(options)), rule="compressible")
    assert [entry.severity for entry in entries] == [severity] * (severity is not None)
    assert all(entry.evidence["written_bytes"] == IOPS_BYTES for entry in entries)


@pytest.mark.parametrize("engine", ["psync", "sync", "pvsync2", "mmap", "http", "libpmem", None])
def test_a_synchronous_engine_with_a_queue_depth_is_reported(engine: str | None) -> None:
    """Also when the engine is not named, because psync is fio's default."""
    (entry,) = found(a_view(a_run({"ioengine": engine})), rule="queue-depth")
    assert (entry.evidence["asked_depth"], entry.evidence["depth"]) == (16, 1)
    assert (engine or "psync") in entry.message


@pytest.mark.parametrize(
    ("options", "lat_mean_s"),
    [
        ({}, 0.012),
        ({"iodepth": "1", "ioengine": "psync"}, 0.001),
        ({"rate_iops": "100"}, 0.002),
        ({"thinktime": "1000"}, 0.002),
        ({"fsync": "1"}, 0.002),
    ],
)
def test_a_full_queue_and_a_rate_limited_job_have_no_finding(
    options: dict[str, str | None], lat_mean_s: float
) -> None:
    """Nearly full queues, depth 1, and jobs that were asked to wait are left alone."""
    run = a_run(options)
    view = a_view(run, summary=[summary_row(run, lat_mean_s=lat_mean_s)])
    assert found(view, rule="queue-depth") == []


@pytest.mark.parametrize(
    ("options", "kind", "severities"),
    [
        ({"size": "25%", "offset_increment": "25%"}, VolumeKind.DEVICE, []),
        ({"size": "4096", "offset_increment": "4096"}, VolumeKind.NBD, []),
        ({"size": "4096"}, VolumeKind.DIRECTORY, []),
        ({"numjobs": None}, VolumeKind.DEVICE, []),
        ({}, VolumeKind.DEVICE, [WARNING]),
        ({"size": "50%", "offset_increment": "25%"}, VolumeKind.DEVICE, [WARNING]),
        ({"offset_increment": "1073741824"}, VolumeKind.DEVICE, [WARNING]),
        ({"size": "4096", "filename": "one"}, VolumeKind.DIRECTORY, [WARNING]),
        ({"size": "1g", "direct": None, "rw": "randwrite"}, VolumeKind.DEVICE, [NOTE]),
    ],
)
def test_jobs_in_parallel_overlap_unless_their_ranges_are_separate(
    options: dict[str, str | None], kind: VolumeKind, severities: list[Severity]
) -> None:
    """Own ranges, own files and a single job don't meet; random I/O meets itself rarely."""
    run = a_run({"rw": "write", "numjobs": "4", **options}, kind=kind)
    assert [entry.severity for entry in found(a_view(run), rule="overlapping-jobs")] == severities


@pytest.mark.parametrize(("size", "count"), [("1073741824", 1), ("100%", 0)])
def test_random_jobs_on_a_large_disk_do_not_meet(size: str, count: int) -> None:
    """234 MiB at random offsets of 1 GiB, and of 64 GiB or of a disk of unknown size."""
    run = a_run({"numjobs": "4", "size": size})
    assert len(found(a_view(run), rule="overlapping-jobs")) == count
    unknown = run.model_copy(update={"volume": run.volume.model_copy(update={"pin": None})})
    assert len(found(a_view(unknown, volume=None), rule="overlapping-jobs")) == count
    disks = a_run(
        {"numjobs": "4", "filename": "/dev/nvme0n1:/dev/nvme1n1"}, kind=VolumeKind.UNKNOWN
    )
    assert not found(a_view(disks, volume=None), rule="overlapping-jobs")


@pytest.mark.parametrize(
    ("options", "numjobs", "share"),
    [
        ({"rate_iops": "6000"}, 1, "(17 %)"),
        ({"rate_iops": ",1250"}, 1, "(80 %)"),
        ({"rate_iops": "500"}, 4, "(50 %)"),
        ({"rate_iops": "1000"}, 1, ""),
        ({"rate_iops": "5000,"}, 1, ""),
        ({"rate_iops": "6000", "thinktime": "100"}, 1, ""),
    ],
)
def test_a_rate_below_the_requested_rate_is_reported(
    options: dict[str, str | None], numjobs: int, share: str
) -> None:
    """1,000 writes of the 6,000 requested; each of several jobs gets the rate of its direction."""
    run = a_run({**options, "numjobs": str(numjobs)})
    entries = found(a_view(run), rule="rate-not-reached")
    assert [share in entry.message for entry in entries] == ([True] if share else [])


def test_an_import_that_stopped_before_its_runtime_is_reported() -> None:
    """8 s of 30 are another test, also where neither a size nor time_based is reported."""
    imported = Imported(files=(), jobs=(), unreported_flags=("time_based",))
    options = {"time_based": None, "runtime": "30s"}
    run = a_run(options, imported=imported, kind=VolumeKind.DIRECTORY)
    rows = [summary_row(run, runtime_s=8.0)]
    (entry,) = found(a_view(run, summary=rows, volume=None), rule="ended-early")
    assert "in 8s of the allowed 30s" in entry.message
    ended = a_run({**options, "number_ios": "1000"}, imported=imported, kind=VolumeKind.DIRECTORY)
    assert not found(a_view(ended, summary=rows, volume=None), rule="ended-early")


def test_the_maximum_is_not_a_percentile_of_few_samples() -> None:
    """p100 is the maximum of any number of samples."""
    run = a_run()
    rows, percentiles = [summary_row(run, total_ios=100)], percentile_rows(run, tail=100.0)
    (entry,) = found(a_view(run, summary=rows, percentiles=percentiles), rule="too-short")
    assert "p99;" in entry.message
    assert "p100" not in entry.message


@pytest.mark.parametrize(
    ("own", "count"), [({"offset": "0"}, 1), ({"offset": "80%"}, 0), ({"wait_for": "data"}, 0)]
)
def test_parallel_sections_on_one_device_are_reported(own: dict[str, str], count: int) -> None:
    """A log does not meet the data before it, or that of a section that has ended."""
    data = Section(name="data", options={"rw": "randrw", "size": "80%"})
    log = Section(name="log", options={"rw": "write", "size": "20%", **own})
    run = a_run(sections=(data, log))
    rows = [summary_row(run, group="data"), summary_row(run, group="log")]
    messages = found(a_view(run, summary=rows, series=[]), rule="overlapping-jobs")
    assert sum("the same blocks" in each.message for each in messages) == count
    is_at_once = any("2 sections ran at the same time" in each.message for each in messages)
    assert is_at_once is ("wait_for" not in own)


def test_a_time_based_job_that_ended_before_its_time() -> None:
    """Half of the runtime is another test, but not if it ends when steady."""
    run = a_run()
    (entry,) = found(a_view(run, summary=[summary_row(run, runtime_s=30.0)]), rule="ended-early")
    assert (entry.severity, entry.evidence["asked_runtime_s"]) == (WARNING, 60)
    run = a_run({"runtime": "9" * 5000, "time_based": "1"})
    (entry,) = found(a_view(run, summary=[summary_row(run, runtime_s=30.0)]), rule="ended-early")
    assert "30s of the requested" in entry.message
    run = a_run(until=Until())
    assert found(a_view(run, summary=[summary_row(run, runtime_s=30.0)]), rule="ended-early") == []


def test_fewer_bytes_than_size_are_reported() -> None:
    """A size larger than the device is cut by fio without a word; preparations count too."""
    run = a_run(
        {"time_based": None, "runtime": None, "size": str(2 * IOPS_BYTES)}, phase=Phase.PRECONDITION
    )
    (entry,) = found(a_view(run), rule="ended-early")
    assert (entry.severity, entry.evidence["asked_bytes"]) == (WARNING, 2 * IOPS_BYTES)
    assert "50 %" in entry.message


IOPS_BYTES = int(IOPS * SECONDS * BLOCK)


def test_a_job_that_ends_at_its_size_before_its_runtime_is_a_note() -> None:
    """A runtime without time_based is a cap; of more than the size nothing false is said."""
    run = a_run({"time_based": None, "runtime": "300s", "size": str(IOPS_BYTES)})
    (entry,) = found(a_view(run), rule="ended-early")
    assert entry.severity is NOTE
    assert "5m 00s" in entry.message
    assert "moved all" in entry.message
    assert "without time_based" in entry.message
    run = a_run({"time_based": "0", "runtime": "300s", "size": str(IOPS_BYTES // 2)})
    (entry,) = found(a_view(run), rule="ended-early")
    assert "moved all" not in entry.message
    assert "without time_based" not in entry.message


def test_an_import_that_moved_more_than_its_size_was_time_based() -> None:
    """A bare time_based is not in results of fio before 3.42; such a job was stopped."""
    imported = Imported(files=(), jobs=(), unreported_flags=("time_based",))
    for size, is_stopped in ((IOPS_BYTES // 2, True), (IOPS_BYTES, False)):
        options = {"time_based": None, "runtime": "300s", "size": str(size)}
        (entry,) = found(a_view(a_run(options, imported=imported)), rule="ended-early")
        assert ("The job ran for" in entry.message) is is_stopped
        assert ("without time_based" in entry.message) is not is_stopped


@pytest.mark.parametrize("time_based", [None, "1"])
def test_a_search_that_ended_names_its_latency_target(time_based: str | None) -> None:
    """Fio ends it when it has found the depth: neither bytes nor time_based are the cause."""
    options = {"time_based": time_based, "runtime": "300s", "size": str(IOPS_BYTES)}
    (entry,) = found(a_view(a_run(options | {"latency_target": "2ms"})), rule="ended-early")
    assert entry.severity is NOTE
    assert "latency_target" in entry.message
    assert "moved" not in entry.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"time_based": None, "runtime": None, "size": str(IOPS_BYTES)},
        {"time_based": None, "runtime": "60s", "size": str(10 * IOPS_BYTES)},
        {"time_based": None, "runtime": None, "number_ios": "100"},
        {"time_based": None, "runtime": "300s", "steadystate": "iops:1%"},
        {"runtime": "300s", "steadystate": "iops:1%"},
        {"runtime": "300s", "number_ios": "100"},
        {"runtime": "300s", "exitall": "1"},
        {"time_based": None, "runtime": None, "size": str(IOPS_BYTES // 2), "loops": "2"},
    ],
)
def test_a_job_that_did_what_was_requested_has_no_finding(options: dict[str, str | None]) -> None:
    """Its time, its bytes, its loops, or its number of I/Os."""
    assert found(a_view(a_run(options)), rule="ended-early") == []


def test_too_few_samples_for_a_percentile_are_reported() -> None:
    """900 I/Os do not tell p99, let alone p99.9; 1,000 are just enough."""
    run = a_run()
    few = a_view(run, summary=[summary_row(run, total_ios=900)])
    (entry,) = found(few, rule="too-short")
    assert entry.severity is WARNING
    assert "p99 and p99.9" in entry.message
    assert entry.evidence["needed_ios"] == pytest.approx(1000)
    (note,) = found(a_view(run, summary=[summary_row(run, total_ios=1000)]), rule="too-short")
    assert note.severity is NOTE
    assert note.evidence["least_percentile"] == 99.9


@pytest.mark.parametrize(
    ("seconds", "options", "imported", "count"),
    [
        (10.0, {"runtime": "10s"}, None, 1),
        (1.6, UP_TO_SIZE, Imported(files=(), jobs=()), 1),
        (6.0, UP_TO_SIZE, Imported(files=(), jobs=()), 0),
        (1.6, UP_TO_SIZE, None, 0),
    ],
)
def test_a_run_of_a_few_seconds_is_reported(
    seconds: float, options: dict[str, str | None], imported: Imported | None, count: int
) -> None:
    """10 GiB at 6 GiB/s are 1.6 s, which many publish; a profile of one's own knows its size."""
    run = a_run(options, imported=imported)
    row = summary_row(run, runtime_s=seconds)
    findings = found(a_view(run, summary=[row]), rule="too-short")
    assert [entry.severity for entry in findings] == [NOTE] * count


@pytest.mark.parametrize(
    ("kind", "role", "count"),
    [
        (VolumeKind.DIRECTORY, "data", 1),
        (VolumeKind.FILE, "log", 1),
        (VolumeKind.DIRECTORY, "os", 0),
        (VolumeKind.DEVICE, "data", 0),
        (VolumeKind.NBD, "data", 0),
    ],
)
def test_a_regular_file_under_dev_is_reported(kind: VolumeKind, role: str, count: int) -> None:
    """Only the root disk has to be tested through a file."""
    findings = found(a_view(a_run(kind=kind, role=role)), rule="file-not-device")
    assert [finding.severity for finding in findings] == [NOTE] * count
    for finding in findings:
        assert re.match(rf"Volume {role} is a (file|directory)( on \w+)?: ", finding.message)


def test_runs_that_failed_are_not_judged() -> None:
    """Their numbers count nowhere, as those of a fill in 4k blocks."""
    run = a_run({"refill_buffers": None, "direct": None}, phase=Phase.PRECONDITION)
    assert find(Context((a_view(run),))) == []
    run = a_run({"direct": None})
    assert find(Context((a_view(run, summary=[summary_row(run, status="failed")]),))) == []
