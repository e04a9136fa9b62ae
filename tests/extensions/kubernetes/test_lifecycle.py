"""Life of volumes: the steps in a real cluster, and those that only some drivers have."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any
from unittest.mock import Mock

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk
from tests.waiting import until
from volbench.errors import DeadlineError
from volbench.extensions.kubernetes.lifecycle import LOOK_S, STEPS, VolumeLife, steps_table

TIMES = {"created": 0.0, "bound": 1.0, "scheduled": 2.0, "running": 9.0, "stopped": 20.0}
TIMES |= {"detached": 25.0, "released": 30.0, "deleted": 31.0}


def life(storage_class: str, **events: float) -> VolumeLife:
    """Return the life of a volume whose events have these times."""
    named: dict[str, Any] = {"metadata": {"name": "v"}}
    return VolumeLife(storage_class, named, named, {**TIMES, **events}, first_io_s=0.01)


def test_a_step_that_the_cluster_does_not_have_is_unknown() -> None:
    """Without an attachment the start follows the placement; with one, the attachment."""
    assert life("plain").durations_s() == dict(zip(STEPS, (1, None, 7, 0.01, 5, 1), strict=True))
    attached = life("csi", attached=5.0).durations_s()
    assert (attached["attach"], attached["start"]) == (3, 4)


def test_percentiles_are_those_of_each_class_and_step() -> None:
    """The 99th percentile of few volumes is the slowest, and the table says so."""
    lives = [life("a", bound=1.0), life("a", bound=2.0), life("b", attached=5.0)]
    through = life("a", bound=99.0)
    through.outage_s = 40.0
    table = steps_table([*lives, through])
    first = table.rows[0]
    assert (first["storage_class"], first["step"], first["volumes"]) == ("a", "provision", 2)
    assert (first["p50_s"], first["p99_s"], first["max_s"]) == (1.5, 2.0, 2.0)
    assert [row["storage_class"] for row in table.rows if row["step"] == "attach"] == ["b"]
    assert "p99 is the slowest" in table.notes[0]
    assert table.notes[1] == "1 volume left out: the API server did not answer."


def test_an_attachment_is_found_by_the_name_that_kubernetes_gives_it() -> None:
    """Its name is a hash of handle, driver and node, so that no right to list them is needed."""
    volume = {"spec": {"csi": {"driver": "disk.csi.example", "volumeHandle": "disk-1"}}}
    name = f"csi-{sha256(b'disk-1disk.csi.examplenode-1').hexdigest()}"
    found: dict[str, Any] = {"PersistentVolume": volume}

    def read(kind: str, wanted: str) -> dict[str, Any] | None:
        assert wanted == {"VolumeAttachment": name, "PersistentVolume": "pv"}[kind]
        return found.get(kind)

    cluster = Mock(read_if_allowed=read, logs=lambda _pod: "first I/O 0.002000\n")
    claims = {"v": {"status": {"phase": "Bound"}, "spec": {"volumeName": "pv"}}}
    pods: dict[str, Any] = {"v": {"spec": {"nodeName": "node-1"}}}
    seen = life("csi")
    seen.at_s, seen.first_io_s = {"created": 0.0}, None
    assert not seen.has_worked(cluster, claims, pods)
    assert "attached" not in seen.at_s
    found["VolumeAttachment"] = {"status": {"attached": True}}
    assert not seen.has_worked(cluster, claims, pods)
    assert "attached" in seen.at_s
    pods["v"]["status"] = {"containerStatuses": [{"state": {"running": {}}}]}
    assert seen.has_worked(cluster, claims, pods)
    assert seen.first_io_s == 0.002
    assert not seen.is_detached(cluster, claims, {})
    del found["VolumeAttachment"]
    assert seen.is_detached(cluster, claims, {})
    assert not seen.is_deleted(cluster, {}, {})
    del found["PersistentVolume"]
    assert seen.is_deleted(cluster, {}, {})


def test_classes_take_turns(desk: Desk) -> None:
    """Two volumes live at a time, each of them is timed, and nothing of them is left."""
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi")
    classes = ("--storage-class", "fast", "--storage-class", "waiting")
    more = ("--count", "2", "--at-once", "2", "--json")
    done = call("k8s", "lifecycle", *place, *classes, *more)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {row["storage_class"] for row in rows} == {"fast", "waiting"}
    assert all(row["volumes"] == 2 for row in rows)
    slowest = {(row["step"], row["storage_class"]): row["max_s"] for row in rows}
    assert all(slowest["first I/O", name] > 0 for name in ("fast", "waiting"))
    assert {step for step, _ in slowest} == {*STEPS} - {"attach"}
    assert sum(slowest.values()) > 2 * LOOK_S  # the life of a volume of each class
    assert desk.left() == []


@pytest.mark.parametrize(
    ("storage_class", "options", "status", "words"),
    [
        ("retained", (), 3, "retained retains its volumes: 5 disks would be left"),
        ("absent", (), 2, "has no storage class absent"),
        ("fast", ("--volume-mode", "Block", "--pod", "timeout=2s"), 4, "is not ready"),
    ],
)
def test_volumes_that_cannot_live_are_explained(
    desk: Desk, storage_class: str, options: tuple[str, ...], status: int, words: str
) -> None:
    """The reason is the cluster's, and nothing is left."""
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi")
    done = call("k8s", "lifecycle", *place, "--storage-class", storage_class, *options)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert done.stdout == ""


def test_a_pod_that_is_deleted_ends_the_command(desk: Desk) -> None:
    """At once, not at the end of its patience; and nothing is left."""
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi", "--count", "1")
    waits = ("--storage-class", "fast", "--pod", "node-selector=a=b", "--pod", "timeout=5m")

    def delete() -> None:
        until(lambda: desk.api.list("Pod"))
        desk.api.delete("Pod", desk.pod()["metadata"]["name"], grace_s=0)

    with ThreadPoolExecutor(1) as pool:
        deleted = pool.submit(delete)
        done = call("k8s", "lifecycle", *place, *waits)
        deleted.result()
    assert done.returncode == 4, done.stderr
    ends = (
        "the pod of fast has ended: it was deleted",
        "the pod of fast has ended: it is being deleted",
    )
    assert any(end in done.stderr for end in ends)
    assert desk.left() == []


def test_volumes_before_an_error_are_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption in the last round costs that round only."""

    def fail(*_: object, **__: object) -> Iterator[VolumeLife]:
        yield life("fast")
        raise DeadlineError("too late")

    monkeypatch.setattr("volbench.extensions.kubernetes.lifecycle.measure_lives", fail)
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "64Mi")
    done = call("k8s", "lifecycle", *place, "--storage-class", "fast")
    assert done.returncode == 4, done.stderr
    assert "provision" in done.stdout
