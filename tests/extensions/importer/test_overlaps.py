"""Results of one volume that were measured at the same time are one load."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pytest

from tests.extensions.importer.sources import put, result_of, take
from volbench.api.many_campaigns import Dataset

END_S = 1_700_000_000


def process(
    iops: float,
    *,
    end_s: float = END_S,
    ran_s: int = 60,
    options: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the result of one of several processes that read one disk."""
    document: dict[str, Any] = json.loads(result_of("fio-3.33/randrw-jsonplus"))
    document |= {"timestamp": int(end_s), "timestamp_ms": int(1000 * end_s)}
    document.pop("global options", None)
    job = document["jobs"][0]
    document["jobs"] = [job]
    usual = {"rw": "randread", "bs": "4096", "filename": "/dev/nvme0n1"}
    job |= {"jobname": "job", "elapsed": ran_s, "job_runtime": 1000 * ran_s}
    job["job options"] = usual | dict(options)
    for direction in ("write", "trim"):
        job[direction] |= {"total_ios": 0, "io_bytes": 0}
    ios = int(iops * ran_s)
    lat = {"min": 10, "max": int(2e9 / iops), "mean": 0.9e9 / iops, "stddev": 1.0, "N": ios}
    job["read"] |= {"total_ios": ios, "io_bytes": 4096 * ios, "runtime": 1000 * ran_s}
    job["read"] |= {"iops": iops, "bw_bytes": 4096 * iops, "iops_min": iops, "iops_max": iops}
    job["read"] |= {"lat_ns": lat, "clat_ns": lat, "slat_ns": {**lat, "mean": 10.0, "max": 20}}
    return json.dumps(document)


def imported(tmp_path: Path, **files: str) -> pd.DataFrame:
    """Return the results of files in one folder, ascending in IOPS."""
    for name, text in files.items():
        put(tmp_path / "in" / f"{name}.json", text)
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    return pd.DataFrame(Dataset([opened]).results()).sort_values("iops", ignore_index=True)


def test_processes_at_the_same_time_are_one_result_with_their_sum(tmp_path: Path) -> None:
    """One drive alone does not beat the sum of four processes, of which each had a quarter."""
    four = {f"four_{n}": process(12_000 + n, end_s=END_S + n % 2) for n in range(4)}
    found = imported(tmp_path, alone=process(20_000, end_s=END_S + 500), **four)
    assert found["iops"].tolist() == [20_000, 48_006]
    assert found["numjobs"].tolist() == [1, 4]
    assert found["lat_mean_s"][1] == pytest.approx(0.9 / 12_001.5, rel=1e-3)
    assert found["clat_p99_s"].isna().all()
    _, opened = take(tmp_path / "in", into=tmp_path / "d")
    assert "throttled" not in {*opened.frame("findings")["rule"]}  # at four times 12,000
    assert [(row["clients"], row["iops"]) for row in opened.rows("aggregate")] == [(4, 48_006)]
    assert "highest 48k (4 jobs), lowest 20k (1 job)" in repr(Dataset([opened]).plot("iops"))
    latency = Dataset([opened]).plot("latency")
    assert "each has a share" in " ".join(latency.plot.caption)
    for text, answers in {"iops>=30000": "fail pass", "lat_max_s<150us": "pass fail"}.items():
        verdicts = Dataset([opened]).expect(text)
        assert " ".join(verdict.answer for verdict in verdicts) == answers
    assert opened.summary()["note"].str.contains("at the same time as 3 other results").sum() == 4


DEEPER = {"iodepth": "2", "ioengine": "io_uring"}


@pytest.mark.parametrize(
    "other",
    [{"filename": "/dev/nvme0n1p2"}, {"filename": "/dev/nvme1n1:/dev/nvme0n1"}, DEEPER],
)
def test_parts_of_a_volume_are_that_volume(tmp_path: Path, other: dict[str, str]) -> None:
    """A partition, or one disk of several, is measured beside the whole; also by another load."""
    found = imported(tmp_path, a=process(1000), b=process(1500, options=other))
    named = {"/dev/nvme0n1", *other.get("filename", "/dev/nvme0n1").split(":")}
    assert set(found["volume"]) == {":".join(sorted(named))}
    _, opened = take(tmp_path / "in", into=tmp_path / "d")
    assert {run.imported.beside for run in opened.campaign.runs if run.imported} == {1}
    assert found["iodepth"].isna().all() == ("iodepth" in other)  # that of one is not the other's


@pytest.mark.parametrize(
    "other",
    [
        process(1500, end_s=END_S + 40),
        process(1500, end_s=END_S + 60),
        process(1500, options={"filename": "/dev/nvme1n1"}),
        process(1500, ran_s=600, end_s=END_S),
    ],
)
def test_results_that_hardly_overlap_are_no_group(tmp_path: Path, other: str) -> None:
    """Two minutes in turn, two disks, or a load in the background of many."""
    assert imported(tmp_path, a=process(1000), b=other)["iops"].tolist() == [1000, 1500]


def test_short_results_in_turn_are_no_group(tmp_path: Path) -> None:
    """Times are known to the second."""
    first, second = (process(rate, ran_s=2, end_s=END_S + rate / 1e4) for rate in (1000, 2000))
    assert imported(tmp_path, a=first, b=second)["iops"].tolist() == [1000, 2000]


def test_machines_in_folders_of_their_own_are_no_group(tmp_path: Path) -> None:
    """Two machines have the same name for their disk, and nothing names the machine."""
    for folder in ("vm1", "vm2"):
        put(tmp_path / "in" / folder / "r.json", process(1000 if folder == "vm1" else 1500))
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert len(Dataset([opened]).results()) == 2


def test_runs_appended_to_one_file_are_repeats(tmp_path: Path) -> None:
    """Equal options in one file mean repeats; other options another job."""
    texts = [process(1000 + n, end_s=END_S + 61 * n) for n in range(5)]
    other = process(900, end_s=END_S + 1000, options={"iodepth": "2"})
    put(tmp_path / "in" / "r.json", "\n".join([*texts, other]))
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    runs = opened.campaign.runs
    assert [run.repeat for run in runs] == [1, 2, 3, 4, 5, 1]
    assert len({run.job for run in runs}) == 2
