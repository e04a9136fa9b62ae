"""Campaigns opened by analysts: frames, states, and several read as one."""

import shutil
from pathlib import Path

import pytest

import volbench
from tests.finished_campaign import finish, half_finished
from tests.labelled_campaigns import HOSTS, make
from volbench.errors import ComparisonError, InputError
from volbench.model.campaign.planned_run import RunState
from volbench.model.frames.columns import FRAMES
from volbench.store.layout import Layout


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    make(tmp_path / "results", HOSTS)
    shutil.copytree(tmp_path / "results/c", tmp_path / "results/older/first")
    return tmp_path / "results"


def test_frames_hold_the_rows_of_all_campaigns(results: Path) -> None:
    """Folders tell equal names apart, and ids of runs stay unique."""
    dataset = volbench.open_campaigns(results / "c", results)  # a campaign named twice is read once
    assert list(dataset.names) == ["c", "first"]
    summary = dataset.summary()
    single = volbench.open_campaign(results / "c").summary()
    assert len(summary) == 2 * len(single)
    assert summary["run"].nunique() == 2 * single["run"].nunique()
    assert summary["run"][0] == "c/001-mix-r1"
    assert list(summary.columns) == list(single.columns)
    assert (summary.dtypes == single.dtypes).all()


@pytest.mark.parametrize("name", FRAMES)
def test_one_campaign_is_left_as_it_is(results: Path, name: str) -> None:
    """A single folder gives the frames that open_campaign gives."""
    own = volbench.open_campaign(results / "c").frame(name)
    assert volbench.open_campaigns(results / "c").frame(name).equals(own)


def test_a_condition_filters_every_frame(results: Path) -> None:
    """What is left out of the summary is left out everywhere."""
    dataset = volbench.open_campaigns(results, where="volume_type==P15")
    assert set(dataset.summary()["host"]) == {"vm1"}
    assert set(dataset.frame("histogram")["host"]) == {"vm1"}
    assert set(dataset.frame("percentiles")["campaign"]) == {"c", "first"}


@pytest.mark.parametrize("frame", ["summary", "histogram"])
def test_a_condition_that_no_run_meets_is_an_error(results: Path, frame: str) -> None:
    """A misspelt value is no empty table."""
    dataset = volbench.open_campaigns(results, where="rw==randraed")
    with pytest.raises(InputError, match="no run meets the condition 'rw==randraed'"):
        dataset.frame(frame)
    with pytest.raises(InputError, match="no run meets"):
        dataset.summary(options=True)


def test_folders_are_compared(results: Path) -> None:
    """With one another, or within one."""
    verdicts = volbench.compare(
        results / "c", results / "older/first", allow_different="volume_type"
    )
    assert set(verdicts.frame["verdict"]) == {"no significant difference"}
    between = volbench.compare(results, between="campaign", metric="iops")
    opened = volbench.compare(volbench.open_campaigns(results), between="campaign", metric="iops")
    assert opened.frame.equals(between.frame)
    assert not between.frame.empty
    with pytest.raises(InputError, match="nothing to compare with"):
        volbench.compare(results / "c")
    with pytest.raises(ComparisonError, match="no run has a result"):
        volbench.compare(results / "c", where="iops < 0")
    with pytest.raises(InputError, match="a value of --between"):
        volbench.compare(results / "c", results / "older/first", base="c")


def test_the_repr_of_a_dataset_describes_its_contents(results: Path) -> None:
    """Number and names of the campaigns, finished runs, the condition."""
    dataset = volbench.open_campaigns(results, where="rw==randread")
    finished = sum(note.state is RunState.FINISHED for note in dataset.runs.values())
    assert repr(dataset) == (
        f"<Dataset of 2 campaigns (c, first): {finished} of {len(dataset.runs)} runs finished, "
        "where rw==randread>"
    )


def test_a_folder_without_campaigns_and_a_list_of_paths_are_refused(tmp_path: Path) -> None:
    """An empty folder is named; paths are arguments of their own, and the hint says so."""
    with pytest.raises(InputError, match="no campaign in"):
        volbench.open_campaigns(tmp_path)
    with pytest.raises(InputError, match=r"\['a'\] is not a path") as refused:
        volbench.open_campaigns(["a"])  # type: ignore[arg-type]  # a mistake
    assert refused.value.hint == 'pass paths one by one: open_campaigns("a", "b")'


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a campaign of two runs, the first of them finished."""
    return half_finished(tmp_path / "c")


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


def test_starts_are_instants(layout: Layout) -> None:
    """Frames have UTC times, plain rows and CSV texts in ISO 8601."""
    campaign = volbench.open_campaign(layout.root)
    start = campaign.summary()["started_utc"]
    assert str(start.dtype) == "datetime64[ms, UTC]"
    [text] = {str(row["started_utc"]) for row in campaign.rows("summary")}
    assert text.endswith("Z")
    assert start[0].isoformat(timespec="milliseconds").replace("+00:00", "Z") == text
    path = campaign.export(layout.root / "x.csv")
    assert text in path.read_text(encoding="utf-8")


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


@pytest.mark.slow
def test_a_campaign_gives_what_an_analyst_types(results: Path, tmp_path: Path) -> None:
    """Answer, design, report, exports and prices of a campaign, each by its name."""
    campaign = volbench.open_campaign(results / "c")
    assert campaign.answer[0] == "vm1, vm2 and vm3: 6 workloads, one run each."
    assert campaign.design.repeats.total() == len(campaign.design.cells)
    page = campaign.report(tmp_path / "x.html")
    assert campaign.answer[0].rstrip(".") in page.read_text(encoding="utf-8")
    assert campaign.export(tmp_path / "x.csv").read_text(encoding="utf-8").startswith("campaign,")
    assert campaign.export(tmp_path / "series.parquet", "series").stat().st_size
    market = campaign.price(prices="kamatera-azure", unsteady=True, by="host")
    assert market.currency == "USD"
    with pytest.raises(AttributeError, match="no attribute 'prize'"):
        _ = campaign.prize
    with pytest.raises(InputError, match="no ending of an export format"):
        campaign.export(tmp_path / "x.doc")
