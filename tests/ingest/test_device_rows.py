"""Samples of hosts become rows on the controller's clock."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.ingest.recorded_runs import ingest, make
from volbench.fio.results.json_output import parse_output
from volbench.ingest.campaign_tables import shifted_utc
from volbench.ingest.series_rows import begun_utc_s, device_rows, read_samples
from volbench.model.campaign.planned_run import Section, VolumeKind
from volbench.model.frames.columns import DEVICE, Row
from volbench.model.results.provenance import VolumeFacts
from volbench.store.layout import RunFolder
from volbench.store.parquet_tables import Block

BOOT_S = 1_000_000.0
CASES = Path(__file__).parent.parent / "cases"


def facts(device: str = "", *backing: str) -> VolumeFacts:
    """Return what is known of a volume on a device."""
    kind = VolumeKind.DIRECTORY
    return VolumeFacts(
        role="data", target="/d", kind=kind, path="/d", device=device, backing=backing
    )


def sample(
    uptime_s: float, *, jumped_s: float = 0.0, errors: int | None = None, **writes: int
) -> str:
    """Return a sample in which each device has done so many writes of 8 sectors."""
    lines = [f"T {BOOT_S + uptime_s + jumped_s:.3f} {uptime_s:.3f}", "Dirty: 4 kB"]
    lines += [
        f" 8 0 {name} 0 0 0 0 {count} 0 {8 * count} {count} 0 {count} {count}"
        for name, count in writes.items()
    ]
    lines += [] if errors is None else [f"ioerr sda {errors}"]
    return "\n".join([*lines, ".", ""])


def rows_of(
    folder: Path, text: str, volume: VolumeFacts | None, *, begun_s: float | None = None
) -> list[Row]:
    """Return the rows that a log becomes; I/O began at an uptime."""
    run = RunFolder(folder)
    run.samples.write_text(text, encoding="ascii")
    begun = None if begun_s is None else BOOT_S + begun_s
    return list(device_rows(read_samples(run), volume, begun_utc_s=begun))


def test_each_interval_is_a_row_of_each_device(tmp_path: Path) -> None:
    """The volume's device comes first, then the backing disk it; rates are per second."""
    text = (
        sample(10, sda=0, sda1=0)
        + "! started\n"
        + sample(12, sda=200, sda1=100)
        + "! ended\n"
        + sample(14, sda=200, sda1=100)
    )
    rows = rows_of(tmp_path, text, facts("sda1", "sda"), begun_s=10.5)
    reported = [(row["device"], row["level"], row["t_s"], row["write_iops"]) for row in rows]
    assert reported == [
        ("sda1", "volume", 1.5, 50.0),
        ("sda1", "volume", 3.5, 0.0),
        ("sda", "backing", 1.5, 100.0),
        ("sda", "backing", 3.5, 0.0),
    ]
    assert rows[0]["utc"] == "1970-01-12T13:46:52.000Z"
    assert {name for row in rows for name in row} <= {column.name for column in DEVICE}


def test_only_full_intervals_after_the_end_are_write_back(tmp_path: Path) -> None:
    """The interval in which fio ended holds I/O of both; it is not the tail yet."""
    text = sample(1, sda=0) + "! started\n" + sample(2, sda=5) + "! ended\n"
    text += sample(3, sda=9) + sample(4, sda=9)
    rows = rows_of(tmp_path, text, facts("sda"))
    assert [row["after_fio"] for row in rows] == [False, False, True]


def test_a_volume_without_a_device_has_rows_of_the_host(tmp_path: Path) -> None:
    """An export over the network still shows CPU and memory of the host."""
    text = sample(1, sda=0) + sample(2, sda=5)
    for volume in (facts(), None):
        (row,) = rows_of(tmp_path, text, volume)
        assert row["device"] is None
        assert row["level"] == "volume"
        assert row["dirty_bytes"] == 4096.0
        assert "write_iops" not in row


def test_a_clock_change_does_not_move_samples(tmp_path: Path) -> None:
    """Time since I/O began follows the clock that nobody sets; the time of day does not."""
    text = sample(1, sda=0) + "! started\n" + sample(2, sda=5) + sample(3, jumped_s=3600.0, sda=9)
    rows = rows_of(tmp_path, text, facts("sda"), begun_s=1.0)
    assert [row["t_s"] for row in rows] == [1.0, 2.0]
    assert [row["interval_s"] for row in rows] == [1.0, 1.0]
    assert str(rows[1]["utc"]).startswith("1970-01-12T14:46:43")


def test_counters_that_were_reset_leave_a_gap(tmp_path: Path) -> None:
    """A device that was recreated in the middle has no row there, and no rate below 0."""
    text = sample(1, sda=100) + sample(2, sda=150) + sample(3, sda=10) + sample(4, sda=30)
    rows = rows_of(tmp_path, text, facts("sda"))
    assert [row["write_iops"] for row in rows] == [50.0, 20.0]


