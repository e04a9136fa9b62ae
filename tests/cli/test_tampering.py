"""Campaign folders that somebody changed, or sent: they are shown, and never obeyed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Volbench, call

_PROFILE = """\
name: p
sample: 0
defaults: {size: 1m, ioengine: psync}
jobs:
  a: {rw: write, max_latency: 1us}
  b: {rw: write}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a campaign whose first run failed and whose second was not started."""
    root = tmp_path_factory.mktemp("recorded")
    profile = root / "p.yaml"
    profile.write_text(_PROFILE)
    (root / "scratch").mkdir()
    arguments = ("--on", root / "scratch", "--output", root / "out", "--on-error", "stop")
    done = call("run", profile, *arguments)
    assert done.returncode == 9, done.stderr
    return root / "out"


@pytest.fixture
def stopped(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of this campaign, for a test to change."""
    return shutil.copytree(recorded, tmp_path / "out")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Return a file that no campaign has anything to do with."""
    path = tmp_path / "precious" / "file"
    path.parent.mkdir()
    path.write_text("the user's")
    return path


def edit(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change campaign.json."""
    path = out / "campaign.json"
    archive = json.loads(path.read_text())
    change(archive)
    path.write_text(json.dumps(archive))


def plant(out: Path, **facts: object) -> None:
    """Append a line to the journal."""
    with (out / "journal.jsonl").open("a") as file:
        file.write(json.dumps({"utc": "2026-01-01T00:00:00.000Z", **facts}) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("line", ["rubbish}", '{"kind": "released", "host": "local"}'])
def test_reap_cleans_up_what_a_damaged_journal_names_before_its_damage(
    tmp_path: Path, volbench: Volbench, line: str
) -> None:
    """The signed lines are obeyed; the user learns what may be left, and the journal stays."""
    profile, scratch, out = tmp_path / "p.yaml", tmp_path / "scratch", tmp_path / "my out"
    profile.write_text(_PROFILE.replace("max_latency: 1us", ""))
    scratch.mkdir()
    options = ("--on", scratch, "-o", out, "--keep-files")
    done = volbench("run", profile, *options)
    assert done.returncode == 0, done.stderr
    assert list(scratch.rglob("a.0.0"))
    with (out / "journal.jsonl").open("a") as file:
        file.write(f"{line}\n{line}\n")
    journal = (out / "journal.jsonl").read_bytes()
    refused = volbench("resume", out, "--without", "local")
    assert refused.returncode == 7
    assert f"clean up its machines: volbench status '{out}' --clean" in refused.stderr
    done = volbench("status", "--clean", out)
    assert done.returncode == 7
    assert "cleaned up its machines" in done.stderr
    assert "files that this or a later line names are not removed" in done.stderr
    assert not list(scratch.iterdir())
    assert (out / "journal.jsonl").read_bytes() == journal


@pytest.mark.parametrize("verb", [("resume",), ("status", "--clean")])
@pytest.mark.parametrize("is_complete", [False, True])
def test_a_planted_scratch_line_removes_nothing(
    stopped: Path, precious: Path, volbench: Volbench, verb: tuple[str, ...], *, is_complete: bool
) -> None:
    """Not even one that names the device and the inode of the file."""
    found = precious.stat()
    device = found.st_dev
    identity = [device >> 8 & 0xFFF, device & 0xFF, found.st_ino] if is_complete else []
    plant(stopped, kind="scratch", host="local", path=str(precious), identity=identity)
    done = volbench(*verb, stopped)
    assert done.returncode == 7, done.stderr
    assert "journal.jsonl" in done.stderr
    assert precious.read_text() == "the user's"


@pytest.mark.parametrize("id_", ["/tmp/volbench-owned", "../../owned", "..", "", "a/b", "a\x00b"])
def test_a_run_id_that_is_a_path_is_refused(stopped: Path, volbench: Volbench, id_: str) -> None:
    """The folder of a run lies in the campaign, whatever its plan says."""
    edit(stopped, lambda archive: archive["campaign"]["runs"][1].update(id=id_))
    before = sorted(stopped.parent.rglob("*"))
    for verb in (("show",), ("resume",), ("status", "--clean")):
        done = volbench(*verb, stopped)
        assert done.returncode == 7, (verb, done.stderr)
        assert "Traceback" not in done.stderr
    assert sorted(stopped.parent.rglob("*")) == before
    assert not Path("/tmp/volbench-owned").exists()


def test_a_changed_target_is_not_overwritten(
    stopped: Path, precious: Path, volbench: Volbench
) -> None:
    """A target and the leave to overwrite it count only as the user gave them."""

    def change(archive: dict[str, Any]) -> None:
        archive["campaign"]["allow_destroy"] = [str(precious)]
        volume = archive["campaign"]["runs"][1]["volume"]
        volume.update(kind="file", target=str(precious))

    edit(stopped, change)
    done = volbench("resume", stopped)
    assert done.returncode == 7, done.stderr
    assert "--like" in done.stderr
    assert precious.read_text() == "the user's"


@pytest.mark.parametrize("verb", [("resume",), ("status", "--clean")])
def test_a_folder_of_another_user_is_read_only(
    stopped: Path,
    tmp_path: Path,
    volbench: Volbench,
    verb: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With another key it can be shown, and neither continued nor cleaned up."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    done = volbench(*verb, stopped)
    assert done.returncode == 7, done.stderr
    shown = volbench("show", stopped)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    "name", ["tables", "report", "report/index.html", "runs/001-a-r1", "runs/001-a-r1/fio.json"]
)
def test_a_link_in_a_campaign_folder_is_not_followed(
    stopped: Path, precious: Path, volbench: Volbench, name: str
) -> None:
    """What it leads to is neither shown nor replaced; a link to the folder itself is followed."""
    (stopped.parent / "own").symlink_to(stopped)
    assert volbench("show", stopped.parent / "own").returncode == 0
    place = stopped / name
    if place.exists():
        place.rename(stopped.parent / "aside")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(precious if place.suffix else precious.parent)
    for verb in (("show",), ("report",), ("check", "--files")):
        done = volbench(*verb, stopped)
        assert done.returncode == (7 if verb[0] == "check" else 3), (verb, done.stdout)
        assert "symbolic link" in done.stdout + done.stderr
        assert "the user's" not in done.stdout + done.stderr
    assert [path.read_text() for path in precious.parent.iterdir()] == ["the user's"]


def test_a_foreign_folder_is_planned_again(
    stopped: Path, scratch: Path, tmp_path: Path, volbench: Volbench
) -> None:
    """`run --like` takes the profiles of a folder, and the targets from its user only."""
    (stopped / "consent.json").unlink()
    assert volbench("resume", stopped).returncode == 7
    refused = volbench("run", "--like", stopped, "--output", tmp_path / "again")
    assert refused.returncode == 2, refused.stderr
    arguments = ("--set", "a=", "--on", scratch, "--output", tmp_path / "again")
    done = volbench("run", "--like", stopped, *arguments)
    assert done.returncode == 0, done.stderr


def test_the_key_is_private(stopped: Path, volbench: Volbench) -> None:
    """A key that others may read proves nothing; the folder holds none."""
    key = Path(os.environ["XDG_STATE_HOME"]) / "volbench" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_text().strip()
    assert all(secret not in path.read_text(errors="replace") for path in files(stopped))
    key.chmod(0o644)
    try:
        done = volbench("resume", stopped)
        assert done.returncode == 7, done.stderr
        assert "chmod 600" in done.stderr
    finally:
        key.chmod(0o600)


def test_a_campaign_folder_is_private(stopped: Path) -> None:
    """Results, host names and paths are for the user who measured them."""
    assert stopped.stat().st_mode & 0o777 == 0o700


def files(folder: Path) -> list[Path]:
    """Return every file below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]
