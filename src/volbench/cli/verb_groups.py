"""Groups of verbs: lazy import, -v and -q on every verb, and hints that name the campaign."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click
from click.shell_completion import CompletionItem

from volbench.cli.help_pages import HEADINGS
from volbench.errors import VolbenchError, quoted
from volbench.extension import Verb, load

_KEY = "volbench.campaign"
_KNOWN_HOSTS = "volbench.known-hosts"
_VERBOSE = "Print library warnings, tracebacks and resource usage to stderr."
_QUIET = "Print only errors and prompts to stderr."
_stderr: list[TextIO] = []  # Standard error as it was before a quiet verb; empty for any other
_PLACEHOLDER = re.compile(r"\b(volbench (?:check|resume|show|status)) DIR\b")
# Commands that connect to hosts: resume with a folder, and status with a folder and --clean
_CONNECTS = re.compile(
    r"\b(volbench (?:resume(?= \S)|status(?= (?:'[^']*'|\S)+ --clean)))(?! --known-hosts)"
)


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


def repeat_known_hosts(file: Path | None) -> None:
    """Remember the file of host keys, which commands in hints need as well."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_KNOWN_HOSTS] = file


def complete_hint(error: VolbenchError) -> None:
    """Put the campaign folder in place of ``DIR`` in the commands of an error's hint.

    Commands that connect to its hosts get the file of host keys.
    """
    context = click.get_current_context(silent=True)
    if context is not None and (folder := context.meta.get(_KEY)) is not None:
        error.hint = with_paths(error.hint, [folder])
    error.hint = connecting_words()(error.hint)


def connecting_words() -> Callable[[str], str]:
    """Return a function that adds the file of host keys to commands, for use in any thread."""
    context = click.get_current_context(silent=True)
    file = None if context is None else context.meta.get(_KNOWN_HOSTS)
    if file is None:
        return str
    option = f"--known-hosts {quoted(file)}"
    return lambda text: _CONNECTS.sub(lambda match: f"{match[1]} {option}", text)


def with_paths(text: str, paths: Sequence[str | Path]) -> str:
    """Return a text whose commands have paths, quoted for a shell, where there are some."""
    words = " ".join(map(quoted, paths)) or "DIR"
    return _PLACEHOLDER.sub(lambda match: f"{match[1]} {words}", text)


def add_verbosity(command: click.Command) -> click.Command:
    """Return a command whose verbs, at any depth, all have ``-v`` and ``-q``."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_verbosity(below)
    elif not any(option.name == "is_quiet" for option in command.params):
        talk = [_option("-v", "--verbose", _VERBOSE), _option("-q", "--quiet", _QUIET)]
        HEADINGS.update(dict.fromkeys(talk, "Output"))
        command.params += talk
    return command


def _option(short: str, name: str, text: str) -> click.Option:
    keyword = f"is_{name.removeprefix('--')}"
    return click.Option(
        [short, name, keyword], is_flag=True, expose_value=False, callback=_apply, help=text
    )


def _apply(context: click.Context, option: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        context.with_resource(_quiet() if option.name == "is_quiet" else _cost_shown())


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


def is_quiet() -> bool:
    """Return whether the verb prints only errors and questions to standard error."""
    return bool(_stderr)


@contextmanager
def _cost_shown() -> Iterator[None]:
    import logging
    import resource

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    began_s = time.perf_counter()
    try:
        yield
    finally:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        workers = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = sum(used.ru_utime + used.ru_stime for used in (usage, workers))
        click.echo(
            f"took {time.perf_counter() - began_s:.2f} s, {cpu_s:.2f} s of CPU,"
            f" {usage.ru_maxrss / 1000:.0f} MB",
            err=True,
        )


@contextmanager
def questions_shown() -> Iterator[None]:
    """Say on standard error what a question needs, even in a quiet verb."""
    with redirect_stderr(_stderr[0]) if _stderr else nullcontext():
        yield


class VerbGroup(click.Group):
    """A group whose verbs may be written in capitals too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb's command."""
        return super().get_command(ctx, cmd_name.lower())


def end_quietly() -> NoReturn:
    """End as SIGPIPE ends other tools: the reader of a pipe, such as `head`, has what it wanted."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(128 + signal.SIGPIPE)


class LazyGroup(click.Group):
    """Verbs by heading of the help page, whose modules are imported only when they are used."""

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - passed on to click as they are
        groups: Mapping[str, Mapping[str, Verb]],
        **attributes: Any,  # noqa: ANN401 - the same
    ) -> None:
        super().__init__(*arguments, **attributes)
        self._groups = groups
        self._verbs = {name: verb for verbs in groups.values() for name, verb in verbs.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which a user needs them."""
        del ctx
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb and return its command."""
        del ctx
        if (verb := self._verbs.get(cmd_name.lower())) is None:
            return None
        command: click.Command = load(verb.command)
        return add_verbosity(command)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click declares it
        """Run a verb; commands in the hint of its error name the campaign."""
        try:
            return super().invoke(ctx)
        except VolbenchError as error:
            complete_hint(error)
            raise
        except BrokenPipeError:  # click would exit with 1
            end_quietly()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin with what was typed, without importing them."""
        verbs = [
            CompletionItem(name, help=verb.help)
            for name, verb in self._verbs.items()
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        del ctx
        for heading, verbs in self._groups.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<8}", verb.help) for name, verb in verbs.items()])
