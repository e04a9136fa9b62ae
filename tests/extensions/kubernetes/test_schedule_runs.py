"""A schedule on a real cluster: a night with a regression, what reports it, and its removal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk
from tests.extensions.kubernetes.followed_controllers import log_of, status, with_python
from tests.extensions.kubernetes.image import NAME
from tests.extensions.kubernetes.local_cluster import LocalCluster
from tests.extensions.kubernetes.metrics_gateway import gateway
from tests.extensions.object_storage.buckets import Bucket, credentials, storage_server
from tests.nightly_campaigns import dropping, make_nights
from tests.waiting import until
from volbench.extensions.kubernetes import schedules
from volbench.extensions.kubernetes.cluster import Manifest
from volbench.extensions.kubernetes.schedules import ScheduleSpec, schedule_objects

_NIGHT_S = 240.0
_BUCKET = "s3://results/nightly"


@pytest.fixture(autouse=True)
def _image(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mount this machine's Python into the pods, whose image has none of volbench."""

    def changed(spec: ScheduleSpec, *, owner_uid: str = "") -> list[Manifest]:
        objects = schedule_objects(spec, owner_uid=owner_uid)
        with_python(objects[-1]["spec"]["jobTemplate"], cluster.port)
        return objects

    monkeypatch.setattr(schedules, "schedule_objects", changed)


def scheduled(desk: Desk, cron: str, job: Path, *options: str, run: tuple[str, ...] = ()) -> None:
    """Make the schedule night of a job, with the images of the tests."""
    own = ("--image-pull-policy", "Never", "--run-as-user", "0", "--claim-class", "fast")
    place = ("--namespace", desk.api.namespace, "--name", "night", "--controller-image", NAME)
    campaign = ("run", str(job), *IMAGE, "--size", "64Mi", "--storage-class", "fast", *run)
    done = call(
        "k8s", "schedule", cron, *own, *place, "--upload", _BUCKET, *options, "--", *campaign
    )
    assert done.returncode == 0, done.stderr


def test_a_night_with_a_regression(desk: Desk, job: Path) -> None:
    """By its own account: event, exit code, metrics and message; the campaign is in the bucket.

    The bucket has the nights of a month, whose level dropped. Cancelled, nothing is left.
    """
    make_nights(desk.folder / "nights", 30, level=dropping(at=20))
    with storage_server() as endpoint, gateway() as (address, taken):
        bucket = Bucket(endpoint, "results")
        for folder in sorted((desk.folder / "nights").iterdir()):
            bucket.put(folder, f"nightly/{folder.name}")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket-access"}}
        environment = {**credentials(endpoint), "VOLBENCH_WEBHOOK": f"{address}/hook"}
        desk.api.create({**secret, "stringData": environment})
        more = ("--secret", "bucket-access", "--push-metrics", address)
        scheduled(desk, "* * * * *", job, *more)
        found = status(desk, "night")
        assert (found["state"], found["cron"]) == ("scheduled", "* * * * *")
        until(lambda: status(desk, "night")["job"])
        desk.api.patch("CronJob", "night", {"spec": {"suspend": True}})  # one night is enough
        until(lambda: "last: " in status(desk, "night")["reason"], patience_s=_NIGHT_S)
        reason = "last: volbench ended with exit code 10"
        assert status(desk, "night")["reason"] == reason, log_of(desk.api, "night")
        (campaign,) = {key.split("/")[1] for key in bucket.names() if "/night-" in key}
        assert f"nightly/{campaign}/campaign.json" in bucket.names()
        assert "volbench_trend_exit_code 10" in taken["/metrics/job/volbench/schedule/night"]
        assert "randread-4k read iops: regression" in json.loads(taken["/hook"])["text"]
        bucket.client.close()
        (event, *_) = desk.api.list("Event", fields="reason=Regression")
        assert event["involvedObject"]["kind"] == "CronJob"
        assert "randread" in event["message"]
        done = call("k8s", "cancel", "night", "--namespace", desk.api.namespace)
    assert done.returncode == 0, done.stderr
    desk.api.delete("Secret", "bucket-access")
    until(lambda: desk.left() == [])
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        assert desk.api.read(kind, f"night-volumes-{desk.api.namespace}") is None
    own = ("CronJob", "ServiceAccount", "Role", "RoleBinding")
    until(lambda: not any(desk.api.read(kind, "night") for kind in own))


def test_what_the_cluster_refuses_leaves_nothing(desk: Desk, job: Path) -> None:
    """Wrong times, an unknown time zone, a cluster role that exists: the cluster says so."""
    for cron, options, words in (
        ("0 2 * *", (), "expected exactly 5 fields"),
        ("0 2 * * *", ("--time-zone", "Europe/Atlantis"), "unknown time zone"),
        ("0 2 * * *", ("--claim-class", "none"), "has no storage class none"),
        ("0 2 * * *", ("--service-account", "nobody"), "there is no service account nobody"),
    ):
        with pytest.raises(AssertionError, match=words):
            scheduled(desk, cron, job, *options)
    wide = f"night-volumes-{desk.api.namespace}"
    taken = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
    desk.api.create({**taken, "metadata": {"name": wide}})
    with pytest.raises(AssertionError, match="already exists"):
        scheduled(desk, "0 2 * * *", job)
    assert desk.api.read("ClusterRole", wide) is not None
    desk.api.delete("ClusterRole", wide)
    until(lambda: desk.left() == [])


def test_half_a_schedule_is_removed(desk: Desk, job: Path) -> None:
    """Its CronJob is missing, as after the API server went away while it was created."""
    scheduled(desk, "0 2 * * *", job)
    desk.api.delete("CronJob", "night")
    until(lambda: desk.api.read("CronJob", "night") is None)
    done = call("k8s", "cancel", "night", "--namespace", desk.api.namespace)
    assert done.returncode == 0, done.stderr
    until(lambda: desk.left() == [])
    assert desk.api.read("ClusterRole", f"night-volumes-{desk.api.namespace}") is None


def test_a_schedule_is_not_fetched(desk: Desk, job: Path) -> None:
    """Its campaigns are in the bucket; printed and not made, there is no schedule."""
    scheduled(desk, "0 2 * * *", job, "--dry-run")
    assert desk.left() == []
    scheduled(desk, "0 2 * * *", job)
    place = ("--namespace", desk.api.namespace)
    fetched = call("k8s", "fetch", "night", *place, cwd=desk.folder)
    assert fetched.returncode == 2
    assert f"night is a schedule: its campaigns are in {_BUCKET}" in fetched.stderr
    assert f"volbench show {_BUCKET}" in fetched.stderr
    desk.api.patch("CronJob", "night", {"spec": {"suspend": True}})
    listed = call("k8s", "status", *place).stdout
    assert "suspended" in listed
    assert call("k8s", "cancel", "night", *place).returncode == 0
    until(lambda: desk.left() == [])
