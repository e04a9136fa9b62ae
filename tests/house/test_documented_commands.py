"""Commands in the documentation: all are understood, and those that only read run."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import pytest

from tests.command_line import call
from tests.real import ROOT, measure
from volbench.cli.main import cli

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.name not in {"cli.md", "gallery.md"} and page.parent.name != "contributing"
    ),
]
FENCE = re.compile(r"```(?:sh|text)\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(volbench [^`]+)`")
READING = {"show", "check", "export", "plot", "report", "profile", "lab", "price", "hosts"}
ELSEWHERE = re.compile(
    r"mine|prices\.yaml|\bOUT\b|DATASET|nightly|curve|clouds|--rounds|lab up|before|slow|storm|"
    r"profiles/|schema|campaign$|--strict|--expect|real|layers|p15$|--inventory|/dev/|results/"
)
"""Commands that need what another page makes; other tests of that page run them."""


def fenced_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in a block."""
    for block in FENCE.findall(text):
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
            yield words[1:]


def inline_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in a sentence."""
    for quoted in INLINE.findall(FENCE.sub("", text)):
        yield shlex.split(quoted.replace("\n", " "))[1:]


def commands(
    pages: Iterable[Path], found_in: Callable[[str], Iterator[list[str]]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield page and words of each command that can be checked, up to a pipe or a redirection."""
    for page in pages:
        for words in found_in(page.read_text(encoding="utf-8")):
            ends = [place for place, word in enumerate(words) if word in {"|", ">"}]
            own = tuple(words[: min(ends, default=len(words))])
            is_command = not own[0].startswith("-") and own[0] != "help" and own[0].islower()
            if is_command and "..." not in own:
                yield page.name, own


COMMANDS = [*commands(PAGES, fenced_commands), *commands(PAGES, inline_commands)]
TASKS = [page for page in PAGES if page.name == "README.md" or page.parent.name == "how-to"]


def shape(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what makes a reading command different from another: verb, options and format."""
    names = [word for word in words if word.startswith("-") or word in {"html", "markdown", "json"}]
    return (words[0], *sorted(names), words[1] if words[0] in {"plot", "profile", "lab"} else "")


READERS = {
    shape(words): words
    for _, words in commands(TASKS, fenced_commands)
    if words[0] in READING and not ELSEWHERE.search(" ".join(words))
}


def problem_of(words: tuple[str, ...]) -> str:
    """Return why the command line does not understand a command; empty if it does."""
    command: click.Command = cli
    context, rest = click.Context(cli), list(words)
    while isinstance(command, click.Group) and rest:
        below = command.get_command(context, rest.pop(0))
        if below is None:
            return "unknown command"
        command = below
        context = click.Context(below, parent=context, **below.context_settings)
    try:
        command.make_parser(context).parse_args(rest)
    except click.BadOptionUsage:  # an option named in prose, without its value
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def test_every_documented_command_is_valid() -> None:
    """No page shows a verb or an option that does not exist."""
    assert len(COMMANDS) > 150
    found = [
        f"{page}: volbench {' '.join(words)}: {problem}"
        for page, words in dict.fromkeys(COMMANDS)
        if (problem := problem_of(words))
    ]
    assert found == [], "\n".join(found)


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with campaigns in `results` and one in `DIR`."""
    folder = tmp_path_factory.mktemp("documented")
    measured = measure(folder, "one")
    (folder / "results").mkdir()
    measured.rename(folder / "results" / "one")
    (folder / "DIR").symlink_to(folder / "results" / "one")
    return folder


def test_documented_reading_commands_run(campaigns: Path) -> None:
    """A newcomer with one campaign and no labels may copy each of them."""
    assert len(READERS) > 15
    found = []
    for words in READERS.values():
        done = call(*words, cwd=campaigns)
        if done.returncode:
            found.append(f"volbench {' '.join(words)}: {done.stderr}")
    assert found == [], "\n".join(found)
