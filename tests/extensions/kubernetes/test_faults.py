"""Faults of a real cluster: each is reported in its words, and nothing is left afterwards."""

import re
import signal
from pathlib import Path

import pytest

import volbench
from tests.command_line import call, settings
from tests.extensions.kubernetes.conftest import IMAGE, Desk, kill, wait_for_run
from tests.waiting import PATIENCE_S as TEST_PATIENCE_S
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.extensions.kubernetes import lifecycle, pod_placement
from volbench.extensions.kubernetes.cluster import PATIENCE_S, Cluster
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history

LONG = ("--set", "runtime=25s")
STAYS = tuple(
    word
    for taint in ("not-ready", "unreachable")
    for word in ("--pod", f"toleration=node.kubernetes.io/{taint}:NoExecute")
)
"""Keeps a pod on its node however long a busy machine takes to start a kubelet again."""


@pytest.mark.parametrize(
    ("arguments", "words", "status"),
    [
        (("--storage-class", "missing"), "the cluster has no storage class missing", 2),
        (
            ("--storage-class", "fast", "--pod", "node-selector=tag=none", "--pod", "timeout=8s"),
            r"FailedScheduling: 0/\d nodes are available",
            4,
        ),
        (("--storage-class", "fast", "--pod", "image=nothing:1"), "ErrImageNeverPull", 4),
        (("--storage-class", "stuck", "--pod", "timeout=8s"), "external provisioner 'example", 4),
        ((), "cannot start: FailedBinding: .* no storage class is set", 4),
    ],
)
def test_a_pod_that_cannot_start_is_explained(
    desk: Desk, job: Path, arguments: tuple[str, ...], words: str, status: int
) -> None:
    """The reason is the cluster's, and comes with the project's exit code."""
    done = desk.run("c", str(job), *arguments)
    assert done.returncode == status, done.stderr
    assert re.search(words, done.stderr)
    assert not (desk.folder / "c").exists()


def test_a_cpu_limit_of_the_namespace_is_said_and_found(desk: Desk, job: Path) -> None:
    """A LimitRange limits pods that ask for no limit: said before the runs, and found in them."""
    limits = [{"type": "Container", "default": {"cpu": "200m"}}]
    small = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    path = f"api/v1/namespaces/{desk.api.namespace}/limitranges"
    desk.api.request("POST", path, body={**small, "spec": {"limits": limits}})
    try:
        # Reads from memory: a busy disk would leave fio little to do with its CPU
        cached = settings("runtime=5s", "rw=randread", "direct=0")
        done = desk.run("c", str(job), "--storage-class", "fast", *cached)
    finally:
        desk.api.request("DELETE", f"{path}/small")
    assert "a LimitRange limits the pod to 200m CPU; if that throttles fio: --pod" in done.stderr
    findings = volbench.open_campaign(desk.folder / "c").findings
    assert "cpu-throttled" in {each["rule"] for each in findings}


def test_a_controller_ended_while_it_waits_removes_what_it_made(desk: Desk, job: Path) -> None:
    """SIGTERM before the campaign has begun leaves nothing: there is nothing to resume."""
    process = desk.start(
        "c", str(job), "--storage-class", "fast", "--pod", "node-selector=tag=none"
    )
    until(lambda: desk.api.list("Pod"))
    process.terminate()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors


