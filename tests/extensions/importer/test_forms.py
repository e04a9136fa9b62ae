"""Results are read as people keep them: wrapped, compressed, in other encodings, cut off."""

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from tests.extensions.importer.sources import CASES, JSON, put, result_of, take
from tests.fio.runs import fio
from volbench.errors import InputError, OutputError
from volbench.fio.results.embedded_results import find_results
from volbench.model.campaign.planned_run import RunState

ETA = "Jobs: 1 (f=1): [m(1)][50.0%][r=12.3MiB/s][r=3150 IOPS][eta 00m:01s]\r"
DOCUMENT = json.loads(JSON)
OTHER = json.loads(result_of("fio-3.33/fsync-latency"))


def _zstd(content: bytes) -> bytes:
    packed = pa.compress(content, codec="zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


FORMS: dict[str, str | bytes] = {
    "plain.json": JSON,
    "crlf.json": JSON.replace("\n", "\r\n"),
    "bom.json": b"\xef\xbb\xbf" + JSON.encode(),
    "powershell.json": JSON.encode("utf-16"),
    "behind a warning.json": f"fio: this platform does not support process shared mutexes\n{JSON}",
    "eta-in-its-line.txt": f"{ETA}{JSON}",
    "mid-line.log.txt": f"2026-01-01T00:00:00Z stdout F {JSON}",
    "json,normal.txt": f"{JSON}\nmix: (groupid=0, jobs=1): err= 0: pid=1: Sat\n  read: IOPS=1\n",
    "nested.json": json.dumps({"raw": [{"result": {"storageClass": "gp3", "fio": DOCUMENT}}]}),
    "entry.json": json.dumps(DOCUMENT["jobs"][0]),
    "no-version.json": json.dumps({"jobs": DOCUMENT["jobs"]}, indent=2),
    "packed.json.gz": gzip.compress(JSON.encode()),
    "packed.json.zst": _zstd(JSON.encode()),
    "no-ending": JSON,
}


def test_a_copy_is_left_out_and_one_path_counts_once(tmp_path: Path) -> None:
    """A file that is named twice is one result; a copy of it is named, and makes no run."""
    for name, job in (("job2", "job2"), ("job10", "job10"), ("kopy", "job2")):
        result = result_of("fio-3.33/fsync-latency", jobname=job)
        put(tmp_path / f"results/{name}.json", result)
    paths = (tmp_path / "results", tmp_path / "results/job2.json")
    report, data = take(*paths, into=tmp_path / "c")
    assert [run.job for run in data.campaign.runs] == ["job2", "job10"]
    (copy,) = (problem for problem in report.remarks if "copy of" in problem.message)
    assert (copy.path, "results/job2.json" in copy.message) == ("results/kopy.json", True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_numbers(tmp_path: Path, name: str) -> None:
    """Whatever stands around a result, its numbers are the same, and read back from the copy."""
    put(tmp_path / "my results" / name, FORMS[name])
    intake, opened = take(tmp_path / "my results", into=tmp_path / "campaign")
    assert not intake.malformed
    rows = opened.summary()
    assert rows["iops"].tolist() == [DOCUMENT["jobs"][0][way]["iops"] for way in ("read", "write")]
    assert rows["status"].tolist() == ["finished"] * 2
    assert rows["damage"].isna().all()


def test_zeros_that_a_tool_left_out_are_filled_in(tmp_path: Path) -> None:
    """A report that was written anew without zeros, as Go programs do, is still a result."""
    entry = {
        name: {key: value for key, value in reported.items() if value != 0}
        if isinstance(reported, dict)
        else reported
        for name, reported in DOCUMENT["jobs"][0].items()
        if reported != 0
    }
    put(tmp_path / "x" / "r.json", json.dumps([{"raw": {**DOCUMENT, "jobs": [entry]}}]))
    _, opened = take(tmp_path / "x", into=tmp_path / "campaign")
    assert opened.summary()["direction"].tolist() == ["read", "write"]


@pytest.mark.parametrize(
    ("name", "content", "reason", "line"),
    [
        ("cut.json", JSON[:3000], "the text ends before the document does", 1),
        ("cut.json.gz", gzip.compress(JSON.encode())[:400], "cannot be decompressed", 0),
        ("empty.json", "", "it is empty", 0),
        ("normal.txt", "w: (g=0): rw=randwrite, bs=4K\nfio-3.33\nStarting 1\n", "normal output", 0),
        ("terse.txt", "3;fio-3.33;w;0;0;1;2;3;4\n", "fio's terse output", 0),
        ("odd.json", JSON.replace('"total_ios" : ', '"total_ios" : "x", "y": '), "total_ios", 0),
        ("no-jobs.json", '{\n"fio version": "fio-3.33",\n"jobs": []\n}\n', "contains no jobs", 0),
    ],
)
def test_malformed_files_are_listed_and_the_rest_imported(
    tmp_path: Path, name: str, content: str | bytes, reason: str, line: int
) -> None:
    """Each has its path, its place where there is one, and its reason."""
    put(tmp_path / "in" / "good.json", JSON)
    put(tmp_path / "in" / "bad folder" / name, content)
    intake, _ = take(tmp_path / "in", into=tmp_path / "campaign")
    (problem,) = intake.malformed
    assert problem.path == f"in/bad folder/{name}"
    assert reason in problem.message
    assert bool(problem.line) == bool(line)
    assert len(intake.runs) == 1
    with pytest.raises(OutputError, match="nothing was imported") as caught:
        take(tmp_path / "in", into=tmp_path / "strict", strict=True)
    assert name in caught.value.message
    assert not (tmp_path / "strict").exists()


def test_a_cut_off_last_state_is_reported(tmp_path: Path) -> None:
    """Where fio was killed while it wrote, what stands before is not its end."""
    intake, opened = take(put(tmp_path / "r.json", JSON + JSON[:2000]), into=tmp_path / "campaign")
    assert [run.state.value for run in intake.runs] == ["failed"]
    assert "cut off" in opened.runs[intake.runs[0].run.id].reason


def test_other_files_are_counted_and_never_touched(tmp_path: Path) -> None:
    """Images, notes and other JSON are no errors; the source folder stays as it was."""
    source = tmp_path / "in"
    put(source / "good.json", JSON)
    put(source / "chart.png", b"\x89PNG\r\n\x1a\n\0\0")
    put(source / "notes.md", "# 4k random reads: fio version 3\n")
    put(source / "package.json", '{"name": "x", "jobs": []}')
    put(source / "job.fio", "[w]\nrw=write\n")
    put(source / ".hidden.json", "{")
    put(source / "README.md", f"Example:\n\n```json\n{JSON}```\n")
    put(source / "packed.tar.gz", gzip.compress(b"\0" * 99))
    put(source / "page.html", b'<pre>{"fio version" : "fio-3.33"}</pre>\0\xff')
    put(source / "latin-1.txt", b"fio version 3.33 f\xfcr Bl\xf6cke\n")
    before = {path: path.stat().st_mtime_ns for path in sorted(source.rglob("*"))}
    intake, _ = take(source, into=tmp_path / "campaign")
    assert (intake.others, intake.malformed, len(intake.runs)) == (8, (), 1)
    assert {path: path.stat().st_mtime_ns for path in sorted(source.rglob("*"))} == before


def test_a_page_is_read_if_it_is_named(tmp_path: Path) -> None:
    """Below a folder it would be an example."""
    put(tmp_path / "notes.md", f"Today:\n\n```json\n{JSON}```\n")
    intake, _ = take(tmp_path / "notes.md", into=tmp_path / "campaign")
    assert len(intake.runs) == 1


def test_a_damaged_entry_does_not_say_that_nothing_was_done(tmp_path: Path) -> None:
    """Nobody knows what it did."""
    document = json.loads(JSON)
    damaged = {**document["jobs"][0], "write": {"iops": 5}}
    document["jobs"] = [damaged, {**damaged, "jobname": "b"}]
    intake, _ = take(put(tmp_path / "fio.json", json.dumps(document)), into=tmp_path / "campaign")
    reasons = [ready.reason for ready in intake.runs if ready.reason]
    assert len(reasons) == 1
    assert "io_bytes" in reasons[0]
    assert "No I/O" not in reasons[0]


def test_file_names_of_any_bytes_are_read(tmp_path: Path) -> None:
    """Names that are no UTF-8 are written down so that they can be read."""
    put(tmp_path / "in" / os.fsdecode(b"gp\xff3") / "fio.json", JSON)
    intake, opened = take(tmp_path / "in", into=tmp_path / "campaign", pattern="{volume_type}")
    assert len(intake.runs) == 1
    assert opened.summary()["label_volume_type"][0] == "gp?3"


def test_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    """It says what was there, and writes nothing."""
    put(tmp_path / "in" / "notes.md", "hello")
    put(tmp_path / "in" / "l_lat.1.log", "1, 2, 0, 0, 0\n")
    with pytest.raises(OutputError, match=r"files: 1\)\n  in/l_lat\.1\.log: the version of fio"):
        take(tmp_path / "in", into=tmp_path / "campaign")
    with pytest.raises(InputError, match="does not exist"):
        take(tmp_path / "missing", into=tmp_path / "campaign")
    with pytest.raises(InputError, match="is neither a file nor a folder"):
        take(Path("/dev/zero"), into=tmp_path / "campaign")
    assert not (tmp_path / "campaign").exists()


def test_a_volbench_campaign_is_not_imported_again(tmp_path: Path) -> None:
    """Its files are results already."""
    put(tmp_path / "in" / "good.json", JSON)
    take(tmp_path / "in", into=tmp_path / "in" / "first")
    intake, _ = take(tmp_path / "in", into=tmp_path / "second")
    assert len(intake.runs) == 1
    assert "already" in intake.malformed[0].message


def test_a_changed_copy_is_reported(tmp_path: Path) -> None:
    """A file that differs from what was imported gives no numbers."""
    intake, opened = take(put(tmp_path / "r.json", JSON), into=tmp_path / "campaign")
    path = opened.path / "runs" / intake.runs[0].run.id / "fio.json"
    path.write_text(JSON.replace('"iops" : ', '"iops" : 9'))
    rows = opened.summary()
    assert rows["status"].tolist() == ["damaged"]
    assert "differs from what was imported" in rows["damage"][0]


@pytest.mark.parametrize("name", ["plain.json", "packed.json.gz", "powershell.json"])
def test_secrets_are_left_out_of_what_is_kept(tmp_path: Path, name: str) -> None:
    """A password in a result is in no file of the campaign, which is read like any other."""
    text = JSON.replace('"rw"', '"http_s3_key" : "hunter2", "rw"', 1)
    assert "hunter2" in text
    packed = {
        "packed.json.gz": gzip.compress(text.encode()),
        "powershell.json": text.encode("utf-16"),
    }
    put(tmp_path / "in" / name, packed.get(name, text))
    _, opened = take(tmp_path / "in", into=tmp_path / "campaign")
    assert set(opened.summary()["status"]) == {"finished"}
    kept = [path for path in opened.path.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]
    assert [path.name for path in kept if path.name.startswith("fio.json")] == ["fio.json"]


@pytest.mark.parametrize("form", ["normal", "terse"])
def test_text_output_is_imported_and_marked(tmp_path: Path, form: str) -> None:
    """Rates, latencies and percentiles are there; what it leaves out is unknown, and it is said."""
    text = (CASES / "text-output" / "fio-3.33-normal.txt").read_text()
    before, _, rest = text.partition("\n{\n")
    before = before[before.index("5;fio") :]
    put(tmp_path / "in" / "out.txt", before if form == "terse" else rest.partition("\n}\n")[2])
    intake, opened = take(tmp_path / "in", into=tmp_path / "campaign")
    assert [run.run.job for run in intake.runs] == ["mix", "seq"]
    (remark,) = {remark.message for remark in intake.remarks}
    assert remark.startswith(f"fio's {form} output")
    summary = opened.summary()
    assert set(summary["note"]) == {f"from fio's {form} output"}
    assert set(summary["status"]) == {"finished"}
    (exact,) = find_results(text).results
    write = summary[(summary["job"] == "seq") & (summary["direction"] == "write")].iloc[0]
    known = exact.jobs[1].directions[0]
    assert write["iops"] == pytest.approx(known.iops, rel=0.001)
    assert known.clat is not None
    assert write["clat_p99_s"] == pytest.approx(known.clat.percentiles[99.0], rel=0.05)
    assert summary["direct"].isna().all()
    assert set(summary["volume"]) == {"unknown"}


def _files_with_a_bad_result() -> Iterator[tuple[str, str, int]]:
    text = (CASES / "text-output/fio-3.33-normal.txt").read_text()
    entry = DOCUMENT["jobs"][0]
    negative = json.loads(json.dumps(entry).replace('"total_ios": ', '"total_ios": -'))
    normal = text.partition("\n{\n")[0] + text.partition("\n}\n")[2]
    yield "normal.txt", normal.replace("stdev=12.31", "stdev=1.2.3"), 2
    yield "entry.json", json.dumps({"jobs": [{**negative, "groupid": 1}, entry]}), 2
    yield "list.json", json.dumps([DOCUMENT, {**OTHER, "global options": 7}]), 2
    yield "cut.json", f"{JSON}{JSON[: len(JSON) // 2]}\n{json.dumps(OTHER, indent=2)}", 3


@pytest.mark.parametrize(("name", "content", "results"), [*_files_with_a_bad_result()])
def test_an_invalid_result_does_not_affect_others_of_its_file(
    tmp_path: Path, name: str, content: str, results: int
) -> None:
    """A cut line, entry or document is a failed run with its reason; the others have numbers."""
    put(tmp_path / name, content)
    report, opened = take(tmp_path / name, into=tmp_path / "c")
    (failed,) = (run for run in report.runs if run.state is RunState.FAILED)
    assert len(report.runs) == results
    assert re.search(r"line \d+|expected", failed.reason)
    rows = opened.rows("summary")
    assert {row["run"] for row in rows if row["direction"] is None} == {failed.run.id}
    assert len({row["run"] for row in rows}) == results


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        '{"jobname\n' * 500_000,
        '{ "fio version" ' * 500_000,
        '{"jobname": ' + '{"a":[' * 400 + "1" + "]}" * 400 + "}",
    ],
)
def test_unclosed_braces_are_refused_quickly(tmp_path: Path, content: str) -> None:
    """Millions of documents that do not end, and nested ones, cost seconds, not hours."""
    put(tmp_path / "in" / "good.json", JSON)
    put(tmp_path / "in" / "bomb.json", content)
    report, _ = take(tmp_path / "in", into=tmp_path / "c")
    assert len(report.runs) == 1


