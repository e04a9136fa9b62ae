"""Campaigns in a list, and verbs that read a folder of campaigns."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import volbench
from tests.command_line import call
from tests.extensions.importer.sources import put, result_of, take
from tests.labelled_campaigns import HOSTS, make
from tests.nightly_campaigns import WORKLOADS, make_nights
from volbench.api.many_campaigns import campaign_folders
from volbench.cli.main import cli
from volbench.cli.status import _median_rates
from volbench.errors import InputError


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    make(tmp_path / "volbench-results", HOSTS)
    return tmp_path / "volbench-results"


def test_a_campaign_has_its_date_target_and_answer(results: Path) -> None:
    """As its own summary has them; a damaged campaign is listed with the reason."""
    (results / "damaged").mkdir()
    (results / "damaged/campaign.json").write_text("{")
    rows = {row["campaign"]: row for row in json.loads(call("status", results, "--json").stdout)}
    damaged, listed = rows[str(results / "damaged")], rows[str(results / "c")]
    assert damaged["answer"].startswith("cannot be read: ")
    data = volbench.open_campaign(results / "c")
    assert listed["date"] == data.campaign.created_utc[:16].replace("T", " ")
    assert listed["target"] == data.campaign.runs[0].volume.target
    assert listed["profile"] == data.campaign.runs[0].profile
    assert " IOPS" in listed["answer"]
    assert listed["warnings"].isdigit()


@pytest.mark.parametrize(
    ("rates", "answer"), [((900.0, 1100.0), "1k IOPS"), ((500.0, 1100.0), "500 to 1.1k IOPS")]
)
def test_no_median_stands_for_repeats_that_differ_twofold(
    rates: tuple[float, float], answer: str
) -> None:
    """As in the conclusion of the campaign, which says that one rate would mislead."""
    row = {"volume": "v", "job": "j", "group": "j", "direction": "read"}
    rows = ({**row, "iops": rate} for rate in rates)
    assert [words for _, words in _median_rates(rows)] == [f"j read: {answer}"]


def test_failed_runs_have_no_rate(tmp_path: Path) -> None:
    """Their number is the answer, beside the rate of those that finished."""
    document = json.loads(result_of("fio-3.33/randrw-jsonplus", rw="randrw"))
    for name, error in (("full", 28), ("mix", 0)):
        document["jobs"][0] |= {"jobname": name, "error": error}
        put(tmp_path / "in" / f"{name}.json", json.dumps(document))
    take(tmp_path / "in/full.json", into=tmp_path / "a")
    take(tmp_path / "in", into=tmp_path / "b")
    rows = {row["campaign"]: row for row in json.loads(call("status", tmp_path, "--json").stdout)}
    assert rows[str(tmp_path / "a")]["answer"] == "no result; 1 run failed"
    both = rows[str(tmp_path / "b")]["answer"]
    assert both.startswith("2 results, mix write: ")
    assert " to mix read: " in both
    assert both.endswith("; 1 run failed")


CASES = Path(__file__).parents[1] / "cases" / "field"


@pytest.fixture(scope="module", name="nights")
def _nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_nights(tmp_path_factory.mktemp("nights"), 2, workloads=WORKLOADS[:2])


def invoke(*arguments: object) -> Result:
    """Call volbench in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_campaigns_are_in_the_order_of_the_numbers_in_their_names(tmp_path: Path) -> None:
    """The tenth comes after the second."""
    for name in ("run10", "run2", "run1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.json").touch()
    assert [path.name for path in campaign_folders(tmp_path)] == ["run1", "run2", "run10"]


@pytest.mark.parametrize("verb", ["show", "status", "import"])
def test_folders_that_somebody_nested_too_deep_are_refused(verb: str, tmp_path: Path) -> None:
    """Python's own walk recurses, and ends after a thousand folders with a traceback."""
    deep = tmp_path / "deep"
    place = os.open(tmp_path, os.O_RDONLY)
    for name in ["deep", *["d"] * 1200]:
        os.mkdir(name, dir_fd=place)
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    more = ["--output", tmp_path / "out"] if verb == "import" else []
    done = invoke(verb, deep, *more)
    subprocess.run(["rm", "-rf", deep], check=True)
    assert isinstance(done.exception, InputError), done.exception
    assert "nested more than 100 deep" in str(done.exception)


@pytest.mark.parametrize("verb", ["show", "check", "export"])
def test_a_folder_of_campaigns_is_read(nights: Path, verb: str) -> None:
    """No verb wants the campaigns one by one."""
    done = invoke(verb, nights)
    assert done.exit_code == 0, done.exception


@pytest.mark.slow
def test_charts_of_a_folder_go_into_no_campaign(
    nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that holds one campaign today may hold two tomorrow."""
    alone = make_nights(tmp_path / "alone", 1, workloads=WORKLOADS[:1])
    monkeypatch.chdir(tmp_path)
    for place in (nights, alone):
        assert invoke("plot", "iops", place).exit_code == 0
        assert not list(place.rglob("iops.svg"))
        (tmp_path / "iops.svg").unlink()
    campaign = next(alone.iterdir())
    assert invoke("plot", "iops", campaign).exit_code == 0
    assert (campaign / "report" / "iops.svg").exists()


@pytest.mark.slow
def test_a_report_includes_a_campaign_without_a_histogram(tmp_path: Path) -> None:
    """Texts of an empty frame have another type than those of a full one."""
    for case in ("floppy", "rbd-lost-samples"):
        done = invoke("import", CASES / case, "-o", tmp_path / case)
        assert done.exit_code == 0, done.output
    page = tmp_path / "page.html"
    done = invoke("report", tmp_path / "floppy", tmp_path / "rbd-lost-samples", "-o", page)
    assert done.exit_code == 0, done.exception
    assert all(name in page.read_text() for name in ("floppy", "rbd-lost-samples"))
