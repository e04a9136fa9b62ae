"""The documentation as a site, and the manual pages."""

import os
import runpy
import sys
from pathlib import Path

import click
import pytest

from tests.house.project import SCRIPTS
from tests.house.project import run as program
from volbench.cli.main import VERBS, cli


@pytest.mark.nightly
def test_the_site_is_built_without_a_broken_link(root: Path, tmp_path: Path) -> None:
    """Every link and anchor of every page is found, and the gallery's pictures are there."""
    assert "scripts/docs" in SCRIPTS
    mkdocs = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = program(*mkdocs, tmp_path / "site", cwd=root, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "python" / "index.html").exists()
    assert "fonts.googleapis.com" not in (tmp_path / "site" / "index.html").read_text("utf-8")
    assert (tmp_path / "site" / "gallery" / "warmup.png").exists()


@pytest.fixture(scope="module")
def pages(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the manual pages by name."""
    folder = tmp_path_factory.mktemp("man")
    script = runpy.run_path(str(root / "scripts" / "man_pages.py"))
    written: list[Path] = script["write_pages"](folder)
    return {page.stem: page.read_text(encoding="utf-8") for page in written}


def test_every_command_has_a_manual_page(pages: dict[str, str]) -> None:
    """A page has the sections of a manual page, and its first line names it."""
    assert {"volbench", *(f"volbench-{verb}" for verb in VERBS)} <= pages.keys()
    assert "volbench-profile-check" in pages
    for name, text in pages.items():
        assert text.startswith(".TH " + name.upper().replace("-", "\\-") + " 1 ")
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS"):
            assert f".SH {section}\n" in text
        assert "\b" not in text


def test_a_manual_page_has_every_option_and_example(pages: dict[str, str]) -> None:
    """Nothing that --help shows is left out, and no line is taken for a request of roff."""
    run = cli.get_command(click.Context(cli), "run")
    assert run is not None
    text = pages["volbench-run"].replace("\\-", "-")
    for option in run.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.opts[-1] in text or option.opts[0] in text
    assert "\n.nf\nvolbench run quick --on /mnt/data\n" in text
    requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".B", ".BR", ".TP", ".PP", ".nf", ".fi"}
