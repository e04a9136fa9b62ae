"""The command line as a user calls it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Volbench = Callable[..., "subprocess.CompletedProcess[str]"]

COMMAND = [sys.executable, "-m", "volbench"]


@pytest.fixture
def volbench(tmp_path: Path) -> Volbench:
    """Return a function that runs volbench in a temporary folder and captures what it prints."""

    def run(*arguments: str | Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a folder to measure."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def settings(*pairs: str) -> Sequence[str]:
    """Return ``--set`` arguments."""
    return [argument for pair in pairs for argument in ("--set", pair)]
