"""Replicas of a StatefulSet after a killed controller, and after the loss of one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk, kill
from tests.extensions.object_storage.buckets import Bucket, credentials, storage_server
from tests.waiting import until
from volbench.api.one_campaign import open_campaign
from volbench.execute.agent_executor import AgentExecutor
from volbench.extensions.kubernetes import pod_placement
from volbench.extensions.kubernetes.cluster import Manifest
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec
from volbench.extensions.kubernetes.manifests import objects
from volbench.extensions.object_storage.relay import Relay
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history

THREE = ("--storage-class", "fast", "--replicas", "3")
HOSTS = ["fast-0", "fast-1", "fast-2"]


def wait_for_all(desk: Desk) -> None:
    """Wait until the processes of all three runs of the first step were started."""
    journal = desk.folder / "c" / "journal.jsonl"

    def have_started() -> bool:
        records = read_history(journal).processes.values() if journal.exists() else ()
        return sum(bool(record.get("launched", True)) for record in records) == len(HOSTS)

    until(have_started)


def test_replicas_are_resumed_and_repeated_in_the_same_way(desk: Desk, job: Path) -> None:
    """All are found again in their pods; --like repeats the campaign, and both are compared."""
    process = desk.start("c", str(job), *THREE, "--repeat", "2", "--set", "runtime=5s")
    wait_for_all(desk)
    kill(process)
    done = call("resume", desk.folder / "c")
    assert done.returncode == 0, done.stderr
    assert all(f"found again on {host}" in done.stderr for host in HOSTS)
    campaign = open_campaign(desk.folder / "c")
    assert sorted(campaign.summary()["host"]) == sorted(2 * HOSTS)
    assert list(campaign.aggregate()["clients"]) == [3, 3]
    again = desk.run("d", f"--like={desk.folder / 'c'}", *THREE)
    assert again.returncode == 0, again.stderr
    assert len(open_campaign(desk.folder / "d").summary()) == 6
    compared = call("compare", desk.folder / "c", desk.folder / "d", "--json")
    assert compared.returncode == 0, compared.stderr


def test_one_replica_is_lost(desk: Desk, job: Path) -> None:
    """The set makes its pod again; the journal says what was lost, and all runs finish."""
    process = desk.start("c", str(job), *THREE, "--set", "runtime=6s")
    wait_for_all(desk)
    name = next(
        pod["metadata"]["name"]
        for pod in desk.api.list("Pod")
        if pod["metadata"]["name"].endswith("-1")
    )
    desk.api.delete("Pod", name, grace_s=0)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 4, errors
    done = call("resume", desk.folder / "c")
    assert done.returncode == 0, done.stderr
    states = read_history(desk.folder / "c" / "journal.jsonl").states
    assert set(states.values()) == {RunState.FINISHED}
    journal = (desk.folder / "c" / "journal.jsonl").read_text()
    assert '"state": "interrupted"' in journal
    assert journal.count("its pod has ended") == 1


def on_the_network_of_the_node(spec: ClusterSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return the objects of a campaign whose pods reach this machine: others have no network."""
    made = objects(spec, owner_uid=owner_uid)
    for manifest in made:
        if manifest["kind"] == "StatefulSet":
            manifest["spec"]["template"]["spec"]["hostNetwork"] = True
    return made


def test_results_go_through_a_bucket(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pod has no way to it, which is said: its results come through the API server.

    All runs have their files, and neither a URL nor an object is left.
    """
    by_exec: list[str] = []
    fetch = AgentExecutor.fetch_work_folder

    def fetch_by_exec(executor: AgentExecutor, path: str, folder: str) -> None:
        by_exec.append(executor.host)
        fetch(executor, path, folder)

    monkeypatch.setattr(AgentExecutor, "fetch_work_folder", fetch_by_exec)
    monkeypatch.setattr(pod_placement, "objects", on_the_network_of_the_node)
    signed = Relay.url

    def url(relay: Relay, name: str) -> str:
        found = signed(relay, name)
        at = found.partition("//")[2].partition("/")[0]
        lost = re.search(r"-0-[0-9a-f]{16}$", name)
        return found.replace(at, "127.0.0.1:9") if lost else found

    monkeypatch.setattr(Relay, "url", url)
    with storage_server() as endpoint:
        for name, value in credentials(endpoint).items():
            monkeypatch.setenv(name, value)
        bucket = Bucket(endpoint, "relayed")
        way = ("--results-bucket", "s3://relayed/here", "--repeat", "2")
        done = desk.run("c", str(job), *THREE, *way)
        left = bucket.client.list_objects_v2(Bucket="relayed").get("Contents", [])
        bucket.client.close()
    assert done.returncode == 0, done.stderr
    note = "note: results of fast-0 go through the API server, as do those of every pod that cannot"
    assert done.stderr.count(note) == 1
    assert "no answer from 127.0.0.1:9: [Errno 111] Connection refused" in done.stderr
    assert by_exec == ["fast-0", "fast-0"]
    assert left == []
    summary = open_campaign(desk.folder / "c").summary()
    assert sorted(summary["host"]) == sorted(2 * HOSTS)
    names = [
        {path.name for path in folder.rglob("*")} for folder in (desk.folder / "c/runs").iterdir()
    ]
    assert all(found == names[0] for found in names)
    assert len(names) == 6
    for path in (desk.folder / "c").rglob("*"):
        assert not path.is_file() or b"X-Amz-Signature" not in path.read_bytes()
