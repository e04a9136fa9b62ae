"""Unlike jobs that fio merged under group_reporting are one row, named by what it is."""

import json
from pathlib import Path

import pytest

from tests.extensions.importer.sources import put, result_of, take
from tests.fio.runs import fio
from volbench.extensions.importer.run_drafts import reported_options
from volbench.fio.results.embedded_results import find_results

DATABASE = """\
[global]
ioengine=psync
size=1m
runtime=2
time_based
group_reporting

[log]
rw=write
bs=16k
[data]
rw=randread
bs=8k
iodepth=8
numjobs=2
[checkpoint]
rw=randwrite
bs=8k
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results that fio writes of one job file in two formats."""
    folder = tmp_path_factory.mktemp("group")
    put(folder / "db.fio", DATABASE)
    for form in ("json", "normal"):
        done = fio(f"--output-format={form}", f"--output={form}.txt", "db.fio", cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def _taken(text: str, folder: Path) -> tuple[dict[str, object], str]:
    put(folder / "in" / "result.txt", text)
    report, opened = take(folder / "in", into=folder / "c")
    rows = opened.rows("summary")
    assert {row["direction"] for row in rows} == {"read", "write"}
    assert not {"inconsistent-result", "contradicting-latency"} & {
        row["rule"] for row in opened.rows("findings")
    }
    return rows[0], " ".join(map(str, report.remarks))


@pytest.mark.slow
def test_json_has_the_first_and_the_last_of_the_jobs(tmp_path: Path, measured: Path) -> None:
    """The row has no pattern, block size or depth of one job, and its note says so."""
    row, remarks = _taken((measured / "json.txt").read_text(), tmp_path)
    assert (row["job"], row["rw"], row["numjobs"]) == ("log_and_others", "mixed", 4)
    assert (row["block_bytes"], row["iodepth"]) == (None, None)
    assert (row["ioengine"], row["size_bytes"]) == ("psync", 1 << 20)
    assert "4 unlike jobs" in str(row["note"])
    assert "the first is log, the last randwrite 8k" in remarks


@pytest.mark.slow
def test_normal_output_lists_the_jobs(tmp_path: Path, measured: Path) -> None:
    """It has a line for each section before the start."""
    row, _ = _taken((measured / "normal.txt").read_text(), tmp_path)
    assert (row["job"], row["rw"], row["numjobs"]) == ("log_data_checkpoint", "mixed", 4)
    assert "data: randread 8k iodepth 8" in str(row["note"])


@pytest.mark.parametrize(
    ("options", "is_unlike"),
    [
        ({"rw": "randrw", "bs": "4k"}, False),
        ({"rw": "randread", "bs": "4k"}, True),
        ({"rw": "write", "bs": "4k", "verify": "md5"}, False),
        ({"rw": "randrw", "bs": "8k"}, True),
        ({"rw": "randrw", "bssplit": "4k/50:8k/50", "bs": "8k"}, False),
    ],
)
def test_a_group_is_recognised_by_its_totals(options: dict[str, str], *, is_unlike: bool) -> None:
    """Reads of a writer, and other blocks than its own, are those of other jobs."""
    (output,) = find_results(result_of("fio-3.1/randrw-jsonplus", **options)).results
    reported = reported_options(output, output.jobs[0])
    assert reported.is_merged is is_unlike
    assert ("iodepth" in reported.options) is not is_unlike


def test_a_failed_job_is_no_group(tmp_path: Path) -> None:
    """On a full disk fio counts the write that failed, and adds up no runtime below 1 ms."""
    document = json.loads(result_of("fio-3.33/randrw-jsonplus", rw="randrw", bs="64k"))
    entry = document["jobs"][0]
    entry |= {"job_runtime": 0, "error": 28}
    for direction in ("read", "write"):
        entry[direction] |= {"io_bytes": 1 << 20, "total_ios": 17, "runtime": 1}
    _, opened = take(put(tmp_path / "r.json", json.dumps(document)), into=tmp_path / "c")
    for row in opened.rows("summary"):
        assert (row["status"], row["rw"], row["block_bytes"]) == ("failed", "randrw", 64 << 10)
        assert row["job"] == entry["jobname"]


def test_a_version_that_writes_bare_options_reveals_ungrouped_jobs(tmp_path: Path) -> None:
    """There a contradiction within a result stays one."""
    document = json.loads(result_of("fio-3.42/randrw-jsonplus", bs="8k"))
    _, opened = take(put(tmp_path / "r.json", json.dumps(document)), into=tmp_path / "c")
    assert "inconsistent-result" in {row["rule"] for row in opened.rows("findings")}


@pytest.mark.parametrize(("bs", "block"), [("4k", 4096), ("16k", None)])
def test_global_options_are_those_of_all_jobs(tmp_path: Path, bs: str, block: int | None) -> None:
    """Of unlike jobs, a global block size if all bytes are whole blocks, and a global depth."""
    shared = {"bs": bs, "iodepth": "8", "group_reporting": "1"}
    document = json.loads(result_of("fio-3.33/randrw-jsonplus"))
    document["jobs"][0]["job options"] = {"rw": "randread"}
    document |= {"global options": shared}
    put(tmp_path / "r.json", json.dumps(document))
    _, opened = take(tmp_path / "r.json", into=tmp_path / "c")
    row = opened.rows("summary")[0]
    assert (row["rw"], row["block_bytes"], row["iodepth"]) == ("mixed", block, 8)


@pytest.mark.parametrize(("scale", "block"), [(1, 4096), (100, None), (1 << 17, None)])
def test_io_without_a_name_has_the_block_size_of_its_bytes(
    tmp_path: Path, scale: int, block: int | None
) -> None:
    """A zone that is finished counts as one I/O, of as many bytes as it had left."""
    document = json.loads(result_of("fio-3.33/randrw-jsonplus"))
    (job,) = document["jobs"]
    job["finish"] = {**job.pop("write"), "total_ios": 375, "io_bytes": 375 * 4096 * scale}
    _, opened = take(put(tmp_path / "r.json", json.dumps(document)), into=tmp_path / "c")
    (row,) = (row for row in opened.rows("summary") if row["direction"] == "other")
    assert (row["block_bytes"], row["bw_bytes_per_s"] == 0) == (block, scale > 100)
