"""The verb report on one campaign and on several, as users call it."""

from pathlib import Path

import pytest
from benchmarks.made_up_campaign import Size, make_campaign
from click.testing import CliRunner, Result

from tests.present.report.small_reports import parsed
from volbench.cli.main import cli
from volbench.errors import InputError

TINY = Size(jobs=1, repeats=1, seconds=4)


@pytest.fixture(scope="module", name="results")
def _results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a campaign, and one whose runs are twice as long."""
    folder = tmp_path_factory.mktemp("results")
    make_campaign(folder, name="short", size=TINY)
    make_campaign(folder, name="long", size=Size(jobs=1, repeats=1, seconds=8))
    return folder


def report(*arguments: str | Path) -> Result:
    """Return what the verb did."""
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


@pytest.mark.slow
def test_campaigns_are_compared_on_one_page(tmp_path: Path) -> None:
    """Title, answer and matrix name both; the environment of each is folded."""
    for name in ("first", "second"):
        make_campaign(tmp_path / name, name=name, size=TINY)
    done = report(tmp_path / "first", tmp_path / "second", "--output", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    page = parsed((tmp_path / "page.html").read_text())
    assert page.faults == []
    [title] = page.text("h1")
    assert title.startswith("first and second: ")
    assert {"workload", "first", "second"} <= set(page.text("th"))
    assert {"Campaign first", "Campaign second"} <= set(page.text("h2"))


@pytest.mark.slow
def test_a_site_has_a_page_for_each_campaign(results: Path, tmp_path: Path) -> None:
    """The index leads to every page, newest first, with its answer; each page is whole."""
    site = tmp_path / "site"
    done = report("--site", results, "-o", site)
    assert done.exit_code == 0, done.output
    index = parsed((site / "index.html").read_text(encoding="utf-8"))
    assert index.faults == []
    links = [a["href"] for a in index.all("a") if not a["href"].startswith("#")]
    pages = {link.partition("#")[0] for link in links}
    assert pages == {path.name for path in site.iterdir()} - {"index.html"}
    assert len(pages) == 2
    dates = [text for text in index.text("td") if text.endswith(" UTC")]
    assert dates == sorted(dates, reverse=True)
    for page in pages:
        assert parsed((site / page).read_text(encoding="utf-8")).faults == []


def test_a_site_needs_a_folder(results: Path) -> None:
    """It is many files, so standard output will not do."""
    assert isinstance(report("--site", results, "-o", "-").exception, InputError)


def test_several_campaigns_need_an_output(results: Path) -> None:
    """No campaign's own folder is taken for the page of all."""
    done = report(results)
    assert isinstance(done.exception, InputError)
    assert "--output" in done.exception.hint
