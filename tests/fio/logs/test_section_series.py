"""fio's logs become whole series: stalls are zeros, numjobs are added up, losses are left out."""

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.fio.logs.logtexts import SeriesPoint, iops, log_of, points_of, reading_of
from volbench.fio.logs.log_rows import Log, Recording
from volbench.fio.logs.section_logs import parse_log_name, read_series
from volbench.fio.results.json_output import parse_version
from volbench.fio.results.merge_jobs import BINS
from volbench.model.results.result import Direction

CASES = Path(__file__).parents[2] / "cases"
VERSIONS = sorted(path.name for path in CASES.glob("fio-*"))
RATES = ((1, 300), (2, 100))  # Job and its IOPS


def open_bytes(path: Path) -> BinaryIO:
    """Open a file."""
    return path.open("rb")


def logs_of(folder: Path) -> list[Log]:
    """Return every log in a folder."""
    found = []
    for path in sorted(folder.iterdir()):
        name = parse_log_name(path.name)
        if name is not None:
            found.append(Log(*name, str(path), partial(open_bytes, path)))
    return found


def series_of(version: str, case: str, *, interval_s: float) -> tuple[SeriesPoint, ...]:
    """Return the series of a case, with the runtime that its document tells."""
    folder = CASES / version / case
    entries = json.loads((folder / "stdout").read_text())["jobs"]
    longest = max(entry[name]["runtime"] for entry in entries for name in ("read", "write"))
    reading = read_series(
        logs_of(folder),
        Recording(
            interval_s=interval_s, runtime_s=longest / 1000, fio_version=parse_version(version)
        ),
    )
    assert reading.bad_rows == ()
    return points_of(reading)


def read(logs: Sequence[Log], *, runtime_s: float | None = 4.0) -> tuple[SeriesPoint, ...]:
    """Return the series of logs of fio 3.33 in which every line is sound."""
    reading = reading_of(logs, runtime_s=runtime_s)
    assert reading.bad_rows == ()
    return points_of(reading)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("l_bw.1.log", ("bw", 1)),
        ("run_7_clat.12.log", ("clat", 12)),
        ("h_clat_hist.3.log", ("clat_hist", 3)),
        ("l_bw.log", None),
        ("l_bw.0.log", None),
        ("l_bw.1.log.fz", None),
        ("bw.1.log", None),
    ],
)
def test_log_names_are_recognized(name: str, expected: tuple[str, int] | None) -> None:
    """Kind and job number stand in the name; a log without a number may mix jobs."""
    assert parse_log_name(name) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_averaged_logs_of_every_version_are_whole(version: str) -> None:
    """A steady load of 400 IOPS has a point in every window and a zero in none."""
    points = series_of(version, "logs-averaged", interval_s=0.1)
    for direction in (Direction.READ, Direction.WRITE):
        mine = [point for point in points if point.direction is direction]
        times = [round(point.t_s * 10) for point in mine]
        assert times == list(range(times[0], times[0] + len(mine)))
        assert len(mine) >= 15
        assert all(point.iops for point in mine)
        mean = math.fsum(point.iops or 0 for point in mine) / len(mine)
        assert mean == pytest.approx(400, rel=0.03)
        for point in mine:
            assert point.bw_bytes_per_s == pytest.approx((point.iops or 0) * 4096, rel=0.15)
            assert point.lat_mean_s is not None
            assert 1e-6 < point.lat_mean_s < 0.1
            assert point.lat_p99_s is None
            assert point.utc_s is None


def test_means_are_weighted_by_the_ios_of_each_job() -> None:
    """Job 1 has three times the I/Os of job 2; a second without slat log rows is unknown."""
    logs = [
        *(log_of("iops", job, f"1000, {rate}, 0, 0\n2000, {rate}, 0, 0\n") for job, rate in RATES),
        *(log_of("lat", job, f"1000, {rate}000, 0, 0\n2000, 9, 0, 0\n") for job, rate in RATES),
        *(log_of("slat", job, f"1000, {rate}000, 0, 0\n") for job, rate in RATES),
    ]
    first, second = read(logs, runtime_s=2.0)
    assert (
        first.lat_mean_s == first.slat_mean_s == pytest.approx((300 * 300e-6 + 100 * 100e-6) / 400)
    )
    assert (second.slat_mean_s, second.clat_mean_s) == (None, None)


