"""Two controllers of one campaign in a real cluster: one holds it, the other leaves it alone."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk, kill, wait_for_run
from volbench.extensions.kubernetes.leases import CampaignLease, lease_holder
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history


def campaign_name(desk: Desk) -> str:
    """Return the name of the only campaign in the namespace."""
    return str(desk.pod()["metadata"]["labels"]["volbench.io/campaign"])


def holder(desk: Desk) -> str:
    """Return who holds the lease of the only campaign."""
    return lease_holder(desk.api.read("Lease", campaign_name(desk)))


def states(folder: Path) -> list[RunState]:
    """Return the states of the runs in a campaign folder."""
    return [*read_history(folder / "journal.jsonl").states.values()]


def test_a_live_campaign_is_left_alone(desk: Desk, job: Path) -> None:
    """Neither a resume, nor one of a copy, nor reap takes it from its controller."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=6s")
    wait_for_run(desk)
    process.send_signal(signal.SIGSTOP)  # it lives, and cannot end while others look at it
    first, copy = holder(desk), desk.folder / "copy"
    shutil.copytree(desk.folder / "c", copy)
    place = ("--namespace", desk.api.namespace)
    for arguments in (
        ("resume", desk.folder / "c"),
        ("resume", copy),
        ("status", "--clean", copy),
        ("k8s", "reap", campaign_name(desk), *place),
    ):
        refused = call(*arguments)
        assert refused.returncode == 9, refused.stderr
        assert f"is held by a controller on {os.uname().nodename} (folder " in refused.stderr
    skipped = call("k8s", "reap", *place)
    assert skipped.returncode == 0
    assert "skipped: it is held by" in skipped.stderr
    assert holder(desk) == first
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert states(desk.folder / "c") == [RunState.FINISHED]
    before = states(copy)
    late = call("resume", copy)
    assert late.returncode == 4, late.stderr
    assert "another copy of this folder has finished it" in late.stderr
    assert states(copy) == before


def seen_from_another_machine(desk: Desk, name: str) -> None:
    """Let the lease of a campaign name a process of another machine."""
    notes = (desk.api.read("Lease", name) or {})["metadata"]["annotations"]
    described = json.loads(notes["volbench.io/controller"])
    described["process"]["boot_id"] = "of another machine"
    notes["volbench.io/controller"] = json.dumps(described)
    desk.api.patch("Lease", name, {"metadata": {"annotations": notes}})


def test_a_campaign_removed_during_the_wait_for_its_lease_is_not_resumed(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pod is waited for that nobody will create, and no lease stays behind."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=60s")
    wait_for_run(desk)
    kill(process)
    copy = desk.folder / "copy"
    shutil.copytree(desk.folder / "c", copy)
    take = CampaignLease.take

    def late(lease: CampaignLease, *, waits: bool = True) -> None:
        monkeypatch.setattr(CampaignLease, "take", take)
        done = call("status", "--clean", desk.folder / "c")
        assert done.returncode == 0, done.stderr
        take(lease, waits=waits)

    monkeypatch.setattr(CampaignLease, "take", late)
    refused = call("resume", copy)
    assert refused.returncode == 4, refused.stderr
    assert "nothing of volbench-" in refused.stderr
    assert desk.api.list("Lease") == []


def test_a_controller_that_lost_its_lease_leaves_the_runs_alone(desk: Desk, job: Path) -> None:
    """It was frozen for so long that another took over: once awake it ends as if it were killed."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=60s")
    wait_for_run(desk)
    name, uid = campaign_name(desk), desk.pod()["metadata"]["uid"]
    os.kill(process.pid, signal.SIGSTOP)
    seen_from_another_machine(desk, name)
    desk.api.patch("Lease", name, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    other = CampaignLease(desk.api, name, desk.folder)
    other.take()
    os.kill(process.pid, signal.SIGCONT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 4, errors
    assert f"{name} was taken over by a controller on" in errors
    assert desk.pod()["metadata"]["uid"] == uid
    assert states(desk.folder / "c") == [RunState.RUNNING]
    other.release()
    done = call("status", "--clean", desk.folder / "c")
    assert done.returncode == 0, done.stderr
