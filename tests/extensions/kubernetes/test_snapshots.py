"""Snapshots, clones and raw blocks with a CSI driver in a real cluster."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk, storage_class, wait_for_run
from tests.extensions.kubernetes.local_cluster import LocalCluster
from tests.fleet.hosts import call as call_program
from tests.waiting import PATIENCE_S, until
from volbench.api.one_campaign import campaign_data
from volbench.extensions.kubernetes.cluster import Manifest, open_cluster
from volbench.extensions.kubernetes.manifests import DATA_DEVICE, MANAGED_BY

DRIVER = "loop.csi.volbench.io"
_BLOCK = ("--volume-mode", "Block", "--storage-class", "loop")
_SIZE = 64 << 20
WRITTEN = """\
name: written
jobs:
  fill: {rw: write, bs: 1m, size: 64m, ioengine: psync, direct: 1, verify: crc32c, do_verify: 0}
"""
RESTORED = """\
name: restored
cold_probe: true
phases:
  warmup:
    hydration:
      warming: {mode: read, extents: 4}
jobs:
  same: {rw: read, bs: 1m, size: 64m, ioengine: psync, direct: 1, verify: crc32c}
"""
READS = """\
name: reads
jobs:
  a: {rw: randread, bs: 4k, ioengine: psync, direct: 1, runtime: 8s, time_based: 1}
"""


def snapshot_class(name: str, *, retains: bool = False) -> Manifest:
    """Return a class of snapshots of the driver."""
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {"name": name},
        "driver": DRIVER,
        "deletionPolicy": "Retain" if retains else "Delete",
    }


@pytest.fixture(scope="module", autouse=True)
def _driver(cluster: LocalCluster, classes: None) -> Iterator[None]:
    del classes
    cluster.add_driver()
    api = open_cluster()
    own = {"provisioner": DRIVER}
    made = [
        storage_class("loop") | own,
        snapshot_class("saved"),
        snapshot_class("saved-for-good", retains=True),
    ]
    for manifest in made:
        api.create(manifest)
    yield
    for manifest in made:
        api.delete(manifest["kind"], manifest["metadata"]["name"])
    api.close()


@pytest.fixture
def source(desk: Desk, tmp_path: Path) -> Iterator[str]:
    """Write a raw volume whose claim is kept, and yield the name of the claim."""
    profile = tmp_path / "written.yaml"
    profile.write_text(WRITTEN, encoding="utf-8")
    destroyed = ("--allow-destroy", "/dev/volbench-data", "--keep")
    done = desk.run("written", str(profile), *_BLOCK, *destroyed)
    assert done.returncode == 0, done.stderr
    (claim,) = desk.api.list("PersistentVolumeClaim")
    name = claim["metadata"]["name"]
    yield name
    for kind, left in (("VolumeSnapshot", "night"), ("PersistentVolumeClaim", name)):
        desk.api.delete(kind, left)
    until(lambda: desk.api.list("VolumeSnapshot") == [])
    until(lambda: desk.api.read("PersistentVolumeClaim", name) is None)


def save(desk: Desk, claim: str) -> None:
    """Take the snapshot `night` of a claim."""
    desk.api.create(
        {
            "apiVersion": "snapshot.storage.k8s.io/v1",
            "kind": "VolumeSnapshot",
            "metadata": {"name": "night"},
            "spec": {
                "volumeSnapshotClassName": "saved",
                "source": {"persistentVolumeClaimName": claim},
            },
        }
    )


def is_saved(desk: Desk) -> bool:
    """Return whether the snapshot can be used."""
    status = (desk.api.read("VolumeSnapshot", "night") or {}).get("status", {})
    return bool(status.get("readyToUse"))


@pytest.mark.parametrize("kind", ["snapshot", "claim"])
def test_a_restored_volume_is_hydrated_and_measured(
    desk: Desk, source: str, tmp_path: Path, kind: str
) -> None:
    """It holds what its source held: fio verifies it; and the source is as it was.

    The warm-up reads each part once, in the order of the offsets.
    """
    profile = tmp_path / "restored.yaml"
    profile.write_text(RESTORED, encoding="utf-8")
    name = source
    if kind == "snapshot":
        name = "night"
        save(desk, source)
        early = desk.run(
            "early", str(profile), *_BLOCK, "--from", "snapshot:night", "--claim-size", "32Mi"
        )
        assert early.returncode == 2, early.stderr
        assert "night is not ready" in early.stderr or "is smaller than" in early.stderr
        until(lambda: is_saved(desk))
    done = desk.run("back", str(profile), *_BLOCK, "--from", f"{kind}:{name}")
    assert done.returncode == 0, done.stderr
    summary = campaign_data(tmp_path / "back").summary()
    warmed = summary[summary["phase"] == "warmup"]
    assert warmed["io_bytes"].sum() == _SIZE
    assert len(warmed) > 1
    assert list(summary[summary["phase"] == "measured"]["status"]) == ["finished"]
    probe = json.loads((tmp_path / "back/probe/data/probe.json").read_text(encoding="utf-8"))
    assert probe["reason"] == ""
    assert probe["cold"] is not None
    (host,) = campaign_data(tmp_path / "back").campaign.hosts
    assert host.labels["restored_from"] == f"{kind} {name}"
    left = [item for item in desk.left() if source not in item]
    assert left == []


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--storage-class", "loop", "--from", "snapshot:none"), 2, "there is no snapshot none"),
        (("--storage-class", "loop", "--from", "claim:none"), 2, "there is no claim none"),
    ],
)
def test_what_a_class_cannot_do_is_refused(
    desk: Desk, options: tuple[str, ...], status: int, words: str
) -> None:
    """In words, and nothing is left."""
    place = ("--namespace", desk.api.namespace, *IMAGE, "--claim-size", "32Mi", "--count", "1")
    done = call("k8s", "lifecycle", *place, *options)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert desk.left() == []
    until(lambda: desk.api.list("VolumeSnapshot") == [])


def test_a_run_on_a_raw_device_is_lost_with_its_pod(desk: Desk, tmp_path: Path) -> None:
    """It has no files on the host; a resume with consent repeats it in another pod.

    Attached again, a loop device cannot be identified.
    """
    profile = tmp_path / "reads.yaml"
    profile.write_text(READS, encoding="utf-8")
    process = desk.start("c", str(profile), *_BLOCK)
    wait_for_run(desk)
    desk.api.delete("Pod", desk.pod()["metadata"]["name"], grace_s=0)
    table, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4, errors
    assert "interrupted" in table
    (claim,) = desk.api.list("PersistentVolumeClaim", f"{MANAGED_BY}=volbench")
    file = f"pvc-{claim['metadata']['uid']}"
    until(lambda: file not in call_program("losetup", "--list"))  # else it is the same device
    refused = call("resume", desk.folder / "c")
    assert refused.returncode == 3, refused.stderr
    consent = ("--allow-destroy", f"loop:{DATA_DEVICE}")
    assert " ".join(consent) in refused.stderr
    done = call("resume", desk.folder / "c", *consent)
    assert done.returncode == 0, done.stderr
    assert list(campaign_data(desk.folder / "c").summary()["status"]) == ["finished"]
