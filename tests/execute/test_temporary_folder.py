"""Root makes no temporary files where another user could replace them."""

import os
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from tests.command_line import call
from volbench.errors import RefusedError
from volbench.execute.local import LocalExecutor, temporary_folder

pytestmark = pytest.mark.root

OTHER_USER = 4711
PROFILE = """\
name: p
sample: 0
jobs:
  a: {rw: read, bs: 4k, size: 256k, ioengine: psync}
"""


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


def test_a_run_is_refused_before_it_leaves_anything(tmp_path: Path) -> None:
    """One sentence says which folder, why and what to do; no campaign is begun."""
    tmp_path.chmod(0o755)
    (tmp_path / "p.yaml").write_text(PROFILE, encoding="utf-8")
    (scratch := tmp_path / "scratch").mkdir()
    folder = str(made(tmp_path / "t", owner=OTHER_USER, mode=0o755))
    with mock.patch.object(tempfile, "tempdir", folder):
        done = call("run", "p.yaml", "--on", scratch, "--output", "c", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert f"{folder} belongs to user {OTHER_USER}, who could replace" in done.stderr
    assert "TMPDIR=/tmp" in done.stderr
    assert not (tmp_path / "c").exists()
    assert list(Path(folder).iterdir()) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["lab", "up", "clean"], ["hosts", "--on", "."], ["show", "none"]]
)
def test_no_verb_uses_a_folder_of_another_user(tmp_path: Path, arguments: list[str]) -> None:
    """Also those that make temporary files themselves, or leave it to a library."""
    tmp_path.chmod(0o755)
    folder = str(made(tmp_path / "t", owner=OTHER_USER, mode=0o755))
    with mock.patch.dict(os.environ, TMPDIR=folder), mock.patch.object(tempfile, "tempdir", None):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert f"{folder} belongs to user {OTHER_USER}, who could replace" in done.stderr
        assert call(arguments[0], "--help", cwd=tmp_path).returncode == 0
    assert list(Path(folder).iterdir()) == []
