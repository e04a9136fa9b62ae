"""Every reading verb takes a folder of campaigns, and writes into none of them."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.nightly_campaigns import WORKLOADS, make_nights
from volbench.api.many_campaigns import campaign_folders
from volbench.cli.main import cli
from volbench.errors import InputError

CASES = Path(__file__).parents[1] / "cases" / "field"


@pytest.fixture(scope="module", name="nights")
def _nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two campaigns."""
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
