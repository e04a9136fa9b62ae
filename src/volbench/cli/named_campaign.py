"""Campaign that a verb works on, for commands in hints that can be pasted as they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from volbench.errors import VolbenchError

_KEY = "volbench.campaign"
_PLACEHOLDER = re.compile(r"\b(volbench (?:check|forget|reap|resume|show)) DIR\b")


def name_campaign(folder: Path) -> None:
    """Remember the campaign folder of the verb that is running."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_KEY] = folder


def remember(context: click.Context, argument: click.Parameter, folder: Path) -> Path:
    """Remember the campaign folder given on the command line; callback of its argument."""
    del argument
    context.meta[_KEY] = folder
    return folder


def complete_hint(error: VolbenchError) -> None:
    """Put the campaign folder in place of ``DIR`` in the commands of an error's hint."""
    context = click.get_current_context(silent=True)
    if context is not None and (folder := context.meta.get(_KEY)) is not None:
        error.hint = with_paths(error.hint, [folder])


def with_paths(text: str, paths: Sequence[str | Path]) -> str:
    """Return a text whose commands have paths, quoted for a shell, where there are some."""
    quoted = shlex.join(map(str, paths)) or "DIR"
    return _PLACEHOLDER.sub(lambda match: f"{match[1]} {quoted}", text)
