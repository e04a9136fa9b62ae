"""Scratch files: what volbench made is removed, and nothing else ever."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.engine.conftest import Disks, call
from tests.planned import a_folder, planned_run
from volbench.engine.guard.scratch_files import Scratch
from volbench.engine.hosts.described_volumes import describe_files, look_at
from volbench.errors import RefusedError
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Run, Section
from volbench.store.journal import Journal, read_history


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return an open journal."""
    with Journal(tmp_path / "journal.jsonl") as opened:
        yield opened


def scratch_from(journal: Journal, tmp_path: Path, *, allow: Sequence[str] = ()) -> Scratch:
    """Return the scratch files that a journal knows of."""
    history = read_history(tmp_path / "journal.jsonl")
    return Scratch(LocalExecutor(), journal, key="key", allowed=lambda _run: allow, history=history)


def expect(scratch: Scratch, *paths: str | Path, **options: str) -> None:
    """Let a run await files in one folder."""
    names = ":".join(Path(path).name for path in paths)
    section = Section(name="w", options={"filename": names, "rw": "write", "size": "4", **options})
    run = planned_run(a_folder(Path(paths[0]).parent), section)
    described = describe_files(LocalExecutor(), planned_files(run))
    scratch.expect(run, dict(zip(planned_files(run), described, strict=True)))


def write_in_run(scratch: Scratch, path: Path) -> None:
    """Let a run make a file."""
    expect(scratch, path)
    path.write_text("data")
    scratch.settle([str(path)])


def run_in(folder: Path) -> Run:
    """Return a run of one file in a directory."""
    return planned_run(a_folder(folder), Section(name="w"))


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_file_that_replaced_a_scratch_file_is_kept(
    tmp_path: Path, journal: Journal, *, is_settled: bool
) -> None:
    """Another file in its place is left alone and named, also if fio's was never seen."""
    path = tmp_path / "made"
    scratch = scratch_from(journal, tmp_path)
    expect(scratch, path)
    path.write_text("data")
    if is_settled:
        scratch.settle([str(path)])
    later = scratch_from(journal, tmp_path)
    path.unlink()
    path.write_text("somebody's")
    assert not later.owns(str(path))
    assert later.remove() == (str(path),)
    assert path.read_text() == "somebody's"


@pytest.mark.parametrize("is_loop", [True, False])
def test_fio_may_replace_a_file_while_its_run_goes_on(
    tmp_path: Path, journal: Journal, *, is_loop: bool
) -> None:
    """It unlinks a file that is too short, or in each of its loops; others are a user's."""
    path, older = tmp_path / "made", tmp_path / "older"
    older.write_text("somebody's")
    scratch = scratch_from(journal, tmp_path)
    expect(scratch, path, unlink_each_loop=str(int(is_loop)))
    for text in ("x", "x again", "somebody's"):
        if text != "x":
            path.rename(tmp_path / f"before {text}")  # its inode is not used again
        path.write_text(text)
        scratch.settle([str(path)], is_over=text == "x again")
        assert scratch.owns(str(path)) == (text == "x" or (text == "x again" and is_loop))
        if text == "x":
            made = path.rename(tmp_path / "moved")
            path.hardlink_to(older)
            scratch.settle([str(path)])
            assert not scratch.owns(str(path))
            made.replace(path)
    assert scratch.remove() == (str(path),)


def test_a_file_that_is_too_short_is_replaced_once(tmp_path: Path, journal: Journal) -> None:
    """What takes the place of the longer one is a user's, though it is younger."""
    path, scratch = tmp_path / "short", scratch_from(journal, tmp_path)
    write_in_run(scratch, path)
    expect(scratch, path, size="64")
    for text in ("longer", "somebody's"):
        path.rename(tmp_path / f"before {text}")
        path.write_text(text)
        scratch.settle([str(path)])
        assert scratch.owns(str(path)) == (text == "longer")


