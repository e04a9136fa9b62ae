"""The reference pages say what the code does, because they are written from it."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.house.project import run
from volbench.cli.main import cli


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and everything below it with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


KEY_TABLES = ("profile", "profile/runs", "inventory", "prices", "volume-types")
MAX_WORDS = 1200
GENERATED = {"cli", "findings", "frames"}  # Reference pages to search, not to read


def written(root: Path, script: str, *arguments: object) -> str:
    """Return what a script prints, whatever the width of the terminal."""
    command = (sys.executable, root / "scripts" / script, *arguments)
    environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES"}}
    return run(*command, check=True, env=environment).stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", KEY_TABLES)
def test_key_tables_are_current(root: Path, page: str) -> None:
    """The page in the repository equals what its script prints now."""
    kept = (root / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    printed = written(root, "make-key-tables", page)
    assert kept == printed, f"run: .venv/bin/python scripts/make-key-tables {page}"


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(GENERATED))
def test_page_is_current(root: Path, tmp_path: Path, page: str) -> None:
    """The page in the repository equals what its script writes now."""
    written(root, f"make-{page}-page", tmp_path)
    kept, now = (
        (folder / f"{page}.md").read_text(encoding="utf-8")
        for folder in (root / "docs" / "reference", tmp_path)
    )
    assert kept == now, f"run: .venv/bin/python scripts/make-{page}-page"


def test_no_page_is_too_long_to_read(root: Path) -> None:
    """A page of the documentation that a person writes has at most so many words."""
    pages = {page: len(page.read_text("utf-8").split()) for page in (root / "docs").rglob("*.md")}
    long = {str(page): words for page, words in pages.items() if words > MAX_WORDS}
    assert {page for page in long if Path(page).stem not in GENERATED} == set()


def test_profile_index_is_current(root: Path) -> None:
    """The index of bundled profiles says what the profiles say."""
    kept = (root / "profiles" / "index.json").read_text(encoding="utf-8")
    printed = written(root, "make-profile-index")
    assert kept == printed, "run: scripts/make-profile-index > profiles/index.json"


def test_every_verb_has_help_and_a_place_in_the_page(root: Path) -> None:
    """Each command says what it does, explains its options, and has a section in cli.md."""
    text = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    silent = []
    for path, command in commands(cli, "volbench"):
        assert path == "volbench" or f"## {path}\n" in text, path
        silent += [path] if not command.help else []
        options = [param for param in command.params if isinstance(param, click.Option)]
        silent += [f"{path} {option.opts[0]}" for option in options if not option.help]
    assert silent == [], "these have no help"


def test_links_between_pages_have_targets(root: Path) -> None:
    """A relative link in README, CONTRIBUTING, CHANGELOG or docs names a file and a heading."""
    pages = [*(root / "docs").rglob("*.md"), *root.glob("*.md")]
    assert len(pages) > 10
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in pages}
    dead = [
        f"{page.relative_to(root)}: {path}#{anchor}"
        for page, text in texts.items()
        for path, anchor in links(text)
        if not (target := (page.parent / path if path else page).resolve()).exists()
        or (anchor and anchor not in anchors(texts[target]))
    ]
    assert dead == []


def links(text: str) -> list[tuple[str, str]]:
    """Return path and anchor of relative markdown links; the path of the page itself is empty."""
    targets = [part.partition(")")[0] for part in text.split("](")[1:]]
    parts = [target.partition("#") for target in targets if "://" not in target]
    return [(path, anchor) for path, _, anchor in parts]


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {
        re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }
