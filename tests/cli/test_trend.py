"""The verb trend on folders of nightly campaigns, as users call it."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

import volbench
from tests.nightly_campaigns import WORKLOADS, dropping, make_nights
from volbench.analyse.compare.comparability import IncomparableError
from volbench.api.many_campaigns import open_campaigns
from volbench.api.report_content import report_content
from volbench.cli.main import cli
from volbench.errors import InputError, RegressionError, VolbenchError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="nights")
def _nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 20 nights of two workloads; one drops in the fifteenth, with a new kernel."""
    folder = tmp_path_factory.mktemp("nightly")
    return make_nights(folder, 20, kernel_from=14, level=dropping(at=14), workloads=WORKLOADS[:2])


def trend(*arguments: str | Path) -> Result:
    """Return what the verb did."""
    command = ["trend", *map(str, arguments)]
    return CliRunner().invoke(cli, command, env={"COLUMNS": "80"})


def test_a_regression_exits_with_10(nights: Path) -> None:
    """Table and message name workload, size, date and what else changed."""
    done = trend(nights, "--metric", "iops")
    assert isinstance(done.exception, RegressionError)
    assert done.exception.exit_code == 10
    assert "since 2026-01-15 (then kernel: 6.1 -> 6.8)" in done.exception.message
    drawn = CliRunner().invoke(
        cli, ["plot", "trend", str(nights), "--output", str(nights / "t.svg")]
    )
    assert drawn.exit_code == 0, drawn.output
    assert "(2026-01-01 to 2026-01-20): 1 regression, 1 stable." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_report_of_many_nights_begins_with_the_trend(nights: Path) -> None:
    """It is drawn alone: medians by campaign are the same points."""
    content = report_content(open_campaigns(nights))
    [leading] = content.figures
    assert "2 regressions" in leading.description
    first, *_, counts, last = content.answer
    assert "regression" in first
    assert "since 2026-01-15" in first
    assert counts == "Trends over 20 campaigns (2026-01-01 to 2026-01-20): 2 regressions, 2 stable."
    assert last.startswith("2026-01-20, the last of them")


def test_trends_of_too_few_campaigns_are_counted_not_shown(tmp_path: Path) -> None:
    """A report of three nights opens with no trend; a workload of the last two has no row."""
    content = report_content(open_campaigns(make_nights(tmp_path / "three", 3)))
    assert not any("regression" in figure.description for figure in content.figures)
    assert not any("regression" in words for words in content.answer)
    first, second = WORKLOADS[:2]
    folder = make_nights(tmp_path / "new", 9, workloads=[first])
    make_nights(tmp_path / "late", 2, workloads=[second])
    done = trend(folder, tmp_path / "late", "--metric", "iops", "--json")
    states = [row["state"] for row in json.loads(done.stdout)["trends"]]
    assert states == ["stable", "too few to say"]
    shown = trend(folder, tmp_path / "late", "--metric", "iops").stdout
    assert "Not listed: 1 too few to say." in shown
    assert not any(line.startswith("randwrite") for line in shown.splitlines())


def test_a_changed_option_is_refused_as_by_compare(tmp_path: Path) -> None:
    """A job that is limited from some night on is another job, whatever its rate."""
    folder = make_nights(tmp_path, 10, rate_from=6, workloads=WORKLOADS[:1])
    refused = trend(folder)
    assert isinstance(refused.exception, IncomparableError)
    assert refused.exception.comparability.refused == ["rate_iops"]
    assert "--between" not in str(refused.exception.hint)
    assert "2026-01-07" in refused.exception.message
    assert "2026-01-08" not in refused.exception.message, "each change is named once"
    nights = sorted(folder.iterdir())
    with pytest.raises(IncomparableError) as compared:
        volbench.compare(nights[0], nights[9])
    assert compared.value.comparability.refused == ["rate_iops"]
    drawn = CliRunner().invoke(cli, ["plot", "trend", str(folder), "-o", str(tmp_path / "t.svg")])
    assert isinstance(drawn.exception, InputError)
    assert "rate_iops" in drawn.exception.message
    with pytest.raises(InputError, match="rate_iops"):
        open_campaigns(folder).plot("trend")
    allowed = trend(folder, "--metric", "iops", "--allow-different", "rate_iops", "--json")
    assert allowed.exit_code == 0, allowed.output
    assert any("rate_iops" in note for note in json.loads(allowed.stdout)["remarks"])
    [judged] = json.loads(allowed.stdout)["trends"]
    assert judged["paced"] == [night.name for night in nights[6:]], "they say nothing of the volume"
    apart = trend(folder, "--metric", "iops", "--by", "rate_iops", "--json")
    assert len(json.loads(apart.stdout)["trends"]) == 2


def code(done: Result) -> int:
    """Return the exit code of the verb."""
    raised = done.exception
    return raised.exit_code if isinstance(raised, VolbenchError) else done.exit_code


@pytest.fixture(scope="module", name="made_drops")
def _made_drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    level = {0: 1.0, 14: 0.85, 30: 0.6}

    def of(night: int, place: int) -> float:
        return 1000.0 * (1 + place) * level[max(at for at in level if at <= night)]

    folder = tmp_path_factory.mktemp("drops")
    return make_nights(folder, 34, kernel_from=14, level=of, workloads=WORKLOADS[:1])


@pytest.fixture(name="drops")
def _drops(made_drops: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_drops, tmp_path / "drops"))


def test_after_an_intended_change_the_reference_begins_anew(drops: Path) -> None:
    """From the day of the change on the workload is stable, and the next drop is measured there."""
    anew = "started_utc>=2026-01-15"
    early = ("--metric", "iops", "--where", f"{anew} and started_utc<2026-01-25")
    assert code(trend(drops, *early)) == 0
    later = trend(drops, "--metric", "iops", "--json", "--where", anew)
    (row,) = json.loads(later.stdout)["trends"]
    assert row["state"] == "regression"
    assert row["loss_percent"] == pytest.approx(100 * (1 - 0.6 / 0.85), abs=2)
    assert "--where 'started_utc>=DATE'" in later.exception.hint  # type: ignore[union-attr]  # an error of volbench


def test_a_change_is_new_in_the_night_that_finds_it(drops: Path) -> None:
    """Later it is a regression still, but not a new one."""
    states = [
        row
        for day in (16, 17, 24)
        for row in json.loads(
            trend(
                drops, "--metric", "iops", "--json", "--where", f"started_utc<2026-01-{day}T12"
            ).stdout
        )["trends"]
        if row["state"] == "regression"
    ]
    assert [row["is_new"] for row in states] == [True] + [False] * (len(states) - 1)
    assert {row["changes"][0]["campaign"] for row in states} == {"2026-01-15"}


def test_trends_as_junit(nights: Path, tmp_path: Path) -> None:
    """A test for each workload and metric; the regression fails."""
    file = tmp_path / "new" / "trend.xml"
    assert code(trend(nights, "--metric", "iops", "--junit", f"{file.parent}/")) == 10
    suite = ET.parse(file).getroot()  # noqa: S314 - written by this test
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (failure,) = [case for case in suite if case.find("failure") is not None]
    assert failure.get("classname") == "randread 4k, queue depth 4"
    assert "since 2026-01-15 (then kernel: 6.1 -> 6.8)" in str(failure[0].get("message"))
    few = ("--metric", "iops", "--where", "started_utc>=2026-01-17", "--junit", "-")
    for undecided, element in (("fail", "error"), ("skip", "skipped")):
        suite = ET.fromstring(trend(nights, *few, "--undecided", undecided).stdout)  # noqa: S314 - same
        assert [case[0].tag for case in suite] == [element] * 2
