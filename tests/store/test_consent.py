"""Signed campaign folders: created whole, or not at all."""

import errno
import os
from pathlib import Path

import pytest

from tests.finished_campaign import half_finished
from volbench.errors import ArchiveError
from volbench.store.archive import Archive, hold_campaign, read_campaign
from volbench.store.consent import create_signed_campaign, hold_copies, read_own_campaign

WRITES = 2
"""Files that a new campaign folder gets: consent.json and campaign.json."""


class FullDisk:
    """A disk with room for a number of files."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = room
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, descriptor: int) -> None:
        """Fail for a file that has no room; directories take none."""
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112 - a link of the kernel
            self.room -= 1
            if self.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._fsync(descriptor)


@pytest.fixture(name="archive")
def _archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Return the content of a campaign of a user without a key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return read_campaign(half_finished(tmp_path / "old").root)[1]


@pytest.mark.parametrize("room", range(WRITES + 1))
def test_a_folder_with_a_plan_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: Archive, room: int
) -> None:
    """A full disk leaves a signed campaign or a folder that can be used again."""
    folder = tmp_path / "new"
    create_signed_campaign(tmp_path / "first", archive)  # makes the user's key
    disk = FullDisk(room, monkeypatch)
    if room == WRITES:
        create_signed_campaign(folder, archive)
    else:
        with pytest.raises(ArchiveError, match="No space left"):
            create_signed_campaign(folder, archive)
        assert list(folder.iterdir()) == []
        disk.room = WRITES
        create_signed_campaign(folder, archive)
    assert read_own_campaign(folder)[1].campaign == archive.campaign


def test_a_campaign_that_cannot_be_signed_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    """The reason is that of the key, also where its folder cannot be made (ENOENT)."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/state")
    with pytest.raises(ArchiveError, match=r"signs campaigns cannot be used: /proc/state: No such"):
        create_signed_campaign(tmp_path / "new", archive)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "name", ["inputs/thesis.txt", "runs/x", "consent.json", ".lock", ".thesis.999999999.tmp"]
)
def test_files_of_a_user_do_not_precede_a_plan(tmp_path: Path, archive: Archive, name: str) -> None:
    """A folder with a name that volbench uses, but with another content, is not empty."""
    file = tmp_path / "new" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(ArchiveError, match="is not empty"):
        create_signed_campaign(tmp_path / "new", archive)
    assert file.read_text() == "mine"


def test_two_copies_of_a_campaign_are_not_run_at_a_time(tmp_path: Path, archive: Archive) -> None:
    """The second is refused with the folder of the first; afterwards it may."""
    first, second = (create_signed_campaign(tmp_path / name, archive) for name in ("a", "b"))
    for _ in range(2):
        with (
            hold_copies(first, archive.campaign.key),
            pytest.raises(ArchiveError, match=rf"b is a copy of {first.root}, where another"),
            hold_copies(second, archive.campaign.key),
        ):
            pass
    killed = tmp_path / "state/volbench/running" / archive.campaign.key
    killed.write_text("/the/longer/path/of/a/controller/that/was/killed" * 9)
    with hold_copies(second, archive.campaign.key):
        assert killed.read_text() == str(second.root)
    assert list(killed.parent.iterdir()) == []


def test_campaign_of_a_controller_killed_before_its_plan_is_planned_again(
    tmp_path: Path, archive: Archive
) -> None:
    """What precedes the plan does not make its folder unusable; anything else does."""
    layout = create_signed_campaign(tmp_path / "new", archive)
    layout.campaign.unlink()  # the last file, as above
    (layout.root / ".campaign.json.999999999.volbench.tmp").write_text("{")
    layout.inputs.mkdir()
    (layout.inputs / ("0" * 64)).touch()
    create_signed_campaign(layout.root, archive)
    assert read_own_campaign(layout.root)[1].campaign == archive.campaign
    with pytest.raises(ArchiveError, match="is not empty") as of_a_campaign:
        create_signed_campaign(layout.root, archive)
    with hold_campaign(layout), pytest.raises(ArchiveError, match="is not empty") as of_a_running:
        create_signed_campaign(layout.root, archive)
    layout.campaign.unlink()
    (layout.runs / "001").mkdir()
    with pytest.raises(ArchiveError, match="is not empty") as of_other_files:
        create_signed_campaign(layout.root, archive)
    caught = (of_a_campaign, of_a_running, of_other_files)
    assert [each.value.hint.count("resume") for each in caught] == [1, 0, 0]
    create_signed_campaign(tmp_path / "outer", archive)
    with pytest.raises(ArchiveError, match=r"is within the campaign .*outer"):
        create_signed_campaign(tmp_path / "outer" / "runs" / "inner", archive)
