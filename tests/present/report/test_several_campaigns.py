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
    folder = tmp_path_factory.mktemp("results")
    make_campaign(folder, name="short", size=TINY)
    make_campaign(folder, name="long", size=Size(jobs=1, repeats=1, seconds=8))
    return folder


def report(*arguments: str | Path) -> Result:
    """Return what the verb did."""
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


@pytest.mark.slow
def test_campaigns_are_compared_on_one_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Title, answer and matrix name both; the environment of each is folded."""
    for name in ("first", "second"):
        make_campaign(tmp_path / name, name=name, size=TINY)
    done = report(tmp_path / "first", tmp_path / "second", "--output", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    page = parsed((tmp_path / "page.html").read_text())
    assert page.faults == []
    [title] = page.text("h1")
    assert title.startswith("first and second: ")
    assert {"IOPS by workload", "first", "second"} <= set(page.text("th"))
    assert {"Campaign first", "Campaign second"} <= set(page.text("h2"))
    monkeypatch.setattr("volbench.api.report_content.valid_results", lambda *_: ([], "2 invalid"))
    assert report(tmp_path, "--output", tmp_path / "page.html").exit_code == 0
    assert parsed((tmp_path / "page.html").read_text()).text("h1")[0].startswith(title[:16])


def test_several_campaigns_need_an_output(results: Path) -> None:
    """No campaign's own folder is taken for the page of all."""
    done = report(results)
    assert isinstance(done.exception, InputError)
    assert "--output" in done.exception.hint
