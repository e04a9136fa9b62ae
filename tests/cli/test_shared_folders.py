"""Targets in folders that others may write: links planted there lead root nowhere."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.extensions.importer.sources import JSON, put
from tests.held_fio import HeldFio
from tests.waiting import PATIENCE_S
from volbench.errors import ArchiveError, RefusedError
from volbench.store.held_folder import (
    hold_folder,
    login_of,
    make_private_folder,
    refuse_foreign_links,
)

pytestmark = pytest.mark.root

_PROFILE = """\
name: p
sample: 0
defaults: {size: 1m, ioengine: psync}
jobs:
  w: {rw: write}
"""
NOBODY = 65534
CONTENT = b"root's" * 1024**2
"""Longer than the scratch file: fio would replace a shorter one, and not write through the link."""


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Return a file of root's."""
    path = tmp_path / "precious"
    path.write_bytes(CONTENT)
    path.chmod(0o600)
    return path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile that writes one file."""
    path = tmp_path / "p.yaml"
    path.write_text(_PROFILE)
    return path


@contextmanager
def repeating(act: Callable[[], bool]) -> Iterator[None]:
    """Do something again and again in a thread, until it says so or the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set() and not act():
            time.sleep(0.001)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(PATIENCE_S)


@contextmanager
def planting(folder: Path, precious: Path, *, out: Path) -> Iterator[None]:
    """Plant links to a file wherever a scratch file might be made, from the end of planning."""

    def plant() -> bool:
        if not (out / "campaign.json").exists():
            return False
        for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
            with suppress(OSError):  # another user could not write into the other folders
                if place == folder or place.stat().st_mode & 0o022:
                    (place / "w.0.0").symlink_to(precious)
        return False

    with repeating(plant):
        yield


@pytest.mark.parametrize(("mode", "has_way"), [(0o777, False), (0o1777, True), (0o775, False)])
def test_root_does_not_measure_in_a_folder_that_others_write(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench, *, mode: int, has_way: bool
) -> None:
    """It is refused with the option that accepts the risk, and a subfolder where that helps."""
    os.chown(scratch, 0, NOBODY)
    assert volbench("run", profile, "--on", scratch, "--output", "/dev/new/out").returncode == 3
    assert not Path("/dev/new").exists()
    scratch.chmod(mode)
    done = volbench("run", profile, "--on", scratch, "--output", tmp_path / "out")
    assert done.returncode == 3, done.stderr
    assert "--allow-shared-folder" in done.stderr
    assert (f"mkdir -m 700 {scratch}/mine" in done.stderr) == has_way
    assert list(scratch.iterdir()) == []


def test_root_does_not_measure_in_a_folder_of_another_user(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench
) -> None:
    """Nor below one: its owner can replace everything in it."""
    folder = scratch / "data"
    folder.mkdir()
    os.chown(scratch, NOBODY, NOBODY)
    for target in (scratch, folder, folder / "file"):
        done = volbench("run", profile, "--on", target, "--output", tmp_path / "out")
        assert done.returncode == 3, done.stderr
        assert "--allow-shared-folder" in done.stderr
        assert "mkdir" not in done.stderr


def test_a_link_planted_before_fio_starts_is_not_followed(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench, precious: Path
) -> None:
    """In a sticky folder, accepted by its user, files are made in a folder of volbench's own."""
    scratch.chmod(0o1777)
    for number in range(3):
        out = tmp_path / f"out{number}"
        with planting(scratch, precious, out=out):
            done = volbench(
                "run", profile, "--on", scratch, "--output", out, "--allow-shared-folder"
            )
        assert precious.read_bytes() == CONTENT
        assert done.returncode == 0, done.stderr
        (scratch / "w.0.0").unlink(missing_ok=True)


def test_scratch_files_are_in_a_private_folder(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench
) -> None:
    """Nobody else may look into it, or put anything there; it goes when the campaign ends."""
    out = tmp_path / "out"
    done = volbench("run", profile, "--on", scratch, "--output", out, "--keep-files")
    assert done.returncode == 0, done.stderr
    (folder,) = scratch.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "w.0.0").stat().st_size == 1024**2
    done = volbench("status", "--clean", out)
    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []


@contextmanager
def replacing(out: Path, precious: Path, fio: HeldFio) -> Iterator[list[Path]]:
    """Put a folder full of links in the place of a campaign before fio starts in its first run."""
    moved: list[Path] = []

    def replace() -> bool:
        runs = list(out.glob("runs/*/job.fio"))
        if not runs:
            return False
        aside = out.with_name("aside")
        out.rename(aside)
        moved.append(aside)
        folder = out / runs[0].parent.relative_to(out)
        folder.mkdir(parents=True)
        os.chown(out, NOBODY, NOBODY)
        names = ["status.json", "fio.json", "stderr", "device.log", "facts.json"]
        for link in [folder / name for name in names] + [out / "journal.jsonl"]:
            link.symlink_to(precious)
        (out / "tables").symlink_to(precious.parent)
        fio.release()
        return True

    with repeating(replace):
        yield moved


