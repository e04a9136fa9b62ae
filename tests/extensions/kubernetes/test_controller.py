"""A controller in a real cluster: submitted, followed, lost, and its campaign brought back."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk
from tests.extensions.kubernetes.followed_controllers import (
    ENDED,
    PATIENCE_S,
    log_of,
    status,
    with_python,
)
from tests.extensions.kubernetes.image import NAME
from tests.extensions.kubernetes.local_cluster import LocalCluster
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.extensions.kubernetes import controllers
from volbench.extensions.kubernetes.cluster import Manifest
from volbench.extensions.kubernetes.controllers import ControllerSpec, controller_objects

pytestmark = pytest.mark.usefixtures("account")
_CONTROLLER = ("--controller-image", NAME)


@pytest.fixture(autouse=True)
def _image(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:

    def changed(spec: ControllerSpec, *, owner_uid: str = "") -> list[Manifest]:
        objects = controller_objects(spec, owner_uid=owner_uid)
        with_python(objects[-1], cluster.port)
        return objects

    monkeypatch.setattr(controllers, "controller_objects", changed)


def submitted(desk: Desk, profile: Path, *options: str, own: tuple[str, ...] = ()) -> str:
    """Submit a profile with options of run and of submit; return its controller's name."""
    run = (str(profile), *IMAGE, "--claim-size", "64Mi", "--storage-class", "fast", *options)
    place = ("--namespace", desk.api.namespace, "--folder-class", "fast")
    done = call("k8s", "submit", *_CONTROLLER, *place, *own, *run)
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    assert f"volbench k8s status {name} --namespace {desk.api.namespace}" in done.stderr
    return name


def _in_pods(cluster: LocalCluster, argument: bytes) -> list[int]:
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended
            is_meant = argument in (process / "cmdline").read_bytes().split(b"\0")
            if is_meant and f"/{cluster.group}/" in (process / "cgroup").read_text():
                processes.append(int(process.name))
    return processes


def _kill_controller(cluster: LocalCluster) -> None:
    """Kill all processes of the controller's pod, as a lost node does."""
    for process in _in_pods(cluster, b"/submitted/one.yaml"):
        with suppress(ProcessLookupError):  # it ended with its parent
            os.kill(process, signal.SIGKILL)


def test_a_campaign_goes_on_without_this_machine(desk: Desk, job: Path) -> None:
    """Its pod is killed in the middle of a run, another one takes the run over, and nothing stays.

    What comes back is an ordinary campaign.
    """
    name = submitted(desk, job, "--set", "runtime=15s")
    place = ("--namespace", desk.api.namespace)
    until(lambda: _in_pods(desk.cluster, b"job.fio"), patience_s=PATIENCE_S)
    first = status(desk, name)["pod"]
    early = call("k8s", "fetch", name, *place, cwd=desk.folder)
    assert early.returncode == 9
    assert f"{name} is running" in early.stderr
    _kill_controller(desk.cluster)
    until(lambda: status(desk, name)["state"] in ENDED, patience_s=PATIENCE_S)
    last = status(desk, name)
    assert last["state"] == "finished", log_of(desk.api, name)
    assert last["pod"] != first
    assert "finished" in call("k8s", "status", *place).stdout
    fetched = call("k8s", "fetch", name, *place, "--remove", "-o", "back", cwd=desk.folder)
    assert fetched.returncode == 0, fetched.stderr
    folder = desk.folder / "back"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(campaign_data(folder).summary()["status"]) == ["finished"]
    assert not list(folder.glob("runs/*/attempts"))  # the run was taken over, not repeated
    until(lambda: desk.left() == [])


def test_a_controller_is_cancelled(desk: Desk, job: Path) -> None:
    """Its active run is stopped, its pods and volumes go, what has finished is brought back."""
    name = submitted(desk, job, "--set", "runtime=6s", "--repeat", "9")
    place = ("--namespace", desk.api.namespace)
    until(lambda: "finished 001" in log_of(desk.api, name), patience_s=PATIENCE_S)
    desk.api.patch("Job", name, {"spec": {"suspend": True}})
    until(lambda: not desk.api.list("Pod", f"job-name={name}"), patience_s=PATIENCE_S)
    assert status(desk, name)["state"] == "cancelled"
    done = call("k8s", "reap", *place)
    assert done.returncode == 0, done.stderr
    left = [item for item in desk.left() if name not in item]
    assert left == []
    fetched = call("k8s", "fetch", name, *place, "--remove", "-o", "back", cwd=desk.folder)
    assert fetched.returncode == 0, fetched.stderr
    states = list(campaign_data(desk.folder / "back").summary()["status"])
    assert states[0] == "finished"
    until(lambda: desk.left() == [])


def test_submissions_that_the_controller_would_refuse_are_refused(desk: Desk, job: Path) -> None:
    """By the same checks, of the profile, of consent and of the cluster; nothing is made."""
    place = ("--namespace", desk.api.namespace, "--folder-class", "fast")
    block = ("--volume-mode", "Block")
    for own, options, words in (
        ((), ("--storage-class", "missing"), "the cluster has no storage class missing"),
        ((), ("--storage-class", "fast", *block), "would overwrite new raw volumes"),
        ((), ("--storage-class", "fast", "--set", "bs=0"), "bs"),
        (("--service-account", "nobody"), (), "there is no service account nobody"),
        (("--folder-class", "none"), ("--storage-class", "fast"), "has no storage class none"),
        (("--secret", "keys"), ("--storage-class", "fast"), "there is no Secret keys"),
    ):
        submit = ("k8s", "submit", *_CONTROLLER, *place, *own)
        refused = call(*submit, job, *IMAGE, "--claim-size", "64Mi", *options)
        assert refused.returncode in {2, 3}, refused.stderr
        assert words in refused.stderr
    assert [item for item in desk.left() if "Lease" not in item] == []


def test_a_controller_without_a_volume_has_no_results(desk: Desk, job: Path) -> None:
    """Nobody waits for the volume of one that was cancelled before it started."""
    name = submitted(desk, job, own=("--folder-class", "stuck"))
    place = ("--namespace", desk.api.namespace)
    until(lambda: "unbound" in status(desk, name)["reason"])
    desk.api.patch("Job", name, {"spec": {"suspend": True}})
    until(lambda: status(desk, name)["state"] == "cancelled")
    fetched = call("k8s", "fetch", name, *place, "-o", "back", cwd=desk.folder)
    assert fetched.returncode == 7, fetched.stderr
    assert f"the controller {name} has no results: it never had a volume" in fetched.stderr
    assert f"delete configmap {name}" in fetched.stderr
    desk.api.delete("ConfigMap", name)
    until(lambda: desk.left() == [])


def test_a_failed_campaign_is_not_repeated(desk: Desk, tmp_path: Path) -> None:
    """Volbench ended with an error of its own: that is the state, with its exit code."""
    profile = tmp_path / "bad.yaml"
    profile.write_text("name: bad\njobs:\n  a: {rw: read, size: 1g, runtime: 1s}\n")
    name = submitted(desk, profile, "--pod", "node-selector=no=such", "--pod", "timeout=8s")
    until(lambda: status(desk, name)["state"] == "failed", patience_s=PATIENCE_S)
    found = status(desk, name)
    assert found["reason"] == "volbench ended with exit code 4"
    assert "FailedScheduling" in log_of(desk.api, name)
    desk.api.delete("ConfigMap", name)
    until(lambda: desk.left() == [])
