"""A namespace of a real cluster for each module, and a check that tests leave nothing in it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.command_line import call, start
from tests.extensions.kubernetes.image import NAME
from tests.extensions.kubernetes.local_cluster import LocalCluster
from tests.waiting import sleep_by, until
from volbench.extensions.kubernetes.cluster import Cluster, Manifest, open_cluster
from volbench.extensions.kubernetes.manifests import access_manifests
from volbench.store.journal import read_history

IMAGE = ("--pod", f"image={NAME}", "--pod", "image-pull-policy=Never", "--pod", "run-as-user=0")
SHORT = ("--set", "runtime=1s", "--set", "time_based=1", "--set", "size=8m", "--yes")
_KINDS = ("Pod", "PersistentVolumeClaim", "ConfigMap", "Lease")
_OWN_CONFIG = "kube-root-ca.crt"


@dataclass(frozen=True)
class Desk:
    """A user with a connection of the administrator, in the namespace of the module."""

    cluster: LocalCluster
    api: Cluster
    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, name: str, profile: str, *arguments: str) -> CompletedProcess[str]:
        """Run a profile on the cluster."""
        return call("run", *self.arguments(name, profile, *arguments), cwd=self.folder)

    def start(self, name: str, profile: str, *arguments: str) -> subprocess.Popen[str]:
        """Start to run a profile in a process of its own."""
        return self._process("run", *self.arguments(name, profile, *arguments))

    def resume(self, name: str) -> subprocess.Popen[str]:
        """Start to resume a campaign in a process of its own."""
        return self._process("resume", name)

    def _process(self, *arguments: str) -> subprocess.Popen[str]:
        process = start(*arguments, cwd=self.folder)
        self.processes.append(process)
        return process

    def arguments(self, name: str, profile: str, *arguments: str) -> list[str]:
        """Return the arguments of a run on the cluster."""
        place = ("--k8s", "--namespace", self.api.namespace, "-o", name)
        size = () if "--claim-size" in arguments else ("--claim-size", "64Mi")
        return [profile, *place, *IMAGE, *size, *arguments]

    def left(self) -> list[str]:
        """Return the objects in the namespace that are not the cluster's own."""
        names = [
            f"{kind} {item['metadata']['name']}" for kind in _KINDS for item in self.api.list(kind)
        ]
        return [name for name in names if not name.endswith(_OWN_CONFIG)]

    def pod(self) -> Manifest:
        """Return the only pod."""
        (found,) = self.api.list("Pod")
        return found


def storage_class(name: str, *, waits: bool = False, retains: bool = False) -> Manifest:
    """Return a storage class of volumes that are folders of the node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/host-path",
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        "reclaimPolicy": "Retain" if retains else "Delete",
    }


@contextmanager
def block_volume(api: Cluster, device: str) -> Iterator[None]:
    """Offer a device of the node as the only volume of the storage class block."""
    node = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["127.0.0.1"]}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "block"},
            "spec": {
                "capacity": {"storage": "32Mi"},
                "volumeMode": "Block",
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "block",
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": device},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
            },
        }
    )
    yield
    api.delete("PersistentVolume", "block")
    until(lambda: api.read("PersistentVolume", "block") is None)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the waits of the test take no time, and collect them: they alone move its clock."""
    waits: list[float] = []
    sleep_by(monkeypatch, waits.append)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0 + sum(waits))
    return waits


@pytest.fixture(scope="session")
def classes(cluster: LocalCluster) -> Iterator[None]:
    """Make the storage classes fast, waiting and retained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        api = open_cluster()
        api.create(storage_class("fast"))
        api.create(storage_class("waiting", waits=True))
        api.create(storage_class("retained", retains=True))
        static = {"provisioner": "kubernetes.io/no-provisioner"}
        api.create(storage_class("block", waits=True) | static)
        api.create(storage_class("stuck") | {"provisioner": "example.com/none"})
        api.close()
        yield


@pytest.fixture(scope="module")
def namespace(cluster: LocalCluster, classes: None, request: pytest.FixtureRequest) -> str:
    """Make a namespace that has the name of the module."""
    del classes
    name = str(request.module.__name__).rpartition(".")[2].replace("_", "-")
    api = open_cluster(namespace=name)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    until(lambda: api.read("ServiceAccount", "default"))
    api.close()
    assert cluster.port
    return name


@pytest.fixture
def desk(cluster: LocalCluster, namespace: str, tmp_path: Path) -> Iterator[Desk]:
    """Hand out a desk; afterwards nothing that volbench made is left in the namespace.

    What a failed test leaves is removed, so that no other fails for it.
    """
    api = open_cluster(namespace=namespace)
    found = Desk(cluster, api, tmp_path)
    yield found
    for process in found.processes:
        if process.poll() is None:
            kill(process)
    left = found.left()
    if left:
        call("k8s", "reap", "--namespace", namespace)
    api.close()
    assert left == []


@pytest.fixture
def account(desk: Desk) -> Iterator[None]:
    """Make the service account with the least rights, and nothing more."""
    manifests: list[Any] = [*access_manifests(namespace=desk.api.namespace)]
    for manifest in manifests:
        desk.api.create(manifest)
    yield
    for manifest in manifests:
        desk.api.delete(manifest["kind"], manifest["metadata"]["name"])


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a controller as a power failure would."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Write a profile of one short job."""
    path = tmp_path / "one.yaml"
    path.write_text(
        "name: one\n"
        "defaults: {size: 4m, runtime: 1s, time_based: 1, ioengine: psync, direct: 1}\n"
        "jobs:\n  a: {rw: randwrite, bs: 4k}\n"
    )
    return path


def credentials(desk: Desk, name: str) -> Path:
    """Return a kubeconfig file with a token of a service account."""
    path = f"api/v1/namespaces/{desk.api.namespace}/serviceaccounts/{name}/token"
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = desk.api.request("POST", path, body={**kind, "spec": {"expirationSeconds": 3600}})
    content = yaml.safe_load(desk.cluster.kubeconfig.read_text(encoding="utf-8"))
    content["users"][0]["user"] = {"token": answer["status"]["token"]}
    file = desk.folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def wait_for_run(desk: Desk) -> None:
    """Wait until the journal says that the process of the only run was started."""
    journal = desk.folder / "c" / "journal.jsonl"

    def has_started() -> bool:
        records = read_history(journal).processes.values() if journal.exists() else ()
        return any(record.get("launched", True) for record in records)

    until(has_started)
