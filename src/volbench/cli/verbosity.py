"""The options ``-v`` and ``-q`` of every verb: how much is said on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import TextIO

import click

_stderr: list[TextIO] = []  # Standard error as it was before a quiet verb; empty for any other


def add_verbosity(command: click.Command) -> click.Command:
    """Return a command whose verbs, at any depth, all have ``-v`` and ``-q``."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_verbosity(below)
    elif not any(option.name == "is_quiet" for option in command.params):
        command.params += [_option("-v", "--verbose", _VERBOSE), _option("-q", "--quiet", _QUIET)]
    return command


_VERBOSE = "Also say on standard error what libraries report, where an error arose, and the cost."
_QUIET = "Say nothing on standard error but errors and questions."


def _option(short: str, name: str, text: str) -> click.Option:
    keyword = f"is_{name.removeprefix('--')}"
    return click.Option(
        [short, name, keyword], is_flag=True, expose_value=False, callback=_apply, help=text
    )


def _apply(context: click.Context, option: click.Parameter, value: object) -> None:
    if not value or context.resilient_parsing:
        return
    if option.name == "is_quiet":
        context.with_resource(_quiet())
    else:
        context.with_resource(_cost_shown())


@contextmanager
def _quiet() -> Iterator[None]:
    """Send notes and progress to nowhere; errors are printed after the verb has ended."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        _stderr.append(sys.stderr)
        try:
            with redirect_stderr(nowhere):
                yield
        finally:
            _stderr.clear()


@contextmanager
def _cost_shown() -> Iterator[None]:
    """Show what libraries log, and in the end the cost of the verb."""
    import logging
    import resource

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    began_s = time.perf_counter()
    try:
        yield
    finally:
        own = resource.getrusage(resource.RUSAGE_SELF)
        workers = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = sum(used.ru_utime + used.ru_stime for used in (own, workers))
        click.echo(
            f"took {time.perf_counter() - began_s:.2f} s, {cpu_s:.2f} s of CPU,"
            f" {own.ru_maxrss / 1000:.0f} MB",
            err=True,
        )


@contextmanager
def questions_shown() -> Iterator[None]:
    """Say on standard error what a question needs, even in a quiet verb."""
    with redirect_stderr(_stderr[0]) if _stderr else nullcontext():
        yield
