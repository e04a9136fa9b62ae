"""Root makes no temporary files where another user could replace them."""

import os
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from tests.command_line import call
from volbench.errors import RefusedError
from volbench.execute.local import LocalExecutor, probe_folder, temporary_folder

pytestmark = pytest.mark.root

OTHER_USER = 4711


def made(path: Path, *, owner: int, mode: int) -> Path:
    """Return a new folder of a user."""
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, owner)
    return path


@pytest.mark.parametrize(
    ("owner", "mode", "words"),
    [
        (OTHER_USER, 0o755, f"belongs to user {OTHER_USER}"),
        (OTHER_USER, 0o1777, f"belongs to user {OTHER_USER}"),  # who owns it may rename all in it
        (0, 0o777, "can be written by other users"),
        (0, 0o770, "can be written by other users"),
        (0, 0o1777, ""),
        (0, 0o700, ""),
    ],
)
@pytest.mark.parametrize("is_parent", [False, True])
def test_a_folder_in_which_others_can_rename_is_refused(
    owner: int, mode: int, words: str, *, is_parent: bool, tmp_path: Path
) -> None:
    """Whose it is decides, or the sticky bit; whoever owns a parent can replace the folder too."""
    outer = made(tmp_path / "t", owner=owner, mode=mode)
    folder = made(outer / "own", owner=0, mode=0o700) if is_parent else outer
    with mock.patch.object(tempfile, "tempdir", str(folder)):
        if not words:
            assert temporary_folder() == str(folder.resolve())
            return
        with pytest.raises(RefusedError, match=f"{outer.name} {words}, who could replace"):
            temporary_folder()
        with pytest.raises(RefusedError, match=words):
            LocalExecutor().start(["true"], cwd=str(tmp_path), stderr=str(tmp_path / "errors"))
    assert list(outer.iterdir()) == ([folder] if is_parent else [])


def test_a_link_of_another_user_is_not_followed_twice(tmp_path: Path) -> None:
    """The folder that was checked is used, wherever a link in its path leads afterwards."""
    folder = made(tmp_path / "t", owner=0, mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(folder)
    with mock.patch.object(tempfile, "tempdir", str(link)):
        assert temporary_folder() == str(folder.resolve())


def test_folders_of_killed_probes_are_removed(tmp_path: Path) -> None:
    """Neither those of another user, that a process uses, or below which something is mounted."""
    names = ("made_one", "of_other", "mounted0", "results")
    left, theirs, mounted, named = (tmp_path / f"volbench-probe-{name}" for name in names)
    for folder, owner in ((left, 0), (theirs, OTHER_USER), (mounted, 0), (named, 0)):
        (made(folder, owner=owner, mode=0o700) / "fio.json").touch()
        os.utime(folder, (0, 0))
    kept = {theirs, mounted, named}
    subprocess.run(["mount", "--bind", mounted, mounted], check=True)
    try:
        with mock.patch.object(tempfile, "tempdir", str(tmp_path)), probe_folder() as used:
            os.utime(used, (0, 0))
            with probe_folder() as other:
                assert {*tmp_path.iterdir()} == kept | {used, other}
    finally:
        subprocess.run(["umount", mounted], check=True)
    assert {*tmp_path.iterdir()} == kept


@pytest.mark.parametrize(
    "arguments",
    [["run", "a.fio"], ["lab", "up", "clean"], ["hosts", "--on", "."], ["show", "none"]],
)
def test_no_verb_uses_a_folder_of_another_user(tmp_path: Path, arguments: list[str]) -> None:
    """Also those that make temporary files themselves, or leave it to a library."""
    tmp_path.chmod(0o755)
    folder = str(made(tmp_path / "t", owner=OTHER_USER, mode=0o755))
    with mock.patch.dict(os.environ, TMPDIR=folder), mock.patch.object(tempfile, "tempdir", None):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert f"{folder} belongs to user {OTHER_USER}, who could replace" in done.stderr
        assert "TMPDIR=/tmp" in done.stderr
        assert call(arguments[0], "--help", cwd=tmp_path).returncode == 0
    assert list(Path(folder).iterdir()) == []
