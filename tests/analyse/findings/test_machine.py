"""Rules on the machine around a run: its CPU, memory, clock and other load; and stalls."""

from dataclasses import replace

import pytest

from tests.analyse.findings.conftest import (
    BLOCK,
    IOPS,
    VolumeKind,
    a_run,
    a_view,
    device_samples,
    found,
    series_rows,
    summary_row,
    utc,
)
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.planned_run import Imported
from volbench.model.profile.profile_model import Start, Tool
from volbench.model.results.finding import Severity
from volbench.model.results.provenance import HostFacts


def test_fio_that_uses_a_whole_core_is_reported() -> None:
    """With what logs cost of it; all CPUs of the host at work are context."""
    run = a_run()
    for iops, logs in ((500_000.0, " Logs take at least 2 % of a core per job;"), (200_000.0, "")):
        row = summary_row(run, cpu_usr=30.0, cpu_sys=69.0, iops=iops)
        (entry,) = found(a_view(run, summary=[row]), rule="cpu-bound")
        assert entry.severity is Severity.WARNING
        assert "99 %" in entry.message
        assert entry.message.partition("system).")[2].startswith(logs)
        assert bool(logs) == ("sample=0" in entry.message)
    short = summary_row(run, cpu_usr=30.0, cpu_sys=69.0, runtime_s=0.001)
    assert found(a_view(run, summary=[short], series=[], device=[]), rule="cpu-bound") == []
    for tool, sync, is_free in (
        (Tool.FIO, "0", True),
        (Tool.FIO, "1", False),
        (Tool.WATCH, "0", False),
    ):
        run = a_run({"fdatasync": sync}, tool=tool)
        view = a_view(run, device=device_samples(run, cpu_busy_percent=98.0))
        (entry,) = found(view, rule="cpu-bound")
        assert entry.severity is Severity.NOTE
        assert ("numjobs" in entry.advice) is is_free  # a log and a watched load submit as they do


@pytest.mark.parametrize(("percent", "count"), [(43.0, 1), (0.5, 0), (None, 0)])
def test_a_cpu_limit_that_throttled_fio_is_reported(percent: float | None, count: int) -> None:
    """From 1 % of the periods on; a limit that hardly acts, or none, is no finding."""
    run = a_run()
    samples = device_samples(run, cpu_throttled_percent=percent, cpu_throttled_s=0.4)
    entries = found(a_view(run, device=samples), rule="cpu-throttled")
    assert [entry.evidence["throttled_percent"] for entry in entries] == count * [
        pytest.approx(percent)
    ]


def with_foreign(column: str, extra: float, kind: VolumeKind = VolumeKind.DEVICE) -> RunView:
    """Return a run whose device did more than fio in one column."""
    run = a_run(kind=kind)
    samples = device_samples(run)
    for sample in samples:
        sample[column] = float(str(sample[column])) + extra
    return a_view(run, device=samples)


def test_foreign_reads_during_a_write_run_are_reported() -> None:
    """Found in a direct run; write-back makes the device's rate differ from fio's anyway."""
    (entry,) = found(with_foreign("read_bw_bytes_per_s", 50e6), rule="other-load")
    assert entry.direction == "read"
    assert entry.evidence["foreign_bw_bytes_per_s"] == pytest.approx(50e6)
    view = with_foreign("read_bw_bytes_per_s", 50e6)
    buffered = replace(view, run=a_run({"direct": None}))
    assert found(buffered, rule="other-load") == []


def clients_of_one_device(*, rate: float, steps: tuple[int, int] = (1, 1)) -> list[RunView]:
    """Return two clients that each write their part, and a device that does a multiple of one."""
    views = []
    for number, step in enumerate(steps, start=1):
        run = a_run(id=f"001-a-r1-c0{number}", step=step, client=number)
        samples = device_samples(run)
        for sample in samples:
            sample["write_bw_bytes_per_s"] = rate * float(str(sample["write_bw_bytes_per_s"]))
        views.append(a_view(run, device=samples))
    return views


def test_clients_of_one_step_are_expected_load() -> None:
    """What they do together is asked for, more is not; what a failed one did is unknown."""
    assert found(*clients_of_one_device(rate=2.0), rule="other-load") == []
    (entry,) = found(*clients_of_one_device(rate=3.0), rule="other-load")
    assert entry.evidence["foreign_bw_bytes_per_s"] == pytest.approx(IOPS * BLOCK)
    assert len(found(*clients_of_one_device(rate=2.0, steps=(1, 2)), rule="other-load")) == 1
    first, last = clients_of_one_device(rate=5.0)
    silent = a_view(first.run, summary=[summary_row(first.run, status="failed")], series=[])
    assert found(silent, last, rule="other-load") == []


@pytest.mark.parametrize("extra", [0.0, 0.05 * IOPS * BLOCK, 5e5])
def test_background_activity_of_a_device_is_tolerated(extra: float) -> None:
    """A few per cent, or less than 1 MB/s, are within what counters and logs of systems make."""
    assert found(with_foreign("write_bw_bytes_per_s", extra), rule="other-load") == []


def test_journal_writes_are_not_foreign_load() -> None:
    """Through a filesystem a fifth on top is expected."""
    view = with_foreign("write_bw_bytes_per_s", 0.2 * IOPS * BLOCK * 2, VolumeKind.DIRECTORY)
    assert len(found(view, rule="other-load")) == 1
    view = with_foreign("write_bw_bytes_per_s", 0.2 * IOPS * BLOCK, VolumeKind.DIRECTORY)
    assert found(view, rule="other-load") == []


def test_load_on_the_disk_of_a_partition_is_reported() -> None:
    """Load on another partition of the disk is found; a loop's own disk is left alone."""
    run = a_run()
    for disk, count in (("sd", 1), ("vda", 0)):
        backing = device_samples(run, device=disk, level="backing", read_bw_bytes_per_s=80e6)
        view = a_view(run, device=[*device_samples(run), *backing])
        assert len(found(view, rule="other-load")) == count


def on_disk(role: str, device: str, backing: tuple[str, ...], *, host: str = "local") -> RunView:
    """Return a run on a device."""
    run = a_run(name=f"{role}-{device}", role=role, host=host)
    volume = run.volume.model_copy(update={"target": f"/dev/{device}"})
    view = a_view(run.model_copy(update={"volume": volume}))
    assert view.volume is not None
    facts = view.volume.model_copy(update={"device": device, "backing": backing})
    return replace(view, volume=facts)


@pytest.mark.parametrize(
    ("other", "mine", "count"),
    [
        (("sda1", ("sda",)), ("sda2", ("sda",)), 1),
        (("sda", ()), ("sda2", ("sda",)), 1),
        (("sda", ()), ("sdb", ()), 0),
        (("", ()), ("", ()), 0),
    ],
)
def test_roles_on_one_disk_are_reported(
    other: tuple[str, tuple[str, ...]], mine: tuple[str, tuple[str, ...]], count: int
) -> None:
    """Two partitions of a disk, or a disk and its partition, share one limit."""
    views = on_disk("os", *other), on_disk("data", *mine)
    findings = found(*views, rule="shared-limit")
    assert len(findings) == count
    assert all(finding.evidence["disks"] == "sda" for finding in findings)
    names = " and ".join(sorted(f"/dev/{device}" for device, _ in (other, mine)))
    words = f"{names} are on the same disk (sda) and share its limit."
    assert all(finding.message == words for finding in findings)


def test_one_role_shares_nothing_with_itself() -> None:
    """Neither do disks of the same name on other hosts."""
    again = on_disk("data", "sda", ()), on_disk("data", "sda", ())
    assert found(*again, rule="shared-limit") == []
    apart = on_disk("os", "sda", (), host="a"), on_disk("data", "sda", (), host="b")
    assert found(*apart, rule="shared-limit") == []


@pytest.mark.parametrize(
    ("machines", "devices", "start", "count"),
    [
        (("m", "m"), ("sda", "sda"), Start.TOGETHER, 1),
        (("m", "n"), ("sda", "sda"), Start.TOGETHER, 0),
        (("", ""), ("sda", "sda"), Start.TOGETHER, 0),
        (("m", "m"), ("sda", "sdb"), Start.TOGETHER, 0),
        (("m", "m"), ("sda", "sda"), Start.SEQUENTIAL, 0),
    ],
)
def test_hosts_of_one_machine_on_one_disk_are_reported(
    machines: tuple[str, str], devices: tuple[str, str], start: Start, count: int
) -> None:
    """Two pods of a node that are measured at the same time share the limit of its disk."""
    runs = [a_run(id=f"001-a-r1-{host}", host=host, step=1, start=start) for host in ("p", "q")]
    views = [
        a_view(run, host=HostFacts(host=run.host, machine=machine))
        for run, machine in zip(runs, machines, strict=True)
    ]
    campaign = views[0].campaign.model_copy(update={"runs": tuple(runs)})
    of_step = []
    for view, device in zip(views, devices, strict=True):
        assert view.volume is not None
        volume = view.volume.model_copy(update={"device": device})
        of_step.append(replace(view, campaign=campaign, volume=volume))
    findings = found(*of_step, rule="shared-limit")
    assert [entry.evidence["hosts"] for entry in findings] == ["p, q"] * count


