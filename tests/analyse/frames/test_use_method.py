"""The USE table: numbers of a run whose truth is known."""

import math
from collections.abc import Sequence

import pandas as pd
import pytest

from tests.analyse.findings.conftest import Row, a_run, frame, identity
from volbench.analyse.bottleneck.use_method import fio_end_s, use_rows
from volbench.model.frames.column_names import USE

IDENTITY = identity(a_run())


def result(**columns: object) -> Row:
    """Return a row of the summary: ten seconds of 4k writes."""
    return (
        IDENTITY
        | {"direction": "write", "rw": "write", "direct": True, "runtime_s": 10.0}
        | {"io_bytes": 4_096_000, "error": 0, "status": "finished"}
        | columns
    )


def sample(t_s: float, **columns: object) -> Row:
    """Return one second of a device that does 100 writes of 4 KiB."""
    return (
        IDENTITY
        | {"device": "sdx", "level": "volume", "t_s": t_s, "interval_s": 1.0}
        | {"after_fio": t_s > 10, "read_iops": 0.0, "read_bw_bytes_per_s": 0.0}
        | {"write_iops": 100.0, "write_bw_bytes_per_s": 409_600.0, "write_lat_s": 0.01}
        | {"write_request_bytes": 4096.0, "queue_depth": 1.0, "active_percent": 90.0}
        | {"iowait_percent": 5.0, "steal_percent": 0.0, "io_pressure_some_percent": 7.0}
        | {"dirty_bytes": 1e6, "writeback_bytes": 0.0, "io_errors": 0}
        | columns
    )


QUIET: Row = {
    **dict.fromkeys(("write_iops", "write_bw_bytes_per_s", "queue_depth", "active_percent"), 0.0),
    **dict.fromkeys(("write_lat_s", "write_request_bytes")),
}


def use(
    summary: Sequence[Row], device: Sequence[Row], verdicts: Sequence[Row] = ()
) -> pd.DataFrame:
    """Return the USE table of hand-made rows."""
    return use_rows(frame("summary", summary), frame("device", device), frame("verdicts", verdicts))


def steady(**columns: object) -> list[Row]:
    """Return the samples of a steady run: one before, ten in it, and two quiet ones after."""
    return [
        sample(0.0, **QUIET),
        *(sample(float(t), **columns) for t in range(1, 11)),
        sample(11.0, **QUIET),
        sample(12.0, **QUIET),
    ]


def test_a_steady_run_has_its_means() -> None:
    """Rates, latency, size, queue and shares are those of every second in which fio ran."""
    row = use([result(limit_iops=400.0, limit_bw_bytes_per_s=4.096e6)], steady()).iloc[0]
    assert row["write_iops"] == pytest.approx(100)
    assert row["read_iops"] == 0
    assert row["iops_percent"] == pytest.approx(25)
    assert row["bw_percent"] == pytest.approx(10)
    assert row["write_lat_s"] == pytest.approx(0.01)
    assert row["write_request_bytes"] == 4096
    assert row["active_percent"] == 90
    assert row["queue_depth"] == 1
    assert row["iowait_percent"] == 5
    assert row["io_pressure_some_percent"] == 7
    assert row["device_share_percent"] == pytest.approx(100)
    assert row["tail_s"] == 0
    assert row["device"] == "sdx"
    assert math.isnan(row["read_lat_s"])


def test_write_back_is_excluded_from_means() -> None:
    """A device that is twice as busy after fio has ended changes no mean, only the tail."""
    busy = [sample(float(t), write_iops=200.0, write_bw_bytes_per_s=50e6) for t in range(11, 41)]
    rows = [*steady()[:11], *busy]
    row = use([result(direct=False)], rows).iloc[0]
    assert row["write_iops"] == pytest.approx(100)
    assert row["tail_s"] == pytest.approx(30)
    assert row["tail_bytes"] == pytest.approx(30 * 50e6)
    assert not row["direct"]


