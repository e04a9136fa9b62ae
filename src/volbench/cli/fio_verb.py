"""Verbs that take options of fio as overrides, and a command of fio after ``--``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from volbench.cli.help_pages import VerbCommand

if TYPE_CHECKING:
    from volbench.model.profile.fio_options import Option

_OVERRIDES, _SET = "volbench.overrides", "--set="

SECTION = click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Run this section of a job file by itself, as fio --section does; repeatable, one after "
    "the other; all for each of the file.",
)


class FioVerb(VerbCommand):
    """A verb that takes options of fio as overrides, and a command of fio after ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, with each option of fio as a setting of all jobs."""
        words = self.plain_words(ctx, args)
        ctx.meta[_OVERRIDES] = [word[6:] for word in words if word not in args and word[:6] == _SET]
        return super().parse_args(ctx, words)

    def plain_words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the command line with settings, and with a command of fio as one word."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        flags = {name for each in options if each.is_flag for name in each.opts}
        place = next(
            (
                number
                for number, word in enumerate(args)
                if word == "--" or (word == "fio" and (not number or args[number - 1] in flags))
            ),
            len(args),
        )
        own = {name for each in options for name in each.opts}
        command = args[place + (args[place : place + 1] == ["--"]) :]
        joined = command if len(command) < 2 else [shlex.join(command)]
        return [*_with_settings(args[:place], own), *(["--", *joined] if joined else [])]


def say_overrides() -> None:
    """Print which options of fio the command line sets in each job."""
    if overrides := click.get_current_context().meta.get(_OVERRIDES):
        click.echo(f"note: in each job: {', '.join(overrides)}", err=True)


def _with_settings(words: list[str], own: set[str]) -> Iterator[str]:
    """Yield words, with ``--set=NAME=VALUE`` for options of fio that are not the verb's `own`."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        is_own = not word.startswith("--") or f"--{name}" in own
        option = None if is_own else _option_of_fio(name)
        if option is None:
            yield word
            continue
        yield f"{_SET}{option.name}={value if equals else _value(option, rest)}"


def _value(option: Option, rest: list[str]) -> str:
    from volbench.model.profile.fio_options import OptionKind

    is_alone = not rest or rest[0].startswith("--")
    if option.kind is OptionKind.FLAG or (option.kind is OptionKind.BOOLEAN and is_alone):
        return "1"
    if not rest:
        raise click.BadOptionUsage(option.name, f"Option '--{option.name}' requires an argument.")
    return rest.pop(0)


def _option_of_fio(name: str) -> Option | None:
    """Return an option by its name or alias: of the shipped table, else of the installed fio."""
    from volbench.engine.hosts.host_facts import options_on
    from volbench.execute.local import LocalExecutor
    from volbench.fio.jobs.option_table import shipped_table

    return shipped_table().find(name) or options_on(LocalExecutor()).find(name)
