"""Command line of an installation without the slice that makes pods."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = (
    "import sys; sys.modules['volbench.extensions.kubernetes'] = None; "
    "from volbench.cli.main import main; main(sys.argv[1:])"
)


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call volbench in a process that cannot import the slice."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "quick", "--k8s"),
        ("run", "quick", "--pod-timeout", "1m"),
        ("resume", ".", "--pod-timeout", "1m"),
        ("k8s", "role"),
    ],
)
def test_options_of_pods_name_the_missing_package(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """Exit code 2, and the package by its name."""
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "this installation lacks the package volbench.extensions.kubernetes" in done.stderr


def test_everything_else_works_without_pods(tmp_path: Path) -> None:
    """A campaign is planned on a folder of this machine; help pages leave the options out."""
    planned = call("run", "quick", "--on", str(tmp_path), "--dry-run", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    page = call("run", "--help", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    assert "--pod-timeout" not in page.stdout
    assert "--inventory" in page.stdout