@pytest.mark.root
def test_without_times_of_birth_no_file_takes_the_place_of_another(
    tmp_path: Path, journal: Journal, disks: Disks
) -> None:
    """Nothing tells an older file from one that fio makes anew: both are kept."""
    device = disks.attach()
    call("mkfs.ext4", "-q", "-F", "-I", "128", device)
    point = disks.mount(device)
    path, older = point / "made", point / "older"
    older.write_text("somebody's")
    scratch = scratch_from(journal, tmp_path)
    expect(scratch, path, unlink_each_loop="1")
    path.write_text("x")
    scratch.settle([str(path)])
    assert scratch.owns(str(path))
    older.replace(path)
    scratch.settle([str(path)])
    assert scratch.remove() == (str(path),)
    assert path.read_text() == "somebody's"


def test_a_link_in_the_place_of_the_private_folder_leads_to_no_file(
    tmp_path: Path, journal: Journal
) -> None:
    """A younger file in the folder that it leads to is neither taken for fio's nor removed."""
    scratch = scratch_from(journal, tmp_path)
    placed = scratch.place(run_in(tmp_path))
    assert placed is not None
    (path,) = map(Path, planned_files(placed))
    expect(scratch, path)
    path.parent.rename(tmp_path / "moved")
    (tmp_path / "mine").mkdir()
    path.parent.symlink_to(tmp_path / "mine")
    path.write_text("somebody's")
    scratch.settle([str(path)])
    assert not scratch.owns(str(path))
    scratch.remove()
    assert path.read_text() == "somebody's"


def test_an_identity_without_birth_is_not_enough_after_a_crash(
    tmp_path: Path, journal: Journal
) -> None:
    """Where the filesystem records no time of birth, an inode may have been used again."""
    path = tmp_path / "made"
    path.write_text("somebody's")
    found = path.stat()
    identity = [found.st_dev >> 8, found.st_dev & 0xFF, found.st_ino, 0]
    journal.write("scratch", host="local", files={str(path): identity})
    later = scratch_from(journal, tmp_path)
    assert later.remove() == (str(path),)
    assert path.exists()


def test_a_private_folder_is_made_once_and_removed_when_empty(
    tmp_path: Path, journal: Journal
) -> None:
    """A later controller works in the folder of the earlier one."""
    run = run_in(tmp_path)
    placed = scratch_from(journal, tmp_path).place(run)
    assert placed is not None
    (path,) = planned_files(placed)
    assert path == str(tmp_path / "volbench-key" / "w.0.0")
    later = scratch_from(journal, tmp_path)
    assert later.place(run, make=False) == placed
    assert later.remove() == ()
    assert not (tmp_path / "volbench-key").exists()


@pytest.mark.parametrize("is_link", [True, False])
def test_a_folder_of_the_same_name_is_not_used(
    tmp_path: Path, journal: Journal, *, is_link: bool
) -> None:
    """Somebody's folder, or a link to one, is passed by and kept."""
    other = tmp_path / "other"
    other.mkdir()
    taken = tmp_path / "volbench-key"
    taken.symlink_to(other) if is_link else taken.mkdir()
    scratch = scratch_from(journal, tmp_path)
    placed = scratch.place(run_in(tmp_path))
    assert placed is not None
    assert placed.volume.private_folder == "volbench-key-1"
    scratch.remove()
    assert taken.exists()


def test_a_folder_with_an_unknown_file_is_left_to_its_owner(
    tmp_path: Path, journal: Journal
) -> None:
    """After a crash, what nobody saw being made is somebody's: a fresh folder is used."""
    run = run_in(tmp_path)
    scratch_from(journal, tmp_path).place(run)
    foreign = tmp_path / "volbench-key" / "w.0.0"
    foreign.write_text("somebody's")
    later = scratch_from(journal, tmp_path)
    placed = later.place(run)
    assert placed is not None
    assert placed.volume.private_folder == "volbench-key-1"
    assert later.remove() == (str(foreign.parent),)
    assert foreign.read_text() == "somebody's"


@pytest.mark.parametrize("is_late", [False, True])
def test_a_later_controller_claims_what_was_made_while_a_run_went_on(
    tmp_path: Path, journal: Journal, *, is_late: bool
) -> None:
    """A file that came after the end of the run is somebody's, even if it has the planned name."""
    run, control = run_in(tmp_path), tmp_path / ".run"
    placed = scratch_from(journal, tmp_path).place(run)
    assert placed is not None
    (path,) = planned_files(placed)
    expect(scratch_from(journal, tmp_path), path)
    (control / "start").mkdir(parents=True)
    for name in [control / "end", Path(path)] if is_late else [Path(path), control / "end"]:
        time.sleep(0.02)  # births are told to the tick of the kernel
        name.write_text("")
    later = scratch_from(journal, tmp_path)
    later.claim_born(run, handle=str(control))
    assert later.owns(path) != is_late
    later.remove()
    assert Path(path).exists() == is_late


