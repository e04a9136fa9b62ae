"""`volbench check --files`: what happened to a campaign folder since it was recorded."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.golden import CAMPAIGNS, copy_of

_PROFILE = """\
name: p
sample: 100ms
device_sample: 0
jobs:
  a: {rw: write, bs: 64k, size: 1m, ioengine: psync}
  b: {rw: write, bs: 64k, size: 1m, ioengine: psync}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign of this user: two runs, with tables."""
    from tests.command_line import call  # noqa: PLC0415 - beside its only use

    place = tmp_path_factory.mktemp("recorded")
    (place / "p.yaml").write_text(_PROFILE)
    (place / "scratch").mkdir()
    done = call("run", "p.yaml", "--on", place / "scratch", "--output", "out", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "out"


@pytest.fixture
def out(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the campaign that may be changed."""
    return shutil.copytree(recorded, tmp_path / "out")


def _flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("name", ["runs/001-a-r1", "runs"])
def test_a_folder_that_cannot_be_read_is_damaged(
    name: str, out: Path, volbench: Volbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the rest of the campaign is still verified."""

    def refuse(path: Path, *arguments: object, **more: bool) -> object:
        if path.is_relative_to(out / name) and path != out / name:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **more)

    stat = Path.stat
    monkeypatch.setattr(Path, "stat", refuse)
    done = volbench("check", "--files", out)
    assert done.returncode == 7, done.stderr
    assert "001-a-r1" in done.stdout
    assert "cannot be read: Permission denied" in done.stdout.replace("\n", " ")


def test_an_untouched_campaign_is_as_recorded(out: Path, volbench: Volbench) -> None:
    """Files, logs that were compressed since, plan, journal and tables."""
    done = volbench("check", "--files", out)
    assert done.returncode == 0, done.stderr
    assert "as recorded" in done.stdout
    assert "signature valid" in done.stdout
    (record,) = json.loads(volbench("check", "--files", out, "--json").stdout)
    assert record["is_intact"]
    assert record["files"] >= 9
    assert record["runs_without_checksums"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change", "act"),
    [
        ("runs/001-a-r1/fio.json", "changed", lambda path: _edit(path, '"iops"', '"IOPS"')),
        ("runs/001-a-r1/job.fio", "changed", _flip),
        ("runs/001-a-r1/stderr", "missing", Path.unlink),
        ("runs/001-a-r1/series_bw.1.log.zst", "damaged", lambda path: path.write_bytes(b"x")),
        ("runs/002-b-r1/more", "added", Path.touch),
        ("runs/003-c-r1", "added", Path.mkdir),
        ("journal.jsonl", "changed", lambda path: path.write_bytes(b"")),
        ("runs/002-b-r1/status.json", "changed", lambda path: _edit(path, '"a', '"b')),
        ("runs/002-b-r1/status.json", "missing", Path.unlink),
        ("campaign.json", "changed", lambda path: _edit(path, '"seed"', '"seed" ')),
        ("journal.jsonl", "changed", lambda path: _edit(path, '"utc": "2', '"utc": "1')),
        ("tables/summary.parquet", "changed", _flip),
    ],
)
def test_each_change_is_named(
    out: Path, volbench: Volbench, file: str, change: str, act: Callable[[Path], object]
) -> None:
    """Exit code 7, the file and what happened to it."""
    act(out / file)
    done = volbench("check", "--files", out, "--format", "csv")
    assert done.returncode == 7
    assert f"out,{file},{change}," in done.stdout
    assert "not as recorded" in done.stderr


def test_a_forged_table_is_found_by_reading_raw_files(out: Path, volbench: Volbench) -> None:
    """Raw files of the same size with other numbers: tables differ from what ingest gives."""
    path = out / "runs/001-a-r1/fio.json"
    _edit(path, '"usr_cpu" : ', '"usr_cpu" :1')
    done = volbench("check", "--files", out)
    assert "tables/summary.parquet" in done.stdout


def test_an_imported_campaign_is_verified(out: Path, volbench: Volbench, tmp_path: Path) -> None:
    """Its files have checksums too, and no signature."""
    assert volbench("import", out / "runs", "-o", tmp_path / "in").returncode == 0
    done = volbench("check", "--files", tmp_path / "in")
    assert done.returncode == 0, done.stdout
    assert "imported campaigns are not signed" in done.stdout
    copied = next((tmp_path / "in").glob("runs/*/fio.json"))
    _flip(copied)
    assert volbench("check", "--files", tmp_path / "in").returncode == 7


def test_a_campaign_that_cannot_be_read_does_not_hide_others(
    out: Path, volbench: Volbench, tmp_path: Path
) -> None:
    """Each folder below DIR has its line."""
    shutil.copytree(out, tmp_path / "other")
    (out / "campaign.json").write_text("{")
    done = volbench("check", "--files", tmp_path, "--json")
    assert done.returncode == 7
    records = {Path(record["path"]).name: record for record in json.loads(done.stdout)}
    assert records["out"]["differences"][0]["file"] == "campaign.json"
    assert records["other"]["is_intact"]


@pytest.mark.parametrize(
    ("golden", "words"),
    [("format-1", "runs without checksums: 2"), ("format-1-checksums", "files compared: 22")],
)
def test_a_campaign_of_another_user_is_verified_without_its_signature(
    volbench: Volbench, tmp_path: Path, golden: str, words: str
) -> None:
    """Files are compared all the same; campaigns from before checksums say so."""
    done = volbench("check", "--files", copy_of(CAMPAIGNS / golden, tmp_path / "c"))
    assert done.returncode == 0, done.stdout
    assert words in done.stdout
    assert "planned by another user" in done.stdout


def test_a_damaged_status_is_reported_once_by_every_command(out: Path, volbench: Volbench) -> None:
    """The table is right without it, and still says which file of which run cannot be read."""
    (status,) = (out / "runs").glob("*-a-r1/status.json")
    status.write_text('{"format": 1, "state": "finis')
    for verb in ("show", "status"):
        said = volbench(verb, out).stdout
        assert "1 run has damaged files" in said
        assert "status.json is damaged" in said
    done = volbench("check", "--files", out, "--json")
    (difference,) = json.loads(done.stdout)[0]["differences"]
    assert (difference["file"], difference["change"]) == (str(status.relative_to(out)), "damaged")
    assert "not valid JSON from line 1, column" in difference["reason"]
