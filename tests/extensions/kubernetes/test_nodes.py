"""Nodes that are drained, lost or deleted during a run, and classes spread over two nodes."""

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk, kill, wait_for_run
from tests.extensions.kubernetes.local_cluster import NODE, SECOND_NODE
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history

THERE = ("--storage-class", "fast", "--pod", f"node-selector=kubernetes.io/hostname={SECOND_NODE}")


@pytest.fixture(autouse=True)
def second_node(desk: Desk) -> Iterator[None]:
    """Add the second node; afterwards it is there, and takes no pods of other tests."""
    desk.cluster.join()
    until(lambda: is_ready(desk))
    cordon(desk, is_closed=False)
    yield
    until(lambda: is_ready(desk))  # a restarted kubelet registers its node again
    cordon(desk, is_closed=True)


def is_ready(desk: Desk) -> bool:
    """Return whether the second node is ready."""
    node = desk.api.read("Node", SECOND_NODE) or {}
    conditions = node.get("status", {}).get("conditions", ())
    return any(own["type"] == "Ready" and own["status"] == "True" for own in conditions)


def cordon(desk: Desk, *, is_closed: bool) -> None:
    """Let the second node take no pods, or let it take pods again."""
    desk.api.patch("Node", SECOND_NODE, {"spec": {"unschedulable": is_closed}})


def evict(desk: Desk) -> None:
    """Ask for the eviction of the only pod, as kubectl drain does."""
    name = desk.pod()["metadata"]["name"]
    path = f"api/v1/namespaces/{desk.api.namespace}/pods/{name}/eviction"
    kind = {"apiVersion": "policy/v1", "kind": "Eviction"}
    desk.api.request("POST", path, body={**kind, "metadata": {"name": name}})


def resume(desk: Desk, *arguments: str) -> CompletedProcess[str]:
    """Resume the campaign."""
    return call("resume", desk.folder / "c", *arguments)


def check_loss(desk: Desk, words: str) -> None:
    """Check that the journal says why the run was interrupted."""
    journal = (desk.folder / "c" / "journal.jsonl").read_text()
    assert words in journal
    (state,) = read_history(desk.folder / "c" / "journal.jsonl").states.values()
    assert state is RunState.INTERRUPTED


def test_runs_on_a_drained_node_are_repeated(desk: Desk, job: Path) -> None:
    """The run is lost in the cluster's words, and repeated there once it takes pods again."""
    process = desk.start("c", str(job), *THERE, "--set", "runtime=20s")
    wait_for_run(desk)
    cordon(desk, is_closed=True)
    evict(desk)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 4, errors
    assert "EvictionByEvictionAPI: Eviction API: evicting" in errors, errors
    check_loss(desk, "EvictionByEvictionAPI")
    waited = resume(desk, "--pod", "timeout=8s")
    assert waited.returncode == 4, waited.stderr
    assert "1 node(s) were unschedulable" in waited.stderr
    cordon(desk, is_closed=False)
    done = resume(desk)
    assert done.returncode == 0, done.stderr
    assert list(campaign_data(desk.folder / "c").summary()["label_node"]) == [SECOND_NODE]


def test_replicas_avoid_a_node_that_takes_no_pods(desk: Desk, job: Path) -> None:
    """Replicas are spread over the other nodes, however uneven that is."""
    cordon(desk, is_closed=True)
    done = desk.run("c", str(job), "--storage-class", "fast", "--replicas", "3")
    assert done.returncode == 0, done.stderr
    assert set(campaign_data(desk.folder / "c").summary()["label_node"]) == {NODE}


def test_a_kubelet_that_stays_down_and_a_deleted_node(desk: Desk, job: Path) -> None:
    """While fio may still run, nothing is repeated; once the node is gone, its host is given up."""
    process = desk.start("c", str(job), *THERE, "--set", "runtime=60s")
    wait_for_run(desk)
    desk.cluster.stop("kubelet-2")
    try:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 4, errors
        assert "DeletionByTaintManager: Taint manager: deleting due to NoExecute taint" in errors
        check_loss(desk, "DeletionByTaintManager")
        waited = resume(desk, "--pod", "timeout=2s")
        assert waited.returncode == 4, waited.stderr
        assert "fio may still run: NodeStatusUnknown" in waited.stderr
        assert desk.pod()["metadata"]["name"]
        desk.api.delete("Node", SECOND_NODE)
        desk.api.delete("Pod", desk.pod()["metadata"]["name"], grace_s=0)  # else after a minute
        refused = resume(desk)
        assert refused.returncode == 4, refused.stderr
        assert f"the node {SECOND_NODE} of fast is gone" in refused.stderr
        forgotten = call("resume", desk.folder / "c", "--without", "fast")
        assert "fast is given up" in forgotten.stderr
        reaped = call("status", "--clean", desk.folder / "c")
        assert "removed volbench-" in reaped.stderr
        again = call("status", "--clean", desk.folder / "c")
        assert "nothing of volbench-" in again.stderr
    finally:
        desk.cluster.start("kubelet-2")


def test_a_replaced_pod_that_runs_is_found_again(desk: Desk, job: Path) -> None:
    """What a resume started in a new pod, and lost sight of, is not started a third time."""
    first = desk.start("c", str(job), *THERE, "--set", "runtime=12s")
    wait_for_run(desk)
    desk.api.delete("Pod", desk.pod()["metadata"]["name"], grace_s=0)
    first.communicate(timeout=300)
    second = desk.resume("c")
    until(lambda: read_history(desk.folder / "c" / "journal.jsonl").states)
    wait_for_state(desk, RunState.RUNNING)
    kill(second)
    done = resume(desk)
    assert done.returncode == 0, done.stderr
    assert "lost" not in done.stderr
    assert "found again on fast" in done.stderr


def wait_for_state(desk: Desk, state: RunState) -> None:
    """Wait until the only run has a state and its process was started."""
    journal = desk.folder / "c" / "journal.jsonl"

    def has_state() -> bool:
        history = read_history(journal)
        (process,) = history.processes.values()
        return set(history.states.values()) == {state} and bool(process.get("launched", True))

    until(has_state)
