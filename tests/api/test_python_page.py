"""Python as the documentation shows it: its examples run, and what they print is true."""

import doctest
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import volbench
from volbench.api import run_profiles
from volbench.errors import InputError, RefusedError
from volbench.model.campaign.event import CampaignStarted, RunEnded

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
PROFILE = {"name": "p", "sample": 0, "jobs": {"a": {"rw": "read", "size": "1m", "bs": "64k"}}}


@pytest.fixture(autouse=True)
def memory() -> Iterator[Path]:
    """Work in a folder in memory that has a folder to measure: no disk is waited for."""
    with TemporaryDirectory(dir="/dev/shm") as folder, chdir(folder):
        Path("data").mkdir()
        yield Path(folder)


def test_the_examples_of_the_page_run() -> None:
    """Every example of docs/reference/python.md gives what stands below it."""
    done = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    assert done.attempted > 12
    assert done.failed == 0


def test_the_example_in_the_docstring_of_run_works() -> None:
    """The example of `volbench.run` runs."""
    (example,) = (
        found
        for found in doctest.DocTestFinder().find(run_profiles.run, globs={"volbench": volbench})
        if found.examples
    )
    assert doctest.DocTestRunner(optionflags=FLAGS).run(example).failed == 0


def test_a_listener_receives_the_events_of_the_campaign(memory: Path) -> None:
    """Events come from the first to the end of the run, and the campaign has a default name."""
    heard: list[object] = []
    campaign = volbench.run(PROFILE, on={"data": memory / "data"}, listener=heard.append)
    assert isinstance(heard[0], CampaignStarted)
    assert any(isinstance(event, RunEnded) for event in heard)
    assert campaign.path.parent.name == "volbench-results"
    assert campaign.path.name.startswith("p-")


def test_a_job_file_of_fio_is_a_profile(memory: Path) -> None:
    """A path of a job file runs as it is, with overrides."""
    (memory / "mine.fio").write_text("[reads]\nrw=read\nsize=1m\nbs=4k\n", encoding="utf-8")
    campaign = volbench.run(memory / "mine.fio", on="data", settings={"bs": "64k"}, output="o")
    assert list(campaign.summary()["block_bytes"]) == [65536]


def test_invalid_and_refused_profiles_are_not_run(memory: Path) -> None:
    """A bad profile names its place, a file of the user is kept, and no folder is left."""
    with pytest.raises(InputError, match=r"profile:\d+:\d+: jobs\.a\.bss"):
        volbench.run({"name": "p", "jobs": {"a": {"rw": "read", "bss": "4k"}}}, on="data")
    (memory / "mine").write_text("precious", encoding="utf-8")
    with pytest.raises(RefusedError):
        volbench.run(PROFILE | {"jobs": {"a": {"rw": "write", "size": "1m"}}}, on="mine")
    assert (memory / "mine").read_text(encoding="utf-8") == "precious"
    assert not (memory / "volbench-results").exists()