def test_completion_latency_stands_for_the_total_where_that_was_not_logged() -> None:
    """With disable_lat=1 fio writes a clat log only; it is both columns."""
    (point,) = read([log_of("clat", 1, "400, 7000, 0, 4096\n800, 9000, 0, 4096\n")], runtime_s=1.0)
    assert (point.lat_mean_s, point.clat_mean_s, point.slat_mean_s) == (8e-6, 8e-6, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_numjobs_are_summed_up_to_the_last_window_of_all(version: str) -> None:
    """Three numjobs at 300 IOPS each make 900; a window that one of them lost is not shown."""
    points = series_of(version, "logs-numjobs", interval_s=0.25)
    assert len(points) >= 2
    for point in points:
        assert point.iops == pytest.approx(900, rel=0.25)
        assert point.bw_bytes_per_s == pytest.approx((point.iops or 0) * 8192, rel=0.05)


@pytest.mark.parametrize("version", VERSIONS)
def test_logs_of_single_ios_are_counted(version: str) -> None:
    """Logs that hold every I/O give exact counts, means and maxima, percentiles to 0.8 %."""
    points = series_of(version, "logs-per-io", interval_s=0.05)
    lat, clat = (
        [line.split(", ") for line in Path(log.name).read_text().splitlines()]
        for kind in ("lat", "clat")
        for log in logs_of(CASES / version / "logs-per-io")
        if log.kind == kind
    )
    unit = 1e6 if version.startswith("fio-2") else 1e9
    assert len(points) == 5
    for number, point in enumerate(points):
        mine = [row for row in lat if number * 50 <= int(row[0]) < (number + 1) * 50]
        values = [int(row[1]) / unit for row in mine]
        moved = sum(int(row[3]) for row in mine)
        assert point.iops == pytest.approx(len(mine) / 0.05, rel=1e-12)
        assert point.bw_bytes_per_s == pytest.approx(moved / 0.05, rel=1e-12)
        assert point.lat_mean_s == pytest.approx(math.fsum(values) / len(values), rel=1e-12)
        assert point.lat_max_s == max(values)
        parts = [
            int(row[1]) / unit for row in clat if number * 50 <= int(row[0]) < (number + 1) * 50
        ]
        assert point.clat_mean_s == pytest.approx(math.fsum(parts) / len(parts), rel=1e-12)
        assert point.slat_mean_s is None
        found = (point.lat_p50_s, point.lat_p99_s, point.lat_p999_s)
        for value, share in zip(found, (0.5, 0.99, 0.999), strict=True):
            exact = sorted(values)[math.ceil(len(values) * share) - 1]
            assert value == pytest.approx(exact, rel=0.0079)


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "fio-2.2.10"])
def test_histogram_logs_give_percentiles(version: str) -> None:
    """Bins of each window give ascending percentiles; those of 3.16 are known to be wrong."""
    points = series_of(version, "logs-histogram", interval_s=0.25)
    if version == "fio-3.16":
        assert points == ()
        return
    assert len(points) == 4
    for point in points[:3]:
        assert point.lat_p50_s is not None
        assert point.lat_p99_s is not None
        assert point.lat_p999_s is not None
        assert 1e-6 <= point.lat_p50_s <= point.lat_p99_s <= point.lat_p999_s < 0.1
        assert (point.iops, point.lat_mean_s) == (None, None)


def test_a_stall_is_zero_and_not_a_gap() -> None:
    """Windows without a row are rates of 0 without a latency, to the end of the run."""
    points = read(
        [
            log_of("iops", 1, "1002, 50, 0, 0, 0\n3990, 70, 0, 0, 0\n"),
            log_of("bw", 1, "1002, 200, 0, 0, 0\n3990, 280, 0, 0, 0\n"),
            log_of("lat", 1, "1001, 4000, 0, 0, 0\n4100, 6000, 0, 0, 0\n"),
        ],
        runtime_s=6.0,
    )
    assert [point.t_s for point in points] == [1, 2, 3, 4, 5]
    assert iops(points) == [50, 0, 0, 70, 0]
    assert [point.bw_bytes_per_s for point in points] == [204800, 0, 0, 286720, 0]
    assert [point.lat_mean_s for point in points] == [4e-6, None, None, 6e-6, None]


def test_the_last_window_is_kept_when_fio_wrote_it() -> None:
    """Versions that report the last window show it."""
    rows = "".join(f"{n * 1000 + 3}, {n}, 1, 0, 0\n" for n in (1, 2, 3, 4))
    points = read([log_of("iops", 1, rows)])
    assert iops(points) == [1, 2, 3, 4]
    assert {point.direction for point in points} == {Direction.WRITE}


def test_absolute_times_are_kept_and_made_relative() -> None:
    """Epoch stamps give instants, and a job that began later is shifted on the grid."""
    start = 1_795_231_000_000
    first = "".join(f"{start + n * 1000}, 10, 0, 0, 0\n" for n in (1, 2, 3))
    second = "".join(f"{start + n * 1000}, 5, 0, 0, 0\n" for n in (2, 3))
    texts = [log_of("iops", 1, first), log_of("iops", 2, second)]
    points = read(texts, runtime_s=3.0)
    assert iops(points) == [10, 15, 15]
    assert [point.t_s for point in points] == [1, 2, 3]
    assert [point.utc_s for point in points] == [start / 1000 + n for n in (1, 2, 3)]
    known = read_series(
        texts,
        Recording(
            interval_s=1.0, runtime_s=4.0, fio_version=(3, 33), epoch_start_s=start / 1000 - 1
        ),
    )
    assert iops(points_of(known)) == [0, 10, 15, 15]


def test_relative_times_become_instants_when_the_start_is_known() -> None:
    """Times from the start of the job need only that start to be absolute."""
    recording = Recording(interval_s=1.0, runtime_s=1.0, fio_version=(3, 42), epoch_start_s=100.0)
    points = points_of(read_series([log_of("iops", 1, "1000, 1, 0, 0\n")], recording))
    assert [point.utc_s for point in points] == [101.0]