def test_another_filesystem_at_the_target_is_refused(tmp_path: Path, journal: Journal) -> None:
    """When a volume was unmounted, its directory is on the disk of its parent."""
    identity = [0, 1, 2, 3]
    place = str(tmp_path / "volbench-key")
    journal.write("folder", host="local", target=str(tmp_path), path=place, identity=identity)
    with pytest.raises(RefusedError, match="its volume is unmounted"):
        scratch_from(journal, tmp_path).place(run_in(tmp_path))


@pytest.mark.root
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("now", ["same", "other", "none"])
def test_a_filesystem_is_known_by_its_folder_whatever_its_device_number(
    tmp_path: Path, journal: Journal, disks: Disks, now: str, *, is_running: bool
) -> None:
    """A volume attached again has another number; another one there, or none, is refused."""
    image = disks.image()
    first = disks.attach(image)
    disks.format(first)
    point = disks.mount(first)
    scratch = scratch_from(journal, tmp_path)
    placed = scratch.place(run_in(point))
    assert placed is not None
    (path,) = planned_files(placed)
    write_in_run(scratch, Path(path))
    disks.unmount(point)
    if now != "none":
        second = disks.attach(image if now == "same" else None)
        if now == "other":
            disks.format(second)
        call("mount", second, str(point))
    if not is_running:
        scratch = scratch_from(journal, tmp_path)
    question = VolumeQuestion(str(point), private_folder=str(Path(path).parent))

    def is_in_place() -> bool:
        if is_running:
            return scratch.is_in_place(placed, look_at(LocalExecutor(), [question]).volumes)
        return scratch.place(run_in(point)) == placed

    if now != "same":
        with pytest.raises(RefusedError, match="is on a different filesystem than before"):
            is_in_place()
        return
    assert is_in_place()
    for known in (scratch, scratch_from(journal, tmp_path)):
        assert known.owns(path)
    assert scratch.remove() == ()
    assert not Path(path).parent.exists()


@pytest.mark.root
@pytest.mark.parametrize("is_running", [False, True])
def test_a_folder_mounted_over_the_volume_is_refused(
    tmp_path: Path, journal: Journal, *, is_running: bool
) -> None:
    """It is of the same filesystem, and hides the private folder with all that is in it."""
    target = tmp_path / "data"
    target.mkdir()
    scratch = scratch_from(journal, tmp_path)
    placed = scratch.place(run_in(target))
    assert placed is not None
    other = tmp_path / "other"
    other.mkdir()
    call("mount", "--bind", str(other), str(target))
    try:
        question = VolumeQuestion(str(target), private_folder=placed.volume.folder)
        later, seen = scratch_from(journal, tmp_path), look_at(LocalExecutor(), [question]).volumes
        with pytest.raises(RefusedError, match="something is mounted over it, and hides"):
            scratch.is_in_place(placed, seen) if is_running else later.place(run_in(target))
        assert later.remove() == (placed.volume.folder,)
    finally:
        call("umount", str(target))
    assert scratch_from(journal, tmp_path).place(run_in(target)) == placed


def test_a_family_of_files_is_one_entry(tmp_path: Path, journal: Journal) -> None:
    """A job may make 100,000 files, which are recorded before they are made, and removed."""
    run = planned_run(a_folder(tmp_path), Section(name="w", options={"nrfiles": "2000"}))
    scratch = scratch_from(journal, tmp_path)
    placed = scratch.place(run)
    assert placed is not None
    files = planned_files(placed)
    expect(scratch, *files)
    assert len((tmp_path / "journal.jsonl").read_text()) < 1000
    assert scratch_from(journal, tmp_path).paths == tuple(sorted(files))
    Path(files[7]).write_text("x")
    scratch.settle(files)
    later = scratch_from(journal, tmp_path)
    assert later.owns(files[7])
    assert later.remove() == ()
    assert len((tmp_path / "journal.jsonl").read_text()) < 2000
    assert scratch_from(journal, tmp_path).paths == ()
