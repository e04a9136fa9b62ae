"""The agent's program in the user's cache, from which it starts further processes."""

import hashlib
import shutil
import tempfile
from pathlib import Path

import pytest

from volbench.execute.agent import installed_program


@pytest.mark.parametrize("has_home", [True, False])
def test_a_program_whose_cache_was_removed_is_stored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_home: bool
) -> None:
    """Only without a home is it in a temporary folder, which stays until the next restart."""
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(
        installed_program, "Program", type("Program", (), {"data": b"", "file": ""})
    )
    installed_program.install(b"program", {})
    shutil.rmtree(home / ".cache" if has_home else home)
    file, digest = installed_program.command("gate", "x")[-4:-2]
    assert Path(file).read_bytes() == b"program"
    assert hashlib.sha256(b"program").hexdigest() == digest
    assert Path(file).is_relative_to(home if has_home else temporary)
    assert (list(temporary.iterdir()) == []) == has_home
