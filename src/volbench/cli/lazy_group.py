"""Group of commands that imports the module of a command only when that is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from volbench.cli.named_campaign import complete_hint
from volbench.cli.verbosity import add_verbosity
from volbench.errors import VolbenchError


class VerbGroup(click.Group):
    """A group whose verbs may be written in capitals too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb's command."""
        return super().get_command(ctx, cmd_name.lower())


class LazyGroup(click.Group):
    """A group that imports a verb's module only when that verb is used.

    Args:
        verbs: verb to its module below `volbench` and its short help, in the order in which a
            user needs them. The module's command is named ``command``.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - passed on to click as they are
        verbs: Mapping[str, tuple[str, str]],
        **attributes: Any,  # noqa: ANN401 - the same
    ) -> None:
        super().__init__(*arguments, **attributes)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which a user needs them."""
        del ctx
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb and return its command."""
        del ctx
        if cmd_name.lower() not in self._verbs:
            return None
        module, _ = self._verbs[cmd_name.lower()]
        command: click.Command = import_module(f"volbench.{module}").command
        return add_verbosity(command)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click declares it
        """Run a verb; commands in the hint of its error name the campaign."""
        try:
            return super().invoke(ctx)
        except VolbenchError as error:
            complete_hint(error)
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin with what was typed, without importing them."""
        verbs = [
            CompletionItem(verb, help=text)
            for verb, (_, text) in self._verbs.items()
            if verb.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in self._verbs.items()])