def test_a_device_that_was_away_is_reported_over_the_gap(tmp_path: Path) -> None:
    """A sample without the device's line makes one longer interval."""
    text = sample(1, sda=0) + sample(2) + sample(3, sda=40)
    (row,) = rows_of(tmp_path, text, facts("sda"))
    assert (row["interval_s"], row["write_iops"]) == (2.0, 20.0)


def test_the_last_sample_gives_no_partial_interval(tmp_path: Path) -> None:
    """An interval too short for fair rates is joined to the one before it."""
    text = sample(1, sda=0) + sample(2, sda=10) + sample(3, sda=20) + sample(3.1, sda=31)
    rows = rows_of(tmp_path, text, facts("sda"))
    assert [row["interval_s"] for row in rows] == pytest.approx([1.0, 1.1])
    assert rows[1]["write_iops"] == pytest.approx(21 / 1.1)


def test_failed_requests_are_counted_where_the_kernel_reports_them(tmp_path: Path) -> None:
    """The kernel's counter is told as its growth."""
    text = sample(1, errors=3, sda=0) + sample(2, errors=5, sda=10) + sample(3, sda=20)
    rows = rows_of(tmp_path, text, facts("sda"))
    assert [row.get("io_errors") for row in rows] == [2, None]


def test_a_run_without_samples_has_no_rows(tmp_path: Path) -> None:
    """No log, an empty one, and one cut in its first sample."""
    assert list(device_rows(read_samples(RunFolder(tmp_path)), None, begun_utc_s=1.0)) == []
    assert rows_of(tmp_path, "", facts("sda")) == []
    assert rows_of(tmp_path, sample(1, sda=0)[:40], facts("sda")) == []


def test_io_starts_when_the_series_start() -> None:
    """The earliest point of any section counts; both frames then share their zero."""
    first = {"utc": ["2026-01-01T00:00:06.000Z", None], "t_s": [1.0, 9.0]}
    second = {"utc": ["2026-01-01T00:00:03.500Z"], "t_s": [0.5]}
    series = [
        Block({}, {name: np.array(values) for name, values in columns.items()})
        for columns in (first, second)
    ]
    begun = begun_utc_s(None, series, started_utc="2026-01-01T00:00:00.000Z")
    assert begun == 1767225603.0


def test_without_series_io_starts_one_runtime_before_the_result() -> None:
    """Before 3.36 fio reports no start; it is never before the process was started."""
    output = parse_output((CASES / "fio-3.33/randrw-jsonplus/stdout").read_text(), path="x")
    assert output.ended_utc_s is not None
    runtime_s = max(direction.runtime_s for job in output.jobs for direction in job.directions)
    assert begun_utc_s(output, [], started_utc=None) == output.ended_utc_s - runtime_s
    late = "2100-01-01T00:00:00.000Z"
    assert begun_utc_s(output, [], started_utc=late) == begun_utc_s(None, [], started_utc=late)


def test_recent_fio_reports_when_io_starts() -> None:
    """From 3.36 on it is in the result."""
    output = parse_output((CASES / "fio-3.42/randrw-jsonplus/stdout").read_text(), path="x")
    starts = [job.start_utc_s for job in output.jobs if job.start_utc_s is not None]
    assert starts
    assert begun_utc_s(output, [], started_utc=None) == min(starts)


EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def test_only_instants_are_shifted() -> None:
    """Milliseconds stay; what was not reported stays missing."""
    assert shifted_utc("2026-01-01T00:00:01.500Z", by_s=-3.25) == "2025-12-31T23:59:58.250Z"
    assert shifted_utc("2026-01-01T00:00:01Z", by_s=0.0) == "2026-01-01T00:00:01Z"
    assert shifted_utc(None, by_s=5.0) is None


@pytest.mark.parametrize("ahead_s", [0.0, 3.0, -7200.0])
def test_series_are_on_the_clock_of_the_controller(tmp_path: Path, ahead_s: float) -> None:
    """A host that is three seconds ahead did its I/O three seconds earlier than it says."""
    section = Section(name="mix", options={"rw": "randrw"})
    layout, campaign = make(tmp_path, "fio-3.33/randrw-jsonplus", section)
    folder = layout.run("001-a-r1")
    (run,) = campaign.runs
    campaign = campaign.model_copy(update={"runs": (run.model_copy(update={"sample_s": 0.1}),)})
    rows = "".join(
        f"{EPOCH_MS + round(1000 * ahead_s) + 100 * n}, 50, 0, 0, 0\n" for n in range(1, 6)
    )
    (folder.path / "series_iops.1.log").write_text(rows)
    status = {"started_utc": "2026-01-01T00:00:00.000Z", "start": {"clock_offset_s": ahead_s}}
    folder.status.write_text(json.dumps(status))
    reported = ingest(layout, campaign)
    assert reported.series[0].columns["utc"][0] == "2026-01-01T00:00:00.100Z"
    assert {row["started_utc"] for row in reported.summary} == {"2026-01-01T00:00:00.000Z"}
