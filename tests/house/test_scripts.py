"""The shell scripts are short, strict and well-formed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = ("scripts/setup", "scripts/get-promtool", "scripts/test", "scripts/demo", ".ci/run")


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_strict_and_short(root: Path, name: str) -> None:
    """Each script can be started, stops at errors, and can be read in one go."""
    script = root / name
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in text
    assert len(text.splitlines()) <= 120
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_setup_refuses_an_unknown_extra(root: Path, tmp_path: Path) -> None:
    """A misspelt argument changes nothing and says how it is used."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(root / "scripts" / "setup", tmp_path / "scripts")
    done = subprocess.run(
        [str(tmp_path / "scripts" / "setup"), "devel"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "usage: scripts/setup [dev]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["scripts"]


def test_build_server_runs_the_same_tests(root: Path) -> None:
    """.ci/run adds nothing of its own: it hands over to scripts/test."""
    text = (root / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(commands) == 2
    assert commands[1].startswith("exec ")
    assert commands[1].endswith('/../scripts/test"')
