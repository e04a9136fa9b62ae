"""Results that others published: fio's own numbers count, and impossible ones are left out."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.importer.sources import take
from tests.ingest.block_rows import block_rows
from tests.planned import a_folder, planned_campaign, planned_run
from volbench.fio.logs.direction_series import DirectionSeries
from volbench.fio.results.decode_text import decode
from volbench.ingest.campaign_tables import RunRows, read_run
from volbench.ingest.run_summary import keep_latencies_of_rate, without_impossible
from volbench.ingest.series_rows import COMMON_MEAN, while_all_ran
from volbench.model.campaign.planned_run import Run, RunState, Section
from volbench.model.frames.columns import Row
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency
from volbench.store.layout import Layout
from volbench.store.log_files import unpack

FIELD = Path(__file__).parent.parent / "cases" / "field"
OPTIONS = {"rw": "randrw", "bs": "4096"}


def run_of(layout: Layout, case: str, *, name: str, sample_s: float) -> Run:
    """Return a run that left the files of a case, and write them to its folder."""
    folder = layout.run(f"{case}-r1")
    folder.path.mkdir(parents=True)
    for path in (FIELD / case).iterdir():
        shutil.copy(path, folder.path)
        if ".log" not in path.name or "run_stats" in path.name:
            folder.fio_output.write_text(decode(unpack(path.read_bytes())))
    section = Section(name=name, options=OPTIONS)
    return planned_run(a_folder(), section, id=f"{case}-r1", sample_s=sample_s)


def ingested(layout: Layout, run: Run) -> RunRows:
    """Return the rows of the only run of a campaign."""
    return read_run(planned_campaign(run), run, RunState.FINISHED, layout.run(run.id))


def rows_of_case(root: Path, case: str, *, name: str, sample_s: float) -> RunRows:
    """Return the rows of a run that left the files of a case."""
    layout = Layout(root)
    return ingested(layout, run_of(layout, case, name=name, sample_s=sample_s))


def test_a_hang_of_one_process_stays_in_the_result(tmp_path: Path) -> None:
    """144 reads a second over 69 s, not 289 until the disk hung; the series has the 35 s of 0."""
    rows = rows_of_case(tmp_path, "raid-hang", name="iotest", sample_s=0.25)
    read, write = rows.summary
    assert (read["iops"], read["runtime_s"]) == (144.084934, 69.23)
    assert read["parallel_s"] == read["runtime_s"]
    assert read["bw_overall_bytes_per_s"] == 40857600 / 69.23
    assert read["clat_p9999_s"] is None
    assert "clat p99.99 > 17.1 s" in str(read["impossible"])
    series = [
        row for row in block_rows("series", rows.series) if row["direction"] == write["direction"]
    ]
    idle = [row for row in series if row["iops"] == 0.0]
    assert len(idle) * 0.25 == pytest.approx(34, abs=2)
    assert {row["jobs_running"] for row in series} == {1}


def test_a_log_with_half_of_the_ios_is_not_a_series(tmp_path: Path) -> None:
    """Fio 3.12 lost more than half of its samples with rbd: they are named, and not drawn."""
    rows = rows_of_case(tmp_path, "rbd-lost-samples", name="test", sample_s=0.05)
    (row,) = rows.summary
    assert row["iops"] == pytest.approx(8521.36, abs=0.01)
    assert row["log_share"] == pytest.approx(0.44, abs=0.01)
    assert row["impossible"] == "logs with 44 % of the I/Os of the result"
    assert not rows.series


def test_a_few_windows_with_pauses_remain_a_series(tmp_path: Path) -> None:
    """The logs of a floppy lack a fifth of its 360 writes, for fio averages over pauses."""
    rows = rows_of_case(tmp_path, "floppy", name="iotest", sample_s=1.0)
    (row,) = rows.summary
    assert row["log_share"] == pytest.approx(0.8, abs=0.01)
    assert row["impossible"] == "clat p60 and above > 17.1 s (the last bin of fio)"
    assert (row["clat_p50_s"], row["clat_p99_s"]) == (pytest.approx(15.77, abs=0.01), None)
    assert rows.series


def test_latencies_longer_than_the_run_are_left_out(tmp_path: Path) -> None:
    """Completion latencies of 70,266 s in a run of 30 s go; total latencies stay."""
    rows = rows_of_case(tmp_path, "femu-impossible", name="job", sample_s=0)
    (row,) = rows.summary
    assert row["impossible"] == "clat of 70,266 s in a run of 41 s"
    assert row["lat_max_s"] == pytest.approx(0.0125, abs=0.001)
    assert row.get("clat_mean_s") is None
    assert not rows.percentiles
    assert not [share for share in rows.shares if share["quantity"] == "clat"]


@pytest.mark.parametrize(
    ("iops", "bandwidth", "remarks"),
    [(None, 4096.0, ["IOPS that are not a number"]), (1.0, 4096.0, []), (None, None, [])],
)
def test_infinite_iops_are_named(
    iops: float | None, bandwidth: float | None, remarks: list[str]
) -> None:
    """What fio prints as inf is unknown here; of syncs nobody expects a rate."""
    entry = DirectionResult(Direction.READ, 4096, 1, 30.0, iops, bandwidth)
    assert without_impossible(entry, JobResult("a", 0, 0, (entry,)))[1] == remarks


def test_logged_latencies_longer_than_the_run_are_left_out(tmp_path: Path) -> None:
    """A log of completion latencies repeats the 70,266 s in some seconds; the others stay."""
    layout = Layout(tmp_path)
    run = run_of(layout, "femu-impossible", name="job", sample_s=1)
    rows = "".join(
        f"{1000 * s}, {70266 * 10**9 if s % 7 == 0 else 3000}, 1, 0\n" for s in range(1, 31)
    )
    (layout.run(run.id).path / "job_clat.1.log").write_text(rows)
    found = ingested(layout, run)
    assert found.summary[0]["impossible"] == (
        "clat of 70,266 s in a run of 41 s; logs with a latency of 70,266 s in a run of 41 s"
    )
    series = block_rows("series", found.series)
    assert sum(row["clat_mean_s"] == pytest.approx(3e-6) for row in series) == 26
    assert sum(row["clat_mean_s"] is None for row in series) == 4


@pytest.mark.parametrize(
    ("percentiles", "max_s", "kept", "remark"),
    [
        ({50.0: 1.0, 99.0: 2.01}, 2.0, {50.0: 1.0, 99.0: 2.0}, ""),
        ({50.0: 3.0}, 2.0, {}, "lat p50 of 3 s above the maximum of 2 s"),
        ({50.0: 1.0, 99.0: 17.11276032}, 30.0, {50.0: 1.0}, "lat p99 > 17.1 s"),
        ({99.0: 17.11276032}, 17.11, {99.0: 17.11}, ""),
        ({90.0: 16.71168, 99.0: 16.71168}, 20.0, {}, "lat p90 and above > 16.7 s"),
    ],
)
def test_impossible_percentiles_are_named(
    percentiles: dict[float, float], max_s: float, kept: dict[float, float], remark: str
) -> None:
    """A maximum may be 0.8 % below the middle of its bin, and counts; the last bin is a bound."""
    latency = Latency(10, 0.0, max_s, 1.0, 0.0, percentiles)
    entry = DirectionResult(Direction.READ, 4096, 1, 30.0, 1.0, 4096.0, lat=latency)
    found, remarks = without_impossible(entry, JobResult("a", 0, 0, (entry,)))
    assert found.lat is not None
    assert found.lat.percentiles == kept
    assert "".join(remarks).startswith(remark)
    assert bool(remarks) == bool(remark)


def summed(iops: list[float], running: list[float], lat_s: list[float]) -> DirectionSeries:
    """Return a series of one second each."""
    unknown = np.full(len(iops), np.nan)
    return DirectionSeries(
        direction=Direction.READ,
        t_s=np.arange(1.0, len(iops) + 1),
        utc_s=None,
        iops=np.array(iops),
        bw_bytes_per_s=np.array(iops) * 4096,
        lat_mean_s=np.array(lat_s),
        lat_p50_s=unknown,
        lat_p99_s=unknown,
        lat_p999_s=unknown,
        lat_max_s=unknown,
        clat_mean_s=unknown,
        slat_mean_s=unknown,
        jobs_running=np.array(running),
    )


def test_latency_and_rate_cover_the_same_time() -> None:
    """Four jobs of depth 32 have 128 I/Os in flight while all ran, whatever the last one did."""
    series = summed(
        [1000.0] * 10 + [500.0] * 10, [4.0] * 10 + [1.0] * 10, [0.128] * 10 + [0.06] * 10
    )
    columns = while_all_ran(series)
    row: Row = {"iops_overall": 750.0, "lat_mean_s": 0.1, "lat_p99_s": 0.5, "clat_max_s": 1.0}
    row |= columns
    keep_latencies_of_rate(row, row.pop(COMMON_MEAN))
    assert row["iops"] == 1000.0
    assert 1000.0 * float(str(row["lat_mean_s"])) == pytest.approx(128.0)
    assert (row["lat_p99_s"], row["clat_max_s"]) == (None, None)
    near: Row = {"iops": 770.0, "iops_overall": 750.0, "lat_mean_s": 0.1, "lat_p99_s": 0.5}
    keep_latencies_of_rate(near, None)
    assert (near["lat_mean_s"], near["lat_p99_s"]) == (0.1, 0.5)


def test_the_deviation_of_a_sum_is_that_of_its_series() -> None:
    """Jobs that slow down together deviate by more than their variances add up to."""
    rates = [800.0, 1200.0] * 10
    columns = while_all_ran(summed(rates, [8.0] * 20, [0.01] * 20))
    assert columns["iops_stddev"] == pytest.approx(np.std(rates, ddof=1))
    assert (columns["iops_min"], columns["iops_max"]) == (800.0, 1200.0)
    assert "iops" not in columns


@pytest.mark.parametrize(
    ("options", "percent"),
    [({"rwmixwrite": "10"}, 90), ({"rwmixread": "70"}, 70), ({}, 50), ({"rwmixwrite": "x"}, None)],
)
def test_the_share_of_reads_is_read(
    tmp_path: Path, options: dict[str, str], percent: int | None
) -> None:
    """A share that is not a number is unknown, and takes nothing else with it."""
    layout = Layout(tmp_path)
    run = run_of(layout, "raid-hang", name="iotest", sample_s=0)
    section = Section(name="iotest", options=OPTIONS | options)
    run = run.model_copy(update={"sections": (section,)})
    assert {row["rwmixread"] for row in ingested(layout, run).summary} == {percent}


def test_completion_latency_never_exceeds_total_latency(tmp_path: Path) -> None:
    """Completion latencies of 5 s beside total ones of 152 us at depth 2 are an error of fio."""
    _, opened = take(FIELD / "clat-above-lat", into=tmp_path / "c")
    read, write = opened.rows("summary")
    assert (read["clat_mean_s"], read["clat_p99_s"]) == (None, None)
    assert read["lat_mean_s"] == pytest.approx(151.56e-6)
    assert "clat mean of 5.06 s above the lat mean of 0.000152 s" in str(read["impossible"])
    assert read["iops_max"] == 15268
    assert write["impossible"] == "clat of 20 s in a run of 10 s"


@pytest.mark.parametrize(("high", "kept"), [(1, False), (24_000, True), (900, False)])
def test_windows_cover_the_rate_of_all_jobs(tmp_path: Path, high: int, *, kept: bool) -> None:
    """With logs of every I/O fio's windows are single I/Os; its old text has those of one job."""
    document = json.loads((FIELD.parent / "fio-3.33/randrw-jsonplus/stdout").read_text())
    document["jobs"][0]["read"] |= {"iops": 20_000.0, "iops_min": 1, "iops_max": high}
    (tmp_path / "r.json").write_text(json.dumps(document))
    _, opened = take(tmp_path / "r.json", into=tmp_path / "c")
    read = opened.rows("summary")[0]
    assert (read["iops_max"] is not None) is kept
    assert (read["iops_min"] is not None) is kept


def test_percentiles_of_completion_do_not_stand_for_submission() -> None:
    """Buffered libaio works while it submits: p99 of 3 us, where the mean latency is 158 us."""
    clat = Latency(None, 1e-6, 0.038, 5.93e-6, 2e-4, percentiles={50.0: 2e-6, 99.0: 3e-6})
    lat, slat = Latency(None, 4e-6, 1.2, 158e-6, 6e-3), Latency(None, 2e-6, 1.2, 152e-6, 6e-3)
    job = JobResult("w", groupid=0, error=0, directions=())
    result = DirectionResult(
        Direction.WRITE, 4096, 1, 10.0, 6008.0, 24e6, lat=lat, clat=clat, slat=slat
    )
    kept, remarks = without_impossible(result, job)
    assert kept.clat is not None
    assert (kept.clat.mean_s, kept.clat.percentiles) == (clat.mean_s, {})
    assert remarks == ["clat percentiles, as completion is only 4 % of the mean latency"]
    half = replace(result, clat=replace(clat, mean_s=80e-6))
    assert without_impossible(half, job) == (half, [])
    own = replace(result, lat=replace(lat, percentiles={99.0: 0.001}))
    assert without_impossible(own, job) == (own, [])