@pytest.mark.parametrize("coarseness", [0, 1, 3, 6])
def test_coarse_histograms_are_read(coarseness: int) -> None:
    """Fewer and wider bins give a percentile within their width."""
    width = 2**coarseness
    counts = [0] * (BINS // width)
    counts[1000 // width] = 7
    row = ", ".join(map(str, [1000, 0, 4096, *counts]))
    (point,) = read([log_of("clat_hist", 1, f"{row}\n")], runtime_s=1.0)
    ends = (1000 // width * width, 1000 // width * width + width)
    low, high = (((64 + end % 64) << (end // 64 - 1)) / 1e9 for end in ends)
    assert point.lat_p50_s is not None
    assert low <= point.lat_p50_s <= high


def test_histograms_of_numjobs_are_summed_before_percentiles() -> None:
    """The median of all I/Os is that of the busier job, not between both."""
    rows = []
    for bin_, count in ((100, 9), (110, 1)):
        counts = [0] * BINS
        counts[bin_] = count
        rows.append(", ".join(map(str, [1000, 0, 4096, *counts])) + "\n")
    (point,) = read([log_of("clat_hist", n, row) for n, row in enumerate(rows, 1)], runtime_s=1)
    assert (point.lat_p50_s, point.lat_p99_s) == (100e-9, 110e-9)


def test_without_a_runtime_the_series_ends_with_the_last_row() -> None:
    """The rows themselves bound the series."""
    rows = "1000, 1, 0, 0\n3000, 3, 0, 0\n"
    assert iops(read([log_of("iops", 1, rows)], runtime_s=None)) == [1, 0, 3]
    assert read([], runtime_s=None) == read([log_of("iops", 1, "")]) == ()


def test_sync_rows_are_not_a_direction_of_the_series() -> None:
    """Newer versions log syncs with a direction of their own."""
    assert iops(read([log_of("iops", 1, "1000, 1, 0, 0\n1000, 9, 3, 0\n")], runtime_s=1)) == [1]


def test_a_stall_at_the_start_is_not_moved_to_the_end() -> None:
    """Absolute times begin with the first row; the end of the run gives what passed before it."""
    start = 1_795_231_000
    rows = "".join(f"{(start + n) * 1000 + 2}, {n}, 0, 0, 0\n" for n in (4, 5, 6))
    logs = [log_of("iops", 1, rows), log_of("lat", 1, rows)]

    def rates(begun_by_s: float) -> list[float | None]:
        return iops(
            points_of(
                read_series(
                    logs,
                    Recording(
                        interval_s=1.0, runtime_s=6.0, fio_version=(3, 37), begun_by_s=begun_by_s
                    ),
                )
            )
        )

    assert rates(start + 0.2) == [0, 0, 0, 4, 5, 6]
    assert rates(start - 50) == [0, 0, 0, 4, 5, 6]
    assert rates(start + 99) == [4, 5, 6, 0, 0]


def test_maxima_logged_beside_means_are_read() -> None:
    """With ``log_window_value=both`` (3.37) the maximum latency stands after the mean."""
    rates = "1000, 10, 12, 0, 0, 0\n2000, 20, 22, 0, 0, 0\n"
    lat = "1000, 4000, 9000, 0, 0, 0\n2000, 5000, 7000, 0, 0, 0\n"
    logs = [
        log_of("iops", 1, rates),
        log_of("lat", 1, lat),
        log_of("lat", 2, "1000, 1, 9500, 0, 0, 0\n"),
    ]
    points = points_of(reading_of(logs, runtime_s=2.0, version=(3, 42)))
    assert iops(points) == [10, 20]
    assert [point.lat_max_s for point in points] == [9500e-9, 7e-6]
    single = "0, 507892, 0, 1, 4096, 8192000, 0x2000, 104354\n1000, 1, 0, 1, 4096, 0, 0x2000, 1\n"
    (point,) = points_of(reading_of([log_of("clat", 1, single)], runtime_s=1.0, version=(3, 42)))
    assert point.direction is Direction.WRITE
    assert (point.iops, point.bw_bytes_per_s, point.lat_max_s) == (1, 4096, 507892e-9)
    plain = "0, 5, 1, 4096, 8192, 0\n2000, 5, 1, 4096, 0, 0\n"
    points = points_of(reading_of([log_of("clat", 1, plain)], runtime_s=1.0, version=(3, 42)))
    assert [point.direction for point in points] == [Direction.WRITE]


def test_single_ios_of_numjobs_are_counted_together() -> None:
    """Percentiles are those of all I/Os, and a latency beyond fio's last bin is not cut."""
    first = "".join(f"{n}, 1000, 0, 4096, 0\n" for n in range(99))
    second = f"500, {60 * 10**9}, 0, 8192, 0\n1200, 1, 0, 512, 0\n"
    logs = [
        log_of(kind, n, text) for n, text in ((1, first), (2, second)) for kind in ("lat", "bw")
    ]
    (point,) = read(logs, runtime_s=1.0)
    assert (point.iops, point.bw_bytes_per_s) == (100, 99 * 4096 + 8192)
    assert point.lat_p50_s == point.lat_p99_s == pytest.approx(1e-6, rel=0.0079)
    assert point.lat_p999_s == pytest.approx(60, rel=0.0079)
    assert point.lat_max_s == 60


def test_windows_in_which_not_all_jobs_ran_are_marked() -> None:
    """A job that ends after 4 of 8 s leaves a sum that is no rate of the volume."""
    long = "".join(f"{1000 * second}, 100, 0, 0, 0\n" for second in range(1, 9))
    short = "".join(f"{1000 * second}, 100, 0, 0, 0\n" for second in range(1, 5))
    points = read([log_of("iops", 1, long), log_of("iops", 2, short)], runtime_s=9.0)
    assert [point.jobs_running for point in points] == [2] * 4 + [1] * 4
    assert iops(points) == [200.0] * 4 + [100.0] * 4


def test_the_partial_last_second_of_a_job_is_marked() -> None:
    """A job of per-I/O logs that ends at 4.3 s ran through four whole seconds."""
    every = range(100, 8000, 100)
    long = "".join(f"{at}, 1000000, 0, 4096, 0\n" for at in every)
    short = "".join(f"{at}, 1000000, 0, 4096, 0\n" for at in every if at <= 4300)
    points = read([log_of("lat", 1, long), log_of("lat", 2, short)], runtime_s=8.0)
    assert [point.jobs_running for point in points] == [2] * 4 + [1] * 4


def test_a_first_window_that_is_not_full_is_scaled() -> None:
    """272,269 IOPS in 140 ms are 38,000 I/Os in the first second."""
    rows = "".join(f"{140 + 1000 * second}, 1000, 0, 0, 0\n" for second in range(1, 9))
    points = read([log_of("iops", 1, f"140, 272269, 0, 0, 0\n{rows}")], runtime_s=8.0)
    assert iops(points)[:2] == [pytest.approx(0.14 * 272_269), 1000]


def test_sparse_rows_do_not_show_when_a_job_ended() -> None:
    """A job of one I/O in three seconds has no row in most windows."""
    every = "".join(f"{1000 * second}, 100, 0, 0, 0\n" for second in range(1, 9))
    sparse = "".join(f"{1000 * second}, 1, 0, 0, 0\n" for second in (1, 4, 7))
    points = read([log_of("iops", 1, every), log_of("iops", 2, sparse)], runtime_s=8.0)
    assert {point.jobs_running for point in points} == {None}
