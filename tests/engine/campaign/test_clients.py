"""Several clients on this machine: real fio processes that start together, staggered or in turn."""

import json
from pathlib import Path

import pytest

from tests.engine.campaign.local_runs import execute, run, stored
from tests.fio.runs import section
from tests.planned import planned_campaign, planned_run
from volbench.engine.campaign.campaign_state import UNFINISHED, Settings
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.host_facts import require_fio
from volbench.errors import CampaignError
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.event import Event, Notice
from volbench.model.campaign.host import Policy
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.model.profile.profile_model import Start
from volbench.store.consent import seal_of
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout
from volbench.store.log_files import open_log

pytestmark = pytest.mark.slow

OPTIONS = {
    "rw": "randwrite",
    "bs": "4096",
    "size": "1048576",
    "runtime": "2s",
    "time_based": "1",
    "rate_iops": "20",  # higher rates keep a core busy: fio spins where it would sleep too long
}


def a_campaign(
    folder: Path,
    count: int,
    *,
    start: Start = Start.TOGETHER,
    stagger_s: float = 0.0,
    steps: int = 1,
) -> Campaign:
    """Return a plan in which clients write files of their own in one directory."""
    volume = find_volume(LocalExecutor(), role="data", target=str(folder))
    runs = [
        planned_run(
            volume,
            section("job", **OPTIONS, filename=f"file-{step}-{number}"),
            id=f"{step:03d}-job-r1-c{number}",
            client=number,
            step=step,
            start=start,
            start_offset_s=(number - 1) * stagger_s,
            device_sample_s=0,
        )
        for step in range(1, steps + 1)
        for number in range(1, count + 1)
    ]
    return planned_campaign(*runs)


def begun_s(layout: Layout, run_id: str) -> float:
    """Return when a client's I/O began, from fio's own log."""
    log = next(layout.run(run_id).path.glob("series_iops.1.log*"))
    with open_log(log) as stream:
        return int(stream.readline().split(b",")[0]) / 1000


def status(layout: Layout, run_id: str) -> dict[str, object]:
    """Return how a run ended."""
    found = json.loads(layout.run(run_id).status.read_text())
    assert isinstance(found, dict)
    return found


def start_of(layout: Layout, run_id: str) -> dict[str, float]:
    """Return what is written down of a start."""
    found = status(layout, run_id)["start"]
    assert isinstance(found, dict)
    return found


def check_starts(layout: Layout, ids: list[str]) -> None:
    """Check that each client began at its instant, and that what it was late is written down.

    fio has a second more for its first I/O, and its log has a line a second.
    """
    for run_id in ids:
        start = start_of(layout, run_id)
        assert start["late_s"] >= 0
        since_woken_s = begun_s(layout, run_id) - start["start_s"] - start["late_s"]
        assert 0.95 < since_woken_s < 2, f"{run_id}: {start}"


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.mark.smoke
def test_clients_start_together(tmp_path: Path, data: Path) -> None:
    """Six processes wait for one instant, twice; how late each was is written down."""
    campaign = a_campaign(data, 6, steps=2)
    layout = run(tmp_path / "c", campaign)
    for step in (1, 2):
        ids = [entry.id for entry in campaign.runs if entry.step == step]
        assert len({start_of(layout, entry)["start_s"] for entry in ids}) == 1
        check_starts(layout, ids)
    assert list(data.iterdir()) == []


def test_staggered_clients_start_one_after_another(tmp_path: Path, data: Path) -> None:
    """The third begins twice the stagger after the first."""
    campaign = a_campaign(data, 3, start=Start.STAGGERED, stagger_s=1.5)
    layout = run(tmp_path / "c", campaign)
    ids = [entry.id for entry in campaign.runs]
    first, second, third = (start_of(layout, entry)["start_s"] for entry in ids)
    assert second - first == pytest.approx(1.5, abs=0.001)
    assert third - first == pytest.approx(3, abs=0.001)
    check_starts(layout, ids)


def test_runs_in_turn_do_not_overlap(tmp_path: Path, data: Path) -> None:
    """Each starts when the one before has ended."""
    campaign = a_campaign(data, 2, start=Start.SEQUENTIAL)
    layout = run(tmp_path / "c", campaign)
    first, second = (begun_s(layout, entry.id) for entry in campaign.runs)
    assert second - first >= 2


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.BEST_EFFORT])
def test_a_client_that_fails_early(tmp_path: Path, data: Path, policy: Policy) -> None:
    """With the policy all nobody starts without it; with best-effort the others do."""
    campaign = a_campaign(data, 3)
    bad = campaign.runs[1]
    broken = bad.sections[0].model_copy(update={"options": {**OPTIONS, "size": "1", "bs": "65536"}})
    runs = list(campaign.runs)
    runs[1] = bad.model_copy(update={"sections": (broken,)})
    campaign = campaign.model_copy(update={"runs": tuple(runs), "policy": policy})
    events: list[Event] = []
    with pytest.raises(CampaignError):
        run(tmp_path / "c", campaign, events)
    states = [status(Layout(tmp_path / "c"), entry.id)["state"] for entry in campaign.runs]
    others = "finished" if policy is Policy.BEST_EFFORT else "interrupted"
    assert states == [others, "failed", others]
    assert not [
        entry for entry in events if isinstance(entry, Notice) and "orphan" in entry.message
    ]


def test_a_program_that_cannot_start_fails_its_run(tmp_path: Path, data: Path) -> None:
    """That is no lost machine: each run is told as failed, and the next one is tried."""
    campaign = a_campaign(data, 1, steps=2)
    layout = stored(tmp_path / "c", campaign)
    with pytest.raises(CampaignError, match="2 of 2 runs failed"):
        execute(layout, campaign, "/no/such/fio", [])


@pytest.mark.parametrize("redo", [(1,), (UNFINISHED,)], ids=["step", "unfinished"])
def test_a_step_is_repeated_on_all_clients(
    tmp_path: Path, data: Path, redo: tuple[int, ...]
) -> None:
    """One client of the first step has to be repeated: all are, at one instant, and no other."""
    campaign = a_campaign(data, 2, steps=2)
    layout = run(tmp_path / "c", campaign)
    first, second, *others = campaign.runs
    before = {entry.id: status(layout, entry.id)["started_utc"] for entry in campaign.runs}
    with Journal(layout.journal, seal_of(layout)) as journal:
        journal.write("run", run=second.id, state=RunState.INTERRUPTED, reason="rebooted")
    settings = Settings(redo_steps=frozenset(redo))
    execute(layout, campaign, require_fio(LocalExecutor()), [], settings=settings)
    after = {entry.id: status(layout, entry.id) for entry in campaign.runs}
    assert {entry.id for entry in others} == {
        name for name, found in after.items() if found["started_utc"] == before[name]
    }
    starts = {start_of(layout, entry.id)["start_s"] for entry in (first, second)}
    assert len(starts) == 1
    assert read_history(layout.journal).states[first.id] is RunState.FINISHED
