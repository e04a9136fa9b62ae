"""Every format of the campaign folder stays readable; newer formats are refused in one sentence."""

import json
from pathlib import Path

import pytest

from tests.golden import GOLDEN, copy_of
from volbench.api.one_campaign import campaign_data
from volbench.errors import ArchiveError
from volbench.model.campaign.planned_run import RunState
from volbench.store.archive import FORMAT, read_campaign


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_recorded_campaign_is_read(golden: Path, tmp_path: Path) -> None:
    """Two jobs of fio with all their numbers, and verdicts on them."""
    opened = campaign_data(copy_of(golden, tmp_path / "c"))
    assert {note.state for note in opened.runs.values()} == {RunState.FINISHED}
    summary = opened.summary()
    assert list(summary["job"]) == ["mix", "mix", "write"]
    assert summary["damage"].isna().all()
    assert list(summary["io_bytes"].iloc[2:]) == [1 << 20]
    assert summary["lat_p99_s"].notna().sum() == 3
    assert set(opened.series()["run"]) == {"001-mix-r1"}
    assert len(opened.frame("device"))
    assert "001-mix-r1" in set(opened.frame("verdicts")["run"])


def test_every_format_has_a_recorded_campaign() -> None:
    """A new format comes with a campaign that was recorded with it."""
    found = {json.loads((path / "campaign.json").read_text())["format"] for path in GOLDEN}
    assert found == set(range(1, FORMAT + 1))


def test_a_newer_campaign_is_refused(tmp_path: Path) -> None:
    """Whatever else changed in the file: the one thing to do is to update volbench."""
    root = copy_of(GOLDEN[-1], tmp_path / "c")
    newer = {"format": FORMAT + 1, "campaign": {"unknown": True}, "more": 1}
    (root / "campaign.json").write_text(json.dumps(newer))
    with pytest.raises(ArchiveError, match=f"has format {FORMAT + 1}") as caught:
        read_campaign(root)
    assert caught.value.hint == "update volbench"
    assert "\n" not in caught.value.message


def test_a_newer_run_is_refused_alone(tmp_path: Path) -> None:
    """A status.json of a newer volbench leaves the other runs readable."""
    root = copy_of(GOLDEN[-1], tmp_path / "c")
    (root / "runs/001-mix-r1/status.json").write_text('{"format": 99}')
    damage = campaign_data(root).summary()["damage"]
    assert "format 99" in damage.iloc[0]
    assert damage.iloc[2:].isna().all()