@pytest.mark.parametrize("margin", ["    ", "> ", ">> "])
def test_results_in_quoted_output_are_found(tmp_path: Path, margin: str) -> None:
    """Mails and pages put a margin before each line, but not always before the first."""
    text = (CASES / "field/clat-above-lat/perftest--without-liburing-ost-4k-2-1.txt").read_text()
    put(tmp_path / "mail.txt", "".join(f"{margin}{line}\n" for line in text.splitlines()))
    _, opened = take(tmp_path / "mail.txt", into=tmp_path / "c")
    rows = opened.rows("summary")
    assert [(row["job"], row["total_ios"]) for row in rows] == [
        ("randread", 131486),
        ("randwrite", 134190),
    ]


@pytest.mark.parametrize("form", ["json", "normal", "terse"])
def test_a_sum_beside_its_parts_counts_once(tmp_path: Path, form: str) -> None:
    """``unified_rw_reporting=both`` adds reads and writes up, in terse output as if trimmed."""
    job = ("--name=both", "--rw=randrw", "--bs=4k", "--size=4m", "--ioengine=null")
    output = tmp_path / "in/result.txt"
    output.parent.mkdir()
    options = ("--unified_rw_reporting=both", f"--output-format={form}", f"--output={output}")
    done = fio(*job, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    rows = opened.rows("summary")
    assert [row["direction"] for row in rows] == ["read", "write"]
    moved = sum(cast("float", row["io_bytes"]) for row in rows)
    assert moved == pytest.approx(4 << 20, rel=0.01)
