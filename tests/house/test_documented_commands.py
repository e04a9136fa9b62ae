"""Commands that documents and messages show: they exist, and can be pasted."""

import ast
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import pytest

import volbench
from tests.command_line import call
from tests.finished_campaign import half_finished
from tests.real import ROOT, measure
from volbench.cli.fio_verb import FioVerb
from volbench.cli.main import VERBS, cli
from volbench.errors import quoted

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
    r"profiles/|schema|campaign$|--strict|--expect|real|layers|p15$|--inventory|/dev/|results/|"
    r"reads|qd-|:/data"
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
    for code in INLINE.findall(FENCE.sub("", text)):
        yield shlex.split(code.replace("\n", " "))[1:]


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
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest.pop(0))
        if below is None:
            return "unknown command"
        command = below
        context = click.Context(below, parent=context, **below.context_settings)
    try:
        if isinstance(command, FioVerb):
            rest = command.plain_words(context, rest)
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


@pytest.mark.slow
def test_documented_reading_commands_run(campaigns: Path) -> None:
    """A newcomer with one campaign and no labels may copy each of them."""
    assert len(READERS) > 15
    found = []
    for words in READERS.values():
        done = call(*words, cwd=campaigns)
        if done.returncode:
            found.append(f"volbench {' '.join(words)}: {done.stderr}")
    assert found == [], "\n".join(found)


SOURCE = Path(volbench.__file__).parent
QUOTED_ALREADY = {
    "options",  # of a cluster, joined for a shell
    "paths",  # of campaigns, joined for a shell
    "target",  # of the lab: options whose values are quoted
    "size",
    "curve",
    "rule",  # identifiers of volbench
    "kind",
    "by",
    "mode",
    "geteuid()",  # numbers of the system
}
# A command up to the value in question; prose may follow a command after a comma or a colon
COMMAND = re.compile(
    rf"(?:^|[\s(])(?:volbench (?:{'|'.join(VERBS)})|umount|mount|mkdir|rm|chmod|chown)\b[^;:,]*$"
)


def unquoted(source: str) -> Iterator[str]:
    """Yield the values in commands of messages that are not quoted, with their lines."""
    for text in ast.walk(ast.parse(source)):
        if not isinstance(text, ast.JoinedStr):
            continue
        before = ""
        for part in text.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                words = ast.unparse(part.value)
                is_safe = re.match(r"quoted\(", words) or words.split(".")[-1] in QUOTED_ALREADY
                is_safe = is_safe or words.isupper()  # constants
                if COMMAND.search(before) and not is_safe:
                    yield f"{part.lineno}: {words}"
                before += "X"


@pytest.mark.slow
def test_commands_in_messages_are_quoted() -> None:
    """A folder with a space or a quote in its name gives a command that works."""
    found = [
        f"{path.relative_to(SOURCE)}:{place}"
        for path in SOURCE.rglob("*.py")
        for place in unquoted(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_hint_can_be_pasted(tmp_path: Path) -> None:
    """The command of a hint leads to the same folder, whatever its name."""
    layout = half_finished(tmp_path / "of 'today' $(x)")
    done = call("status", "--follow", layout.root)
    assert done.returncode == 9
    assert f"volbench resume {quoted(layout.root)}; or see:" in done.stderr
