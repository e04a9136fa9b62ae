"""What a cluster says of a pod: the machine of its node, and the disk behind its claim."""

from __future__ import annotations

from typing import Any

from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.cluster_spec import quantity_bytes

_ZONE = "topology.kubernetes.io/zone"
_MACHINE_TYPE = "node.kubernetes.io/instance-type"


class PodFacts:
    """Facts of pods; each node is asked for once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, dict[str, str]] = {}

    def of(self, pod: Manifest, claim: str) -> dict[str, Any]:
        """Return the facts of a pod and of its claim, by the fields of `Pod`; empty if unknown.

        ``storage_class`` and ``volume_size``, a quantity, are among them.
        """
        return self.of_node(pod["spec"].get("nodeName", "")) | self._of_claim(claim)

    def of_node(self, name: str) -> dict[str, str]:
        """Return machine, machine type and zone of a node."""
        if name not in self._nodes:
            node = self._cluster.read_if_allowed("Node", name) or {}
            labels = node.get("metadata", {}).get("labels", {})
            info = node.get("status", {}).get("nodeInfo", {})
            self._nodes[name] = {
                "machine": str(info.get("systemUUID") or info.get("machineID") or ""),
                "machine_type": str(labels.get(_MACHINE_TYPE, "")),
                "zone": str(labels.get(_ZONE, "")),
            }
        return self._nodes[name]

    def _of_claim(self, name: str) -> dict[str, Any]:
        claim = (self._cluster.read("PersistentVolumeClaim", name) if name else None) or {}
        spec = claim.get("spec", {})
        volume_name = str(spec.get("volumeName", ""))
        volume = (
            self._cluster.read_if_allowed("PersistentVolume", volume_name) if volume_name else {}
        )
        size = str(claim.get("status", {}).get("capacity", {}).get("storage", ""))
        csi = (volume or {}).get("spec", {}).get("csi", {})
        return {
            "storage_class": str(spec.get("storageClassName", "")),
            "claim_uid": str(claim.get("metadata", {}).get("uid", "")),
            "persistent_volume": volume_name,
            "volume_size": size,
            "volume_bytes": quantity_bytes(size) or None,
            "csi_driver": str(csi.get("driver", "")),
            "volume_handle": str(csi.get("volumeHandle", "")),
        }
