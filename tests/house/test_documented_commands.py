"""Commands of README.md and the how-to pages: all are understood, and those that only read run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.command_line import call
from tests.real import ROOT, measure
from volbench.cli.main import cli

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("how-to/*.md"))]
FENCE = re.compile(r"```(?:sh|text)\n(.*?)```", re.DOTALL)
READING = {"show", "check", "export", "plot", "report", "profile", "lab", "trend"}
ELSEWHERE = re.compile(
    r"mine|volume_type|prices\.yaml|trend|\bOUT\b|nightly|curve|only-logs|"
    r"clouds|--rounds|lab up|before|slow|histogram latency|storm|profiles/|schema|campaign$|"
    r"--strict"
)
"""Commands that need what another page makes; other tests of that page run them."""


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield page and words of each command, without what follows a pipe or a redirection."""
    for page in PAGES:
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            pending = ""
            for line in block.replace("\\\n", " ").splitlines():
                pending += line
                if not pending.startswith("volbench "):
                    pending = ""
                    continue
                try:
                    words = shlex.split(pending, comments=True)
                except ValueError:  # a quoted text that goes on in the next line
                    pending += "\n"
                    continue
                pending = ""
                ends = [place for place, word in enumerate(words) if word in {"|", ">"}]
                yield page.name, words[1 : min(ends, default=len(words))]


COMMANDS = [(page, words) for page, words in commands() if "..." not in words]
READERS = [
    words for _, words in COMMANDS if words[0] in READING and not ELSEWHERE.search(" ".join(words))
]


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda value: " ".join(value)[:60])
def test_every_documented_command_is_valid(page: str, words: list[str]) -> None:
    """No page shows a verb or an option that does not exist."""
    command: click.Command = cli
    context, rest = click.Context(cli), list(words)
    while isinstance(command, click.Group):
        below = command.get_command(context, rest.pop(0))
        assert below is not None, (page, words)
        command = below
        context = click.Context(below, parent=context, **below.context_settings)
    command.make_parser(context).parse_args(rest)  # refuses an option that it does not know


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with campaigns in `results` and one in `DIR`."""
    folder = tmp_path_factory.mktemp("documented")
    measured = measure(folder, "one")
    (folder / "results").mkdir()
    measured.rename(folder / "results" / "one")
    (folder / "DIR").symlink_to(folder / "results" / "one")
    return folder


def test_documented_reading_commands_are_found() -> None:
    """The pages are found."""
    assert len(READERS) > 20


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_documented_reading_commands_run(words: list[str], campaigns: Path) -> None:
    """A newcomer with one campaign and no labels may copy each of them."""
    done = call(*words, cwd=campaigns)
    assert done.returncode == 0, done.stderr