@pytest.mark.parametrize(("bytes_per_s", "tail_s"), [(0.3e6, 0), (0.4e6, 3)])
def test_less_than_a_megabyte_is_not_write_back(bytes_per_s: float, tail_s: float) -> None:
    """A filesystem writes its metadata after the run."""
    after = [sample(float(t), write_bw_bytes_per_s=bytes_per_s) for t in range(11, 14)]
    assert use([result()], [*steady()[:11], *after]).iloc[0]["tail_s"] == pytest.approx(tail_s)


def test_bytes_that_stay_in_memory_are_remaining_dirty_bytes() -> None:
    """What fio wrote and the device did not is left, as far as pages wait for it."""
    rows = [sample(float(t), **QUIET | {"dirty_bytes": 3e6}) for t in range(1, 13)]
    assert use([result()], rows).iloc[0]["dirty_remaining_bytes"] == pytest.approx(3e6)
    assert use([result(io_bytes=1_000_000)], rows).iloc[0][
        "dirty_remaining_bytes"
    ] == pytest.approx(1e6)
    assert use([result()], steady()).iloc[0]["dirty_remaining_bytes"] == pytest.approx(0, abs=1)


def test_laying_out_files_is_not_counted() -> None:
    """What the device did before fio began is left out, which is extrapolated in a short run."""
    layout = [sample(-0.9, write_bw_bytes_per_s=1e8), sample(0.1, write_bw_bytes_per_s=0.9e8)]
    later = [sample(t + 0.1) for t in range(1, 10)]
    row = use([result(io_bytes=9 * 409_600)], [*layout, *later]).iloc[0]
    assert row["device_share_percent"] == pytest.approx(100, abs=1)
    assert row["write_iops"] == pytest.approx(100)
    row = use([result(runtime_s=0.05)], layout).iloc[0]
    assert row["device_bytes"] == 0


def test_intervals_are_weighted_by_their_requests() -> None:
    """A second with few requests hardly counts; one without any is a zero of the rate only."""
    rows = steady()
    rows[1] |= {"write_iops": 1.0, "write_lat_s": 9.0, "write_request_bytes": 512.0}
    row = use([result()], rows).iloc[0]
    assert row["write_lat_s"] == pytest.approx((900 * 0.01 + 9) / 901)
    assert row["write_request_bytes"] == pytest.approx((900 * 4096 + 512) / 901)
    rows = steady()
    for place in range(1, 6):
        rows[place] |= QUIET | {"queue_depth": 16.0, "active_percent": 100.0}
    row = use([result()], rows).iloc[0]
    assert row["write_iops"] == pytest.approx(50)
    assert row["queue_depth"] == pytest.approx(8.5)
    assert row["write_lat_s"] == pytest.approx(0.01)


def test_dirty_pages_grow_from_what_was_there() -> None:
    """Growth is the peak while fio ran, over the last sample before it; the tail has no part."""
    rows = steady()
    rows[6]["dirty_bytes"] = 3e6
    rows[12]["dirty_bytes"] = 9e9
    row = use([result()], rows).iloc[0]
    assert row["dirty_growth_bytes"] == pytest.approx(2e6)
    assert row["dirty_peak_bytes"] == pytest.approx(3e6)
    alone = use([result(runtime_s=1.0)], [sample(1.0)]).iloc[0]
    assert pd.isna(alone["dirty_growth_bytes"])


def test_a_short_run_has_the_intervals_that_it_nearly_fills() -> None:
    """Of 0.3 s of a second most I/O may be of others; what came before is in its tail."""
    row = use([result(runtime_s=0.3, io_bytes=40_960)], [sample(0.0), sample(1.0)]).iloc[0]
    assert row[["write_iops", "device_share_percent", "active_percent"]].isna().all()
    row = use([result(runtime_s=0.92, io_bytes=409_600)], [sample(0.0), sample(1.0)]).iloc[0]
    assert row["write_iops"] == 100
    assert row["device_share_percent"] == pytest.approx(92, rel=0.01)
    rows = [sample(0.7, write_bw_bytes_per_s=50e6), sample(1.7, **QUIET)]
    row = use([result(direct=False, runtime_s=0.02, io_bytes=50_000_000)], rows).iloc[0]
    assert row["device_bytes"] + row["tail_bytes"] == pytest.approx(50e6)
    assert row["tail_bytes"] == pytest.approx(50e6 * 0.68 / 0.7)


