"""Progress of a campaign that another process runs."""

import json
from pathlib import Path

import pytest

from tests.present.terminal.campaign_of_two_runs import CAMPAIGN, FIRST, SECOND
from volbench.api import live_rates
from volbench.api.live_rates import LiveRates, events_of, read_rates
from volbench.model.campaign.event import Event, Progress, RunEnded, RunProgress, RunStarted
from volbench.model.campaign.planned_run import Run, RunState
from volbench.plan.expansion.estimate import expected_s
from volbench.store.layout import Layout

FAST = Progress(1.0, read_iops=5.0, state="ended")


def test_a_link_in_the_place_of_the_rates_is_replaced(tmp_path: Path) -> None:
    """The file that it leads to is unchanged, and the rates are read from the new one."""
    layout, own = Layout(tmp_path), tmp_path / "own"
    own.write_text("kept")
    layout.live_rates.symlink_to(own)
    LiveRates(layout)(RunProgress(FIRST, FAST))
    assert read_rates(layout) == {FIRST.id: FAST}
    assert own.read_text() == "kept"


def test_a_follower_receives_what_journal_and_rates_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that an earlier controller left are still to do; a run that ended is told once."""
    layout, held = Layout(tmp_path), iter([True, True, True, False])
    monkeypatch.setattr(live_rates, "is_held", lambda _: next(held))

    def note(run: Run, state: RunState) -> list[Event]:
        with layout.journal.open("a") as journal:
            journal.write(json.dumps({"kind": "run", "run": run.id, "state": state}) + "\n")
        return next(looks)

    looks = events_of(layout, CAMPAIGN)
    (started,) = note(FIRST, RunState.INTERRUPTED)
    assert getattr(started, "pending", ()) == CAMPAIGN.runs
    LiveRates(layout)(RunProgress(FIRST, FAST))
    begun = RunStarted(FIRST, expected_s(FIRST))
    assert note(FIRST, RunState.RUNNING) == [begun, RunProgress(FIRST, FAST)]
    assert note(FIRST, RunState.FINISHED) == [RunEnded(FIRST, RunState.FINISHED)]
    assert note(SECOND, RunState.FAILED) == [RunEnded(SECOND, RunState.FAILED)]
    assert [*looks] == []
