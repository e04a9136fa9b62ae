"""The fixture that catches leaks is itself put to the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import run

LEAKS = {
    "environment": "os.environ['VOLBENCH_LEAK'] = '1'",
    "changed": "os.environ['PATH'] += ':/nowhere'",
    "removed": "del os.environ['PATH']",
    "folder": "os.chdir('/')",
}


def run_test(root: Path, folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Run one made-up test under the project's conftest."""
    conftest = (root / "tests" / "conftest.py").read_text(encoding="utf-8")
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    test = f"import os\n\ndef test_it(monkeypatch):\n    {body}\n"
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder)
    environment = {**os.environ, "PYTHONPATH": str(root)}  # where the conftest finds its helpers
    return run(*command, cwd=folder, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("body", LEAKS.values(), ids=LEAKS.keys())
def test_a_leak_fails_its_test(root: Path, tmp_path: Path, body: str) -> None:
    """A test that changes the environment or the folder for good is an error."""
    done = run_test(root, tmp_path, body)
    assert done.returncode == 1
    assert "the test leaked" in done.stdout
