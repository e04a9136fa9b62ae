"""The verb report on one campaign and on several, as users call it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.browser.made_up import Size, make_campaign
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


def test_a_folder_of_campaigns_is_one_page(results: Path, tmp_path: Path) -> None:
    """Both stand side by side, each with its own part; one repeat is told to be too few."""
    done = report(results, "--output", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert "<h1>2 campaigns side by side</h1>" in page
    assert 'id="c1-results-table"' in page
    assert 'id="c2-results-table"' in page
    assert "not enough repeats" in page


def test_several_need_a_place(results: Path) -> None:
    """No campaign's own folder is taken for the page of all."""
    done = report(results)
    assert isinstance(done.exception, InputError)
    assert "--output" in done.exception.hint


def test_further_charts(results: Path, tmp_path: Path) -> None:
    """A chart that is asked for stands beside the usual ones, once."""
    page = tmp_path / "page.html"
    done = report(results / "short", "--chart", "ecdf", "--chart", "iops", "--output", page)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.count('id="chart-ecdf"') == 1
    assert text.count('id="chart-iops"') == 1


def test_an_unknown_chart_is_reported(results: Path, tmp_path: Path) -> None:
    """A misspelt kind is an error with the nearest name."""
    done = report(results / "short", "--chart", "iopz", "--output", tmp_path / "page.html")
    assert isinstance(done.exception, InputError)
    assert "iops" in done.exception.hint
    assert not (tmp_path / "page.html").exists()
