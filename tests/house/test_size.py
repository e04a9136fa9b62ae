"""Ceilings for the size of the project: they only fall, and a commit that raises one says why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click
import pytest

from volbench.analyse.findings import RULES
from volbench.cli.main import cli
from volbench.plan.profile.profile_document import JobDocument, ProfileDocument
from volbench.present.plots.kinds import KINDS

CEILINGS = {
    "src/volbench/": 893,
    "src/volbench/analyse": 15_076,
    "src/volbench/api": 2_564,
    "src/volbench/cli": 6_503,
    "src/volbench/engine": 8_102,
    "src/volbench/execute": 9_952,
    "src/volbench/extensions": 1,
    "src/volbench/extensions/catalogue": 2_646,
    "src/volbench/extensions/confirming": 707,
    "src/volbench/extensions/importer": 2_494,
    "src/volbench/extensions/kubernetes": 5_370,
    "src/volbench/extensions/lab": 1_888,
    "src/volbench/extensions/monitoring": 868,
    "src/volbench/extensions/watching": 1_339,
    "src/volbench/fio": 5_057,
    "src/volbench/ingest": 1_873,
    "src/volbench/model": 4_986,
    "src/volbench/plan": 4_479,
    "src/volbench/present": 13_600,
    "src/volbench/store": 2_349,
    "tests": 61_561,
    "words of docs and README": 45_490,
    "verbs": 20,
    "options": 131,
    "options of run": 44,
    "chart kinds": 11,
    "findings": 36,
    "keys of a profile": 21,
    "keys of a job": 11,
}
"""What a contributor has to read, and a user to know. Folders: lines of Python."""


def line_count(paths: Iterable[Path]) -> int:
    """Return the lines of some modules."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def word_count(root: Path) -> int:
    """Return the words of the documentation, counted as wc -w does."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def lines_of_source(source: Path) -> Mapping[str, int]:
    """Return the lines of each package of the core, and of each extension."""
    lines: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).parts[:-1]
        name = "/".join(parts[: 2 if parts[:1] == ("extensions",) else 1])
        lines[f"src/volbench/{name}"] += line_count([path])
    return lines


def commands() -> Iterator[click.Command]:
    """Yield every command and group below volbench."""
    waiting: list[click.Command] = [cli]
    while waiting:
        command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            below = (command.get_command(context, name) for name in command.list_commands(context))
            waiting += [each for each in below if each is not None and not each.hidden]
        yield command


def options_of(command: click.Command) -> set[str]:
    """Return the long names of the options of a command."""
    options = (each for each in command.params if isinstance(each, click.Option))
    return {name for each in options for name in each.opts if name.startswith("--")}


@pytest.fixture(scope="module")
def sizes(root: Path) -> dict[str, int]:
    """Return what is measured, by the names of the ceilings."""
    context = click.Context(cli)
    run = cli.get_command(context, "run")
    assert run is not None
    return {
        **lines_of_source(root / "src" / "volbench"),
        "tests": line_count((root / "tests").rglob("*.py")),
        "words of docs and README": word_count(root),
        "verbs": len(cli.list_commands(context)),
        "options": len(set().union(*map(options_of, commands()))),
        "options of run": len(options_of(run)),
        "chart kinds": len(KINDS),
        "findings": len(RULES),
        "keys of a profile": len(ProfileDocument.model_fields),
        "keys of a job": len(JobDocument.model_fields),
    }


def test_every_size_has_a_ceiling(sizes: dict[str, int]) -> None:
    """A new package or extension gets a ceiling, and none is left of what went."""
    assert sizes.keys() == CEILINGS.keys()


@pytest.mark.parametrize("name", CEILINGS)
def test_nothing_grows(sizes: dict[str, int], name: str) -> None:
    """A size is at most its ceiling."""
    assert sizes.get(name, 0) <= CEILINGS[name], f"{name} is above its ceiling"
