"""`volbench.open_campaign` for analysts: frames, states, and tables that follow the raw files."""

from pathlib import Path

import pytest

import volbench
from tests.finished_campaign import finish, half_finished
from volbench.model.frames.columns import FRAMES
from volbench.store.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a campaign of two runs, the first of them finished."""
    return half_finished(tmp_path / "c")


@pytest.mark.parametrize("name", FRAMES)
def test_frames_have_the_documented_columns(layout: Layout, name: str) -> None:
    """Every frame has exactly the columns of the reference, in order."""
    frame = volbench.open_campaign(layout.root).frame(name)
    assert list(frame.columns) == [column.name for column in FRAMES[name]]


def test_the_states_of_all_runs_are_listed(layout: Layout) -> None:
    """Runs that never started have a state too."""
    notes = volbench.open_campaign(layout.root).runs
    assert [str(note.state) for note in notes.values()] == ["finished", "planned"]


def test_only_the_requested_frames_are_read(layout: Layout) -> None:
    """The summary of a thousand campaigns does not need their series."""
    whole = volbench.open_campaign(layout.root).summary()
    (layout.tables / "histogram.parquet").unlink()
    assert volbench.open_campaign(layout.root).summary().equals(whole)


def test_frames_are_read_at_one_moment(layout: Layout) -> None:
    """A run that ends between two reads is in both frames, and in the states."""
    volbench.open_campaign(layout.root).summary()
    campaign = volbench.open_campaign(layout.root)
    assert set(campaign.summary()["run"]) == {"001-mix-r1"}
    finish(layout, "002-mix-r2")
    both = {"001-mix-r1", "002-mix-r2"}
    assert set(campaign.frame("histogram")["run"]) == both
    assert set(campaign.summary()["run"]) == both
    assert [str(note.state) for note in campaign.runs.values()] == ["finished", "finished"]


def test_a_callers_change_stays_with_the_caller(layout: Layout) -> None:
    """Frames are copies."""
    campaign = volbench.open_campaign(layout.root)
    mine = campaign.summary()
    mine["iops"] = 0.0
    assert (campaign.summary()["iops"] > 0).all()


def test_unknown_frame_is_an_input_error(layout: Layout) -> None:
    """The message lists the frames there are."""
    with pytest.raises(volbench.VolbenchError) as caught:
        volbench.open_campaign(layout.root).frame("latency")
    assert "percentiles" in caught.value.hint
