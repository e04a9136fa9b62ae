"""Help pages as a user sees them, on a terminal of 80 columns."""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.command_line import call
from volbench import __version__
from volbench.cli.help_pages import MAX_PLAIN_OPTIONS, PAGES, VerbCommand
from volbench.cli.main import cli
from volbench.model.campaign.planned_run import OnError
from volbench.model.profile.profile_settings import MAX_EXTENTS, MAX_REPEATS, WarmingMode


def paths(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield the words that call a command, and those of every command below it."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from paths(below, *words, name)


def command_of(words: tuple[str, ...]) -> click.Command:
    """Return the command that words call."""
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


def rendered(*words: str, page: str = "") -> list[str]:
    """Return the lines of a help page at 80 columns, with all options unless a page is named."""
    command = command_of(words)
    is_long = isinstance(command, VerbCommand) and command.is_long
    page = page or ("--help-all" if is_long else "--help")
    done = CliRunner().invoke(cli, [*words, page], terminal_width=80, max_content_width=80)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.mark.parametrize("words", list(paths(cli)), ids=" ".join)
def test_help_fits_and_shows_no_markup(words: tuple[str, ...]) -> None:
    """No line is longer than the terminal or cut; an example is a whole line of its own."""
    lines = rendered(*words)
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if "\\" in line or "\b" in line] == []
    assert [line for line in lines if line.endswith("...") and "Usage" not in line] == []
    examples = [line.strip() for line in lines if line.strip().startswith("volbench ")]
    assert all(line.count("volbench ") == 1 for line in examples), examples
    assert all(not line.endswith(("\\", ",")) for line in examples)


def option(verb: str, name: str) -> click.ParamType[Any]:
    """Return the type of an option of a verb."""
    return next(param.type for param in command_of((verb,)).params if param.name == name)


@pytest.mark.parametrize(
    ("verb", "name", "choices"), [("run", "on_error", OnError), ("warmup", "mode", WarmingMode)]
)
def test_choices_equal_those_of_the_model(verb: str, name: str, choices: type[StrEnum]) -> None:
    """Help spells choices out, because the model is slow to import; they are the same."""
    kind = option(verb, name)
    assert isinstance(kind, click.Choice)
    assert set(kind.choices) == {choice.value for choice in choices}


@pytest.mark.parametrize(
    ("verb", "name", "most"), [("run", "repeat", MAX_REPEATS), ("warmup", "extents", MAX_EXTENTS)]
)
def test_ranges_equal_those_of_the_plan(verb: str, name: str, most: int) -> None:
    """The same for the largest numbers."""
    kind = option(verb, name)
    assert isinstance(kind, click.IntRange)
    assert kind.max == most


LEAVES = [words for words in paths(cli) if not isinstance(command_of(words), click.Group)]


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_long_help_has_one_screen_and_further_pages(words: tuple[str, ...]) -> None:
    """A verb with more than twenty options shows the most needed ones, and all on other pages."""
    options = [each for each in command_of(words).params if isinstance(each, click.Option)]
    shown = [each for each in options if not each.hidden]
    screen, everything = rendered(*words, page="--help"), rendered(*words)
    assert all(each.opts[-1] in "\n".join(everything) for each in shown)
    headings = [line.removesuffix(":") for line in everything if re.fullmatch(r"[A-Z].*:", line)]
    assert headings[0] == "Options"
    assert len(headings) == len({*headings})
    is_long = len(shown) + len(["--help"]) > MAX_PLAIN_OPTIONS
    assert (len(headings) > 1) == is_long
    if is_long:
        assert len(screen) <= 24
        assert max(map(len, screen)) <= 80
        rows = [line.rstrip(".") for line in screen if line.startswith("  -")]
        helps = " ".join(" ".join(each.help or "" for each in shown).split())
        assert len(rows) >= 4
        assert all(" ".join(row.split()[-2:]) in helps for row in rows)
        last = [line for line in screen if line.startswith("More options: ")]
        for page in last[0].removeprefix("More options: ").split(", "):
            assert page in PAGES
            assert rendered(*words, page=page)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_each_verb_has_examples(words: tuple[str, ...]) -> None:
    """The help of a verb ends with calls of it, which a reader may copy."""
    lines = rendered(*words)
    start = lines.index("  Examples:")
    assert lines[start + 1 :]
    assert all(line.startswith(f"    volbench {' '.join(words)}") for line in lines[start + 1 :])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["help"], "Measure and compare:"),
        (["help", "run"], "Usage: volbench run"),
        (["help", "profile", "check"], "Usage: volbench profile check"),
        (["help", "findings"], "# Findings\n"),
        (["help", "profile.md"], "## Keys"),
    ],
)
def test_help_is_a_verb_too(words: list[str], text: str) -> None:
    """It shows the help of a command, or a page of the documentation that an installation has."""
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert text in done.stdout
    if text.startswith("# "):
        assert done.stdout.startswith(text)


@pytest.mark.parametrize("words", [["version"], ["-V"], ["--version"]])
def test_the_version_has_three_names(words: list[str]) -> None:
    """All print the same line."""
    assert call(*words).stdout == f"volbench, version {__version__}\n"


def test_no_text_names_a_file_of_the_checkout() -> None:
    """An installed user has `volbench help`, not docs/."""
    hints = [
        f"{path.name}: {line.strip()}"
        for path in (Path(__file__).parents[2] / "src").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"[\"' (]docs/\w+/[\w-]+\.md", line) and not line.lstrip().startswith("#")
    ]
    assert [line for line in hints if "hint" in line or "help=" in line] == []
    pages = [" ".join(rendered(*words)) for words in paths(cli)]
    assert not [page for page in pages if "docs/" in page]