def test_errors_of_fio_and_device_are_reported() -> None:
    """Both make the number invalid."""
    run = a_run()
    samples = device_samples(run)
    samples[20]["io_errors"] = 3
    view = a_view(run, summary=[summary_row(run, error=5)], device=samples)
    tool, device = found(view, rule="io-errors")
    assert {tool.severity, device.severity} == {Severity.INVALID}
    assert tool.evidence["errno"] == 5
    assert device.evidence["io_errors"] == 3
    assert (device.from_s, device.to_s) == (17, 18)


@pytest.mark.parametrize(("jump_s", "count"), [(-3600.0, 1), (2.0, 1), (0.2, 0), (0.0, 0)])
def test_a_clock_change_during_a_run_is_reported(jump_s: float, count: int) -> None:
    """An hour back at second 30 is found where it was; a gentle slew is not."""
    run = a_run()
    samples = device_samples(run)
    for sample in samples:
        t_s = float(str(sample["t_s"]))
        sample["utc"] = utc(t_s + (jump_s if t_s >= 30 else 0.0))
    findings = found(a_view(run, device=samples), rule="clock-jumped")
    assert len(findings) == count
    for finding in findings:
        assert (finding.from_s, finding.to_s) == (29, 30)
        assert finding.evidence["jump_s"] == pytest.approx(jump_s)


def test_a_stall_is_reported_with_its_time() -> None:
    """Eight seconds without a completion, from second 20 on; a slow I/O elsewhere adds none."""
    run = a_run()
    rates = [IOPS] * 20 + [0.0] * 8 + [IOPS] * 32
    (entry,) = found(a_view(run, series=series_rows(run, rates)), rule="stall")
    assert (entry.from_s, entry.to_s) == (20, 28)
    assert entry.evidence["stall_s"] == 8
    run = a_run()
    rates = [*[IOPS] * 20, 0.0, *[IOPS] * 39]
    view = a_view(run, series=series_rows(run, rates), summary=[summary_row(run, lat_max_s=9.0)])
    (entry,) = found(view, rule="stall")
    assert (entry.from_s, entry.to_s) == (20, 21)


def test_many_stalls_are_counted_and_the_longest_reported() -> None:
    """Ten of them would fill the screen; those that the job wanted are notes."""
    run = a_run()
    rates = ([IOPS] * 4 + [0.0] * 2) * 10
    findings = found(a_view(run, series=series_rows(run, rates)), rule="stall")
    assert len(findings) == 5
    assert all("one of 10" in finding.message for finding in findings)
    run = a_run({"thinktime": "2000000"})
    findings = found(a_view(run, series=series_rows(run, [IOPS, 0.0, 0.0] * 20)), rule="stall")
    assert {finding.severity for finding in findings} == {Severity.NOTE}


@pytest.mark.parametrize(
    "options", [{"iodepth": "1"}, {"iodepth": "9", "ioengine": "psync"}], ids=["1", "psync"]
)
@pytest.mark.parametrize(
    ("direction", "latency_s", "count"),
    [("write", 1.5, 1), ("sync", 5.7, 1), ("sync", 0.9, 0), ("write", 0.9, 0)],
)
def test_the_only_io_in_flight_is_a_stall(
    options: dict[str, str | None], direction: str, latency_s: float, count: int
) -> None:
    """While an fsync takes 5.7 s the job does nothing else; fio logs no series of syncs."""
    run = a_run(options)
    rows = [summary_row(run, iops=58.0), summary_row(run, direction="sync", iops=None)]
    slow = {"lat_max_s": latency_s, "lat_mean_s": 0.017}
    results = [row | slow if row["direction"] == direction else row for row in rows]
    findings = found(a_view(run, series=[], summary=results), rule="stall")
    assert [entry.severity for entry in findings] == [Severity.WARNING] * count
    assert all("with no other I/O in flight" in entry.message for entry in findings)


@pytest.mark.parametrize(
    ("latency_s", "mean_s", "count"), [(3.1, 0.02, 1), (2.9, 0.02, 0), (3.1, 0.8, 0)]
)
def test_the_slowest_io_without_a_series_is_a_note(
    latency_s: float, mean_s: float, count: int
) -> None:
    """One of 3 s in a minute; whether a deep queue did anything meanwhile is not recorded."""
    run = a_run({"iodepth": "16"})
    row = summary_row(run, lat_max_s=latency_s, lat_mean_s=mean_s)
    findings = found(a_view(run, series=[], summary=[row]), rule="stall")
    assert [entry.severity for entry in findings] == [Severity.NOTE] * count
    assert found(a_view(run, summary=[row]), rule="stall") == []


