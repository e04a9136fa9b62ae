"""A real browser with the pages it looks at; each page is made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, sync_playwright

from tests.browser.made_up import Size, make_campaign
from tests.browser.watched import Watched, chromium
from volbench.cli.main import cli

EVIL = "</script><img src=x onerror=\"document.title='evil'\"> $$x^2$$ {{7*7}}"


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    """Return Chromium, without a window; no other module's tests meet its event loop."""
    # Without a GPU, an emulated one costs a fifth of the CPU that a page takes.
    args = ["--no-sandbox", "--disable-gpu", "--disable-gpu-compositing"]
    args += ["--disable-accelerated-2d-canvas"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=args)
        yield browser
        browser.close()


def _report(into: Path, *campaigns: Path) -> Path:
    arguments = ["report", *map(str, campaigns), "--output", str(into)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return into


@pytest.fixture(scope="session", name="report")
def _report_of_one_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a campaign whose texts are hostile, at a path with blanks."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "a b & c").mkdir()
    layout = make_campaign(folder, note=EVIL)
    return _report(folder / "a b & c" / "re port #1.html", layout.root)


@pytest.fixture(scope="session", name="comparison")
def _two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of two campaigns side by side, the second half as fast."""
    folder = tmp_path_factory.mktemp("two")
    first = make_campaign(folder, name="before")
    second = make_campaign(folder, name="after", speed=0.5)
    return _report(folder / "page.html", first.root, second.root)


@pytest.fixture(scope="session", name="long_report")
def _report_of_forty_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of 80 runs: tables and charts are longer than paper shows."""
    folder = tmp_path_factory.mktemp("long")
    size = Size(jobs=40, repeats=2, seconds=10)
    return _report(folder / "page.html", make_campaign(folder, size=size).root)


@pytest.fixture(scope="session", name="site")
def _site_of_four_campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index page of a site, one of whose campaigns has a name that links must escape."""
    folder = tmp_path_factory.mktemp("site")
    size = Size(jobs=1, repeats=1, seconds=5)
    names = ("north", "south", "east #1 & 50 %", "west")
    roots = [make_campaign(folder, name=name, size=size).root for name in names]
    arguments = ["report", "--site", *map(str, roots), "--output", str(folder / "pages")]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder / "pages" / "index.html"


@pytest.fixture(scope="module", name="opened")
def _opened(browser: Browser, report: Path) -> Iterator[Watched]:
    """Return the report with everything opened and drawn, for tests that only look at it."""
    watched = Watched(browser, report)
    watched.draw_all()
    yield watched
    watched.close()
    assert watched.faults == []


@pytest.fixture(name="watched")
def _watched(browser: Browser, report: Path) -> Iterator[Watched]:
    """Return the report, opened; whatever a page may not do is noted, and fails the test."""
    watched = Watched(browser, report)
    yield watched
    watched.close()
    assert watched.faults == []
