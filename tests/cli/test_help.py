"""Help pages as a user sees them, on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import click
import pytest
from click.testing import CliRunner

from volbench.cli.main import VERBS, cli
from volbench.model.campaign.planned_run import OnError
from volbench.model.profile.profile_model import MAX_REPEATS, MAX_SEED
from volbench.model.profile.profile_settings import MAX_EXTENTS, WarmingMode
from volbench.plan.expansion.extents import LADDER


def paths(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield the words that call a command, and those of every command below it."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from paths(below, *words, name)


def rendered(*words: str) -> list[str]:
    """Return the lines of a help page at 80 columns."""
    done = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80, max_content_width=80)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.mark.parametrize("words", list(paths(cli)), ids=" ".join)
def test_help_fits_and_shows_no_markup(words: tuple[str, ...]) -> None:
    """No line is longer than the terminal, and click's control characters stay out of sight."""
    lines = rendered(*words)
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if "\\" in line or "\b" in line] == []


@pytest.mark.parametrize("words", list(paths(cli)), ids=" ".join)
def test_each_example_has_a_line_of_its_own(words: tuple[str, ...]) -> None:
    """A line holds one example at most, and an example is the whole line."""
    shown = [line for line in rendered(*words) if "volbench " in line and "Usage:" not in line]
    examples = [line.strip() for line in shown if line.strip().startswith("volbench ")]
    assert all(line.count("volbench ") == 1 for line in examples), examples
    assert all(not line.endswith(("\\", ",")) for line in examples)


@pytest.mark.parametrize("words", list(paths(cli)), ids=" ".join)
def test_lists_of_commands_are_whole(words: tuple[str, ...]) -> None:
    """The summary of a command is a sentence that fits its line."""
    assert [line for line in rendered(*words) if line.endswith("...") and "Usage" not in line] == []


@pytest.mark.parametrize("verb", ["run", "warmup", "resume"])
def test_output_of_verbs_that_make_a_campaign_is_its_folder(verb: str) -> None:
    """The table has a format and columns, but no file of its own."""
    text = " ".join(" ".join(rendered(verb)).split())
    assert all(f"{name} " in text for name in ("--format", "--json", "--columns", "--wide"))
    assert "-o, --output PATH" not in text


@pytest.mark.parametrize("verb", ["run", "warmup", "import", "price", "sql", "plot"])
def test_verbs_with_examples_show_them(verb: str) -> None:
    """The section of examples holds nothing but calls of that verb."""
    lines = rendered(verb)
    start = lines.index("  Examples:")
    assert len(lines) - start > 2
    assert all(line.startswith(f"    volbench {verb} ") for line in lines[start + 1 :])


def test_output_has_one_name_everywhere() -> None:
    """Every verb that writes takes -o and --output."""
    for words in paths(cli):
        text = "\n".join(rendered(*words))
        assert ("-o, --output" in text) == ("--output" in text), words
    assert "run" in VERBS


def option(verb: str, name: str) -> click.ParamType[Any]:
    """Return the type of an option of a verb."""
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    return next(param.type for param in command.params if param.name == name)


@pytest.mark.parametrize(
    ("verb", "name", "choices"),
    [("run", "on_error", OnError), ("warmup", "mode", WarmingMode)],
)
def test_choices_are_those_of_the_model(verb: str, name: str, choices: type[StrEnum]) -> None:
    """Help spells choices out, because the model is slow to import; they are the same."""
    kind = option(verb, name)
    assert isinstance(kind, click.Choice)
    assert set(kind.choices) == {choice.value for choice in choices}


@pytest.mark.parametrize(
    ("verb", "name", "most"),
    [
        ("run", "repeat", MAX_REPEATS),
        ("run", "seed", MAX_SEED),
        ("warmup", "extents", MAX_EXTENTS),
    ],
)
def test_ranges_are_those_of_the_plan(verb: str, name: str, most: int) -> None:
    """The same for the largest numbers."""
    kind = option(verb, name)
    assert isinstance(kind, click.IntRange)
    assert kind.max == most


def test_the_steps_of_auto_are_those_of_the_plan() -> None:
    """--auto says how many jobs it tries at most."""
    assert f"to {LADDER[-1]}" in " ".join(" ".join(rendered("warmup")).split())


@pytest.mark.parametrize("verb", ["run", "measure", "resume"])
def test_long_help_has_headings(verb: str) -> None:
    """A verb with more than twenty options lists the common ones first, then named groups."""
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    with click.Context(command, info_name=verb) as context:
        text = command.get_help(context)
    headings = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":")]
    assert headings[0] == "Options"
    assert {"Safety", "Execution", "Output"} <= {*headings}
    assert len(headings) == len({*headings})
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.opts[-1] in text
