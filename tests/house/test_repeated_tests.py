"""scripts/repeated_tests.py: tests that passed only when repeated are listed, and limited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def write_try(folder: Path, number: int, results: dict[str, str]) -> None:
    """Write the JUnit file of one try; a test without a text passed."""
    cases = "".join(
        f'<testcase classname="tests.test_x" name="{name}">'
        + (f"<failure message='m'>{text}</failure>" if text else "")
        + "</testcase>"
        for name, text in results.items()
    )
    (folder / f"main.{number}.xml").write_text(f"<testsuite>{cases}</testsuite>")


def listed(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script on a folder."""
    script = root / "scripts" / "repeated_tests.py"
    return subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False
    )


def test_a_test_that_passed_later_is_listed_with_its_first_failure(
    root: Path, tmp_path: Path
) -> None:
    """One that passed at once is not listed, nor one that never passed."""
    write_try(tmp_path, 0, {"test_a": "first words", "test_b": "", "test_c": "always"})
    write_try(tmp_path, 1, {"test_a": "second words", "test_c": "always"})
    write_try(tmp_path, 2, {"test_a": "", "test_c": "always"})
    done = listed(root, tmp_path)
    assert done.returncode == 0
    assert "tests/test_x.py::test_a" in done.stdout
    assert "first words" in done.stdout
    assert "second" not in done.stdout
    assert "test_b" not in done.stdout
    assert "test_c" not in done.stdout


def test_more_than_three_repeated_tests_fail_the_run(root: Path, tmp_path: Path) -> None:
    """Three may be noise; four hide a race."""
    names = [f"test_{number}" for number in range(4)]
    write_try(tmp_path, 0, dict.fromkeys(names, "failed"))
    write_try(tmp_path, 1, dict.fromkeys(names[:3], ""))
    assert listed(root, tmp_path).returncode == 0
    write_try(tmp_path, 1, dict.fromkeys(names, ""))
    done = listed(root, tmp_path)
    assert done.returncode == 1
    assert "4 tests passed only when repeated; at most 3 may" in done.stdout
