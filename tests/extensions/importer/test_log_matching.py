"""Logs belong to the result that wrote them, and to no other."""

import gzip
import json
import lzma
import shutil
from pathlib import Path

from tests.extensions.importer.sources import CASES, copy_logs, put, result_of, take

NUMJOBS = "fio-3.33/logs-numjobs"


def numjobs(text: str, number: int) -> str:
    """Return a document with a number of entries of its first job."""
    document = json.loads(text)
    entry = {**document["jobs"][0]}
    entry["job options"] = {**entry["job options"], "numjobs": str(number)}
    document["jobs"] = [entry] * number
    document["timestamp_ms"] += number * 1000
    return json.dumps(document, indent=2)


def test_a_bench_fio_folder_is_read(tmp_path: Path) -> None:
    """<device>/<mix>/<block size>/<mode>-<depth>-<jobs>.json with logs named by mode and depth."""
    for depth in (1, 16):
        prefix = f"randread-iodepth-{depth}-numjobs-3"
        folder = tmp_path / "RAID ARRAY" / "md0" / "4k"
        options = dict.fromkeys(("write_bw_log", "write_iops_log"), f"/root/out/{prefix}")
        options |= {"ioengine": "libaio", "direct": "1"}
        text = result_of(NUMJOBS, jobname="FIOJOB", iodepth=str(depth), **options)
        put(folder / f"randread-{depth}-3.json", numjobs(text, 3))
        copy_logs(NUMJOBS, folder, prefix=prefix)
    intake, opened = take(tmp_path / "RAID ARRAY", into=tmp_path / "c")
    [remark] = intake.remarks
    assert intake.logs == 12
    assert remark.message.startswith("jobs were renamed for valid, unique names: 'FIOJOB' in ")
    frame = opened.summary()
    assert frame["job"].tolist() == ["randread-1-3", "randread-16-3"]
    assert frame["group"].tolist() == frame["job"].tolist()
    assert frame["iodepth"].tolist() == [1, 16]
    assert opened.series().groupby("run")["iops"].mean().round(-1).tolist() == [900, 900]


def test_incomplete_logs_are_left_out(tmp_path: Path) -> None:
    """The sum of two numjobs of three would be too low."""
    put(tmp_path / "in" / "r.json", numjobs(result_of(NUMJOBS), 3))
    copy_logs(NUMJOBS, tmp_path / "in", prefix="l")
    (tmp_path / "in" / "l_bw.2.log").unlink()
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert {note.path for note in intake.remarks} == {"in/l_bw.1.log", "in/l_bw.3.log"}
    assert "2 of 3 jobs" in intake.remarks[0].message
    assert opened.series()["bw_bytes_per_s"].isna().all()
    assert opened.series()["iops"].notna().all()


def test_logs_without_a_result_are_reported(tmp_path: Path) -> None:
    """A log that no result wrote, or that is none, is listed, and nothing else is lost."""
    put(tmp_path / "in" / "r.json", result_of("fio-3.33/logs-averaged"))
    copy_logs("fio-3.33/logs-averaged", tmp_path / "in", prefix="l")
    put(tmp_path / "in" / "other_bw.1.log", "100, 1, 0, 0, 0\n")
    put(tmp_path / "in" / "l_clat.1.log", "this is no log\n")
    put(tmp_path / "in" / "l_bw.7.log", "100, 1, 0, 0, 0\n")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    reported = {note.path: note.message for note in intake.remarks}
    assert "no result reports" in reported["in/other_bw.1.log"]
    assert "contains no line" in reported["in/l_clat.1.log"]
    assert "belongs to another result" in reported["in/l_bw.7.log"]
    assert opened.series()["iops"].mean() > 0


def test_a_shared_log_is_read_only_of_one_job(tmp_path: Path) -> None:
    """With per_job_logs=0 all numjobs write into one file, which mixes them."""
    put(tmp_path / "one" / "r.json", result_of("fio-3.33/logs-averaged"))
    source = CASES / "fio-3.33/logs-averaged"
    for kind in ("bw", "iops", "lat"):
        shutil.copy(source / f"l_{kind}.1.log", tmp_path / "one" / f"l_{kind}.log")
    intake, opened = take(tmp_path / "one", into=tmp_path / "c")
    assert intake.logs == 3
    assert len(opened.series()) > 30
    put(tmp_path / "three" / "r.json", numjobs(result_of(NUMJOBS), 3))
    shutil.copy(CASES / NUMJOBS / "l_bw.1.log", tmp_path / "three" / "l_bw.log")
    intake, _ = take(tmp_path / "three", into=tmp_path / "d")
    assert "per_job_logs=0" in intake.remarks[0].message


