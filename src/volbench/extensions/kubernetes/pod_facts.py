"""Facts of a pod that the cluster knows: the machine of its node, and the disk of its claim."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import click

from volbench.errors import InputError
from volbench.extensions.kubernetes.api_values import quantity_bytes
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.model.profile.profile_settings import Limits
from volbench.plan.profile.limit_sources import class_limits

_ZONE = "topology.kubernetes.io/zone"
_PROVISIONER = "pv.kubernetes.io/provisioned-by"  # Absent where an administrator made the volume
_MACHINE_TYPE = "node.kubernetes.io/instance-type"


def container_limits(pod: Manifest) -> Mapping[str, str]:
    """Return the limits of the only container of a pod, by resource."""
    (container,) = pod["spec"].get("containers") or [Manifest()]
    limits: Mapping[str, str] = container.get("resources", {}).get("limits", {})
    return limits


class PodFacts:
    """Facts of pods; each node, volume and class is read once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._read = cache(cluster.read_if_allowed)

    def of(self, pod: Manifest, claim: str) -> dict[str, Any]:
        """Return the facts of a pod and of its claim, by the fields of `Pod`; empty if unknown.

        ``storage_class`` and ``volume_size``, a quantity, are among them.
        """
        limit = container_limits(pod).get("ephemeral-storage", "")
        own = {"ephemeral_limit_bytes": quantity_bytes(limit) or None}
        return own | self._of_node(pod["spec"].get("nodeName", "")) | self._of_claim(claim)

    def _of_node(self, name: str) -> dict[str, str]:
        """Return machine, machine type and zone of a node."""
        node = self._read("Node", name) or {}
        labels = node.get("metadata", {}).get("labels", {})
        info = node.get("status", {}).get("nodeInfo", {})
        return {
            "machine": str(info.get("systemUUID") or info.get("machineID") or ""),
            "machine_type": str(labels.get(_MACHINE_TYPE, "")),
            "zone": str(labels.get(_ZONE, "")),
        }

    def limits(self, facts: dict[str, Any]) -> Limits | None:
        """Return the limits that the class and the volume of a claim ask for; None if unknown."""
        name, volume = facts["storage_class"], self._volume(facts["persistent_volume"])
        is_of_class = _PROVISIONER in volume.get("metadata", {}).get("annotations", {})
        settings = (self._read("StorageClass", name) if is_of_class else None) or {}
        # The volume's own attributes are those that it was made with: the class may be a new one.
        own = volume.get("spec", {}).get("csi", {}).get("volumeAttributes") or {}
        parameters = {
            key.lower(): str(value)
            for given in (settings.get("parameters") or {}, own)
            for key, value in given.items()
        }
        if not settings and "skuname" not in parameters:
            return None
        try:
            limits = class_limits(
                facts["csi_driver"],
                parameters,
                size_bytes=facts["volume_bytes"],
                machine=facts["machine_type"],
            )
        except InputError as error:
            click.echo(f"note: the storage class {name} gives no limits: {error.message}", err=True)
            return None
        origin = f"StorageClass {name}" if settings else f"volume {facts['persistent_volume']}"
        return limits and limits.model_copy(update={"origin": origin})

    def _volume(self, name: str) -> Manifest:
        return (self._read("PersistentVolume", name) if name else None) or {}

    def _of_claim(self, name: str) -> dict[str, Any]:
        claim = (self._cluster.read("PersistentVolumeClaim", name) if name else None) or {}
        spec = claim.get("spec", {})
        volume_name = str(spec.get("volumeName", ""))
        size = str(claim.get("status", {}).get("capacity", {}).get("storage", ""))
        volume = self._volume(volume_name).get("spec", {})
        csi = volume.get("csi", {})
        return {
            "storage_class": str(spec.get("storageClassName", "")),
            "claim_uid": str(claim.get("metadata", {}).get("uid", "")),
            "persistent_volume": volume_name,
            "volume_size": size,
            "volume_bytes": quantity_bytes(size) or None,
            "csi_driver": str(csi.get("driver", "")),
            "volume_handle": str(csi.get("volumeHandle", "")),
        }
