"""Results are read without what measuring needs: Linux, fio, programs, a home to write to."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.house.project import run
from tests.labelled_campaigns import CASES, HOSTS, make

pytestmark = pytest.mark.slow

READING = (
    ("status", "."),
    ("show", "base/c"),
    ("check", "base/c"),
    ("compare", "base", "later"),
    ("plot", "iops", "base/c", "-o", "iops.svg"),
    ("report", "base/c", "-o", "page.html"),
    ("export", "base/c", "--format", "parquet", "-o", "runs.parquet"),
    ("import", "result.json", "-o", "imported"),
    ("show", "imported"),
)
WRITTEN = {"iops.svg", "page.html", "runs.parquet", "imported"}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Return a folder with two campaigns, whose tables are not made yet, and a result of fio."""
    make(tmp_path / "base", HOSTS)
    make(tmp_path / "later", HOSTS)
    shutil.copy(CASES / "fio-3.33" / "randrw-jsonplus" / "stdout", tmp_path / "result.json")
    return tmp_path


def called(folder: Path, program: Sequence[str], arguments: Sequence[str]) -> tuple[int, str]:
    """Return exit code and all that is printed, without programs and without a home."""
    environment = {"PATH": "/nowhere", "HOME": "/dev/null/home", "LC_ALL": "C.UTF-8"}
    done = run(sys.executable, *program, *arguments, cwd=folder, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "program", [("-m", "volbench"), (f"{Path(__file__).parent}/other_system.py",)]
)
def test_results_are_read(folder: Path, program: Sequence[str]) -> None:
    """Every verb that reads works on Linux, and on a system without what only Linux has."""
    before = {path.name for path in folder.iterdir()}
    for arguments in READING:
        code, printed = called(folder, program, arguments)
        assert code == 0, printed
        assert "Traceback" not in printed
    assert {path.name for path in folder.iterdir()} - before == WRITTEN


def test_another_system_measures_nothing(folder: Path) -> None:
    """It says why, and what works there, before anything is written."""
    before = {path.name for path in folder.iterdir()}
    program = (f"{Path(__file__).parent}/other_system.py",)
    for verb in (("measure", "--on", "."), ("run", "quick", "--on", "."), ("hosts", "--on", ".")):
        code, printed = called(folder, program, verb)
        assert code == 3, printed
        assert "Traceback" not in printed
        assert "measuring needs Linux, and this machine runs darwin" in printed
    assert {path.name for path in folder.iterdir()} == before