def test_a_campaign_folder_replaced_during_a_run_is_not_written_by_root(
    scratch: Path,
    profile: Path,
    volbench: Volbench,
    precious: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All files go to the folder that was opened at first; the end says that it was moved."""
    fio = HeldFio(scratch.parent)
    monkeypatch.setenv("PATH", fio.environment["PATH"])
    shared = scratch.parent / "theirs"
    shared.mkdir()
    before = sorted(path.name for path in precious.parent.iterdir())
    with replacing(shared / "out", precious, fio) as moved:
        done = volbench("run", profile, "--on", scratch, "--output", shared / "out")
    assert done.returncode == 7, done.stderr
    assert "was moved or replaced" in done.stderr
    assert precious.read_bytes() == CONTENT
    assert sorted(path.name for path in precious.parent.iterdir()) == before
    assert [path.name for path in moved[0].glob("runs/*/status.json")] == ["status.json"]


@pytest.mark.parametrize("name", ["out", "volbench-results"])
def test_root_refuses_a_results_folder_of_another_user(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench, name: str
) -> None:
    """Not as the campaign's own folder, and not by default as the folder of all campaigns."""
    folder = tmp_path / name
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    output = ["--output", folder] if name == "out" else []
    done = volbench("run", profile, "--on", scratch, *output, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "belongs to" in done.stderr
    os.chown(folder, 0, NOBODY)
    for mode in (0o775, 0o777):
        folder.chmod(mode)
        done = volbench("run", profile, "--on", scratch, *output, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "can be written by other users" in " ".join(done.stderr.split())
    assert list(folder.iterdir()) == []
    folder.chmod(0o1777)  # in it, campaigns are safe; as the folder of one it is not
    done = volbench("run", profile, "--on", scratch, *output, cwd=tmp_path)
    assert done.returncode == (3 if output else 0), done.stderr


def test_a_link_in_the_place_of_a_new_campaign_folder_is_not_followed(tmp_path: Path) -> None:
    """Another user planted it after the check that nothing is there; its target keeps its mode."""
    target = tmp_path / "etc"
    target.mkdir(mode=0o755)
    (tmp_path / "out").symlink_to(target)
    with pytest.raises(RefusedError, match="out is a symbolic link"):
        make_private_folder(tmp_path / "out")
    assert target.stat().st_mode & 0o777 == 0o755
    assert list(target.iterdir()) == []


def test_a_folder_that_is_not_the_one_that_was_made_is_not_written(tmp_path: Path) -> None:
    """Between creation and run another folder of root came into its place."""
    made = make_private_folder(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "aside")
    (tmp_path / "out").mkdir(mode=0o700)
    with (
        pytest.raises(ArchiveError, match="was moved or replaced"),
        hold_folder(tmp_path / "out", made=made),
    ):
        pytest.fail("it was held")


@pytest.mark.parametrize("name", ["impz", ".impz.importing"])
@pytest.mark.parametrize("is_dangling", [True, False])
def test_an_import_follows_no_planted_link(
    tmp_path: Path, scratch: Path, volbench: Volbench, name: str, *, is_dangling: bool
) -> None:
    """Neither in the place of the campaign, nor in that of the folder where it is prepared."""
    source = put(tmp_path / "in" / "a.json", JSON)
    target = tmp_path / "elsewhere" / "newdir"
    (target.parent if is_dangling else target).mkdir(parents=True)
    scratch.chmod(0o1777)
    (scratch / name).symlink_to(target)
    os.chown(scratch / name, NOBODY, NOBODY, follow_symlinks=False)
    done = volbench("import", source, "--output", scratch / "impz")
    assert done.returncode == 3, done.stderr
    assert f"{scratch / name} is a symbolic link, which is not followed" in done.stderr
    assert target.exists() != is_dangling
    assert [path.name for path in tmp_path.glob("elsewhere/**/*")] == ["newdir"] * (not is_dangling)
    assert [path.name for path in scratch.iterdir()] == [name]


@pytest.mark.parametrize("name", ["impz", ".impz.importing"])
def test_root_imports_into_no_folder_of_another_user(
    tmp_path: Path, scratch: Path, volbench: Volbench, name: str
) -> None:
    """As for a run, the folder stays as it is."""
    source = put(tmp_path / "in" / "a.json", JSON)
    (scratch / name).mkdir()
    os.chown(scratch / name, NOBODY, NOBODY)
    done = volbench("import", source, "--output", scratch / "impz")
    assert done.returncode == 3, done.stderr
    assert f"{scratch / name} belongs to the user {login_of(NOBODY)}" in done.stderr
    assert list((scratch / name).iterdir()) == []


@pytest.mark.parametrize("verb", [["report"], ["plot", "iops"]])
def test_root_writes_no_report_into_a_campaign_of_another_user(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench, verb: list[str]
) -> None:
    """A link in its report folder would lead to any file; another output is written."""
    out = tmp_path / "out"
    assert volbench("run", profile, "--on", scratch, "--output", out).returncode == 0
    os.chown(out, NOBODY, NOBODY)
    done = volbench(*verb, out)
    assert done.returncode == 3, done.stderr
    assert f"belongs to the user {login_of(NOBODY)}" in done.stderr
    os.chown(out, 0, 0)
    out.chmod(0o777)
    done = volbench(*verb, out)
    assert done.returncode == 3, done.stderr
    assert "can be written by other users" in " ".join(done.stderr.split())
    assert not (out / "report").exists()
    done = volbench(*verb, out, "--output", tmp_path / "mine.html")
    assert done.returncode == 0, done.stderr
    out.chmod(0o755)
    os.chown(out / "runs", NOBODY, NOBODY)  # of an unpacked archive: links may be planted later
    assert "runs belongs to" in volbench(*verb, out).stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder of root's to which another user has planted a link, `planted`."""
    home = tmp_path / "home"
    home.mkdir()
    planted = tmp_path / "planted"
    planted.symlink_to(home)
    os.lchown(planted, NOBODY, NOBODY)
    return home


@pytest.mark.parametrize("output", ["planted/new", "planted/a/new", "own/new"])
def test_root_follows_no_link_of_another_user_to_an_output(
    tmp_path: Path, scratch: Path, home: Path, profile: Path, volbench: Volbench, *, output: str
) -> None:
    """Neither a campaign, nor an import, nor a file is written, also through a link of root's."""
    (tmp_path / "own").symlink_to("planted")
    source = put(tmp_path / "in" / "a.json", JSON)
    into = tmp_path / output
    for words in (
        ("run", profile, "--on", scratch, "--output", into),
        ("import", source, "--output", into),
        ("profile", "list", "--format", "json", "--output", into),
    ):
        done = volbench(*words)
        assert done.returncode == 3, (words, done.stderr)
        assert f"planted is a symbolic link of the user {login_of(NOBODY)}" in done.stderr
    assert not list(home.iterdir())


def test_root_is_told_whose_folder_it_writes_into(
    tmp_path: Path, profile: Path, volbench: Volbench
) -> None:
    """That user can replace the file; a campaign is refused; folders of root, and /tmp, are not."""
    source = put(tmp_path / "in" / "a.json", JSON)
    theirs, mine, sticky = (tmp_path / name for name in ("theirs", "mine", "sticky"))
    for folder in (theirs, mine, sticky):
        folder.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    sticky.chmod(0o1777)
    imported = tmp_path / "imported"
    volbench("import", source, "--output", imported)
    for number, words in enumerate(
        (
            ("import", source, "--output"),
            ("profile", "render", profile, "--output"),
            ("profile", "list", "--format", "json", "--output"),
            ("export", imported, "--frame", "all", "--format", "csv", "--output"),
        )
    ):
        for folder in (theirs, mine, sticky) if words[0] == "import" else (theirs,):
            done = volbench(*words, folder / f"new{number}")
            is_refused = words[0] == "import" and folder == theirs
            assert done.returncode == 3 * is_refused, (words, done.stderr)
            note = f"{folder} belongs to the user {login_of(NOBODY)}, who c"
            assert done.stderr.count(note) == (folder == theirs), (words, done.stderr)


@pytest.mark.parametrize("owner", [0, NOBODY])
def test_every_verb_refuses_a_link_in_the_place_of_a_new_folder_alike(
    tmp_path: Path, scratch: Path, profile: Path, volbench: Volbench, owner: int
) -> None:
    """One that leads nowhere, of any owner, has one exit code."""
    source = put(tmp_path / "in" / "a.json", JSON)
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    os.lchown(link, owner, owner)
    for words in (
        ("run", profile, "--on", scratch),
        ("import", source),
        ("profile", "render", profile),
    ):
        done = volbench(*words, "--output", link)
        assert done.returncode == 3, (words, done.stderr)
        assert f"{link} is a symbolic link" in done.stderr


def test_root_follows_its_own_links_to_an_output(home: Path, tmp_path: Path) -> None:
    """A link of root's to a folder is as good as the folder, and a circle is no endless loop."""
    own, circle = tmp_path / "own", tmp_path / "circle"
    own.symlink_to("home")
    circle.symlink_to("circle")
    make_private_folder(own / "new")
    assert (home / "new").is_dir()
    refuse_foreign_links(circle / "new")
