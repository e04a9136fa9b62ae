"""Logs of real runs become whole series, and what can't be read of them is told."""

import gzip
import json
import math
import shutil
from pathlib import Path

import pytest

from tests.ingest.block_rows import series_rows
from tests.planned import a_folder, planned_campaign, planned_run
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, execute_run
from volbench.engine.run.stop_request import StopRequest
from volbench.execute.local import LocalExecutor
from volbench.fio.results.json_output import parse_output
from volbench.ingest.campaign_tables import read_run
from volbench.ingest.run_files import read_run_output
from volbench.ingest.series_rows import SectionSeries, read_section_series
from volbench.model.campaign.planned_run import Run, RunState, Section
from volbench.store.layout import Layout, RunFolder
from volbench.store.log_files import compress, open_log

CASES = Path(__file__).parent.parent / "cases"


def run_on(place: Path, *sections: Section, sample_s: float = 0.1) -> Run:
    """Return a run of a few seconds in a directory."""
    return planned_run(a_folder(place), *sections, id="001-a-r1", sample_s=sample_s)


def series_of(run: Run, folder: RunFolder) -> list[SectionSeries]:
    """Execute a run and read its series back."""
    fio = shutil.which("fio")
    assert fio is not None
    folder.path.mkdir()
    attempt = Attempt(
        this_machine(fio=fio),
        run,
        RunDirectory(LocalExecutor(), folder),
        deadline_s=60,
        listener=lambda _event: None,
        stop=StopRequest(),
    )
    end = execute_run(attempt)
    assert end.state is RunState.FINISHED, end.reason
    return list(read_section_series(run, folder, read_run_output(run, folder)))


def of_case(folder: Path) -> tuple[Run, RunFolder]:
    """Return a run that left averaged logs of fio 3.33 at 400 IOPS each way for two seconds."""
    folder.mkdir(parents=True)
    for path in (CASES / "fio-3.33/logs-averaged").glob("*.log"):
        (folder / path.name).write_bytes(path.read_bytes())
    output = (CASES / "fio-3.33/logs-averaged/stdout").read_bytes()
    (folder / "fio.json").write_bytes(output)
    return run_on(folder, Section(name="rw", options={"rw": "randrw"})), RunFolder(folder)


def read(run: Run, folder: RunFolder) -> SectionSeries:
    """Return the series of a run of one section."""
    output = parse_output(folder.fio_output.read_text(), path="fio.json")
    (series,) = read_section_series(run, folder, output)
    return series


def rates(series: SectionSeries, direction: str) -> list[float]:
    """Return the IOPS of one direction in order."""
    return [
        float(str(row["iops"]))
        for row in series_rows(series.directions)
        if row["direction"] == direction
    ]


def test_real_sections_keep_their_own_logs(tmp_path: Path) -> None:
    """Jobs of a section are summed, sections are not, and the grid has neither gap nor stall."""
    common = {"ioengine": "psync", "size": "1048576", "time_based": "1", "runtime": "2"}
    two = Section(
        name="two", options={**common, "rw": "randread", "numjobs": "2", "rate_iops": "300"}
    )
    entry = Section(name="one", options={**common, "rw": "randwrite", "rate_iops": "200"})
    run, folder = run_on(tmp_path, two, entry, sample_s=0.25), RunFolder(tmp_path / "run")
    found = series_of(run, folder)
    assert [series.section.name for series in found] == ["two", "one"]
    jobs = read_run_output(run, folder).jobs
    for series, direction, count in zip(found, ("read", "write"), (2, 1), strict=True):
        assert series.bad_rows == ()
        assert {row["direction"] for row in series_rows(series.directions)} == {direction}
        mine = rates(series, direction)
        assert [row["t_s"] for row in series_rows(series.directions)] == [
            0.25 * n for n in range(1, len(mine) + 1)
        ]
        assert len(mine) in {7, 8}
        assert min(mine) > 0
        # What fio counted itself: a busy machine may keep it from the rate that it was given.
        results = [
            entry
            for job in jobs
            if job.name == series.section.name
            for entry in job.directions
            if entry.direction == direction and entry.total_ios
        ]
        assert len(results) == count
        expected = math.fsum(entry.iops or 0 for entry in results)
        assert math.fsum(mine) / len(mine) == pytest.approx(expected, rel=0.1)
        assert all(str(row["utc"]).endswith("Z") for row in series_rows(series.directions))


