"""Names for the tests of the command line; its fixtures are those of every test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from subprocess import CompletedProcess

Volbench = Callable[..., CompletedProcess[str]]

COMMAND = [sys.executable, "-m", "volbench"]
"""Starts a process, for tests of signals, crashes, the environment and interleaved output."""


def settings(*pairs: str) -> Sequence[str]:
    """Return ``--set`` arguments."""
    return [argument for pair in pairs for argument in ("--set", pair)]
