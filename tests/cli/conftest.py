"""Command line for the tests of its verbs, in the test process or as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command_line import call

Volbench = Callable[..., CompletedProcess[str]]

COMMAND = [sys.executable, "-m", "volbench"]
"""Starts a process, for tests of signals, crashes, the environment and interleaved output."""


@pytest.fixture
def volbench(tmp_path: Path) -> Volbench:
    """Return a function that calls volbench in a temporary folder and captures what it prints."""
    return partial(call, cwd=tmp_path)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a folder to measure."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def settings(*pairs: str) -> Sequence[str]:
    """Return ``--set`` arguments."""
    return [argument for pair in pairs for argument in ("--set", pair)]
