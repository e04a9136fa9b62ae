"""Facts of a pod, from objects as a cloud's API server returns them."""

from __future__ import annotations

from typing import cast

from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.pod_facts import PodFacts

HANDLE = "/subscriptions/0000/resourceGroups/mc/providers/Microsoft.Compute/disks/pvc-1"
OBJECTS: dict[tuple[str, str], Manifest] = {
    ("Node", "aks-pool-0"): {
        "metadata": {
            "labels": {
                "node.kubernetes.io/instance-type": "Standard_D4s_v5",
                "topology.kubernetes.io/zone": "westeurope-1",
            }
        },
        "status": {"nodeInfo": {"systemUUID": "6e0e", "machineID": "4c1d"}},
    },
    ("PersistentVolumeClaim", "c-0"): {
        "metadata": {"uid": "u"},
        "spec": {"storageClassName": "managed-csi", "volumeName": "pvc-1"},
        "status": {"capacity": {"storage": "250Gi"}},
    },
    ("PersistentVolume", "pvc-1"): {
        "spec": {"csi": {"driver": "disk.csi.azure.com", "volumeHandle": HANDLE}}
    },
}
POD: Manifest = {"spec": {"nodeName": "aks-pool-0"}}


class Objects:
    """Objects of a cluster; the cluster-wide ones may be forbidden."""

    def __init__(self, *, allows: bool = True) -> None:
        self._allows = allows
        self.asked: list[str] = []

    def read(self, kind: str, name: str) -> Manifest | None:
        """Return an object."""
        self.asked.append(kind)
        return OBJECTS.get((kind, name))

    def read_if_allowed(self, kind: str, name: str) -> Manifest | None:
        """Return an object, or an empty one."""
        return self.read(kind, name) if self._allows else {}


def facts(objects: Objects) -> PodFacts:
    """Return the facts of pods in a cluster."""
    return PodFacts(cast("Cluster", objects))


def test_node_and_volume_are_described() -> None:
    """Each node is asked for once, however many pods it has."""
    objects = Objects()
    pods = facts(objects)
    for _ in range(2):
        assert pods.of(POD, "c-0") == {
            "machine": "6e0e",
            "machine_type": "Standard_D4s_v5",
            "zone": "westeurope-1",
            "storage_class": "managed-csi",
            "claim_uid": "u",
            "persistent_volume": "pvc-1",
            "volume_size": "250Gi",
            "volume_bytes": 250 * 1024**3,
            "csi_driver": "disk.csi.azure.com",
            "volume_handle": HANDLE,
        }
    assert objects.asked.count("Node") == 1


def test_forbidden_or_missing_objects_leave_facts_empty() -> None:
    """An account of one namespace sees its claim; a pod without a claim has no volume."""
    found = facts(Objects(allows=False)).of(POD, "c-0")
    assert (found["machine"], found["csi_driver"]) == ("", "")
    assert (found["persistent_volume"], found["volume_size"]) == ("pvc-1", "250Gi")
    assert not any(facts(Objects()).of({"spec": {}}, "").values())