def test_a_slow_volume_does_not_stall() -> None:
    """Seconds without a completion are expected of it, and so are reads that wait for writes."""
    run = a_run()
    rates = [1.0, 0.0, 0.0, 0.0] * 15
    view = a_view(run, series=series_rows(run, rates), summary=[summary_row(run, iops=0.25)])
    assert found(view, rule="stall") == []
    run = a_run({"rw": "randrw"})
    quiet = [IOPS] * 20 + [0.0] * 8 + [IOPS] * 32
    rows = [summary_row(run), summary_row(run, direction="read")]
    entry = [*series_rows(run, quiet), *series_rows(run, [IOPS] * 60, direction="read")]
    both = [*series_rows(run, quiet), *series_rows(run, quiet, direction="read")]
    assert found(a_view(run, summary=rows, series=entry), rule="stall") == []
    assert len(found(a_view(run, summary=rows, series=both), rule="stall")) == 1


@pytest.mark.parametrize(("latency_s", "stalls"), [(0.9, 0), (0.3, 1)])
def test_batches_of_a_deep_queue_are_not_stalls(latency_s: float, stalls: int) -> None:
    """Sixteen I/Os of 4 MiB that take 0.9 s complete together: 2 s without any are no stall."""
    run = a_run({"bs": "4194304"})
    rates = [20.0] * 20 + [0.0] * 2 + [20.0] * 38
    row = summary_row(run, iops=19.0, lat_mean_s=latency_s, lat_max_s=2.0)
    view = a_view(run, series=series_rows(run, rates), summary=[row])
    assert len(found(view, rule="stall")) == stalls


def test_a_cpu_that_polls_is_not_the_limit() -> None:
    """`hipri` and `sqthread_poll` keep a CPU busy whatever the volume does."""
    for options, findings in (
        ({"ioengine": "io_uring"}, 1),
        ({"ioengine": "io_uring", "hipri": "1"}, 0),
        ({"ioengine": "io_uring", "sqthread_poll": "1"}, 0),
        ({"ioengine": "external:/usr/lib/spdk/fio/spdk_nvme"}, 0),
        ({"ioengine": "spdk"}, 0),
        ({"iodepth_batch_complete_min": "0"}, 0),
    ):
        run = a_run(options)
        view = a_view(run, summary=[summary_row(run, cpu_usr=60.0, cpu_sys=40.0)])
        assert len(found(view, rule="cpu-bound")) == findings


def test_a_cpu_that_may_have_polled_is_a_note() -> None:
    """A bare hipri is not in the JSON of fio before 3.39, so a busy core of io_uring is open."""
    imported = Imported(files=(), jobs=(), unreported_flags=("hipri",))
    for engine, is_open in (("io_uring", True), ("libaio", False)):
        run = a_run({"ioengine": engine}, imported=imported)
        rows = [summary_row(run, cpu_usr=60.0, cpu_sys=40.0)]
        (entry,) = found(a_view(run, summary=rows), rule="cpu-bound")
        assert (entry.severity is Severity.NOTE) == is_open
        assert ("does not say whether it polled" in entry.message) == is_open


@pytest.mark.parametrize(
    ("status", "damage", "severities"),
    [
        ("finished", None, []),
        ("finished", "l_bw.1.log is no log", [Severity.WARNING]),
        ("damaged", "fio.json ends in the middle", [Severity.INVALID]),
    ],
)
def test_unreadable_result_files_are_reported(
    status: str, damage: str | None, severities: list[Severity]
) -> None:
    """A lost log is a warning, a lost result makes the run invalid, and both are named."""
    run = a_run()
    view = a_view(run, summary=[summary_row(run, status=status, damage=damage)])
    findings = found(view, rule="damaged-files")
    assert [finding.severity for finding in findings] == severities
    assert all(str(damage) in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("bad", "seconds", "count"), [(3, 60.0, 1), (3, 0.5, 0), (0, 60.0, 0), (None, 60.0, 0)]
)
def test_lines_left_out_of_the_series_are_reported(
    bad: int | None, seconds: float, count: int
) -> None:
    """They are counted; none, no logs at all, and a run below an interval are no doubt."""
    run = a_run()
    row = summary_row(run, bad_log_rows=bad, runtime_s=seconds)
    findings = found(a_view(run, summary=[row], series=[]), rule="bad-log-rows")
    assert [finding.evidence["bad_log_rows"] for finding in findings] == [bad] * count