def test_errors_of_device_and_fio_are_counted_separately() -> None:
    """Failed requests add up, also those after the end; fio's error is its own."""
    rows = steady()
    rows[3]["io_errors"], rows[11]["io_errors"] = 2, 1
    row = use([result(error=5)], rows).iloc[0]
    assert row["io_errors"] == 3
    assert row["error"] == 5
    uncounted = use([result()], steady(io_errors=None)[1:11]).iloc[0]
    assert pd.isna(uncounted["io_errors"])


def test_missing_values_are_never_zero() -> None:
    """Without a device, limits or pressure there are no numbers, but the host's own."""
    blank = dict.fromkeys(
        [
            *("device", "read_iops", "write_iops", "read_bw_bytes_per_s", "write_bw_bytes_per_s"),
            *("write_lat_s", "write_request_bytes", "queue_depth", "active_percent"),
            *("io_errors", "io_pressure_some_percent"),
        ]
    )
    row = use([result()], [sample(float(t), **blank) for t in range(1, 13)]).iloc[0]
    for name in (
        *("iops_percent", "bw_percent", "write_iops", "active_percent", "queue_depth"),
        *(
            "io_pressure_some_percent",
            "device_share_percent",
            "device_bytes",
            "tail_s",
            "io_errors",
        ),
        *("device", "bottleneck"),
    ):
        assert pd.isna(row[name]), name
    assert row["iowait_percent"] == 5


def test_sections_and_directions_of_a_run_are_combined() -> None:
    """Two sections and two directions are one row; their bytes add up, fsync has none."""
    summary = [
        result(),
        result(group="log", direction="read", runtime_s=8.0),
        result(direction="sync", io_bytes=None, runtime_s=99.0),
    ]
    rows = steady(read_bw_bytes_per_s=409_600.0, read_iops=100.0)
    found = use(summary, rows)
    assert len(found) == 1
    row = found.iloc[0]
    assert row["runtime_s"] == 10
    assert row["tool_bytes"] == 2 * 4_096_000
    assert row["device_share_percent"] == pytest.approx(100)
    assert fio_end_s(frame("summary", summary)) == 10


def test_the_bottleneck_comes_from_the_verdicts() -> None:
    """One direction has its level; two are told after one another, without one."""
    verdict = IDENTITY | {
        "direction": "write",
        "bottleneck": "iops-limit",
        "bottleneck_level": 100.0,
    }
    entry = use([result()], steady(), [verdict | {"explanation": "w"}]).iloc[0]
    assert (entry["bottleneck"], entry["bottleneck_level"], entry["explanation"]) == (
        "iops-limit",
        100.0,
        "w",
    )
    read = verdict | {"direction": "read", "bottleneck": "latency", "explanation": "r"}
    both = use([result()], steady(), [verdict, read]).iloc[0]
    assert both["bottleneck"] == "iops-limit, latency"
    assert pd.isna(both["bottleneck_level"])


def test_runs_without_device_samples_are_left_out() -> None:
    """The table has a row for each watched run in the order of the summary, with all columns."""
    runs = [result(run=f"r{n}", job=f"job{n}") for n in (3, 1, 2)]
    rows = [row | {"run": run} for run in ("r1", "r3") for row in steady()]
    found = use(runs, rows)
    assert list(found["run"]) == ["r3", "r1"]
    assert list(found["label"]) == ["job3", "job1"]
    nothing = use(runs, [])
    assert list(nothing.columns) == list(found.columns) == [column.name for column in USE]
    assert nothing.empty
    assert (nothing.dtypes == found.dtypes).all()


def test_a_run_without_fio_results_still_has_device_rows() -> None:
    """A Run that failed has the means of all samples before its end."""
    failed = result(status="failed", runtime_s=None, io_bytes=None, error=28)
    row = use([failed], steady()).iloc[0]
    assert row["write_iops"] == pytest.approx(100)
    assert pd.isna(row["device_share_percent"])
    assert row["error"] == 28
