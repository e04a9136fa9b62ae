"""Rounds until steady on simulated volumes: one is steady, one gets faster and faster.

They are measured in virtual time, but for the test of a killed controller.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import Volbench, call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.analyse.time.steady_state import determination
from volbench.extensions.lab.scenario import load_scenario
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history

SERVICE = "service: {read: 20ms, write: 20ms, slots: 4}\nrestored: true\n"
FAST = "service: {read: 2ms, write: 2ms, slots: 8}\nrestored: true\n"
# A cap is kept on a busy machine too, where a latency alone is not.
CLEAN = f"name: clean\nsize: 8m\n{FAST}limits: {{iops: 150}}\n"
RISING = f"name: rising\nsize: 8m\n{SERVICE}drift: 1000%\n"
MOST_ROUNDS = 20
"""Enough for five that agree, also where a busy machine disturbs some."""
PROFILE = """
name: short
sample: 0
device_sample: 0
rounds: {max: MOST, until: snia, track: [writes.iops, mixed.lat_mean]}
defaults: {ioengine: nbd, size: 8m, bs: 4k, iodepth: 4, runtime: 1s, time_based: 1}
jobs:
  writes: {rw: randwrite}
  mixed: {rw: randrw, rwmixread: 65}
"""


URI = silent_export()


@pytest.fixture(scope="module", name="ended")
def _ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Run either volume in virtual time until steady, or to the most rounds; return the folders."""
    folder = tmp_path_factory.mktemp("rounds")
    found = {}
    for text, most in ((CLEAN, MOST_ROUNDS), (RISING, 6)):
        scenario = load_scenario(text, path="made.yaml")
        profile = write_profile(folder / f"{scenario.name}.yaml", most)
        found[scenario.name] = folder / scenario.name
        with virtual_fio(scenario):
            done = call(*arguments(profile, URI, found[scenario.name]))
        assert done.returncode == 0, done.stderr
        (folder / f"{scenario.name}.txt").write_text(done.stdout + done.stderr)
    yield found
    shutil.rmtree(folder)


def write_profile(path: Path, most: int) -> Path:
    """Write a profile of so many rounds at most."""
    path.write_text(PROFILE.replace("MOST", str(most)))
    return path


def steady_at(folder: Path) -> int:
    """Return the round at which an analyst finds steady state, which is the last one made."""
    opened = api.open_campaign(folder)
    found = determination(opened.summary(), opened.campaign.rounds["short"], profile="short")
    assert found.at_round == found.rounds < found.max_rounds
    return found.rounds


def ends_at(made: int) -> list[RunState]:
    """Return the state of each run if the rounds end early."""
    return [RunState.FINISHED] * 2 * made + [RunState.NOT_NEEDED] * 2 * (MOST_ROUNDS - made)


def arguments(profile: Path, uri: str, into: Path) -> list[str]:
    """Return the command line of a campaign."""
    where = ["--on", uri, "--allow-destroy", uri, "--output", str(into)]
    return ["run", str(profile), *where]


def states(folder: Path) -> list[RunState]:
    """Return the state of each run in the order of the plan."""
    return [note.state for note in api.open_campaign(folder).runs.values()]


def said(folder: Path) -> str:
    """Return what a campaign printed."""
    return folder.with_suffix(".txt").read_text()


def test_a_steady_volume_ends_early(ended: dict[str, Path]) -> None:
    """Rounds after steady state are not needed, which is neither missing nor a failure."""
    folder = ended["clean"]
    made = steady_at(folder)
    assert made >= 5
    assert states(folder) == ends_at(made)
    spared = 2 * (MOST_ROUNDS - made)
    assert f"{spared} runs are not needed: steady state at round {made}" in said(folder)
    assert f"{2 * made} finished, {spared} not needed" in said(folder)
    summary = api.open_campaign(folder).summary()
    assert summary["run"].nunique() == 2 * made


@pytest.mark.slow
def test_a_volume_that_gets_faster_is_never_steady(ended: dict[str, Path]) -> None:
    """All six rounds are made, and the campaign says what it did not achieve."""
    folder = ended["rising"]
    assert states(folder) == [RunState.FINISHED] * 12
    assert "not steady after round 5: writes.iops ranges over" in said(folder)
    assert "steady state not achieved in 6 rounds" in said(folder)


