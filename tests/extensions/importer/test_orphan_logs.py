"""Logs without a result become runs with a series, and no more than they hold."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.extensions.importer.sources import CASES, copy_logs, put, take
from volbench.api.many_campaigns import Dataset
from volbench.errors import InputError, OutputError
from volbench.model.frames.columns import PERCENTILES


def test_logs_alone_are_a_series_without_totals(tmp_path: Path) -> None:
    """Rates over time are as with the result; what only a result tells is missing."""
    folder = tmp_path / "in" / "vm1"
    copy_logs("fio-3.33/logs-averaged", folder, prefix="l")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c", fio_version="3.33")
    (run,) = intake.runs
    assert (run.run.job, run.state.value, intake.files, intake.logs) == ("l", "finished", 0, 5)
    shutil.copytree(CASES / "fio-3.33/logs-averaged", tmp_path / "whole")
    _, whole = take(tmp_path / "whole", into=tmp_path / "w")
    columns = ["direction", "t_s", "iops", "bw_bytes_per_s", "lat_mean_s"]
    mine, theirs = opened.series()[columns], whole.series()[columns]
    assert len(mine) > 0
    pd.testing.assert_frame_equal(mine, theirs.iloc[: len(mine)], check_dtype=False)
    frame = opened.summary()
    assert frame["status"].tolist() == ["finished"] * len(frame)
    assert set(frame["direction"]) == set(theirs["direction"])
    untold = ["iops", "total_ios", "runtime_s", "io_bytes", "block_bytes", "iodepth", "rw"]
    assert frame[[*untold, *(f"lat_{name}_s" for name in PERCENTILES)]].isna().all(axis=None)


def test_latencies_without_a_version_have_no_unit(tmp_path: Path) -> None:
    """Microseconds of fio 2 and nanoseconds of fio 3 look alike, so they are left out."""
    copy_logs("fio-3.33/logs-averaged", tmp_path / "in", prefix="l")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    series = opened.series()
    assert series["iops"].notna().all()
    assert series["lat_mean_s"].isna().all()
    left = [problem.path for problem in intake.remarks if "--fio-version" in problem.message]
    assert sorted(left) == [f"in/l_{kind}.1.log" for kind in ("clat", "lat", "slat")]


def test_bins_of_fio_2_reveal_the_version(tmp_path: Path) -> None:
    """No fio 3 writes 1216 bins."""
    copy_logs("fio-2.21/logs-histogram", tmp_path / "old", prefix="h", gone="h")
    _, opened = take(tmp_path / "old", into=tmp_path / "c")
    assert opened.series()["lat_p99_s"].between(1e-6, 1).any()


def test_numbered_logs_are_never_added_up(tmp_path: Path) -> None:
    """Nothing tells numjobs from jobs that ran in turn."""
    copy_logs("fio-3.33/logs-numjobs", tmp_path / "in", prefix="l")
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert opened.summary()["job"].tolist() == ["l-1", "l-2", "l-3"]
    assert opened.series().groupby("run")["iops"].mean().round(-1).tolist() == [300, 300, 300]


def test_unusable_logs_are_listed(tmp_path: Path) -> None:
    """Shared logs, empty ones, and logs beside a damaged result are no runs."""
    with pytest.raises(InputError, match="not a version"):
        take(CASES / "fio-3.33/logs-averaged", into=tmp_path / "c", fio_version="three")
    put(tmp_path / "in" / "shared" / "l_iops.log", "1000, 5, 0, 0\n")
    put(tmp_path / "in" / "empty" / "l_iops.1.log", "")
    put(tmp_path / "in" / "cut" / "l_iops.1.log", "1000, 5, 0, 0\n")
    put(tmp_path / "in" / "cut" / "fio.json", '{"fio version": "fio-3.33", "jobs": [')
    with pytest.raises(OutputError, match="no result of fio") as raised:
        take(tmp_path / "in", into=tmp_path / "c")
    for words in ("per_job_logs=0", "it is empty", "repair that file first"):
        assert words in raised.value.message
    assert not (tmp_path / "c").exists()


def test_columns_of_new_versions_are_told_apart(tmp_path: Path) -> None:
    """Fio 3.33, which wrote the result beside them, writes neither eight columns nor four."""
    both = "".join(f"{n}000, 800, 900, {way}, 0, 0, 0, 0\n" for n in (1, 2, 3) for way in (0, 1))
    put(tmp_path / "in" / "both_clat.1.log", both)
    put(tmp_path / "in" / "issue_clat.1.log", "0, 81234, 0, 4096, 8192, 0x4004, 1002003004\n")
    put(tmp_path / "in" / "old_clat.1.log", "1000, 15, 0, 0\n")
    put(tmp_path / "in" / "same_clat.1.log", "1000, 15, 0, 0, 0\n2000, 15, 0, 0, 0\n")
    shutil.copytree(CASES / "fio-3.33/logs-numjobs", tmp_path / "in" / "beside")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    windows = {run.run.job: run.run.sample_s for run in intake.runs}
    assert windows == {**windows, "both": 1.0, "issue": 0.1}
    assert "in/old_clat.1.log" in {problem.path for problem in intake.remarks}
    assert opened.series().query("job == 'same'")["clat_mean_s"].tolist() == [15e-9] * 2
    assert "Left out: 3 series without a result" in "\n".join(Dataset([opened]).answer)
    lost = opened.frame("findings").query("rule == 'bad-log-rows'")["message"].tolist()
    assert [text.partition(" ")[0] for text in lost] == ["1"]  # of less than an interval
    series = opened.series()
    reads = series[(series["job"] == "both") & (series["direction"] == "read")]
    assert reads["clat_mean_s"].tolist() == [800e-9] * 3


def test_logs_alone_show_stalls_and_how_much_belongs_to_the_ramp(tmp_path: Path) -> None:
    """Without I/O for 1.9 s, in windows of 0.5 s; nothing is left out in silence."""
    ramp = [f"{ms}, 500, 0, 0" for ms in range(1000, 6000, 1000)]
    rates = [f"{ms}, 1000, 0, 0" for ms in range(100, 30_001, 100) if not 10_000 < ms <= 11_900]
    put(tmp_path / "in" / "x_iops.1.log", "\n".join([*ramp, *rates, ""]))
    _, opened = take(tmp_path / "in", into=tmp_path / "c", fio_version="2.13")
    found = {str(row["rule"]): row for row in opened.rows("findings")}
    assert str(found["stall"]["message"]) == "No I/O completed for 1.5s, from 10s on."
    assert str(found["impossible-values"]["message"]).startswith("Left out: 5 lines of logs")
    assert found["impossible-values"]["severity"] == "note"