def test_compressed_logs_are_read(tmp_path: Path) -> None:
    """Large logs are kept as gzip or xz; the copy stays as it is."""
    put(tmp_path / "in" / "r.json", result_of("fio-3.33/logs-averaged"))
    source = CASES / "fio-3.33/logs-averaged"
    put(tmp_path / "in" / "l_bw.1.log.gz", gzip.compress((source / "l_bw.1.log").read_bytes()))
    put(tmp_path / "in" / "l_iops.1.log.xz", lzma.compress((source / "l_iops.1.log").read_bytes()))
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert intake.logs == 2
    assert opened.series()[["iops", "bw_bytes_per_s"]].notna().all().all()
    names = {path.name for path in (opened.path / "runs" / intake.runs[0].run.id).iterdir()}
    assert {"l_bw.1.log.gz", "l_iops.1.log.xz", "fio.json"} <= names


def test_a_result_without_a_version_has_no_logs(tmp_path: Path) -> None:
    """Their unit is unknown."""
    document = json.loads(result_of("fio-3.33/logs-averaged"))
    del document["fio version"]
    put(tmp_path / "in" / "r.json", json.dumps(document))
    copy_logs("fio-3.33/logs-averaged", tmp_path / "in", prefix="l")
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert intake.logs == 0
    assert len(intake.remarks) == 5
    assert opened.summary()["fio_version"].isna().all()


def test_the_end_of_its_path_decides_to_which_repeat_a_log_belongs(tmp_path: Path) -> None:
    """Both repeats name a log of the same name, relative to a folder that is not there."""
    for rep in ("rep_0", "rep_1"):
        text = result_of("fio-3.33/logs-averaged", write_iops_log=f"results/{rep}/iops_log/NAME")
        put(tmp_path / "in" / rep / "output" / "mix.txt", text + " " * int(rep[-1]))
        rate = 100 * (1 + int(rep[-1]))
        lines = "".join(f"{100 * n}, {rate}, {way}, 0, 0\n" for n in range(1, 4) for way in (0, 1))
        put(tmp_path / "in" / rep / "iops_log" / "NAME_iops.1.log", lines)
    intake, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert len(intake.runs) == intake.logs == 2
    folders = [run.run.imported for run in intake.runs]
    assert all(
        each.files[0].source.split("/")[1] == each.files[1].source.split("/")[1]
        for each in folders
        if each
    )
    assert len(opened.campaign.runs) == 2


def test_a_log_of_equal_paths_belongs_to_the_nearest_result(tmp_path: Path) -> None:
    """Where all results name one path, the folders that they share with the log decide."""
    for rep in ("a", "b"):
        text = result_of("fio-3.33/logs-averaged", write_iops_log="logs/NAME")
        put(tmp_path / "in" / rep / "out" / "r.json", text + " " * (rep == "b"))
        put(tmp_path / "in" / rep / "logs" / "NAME_iops.1.log", "100, 100, 0, 0, 0\n")
    intake, _ = take(tmp_path / "in", into=tmp_path / "c")
    assert (len(intake.runs), intake.logs) == (2, 2)


def test_logs_with_twice_the_ios_of_a_short_result_are_left_out(tmp_path: Path) -> None:
    """A lost window can only take I/Os away, however short the run."""
    put(tmp_path / "in" / "r.json", result_of("fio-3.33/logs-averaged"))
    text = (CASES / "fio-3.33/logs-averaged" / "l_iops.1.log").read_text()
    rows = [line.split(", ") for line in text.splitlines()]
    doubled = "".join(f"{t}, {2 * int(v)}, {', '.join(rest)}\n" for t, v, *rest in rows)
    put(tmp_path / "in" / "l_iops.1.log", doubled)
    _, opened = take(tmp_path / "in", into=tmp_path / "c")
    assert opened.summary()["impossible"].str.contains("of the I/Os of the result").all()