def test_a_real_stall_is_in_the_series(tmp_path: Path) -> None:
    """A job that rests for half a second has windows of 0 there, in their place."""
    options = {"ioengine": "psync", "rw": "write", "size": "4194304", "bs": "4096"}
    options |= {"time_based": "1", "runtime": "3", "rate_iops": "1000"}
    resting = {"thinktime": "500000", "thinktime_blocks": "500"}
    section = Section(name="w", options={**options, **resting})
    (series,) = series_of(run_on(tmp_path, section), RunFolder(tmp_path / "run"))
    times = [round(float(str(row["t_s"])) * 10) for row in series_rows(series.directions)]
    assert times == list(range(1, len(times) + 1))
    mine = rates(series, "write")
    assert mine.count(0) >= 5
    assert max(mine) >= 500
    assert all(
        row["lat_mean_s"] is None for row in series_rows(series.directions) if row["iops"] == 0
    )


@pytest.mark.parametrize("way", ["plain", "zstd", "gzip", "both"])
def test_every_way_of_storing_gives_one_series(tmp_path: Path, way: str) -> None:
    """A log counts once, also when its compression was interrupted before the plain one went."""
    run, folder = of_case(tmp_path / "run")
    for path in list(folder.path.glob("*.log")):
        raw = path.read_bytes()
        if way == "gzip":
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(raw))
            path.unlink()
        elif way != "plain":
            compress(path)
            if way == "both":
                path.write_bytes(raw)
    mine = rates(read(run, folder), "read")
    assert len(mine) >= 15
    assert math.fsum(mine) / len(mine) == pytest.approx(400, rel=0.03)


def test_bad_log_lines_are_reported_in_the_summary(tmp_path: Path) -> None:
    """A log with a line cut in the middle and garbage is told in the summary of its run."""
    layout = Layout(tmp_path / "c")
    run, folder = of_case(layout.run("001-a-r1").path)
    folder.status.write_text(json.dumps({"started_utc": "2026-01-01T00:00:00.000Z"}))
    campaign = planned_campaign(run)
    whole = read_run(campaign, run, RunState.FINISHED, folder)
    assert [row["bad_log_rows"] for row in whole.summary] == [0, 0]
    path = folder.path / "l_iops.1.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + b"fio: fwrite failed\n" + lines[-1][:5])
    compress(path)
    rows = read_run(campaign, run, RunState.FINISHED, folder)
    assert [row["bad_log_rows"] for row in rows.summary] == [2, 2]
    assert rows.count("series") in {whole.count("series"), whole.count("series") - 2}
    (reported,) = read(run, folder).bad_rows
    assert reported.log.endswith("l_iops.1.log.zst")
    assert (reported.bad_rows, reported.first_line) == (2, len(lines) - 1)


def test_a_damaged_log_affects_only_its_series(tmp_path: Path) -> None:
    """The numbers of the run stay, and its rows name the log."""
    layout = Layout(tmp_path / "c")
    run, folder = of_case(layout.run("001-a-r1").path)
    (folder.path / "l_bw.1.log").write_text("<html>\n")
    campaign = planned_campaign(run)
    rows = read_run(campaign, run, RunState.FINISHED, folder)
    assert rows.series == []
    assert all(row["iops"] and "l_bw.1.log" in str(row["damage"]) for row in rows.summary)


def test_runs_without_samples_have_no_series(tmp_path: Path) -> None:
    """A Run that asked for none has none, whatever lies in its folder."""
    run, folder = of_case(tmp_path / "run")
    output = parse_output(folder.fio_output.read_text(), path="fio.json")
    quiet = run.model_copy(update={"sample_s": 0.0})
    assert list(read_section_series(quiet, folder, output)) == []
    with open_log(folder.path / "l_bw.1.log") as stream:
        assert stream.read(1)
