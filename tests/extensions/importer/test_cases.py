"""What eight versions of fio left is imported with fio's own numbers, or listed with its reason."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.extensions.importer.sources import CASES, take
from volbench.api.one_campaign import CampaignData
from volbench.extensions.importer.import_campaign import ImportReport
from volbench.fio.results.embedded_results import find_results
from volbench.fio.results.merge_jobs import merge_jobs, split_result

Taken = tuple[ImportReport, CampaignData]
FILES = sorted(CASES.glob("fio-*/*/stdout"))
NO_RESULT = {
    **{f"{path.name}/bad-option": "it is empty" for path in CASES.glob("fio-*")},
    "fio-2.2.10/logs-histogram": "it is empty",
    "fio-2.2.10/steadystate": "it is empty",
    "fio-3.16/interrupted": "it is empty",
}


@pytest.fixture(name="taken", scope="module")
def _taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    folders = sorted(CASES.glob("fio-*"))
    return take(*folders, into=tmp_path_factory.mktemp("all") / "campaign")


def case_of(path: Path) -> str:
    """Return the version and the name of a case."""
    return path.parent.relative_to(CASES).as_posix()


def rows_of(taken: Taken, case: str) -> pd.DataFrame:
    """Return the rows of the summary that come from a case."""
    _, opened = taken
    runs = {
        run.id
        for run in opened.campaign.runs
        if run.imported and run.imported.files[0].source == f"{case}/stdout"
    }
    frame = opened.summary()
    return frame[frame["run"].isin(runs)].reset_index(drop=True)


def test_every_case_is_imported_or_listed(taken: Taken) -> None:
    """No case is lost, and each that holds no result says why."""
    report, _ = taken
    reported = {
        problem.path.removesuffix("/stdout"): problem.message for problem in report.malformed
    }
    assert reported.keys() == NO_RESULT.keys()
    assert all(reason in reported[case] for case, reason in NO_RESULT.items())
    read = {run.run.imported.files[0].source for run in report.runs if run.run.imported}
    assert read == {f"{case_of(path)}/stdout" for path in FILES if case_of(path) not in reported}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case_of(path) for path in FILES if case_of(path) not in NO_RESULT]
)
def test_numbers_equal_those_of_fio(taken: Taken, case: str) -> None:
    """The frames hold exactly what the parser reads from the document."""
    (output,) = find_results((CASES / case / "stdout").read_text()).results
    wanted = [
        (
            float(direction.total_ios or 0),
            direction.iops,
            direction.bw_bytes_per_s,
            direction.clat and direction.clat.mean_s,
        )
        for part in split_result(output)
        for job in merge_jobs(part.jobs)
        for direction in job.directions
    ]
    rows = rows_of(taken, case)
    rows = rows[rows["direction"].notna()]
    columns = ["total_ios", "iops", "bw_bytes_per_s", "clat_mean_s"]
    found = rows[columns].astype("float64").to_numpy()
    assert np.array_equal(found, np.array(wanted, dtype=float).reshape(-1, 4), equal_nan=True)
    assert set(rows["fio_version"]) <= {output.tool_version}


@pytest.mark.slow
@pytest.mark.parametrize("version", sorted(path.name for path in CASES.glob("fio-*")))
def test_jobs_behind_a_stonewall_are_runs_of_their_own(taken: Taken, version: str) -> None:
    """What ran one after another is never added up."""
    rows = rows_of(taken, f"{version}/stonewall-two-jobs")
    assert rows["direction"].tolist() == ["write", "read"]
    assert rows["run"].nunique() == 2
    assert [job.rsplit("-", 1)[1] for job in rows["job"]] == ["first", "second"]


def test_options_equal_those_reported_by_fio(taken: Taken) -> None:
    """Options become columns, defaults hold where the rest is told, and nothing is made up."""
    row = rows_of(taken, "fio-3.33/randrw-jsonplus").iloc[0]
    assert (row["rw"], row["block_bytes"], row["iodepth"], row["numjobs"]) == ("randrw", 4096, 8, 1)
    assert bool(row["direct"]) is True
    old = rows_of(taken, "fio-2.2.10/numjobs-separate").iloc[0]
    assert old[["rw", "block_bytes", "iodepth", "direct", "ioengine"]].isna().all()
    assert old["numjobs"] == 3  # that many entries are there
    assert old["volume"] == "unknown"


def test_failures_are_kept_as_such(taken: Taken) -> None:
    """A job with an error failed, one that was stopped was interrupted; both with a reason."""
    _, opened = taken
    missing = rows_of(taken, "fio-3.33/missing-file")["run"][0]
    assert opened.runs[missing].state == "failed"
    assert opened.runs[missing].reason == "No I/O was done."
    stopped = rows_of(taken, "fio-3.33/interrupted")["run"][0]
    assert opened.runs[stopped].state == "interrupted"
    assert "signal 2" in opened.runs[stopped].reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "least"),
    [("logs-averaged", 30), ("logs-numjobs", 3), ("logs-per-io", 2), ("logs-histogram", 4)],
)
@pytest.mark.parametrize("version", ["fio-2.21", "fio-3.1", "fio-3.28", "fio-3.33", "fio-3.42"])
def test_logs_beside_a_result_become_its_series(
    taken: Taken, version: str, case: str, least: int
) -> None:
    """Logs are found by the prefix that the options tell, all numjobs together."""
    _, opened = taken
    rows = rows_of(taken, f"{version}/{case}")
    series = opened.series()
    assert (series["run"] == rows["run"][0]).sum() >= least
    assert rows["damage"].isna().all()


def test_logs_of_a_result_without_options_are_found(taken: Taken) -> None:
    """Where no options are told, as by fio 2.2, the only result of a folder has its logs."""
    _, opened = taken
    run = rows_of(taken, "fio-2.2.10/logs-averaged")["run"][0]
    series = opened.series()
    mine = series[(series["run"] == run) & (series["direction"] == "read")]
    assert mine["iops"].mean() == pytest.approx(400, rel=0.1)


def test_sources_are_recorded_and_unchanged(taken: Taken) -> None:
    """Each file of a run is the one that was imported, byte for byte, and the plan says so."""
    _, opened = taken
    for run in opened.campaign.runs:
        assert run.imported is not None
        for file in run.imported.files:
            copied = (opened.path / "runs" / run.id / file.name).read_bytes()
            assert copied == (CASES / file.source).read_bytes()
            assert sha256(copied).hexdigest() == file.sha256


def test_times_are_kept_where_fio_reports_them(taken: Taken) -> None:
    """From 3.36 on fio tells when I/O began, before that when it ended and how long it took."""
    row = rows_of(taken, "fio-3.36/logs-averaged").iloc[0]
    assert row["started_utc"].isoformat() == "2026-11-21T03:18:51.440000+00:00"
    row = rows_of(taken, "fio-2.21/logs-averaged").iloc[0]
    assert row["started_utc"].isoformat().startswith("2026-11-21T03:1")