def test_a_pod_deleted_mid_run_is_lost(desk: Desk, job: Path) -> None:
    """The campaign stops with the reason; a resume takes another pod on the same volume."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=20s")
    wait_for_run(desk)
    desk.api.delete("Pod", desk.pod()["metadata"]["name"], grace_s=0)
    table, errors = process.communicate(timeout=300)
    assert process.returncode == 4, errors
    assert "it was deleted" in errors or "being deleted" in errors
    assert "interrupted" in table
    assert "running" not in table
    resume_after_loss(desk)


def test_a_pod_whose_files_exceed_a_limit_is_evicted(desk: Desk, job: Path) -> None:
    """By its node, in whose words the run is lost; a resume says so, and repeats it."""
    words = 'Usage of EmptyDir volume "os" exceeds the limit "32Mi"'
    large = ("--pod", "os-disk", *settings("size=64m", "rw=write", "bs=1m"), "--claim-size", "32Mi")
    done = desk.run("c", str(job), *large, "--set", "runtime=120s")
    assert done.returncode == 4, done.stderr
    assert "the run in its pod is lost: Evicted: " in done.stderr
    assert words in done.stderr
    assert "interrupted" in done.stdout
    (state,) = read_history(desk.folder / "c" / "journal.jsonl").states.values()
    assert state is RunState.INTERRUPTED
    again = call("resume", desk.folder / "c")
    assert again.returncode == 4, again.stderr
    assert "what ran in it is lost" in again.stderr
    assert words in again.stderr
    reaped = call("status", "--clean", desk.folder / "c")
    assert reaped.returncode == 0, reaped.stderr


def resume_after_loss(desk: Desk) -> None:
    """Check that a resume says and records what was lost before it repeats it."""
    done = call("resume", desk.folder / "c")
    assert "what ran in it is lost" in done.stderr
    assert done.returncode == 0, done.stderr
    journal = desk.folder / "c" / "journal.jsonl"
    assert "its pod has ended: it was deleted" in journal.read_text()
    (state,) = read_history(journal).states.values()
    assert state is RunState.FINISHED


def test_a_killed_controller_is_resumed(desk: Desk, job: Path) -> None:
    """The run goes on in the pod; a resume finds it, fetches its results, and cleans up."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=8s")
    wait_for_run(desk)
    process.send_signal(signal.SIGSTOP)  # it lives, and cannot end while others look at it
    uid = desk.pod()["metadata"]["uid"]
    reaped = call("k8s", "reap", "--namespace", desk.api.namespace)
    assert "skipped: it is held by a controller on" in reaped.stderr
    kill(process)
    assert desk.pod()["metadata"]["uid"] == uid
    done = call("resume", desk.folder / "c")
    assert done.returncode == 0, done.stderr
    assert "found again on fast" in done.stderr
    assert len(campaign_data(desk.folder / "c").summary()) == 1


def test_an_abandoned_campaign_is_reaped(desk: Desk, job: Path) -> None:
    """A controller of this machine that was killed is missed at once, not after two minutes."""
    process = desk.start("c", str(job), "--storage-class", "fast", *LONG)
    wait_for_run(desk)
    kill(process)
    second = desk.resume("c")
    until(lambda: "volbench.io/folder-mark" in str(desk.api.list("Lease")))
    kill(second)
    done = call("k8s", "reap", "--namespace", desk.api.namespace)
    assert done.returncode == 0, done.stderr
    again = call("status", "--clean", desk.folder / "c")
    assert "nothing of volbench-" in again.stderr


@pytest.mark.parametrize("verb", ["run", "lifecycle"])
def test_objects_left_on_an_unreachable_api_server_are_listed(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """When patience ends, the last lines say which command removes what was made."""
    for module in (pod_placement, lifecycle):
        monkeypatch.setattr(module, "PATIENCE_S", 2.0)

    def wait(cluster: Cluster, *_: object, **__: object) -> None:
        desk.cluster.stop("kube-apiserver")
        cluster.list("Pod")

    if verb == "run":
        monkeypatch.setattr(pod_placement, "wait_for_hosts", wait)
        done = desk.run("c", str(job), "--storage-class", "fast")
    else:
        monkeypatch.setattr(lifecycle, "follow_lives", wait)
        place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi")
        done = call("k8s", "lifecycle", *place, "--storage-class", "fast")
    desk.cluster.start("kube-apiserver")
    desk.api.patience_s = PATIENCE_S
    assert done.returncode == 4, done.stderr
    (command,) = re.findall(r"to remove them:\n  KUBECONFIG=\S+ volbench (.*)", done.stderr)
    (lease,) = desk.api.list("Lease")  # of a process that would have ended by now
    desk.api.patch("Lease", lease["metadata"]["name"], {"spec": {"holderIdentity": ""}})
    reaped = call(*command.split())
    assert reaped.returncode == 0, reaped.stderr


def test_the_api_server_restarts_mid_run(desk: Desk, job: Path) -> None:
    """A connection that comes back in time is no fault of the run."""
    process = desk.start("c", str(job), "--storage-class", "fast", "--set", "runtime=10s")
    wait_for_run(desk)
    desk.cluster.stop("kube-apiserver")
    desk.cluster.start("kube-apiserver")
    _, errors = process.communicate(timeout=TEST_PATIENCE_S)
    assert process.returncode == 0, errors
    (state,) = read_history(desk.folder / "c" / "journal.jsonl").states.values()
    assert state is RunState.FINISHED


def test_the_kubelet_restarts_mid_run(desk: Desk, job: Path) -> None:
    """Without a kubelet a node answers nothing; fio goes on."""
    process = desk.start("c", str(job), "--storage-class", "fast", *STAYS, "--set", "runtime=10s")
    wait_for_run(desk)
    desk.cluster.stop("kubelet")
    desk.cluster.start("kubelet")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