def test_each_run_shows_its_reason(ended: dict[str, Path], volbench: Volbench) -> None:
    """`show --runs` gives the reason beside each run; the table gives it once."""
    made = steady_at(ended["clean"])
    spared = 2 * (MOST_ROUNDS - made)
    by_run = volbench("show", ended["clean"], "--runs")
    assert by_run.stdout.count(f"steady state at round {made}") == spared
    table = volbench("show", ended["clean"])
    assert f"{spared} runs were not needed: steady state at round {made}" in table.stdout
    assert f"r{made + 1}" not in table.stdout


@pytest.mark.parametrize(("name", "verdict"), [("clean", "passes"), ("rising", "does not pass")])
def test_the_determination_is_shown(
    ended: dict[str, Path], volbench: Volbench, name: str, verdict: str
) -> None:
    """A row for each tracking variable with its verdict, the outcome, and no certificate."""
    done = volbench("show", ended[name], "--rounds")
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.lstrip().startswith("writes.iops")]
    assert row.rstrip().endswith(verdict)
    assert "not a certified run" in done.stdout
    assert "mean over rounds" in done.stdout


def test_scripts_get_how_steady_state_was_determined(
    ended: dict[str, Path], volbench: Volbench
) -> None:
    """The window, every round's value, and the mean of each job over the window."""
    (record,) = json.loads(volbench("show", ended["clean"], "--rounds", "--json").stdout)
    made = steady_at(ended["clean"])
    assert (record["steady"], record["at_round"]) == (True, made)
    assert record["window"] == [made - 4, made]
    assert [variable["track"] for variable in record["variables"]] == [
        "writes.iops",
        "mixed.lat_mean",
    ]
    assert len(record["variables"][0]["by_round"]) == made
    (writes,) = [row for row in record["matrices"]["iops"] if row["job"] == "writes"]
    assert writes["mean"] == pytest.approx(record["variables"][0]["mean"])
    assert [row["mix"] for row in record["matrices"]["lat_mean"]] == ["65/35", "0/100"]


def test_a_campaign_without_rounds_says_so(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """There is nothing to determine, and the hint names what has rounds."""
    profile = tmp_path / "p.yaml"
    profile.write_text("name: p\njobs:\n  a: {rw: write, size: 1m, ioengine: psync}\n")
    volbench("run", profile, "--on", scratch, "--output", tmp_path / "plain", "--set", "sample=0")
    done = volbench("show", tmp_path / "plain", "--rounds")
    assert done.returncode == 2
    assert "no profile of this campaign has rounds" in done.stderr


@pytest.mark.slow
def test_a_report_counts_runs_that_were_not_needed_separately(
    ended: dict[str, Path], volbench: Volbench
) -> None:
    """Runs that are not needed are no runs without a result."""
    done = volbench("report", ended["clean"])
    assert done.returncode == 0, done.stderr
    page = (ended["clean"] / "report" / "index.html").read_text()
    spared = 2 * (MOST_ROUNDS - steady_at(ended["clean"]))
    assert f"{spared} not needed" in page
    assert "Runs without a result" not in page


@pytest.mark.parametrize("kept", ["all", "without the decision"])
def test_a_resume_comes_to_the_same_decision(
    ended: dict[str, Path], tmp_path: Path, volbench: Volbench, kept: str
) -> None:
    """Killed before the decision was written down, it is taken again from the files."""
    folder = shutil.copytree(ended["clean"], tmp_path / "copy")
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    if kept != "all":
        decision = next(number for number, line in enumerate(lines) if '"kind": "runs"' in line)
        journal.write_text("".join(lines[:decision]))
        assert RunState.PLANNED in states(folder)
    done = volbench("resume", folder)
    assert done.returncode == 0, done.stderr
    assert "] finished" not in done.stderr
    assert states(folder) == states(ended["clean"])
    assert read_history(journal).reasons == read_history(ended["clean"] / "journal.jsonl").reasons
