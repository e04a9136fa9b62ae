"""The same flags on every verb: tables, output and how much is said."""

from collections.abc import Iterator

import click
import pytest

from volbench.cli.main import cli

TALK = {"-v", "--verbose", "-q", "--quiet"}
TABLE = {"--format", "--json", "--columns", "--wide"}
ORDER = {"--sort", "--raw"}
WITH_ORDER = {"show", "export"}
WITHOUT_TABLE = {
    # They print no table: a schema, a file, a folder, a sentence, or what a controller says.
    "import",
    *("k8s fetch", "k8s reap", "k8s render", "k8s submit", "lab schema", "lab up"),
    *("profile check", "profile import", "profile render", "profile schema", "report"),
}
WITH_SOME = {
    "export": {"--wide"},  # every column has its full width in a file
    "plot": {"--json", "--columns", "--wide"},  # its numbers are what the chart draws
}
"""Verb to the flags of tables that make no sense for it."""
WITHOUT_OUTPUT = {"resume"}  # it continues in the folder that it names


def verbs(command: click.Command, context: click.Context) -> Iterator[tuple[str, set[str]]]:
    """Yield every verb with the names of its options."""
    if not isinstance(command, click.Group):
        name = context.command_path.removeprefix("volbench ")
        yield name, {option for param in command.params for option in param.opts}
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from verbs(below, click.Context(below, info_name=name, parent=context))


FLAGS = dict(verbs(cli, click.Context(cli, info_name="volbench")))


@pytest.mark.parametrize("verb", FLAGS)
def test_every_verb_has_quiet_and_verbose(verb: str) -> None:
    """Every verb can say more, and nothing."""
    assert FLAGS[verb] >= TALK


@pytest.mark.parametrize("verb", FLAGS)
def test_only_verbs_with_tables_have_table_options(verb: str) -> None:
    """A verb that prints a table has all flags of tables, and any other verb has none of them."""
    wanted = set() if verb in WITHOUT_TABLE else TABLE - WITH_SOME.get(verb, set())
    assert FLAGS[verb] & TABLE == wanted
    assert FLAGS[verb] & ORDER == (ORDER if verb in WITH_ORDER else set())
    if wanted and verb not in WITHOUT_OUTPUT:
        assert FLAGS[verb] >= {"-o", "--output"}


def test_exceptions_name_existing_verbs() -> None:
    """The lists above name verbs that there are."""
    assert {*WITHOUT_TABLE, *WITH_SOME, *WITHOUT_OUTPUT} <= {*FLAGS}
