"""An audit tries deeper queues while they gain, on simulated volumes in virtual time."""

import json
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.extensions.lab.scenario import load_scenario
from volbench.model.campaign.planned_run import RunState

URI = silent_export()
VOLUME = "name: made\nsize: 64m\nrestored: true\nservice: {read: 20ms, write: 20ms, slots: %d}\n"


def audited(folder: Path, scenario: str) -> tuple[str, list[dict[str, object]]]:
    """Audit a volume for a minute; return what it prints, and the rows."""
    arguments = ["audit", "--on", URI, "--for", "1m", "--set", "ioengine=nbd", "--set", "size=64m"]
    with virtual_fio(load_scenario(scenario, path="made.yaml")):
        done = call(*arguments, "--set", "limits.iops=1000000", "--output", str(folder), "--yes")
    assert done.returncode in {10, 11}, done.stderr
    shown = call("audit", str(folder), "--json")
    return done.stdout + done.stderr, json.loads(shown.stdout)


def runs_of(folder: Path, repeat: int) -> list[str]:
    """Return the jobs of the finished runs of a repeat, in order."""
    opened = api.open_campaign(folder)
    return [
        run.job.removeprefix("randread-4k-qd")
        for run in opened.campaign.runs
        if run.job.startswith("randread-4k-qd")
        and run.repeat == repeat
        and opened.runs[run.id].state is RunState.FINISHED
    ]


@pytest.mark.slow
def test_two_depths_are_always_tried(tmp_path: Path) -> None:
    """Eight I/Os at a time: 16 in flight reach what 64 do, and 256 are not tried."""
    text, rows = audited(tmp_path / "out", VOLUME % 8)
    assert [runs_of(tmp_path / "out", repeat) for repeat in (1, 2, 3)] == [["1", "16", "64"]] * 3
    same = "randread-4k-qd64 is at most 5 % faster than shallower queues"
    assert f"not needed: {same}" in text
    assert f"not needed: randread-4k-qd256 was not tried, because {same}" in text
    assert "randread-4k-qd256 is" not in text
    assert "read IOPS: 16, 64 I/Os in flight tried; the deepest queue gained 0" in text
    (row,) = (row for row in rows if row["limit"] == "read IOPS")
    assert row["queue_depths"] == "16, 64"
    assert row["gain_percent"] == pytest.approx(0, abs=2)
    assert row["verdict"] == "falls short"


@pytest.mark.slow
def test_deeper_queues_are_tried_while_they_gain(tmp_path: Path) -> None:
    """128 at a time: 16 and 64 are too few, and are not repeated; 1,024 gain nothing over 256."""
    _, rows = audited(tmp_path / "out", VOLUME % 128)
    assert runs_of(tmp_path / "out", 1) == ["1", "16", "64", "256", "1024"]
    assert runs_of(tmp_path / "out", 2) == runs_of(tmp_path / "out", 3) == ["1", "256", "1024"]
    (row,) = (row for row in rows if row["limit"] == "read IOPS")
    assert row["queue_depths"] == "16, 64, 256, 1024"
