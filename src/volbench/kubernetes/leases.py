"""Leases as locks on the devices of a node.

Pods of one node share its devices, and see no files of each other: their locks are objects of the
cluster. A lock is void once the object that owns its campaign is gone.
"""

from __future__ import annotations

from hashlib import sha256

from volbench.kubernetes.cluster import Cluster, Manifest, RequestError
from volbench.kubernetes.manifests import CAMPAIGN_LABEL, campaign_labels

_SHARED_LABEL = "volbench.io/filesystem"


class LeaseLocks:
    """Locks on the devices and file systems of a node."""

    def __init__(self, cluster: Cluster, *, node: str, campaign: str) -> None:
        self._cluster = cluster
        self._node = node
        self._campaign = campaign

    def answer(self, verb: str, name: str, key: str) -> str:
        """Take, free, show, join or leave a lock; see `protocol.SharedLocks`."""
        digest = sha256(f"{self._node} {name}".encode()).hexdigest()[:16]
        lock = f"volbench-lock-{digest}"
        share = f"volbench-shared-{digest}-{sha256(key.encode()).hexdigest()[:16]}"
        match verb:
            case "take":
                return self._take(lock, key)
            case "show":
                return lease_holder(self._cluster.read("Lease", lock))
            case "free":
                if lease_holder(self._cluster.read("Lease", lock)) == key:
                    self._cluster.delete("Lease", lock)
            case "join":
                return self._join(share, key, digest)
            case "leave":
                self._cluster.delete("Lease", share)
        return ""

    def _take(self, lock: str, key: str) -> str:
        """Create a lock and return "", or the key of its holder."""
        for _ in range(3):
            try:
                self._cluster.create(self._lease(lock, key))
            except RequestError as error:
                if error.status != 409:
                    raise
            else:
                return ""
            found = self._cluster.read("Lease", lock)
            if found is None:
                continue
            if lease_holder(found) == key or not self._is_void(found):
                return "" if lease_holder(found) == key else lease_holder(found)
            self._cluster.delete("Lease", lock, uid=found["metadata"]["uid"])
        return "unknown"

    def _join(self, share: str, key: str, digest: str) -> str:
        try:
            self._cluster.create(self._lease(share, key, {_SHARED_LABEL: digest}))
        except RequestError as error:
            if error.status != 409:
                raise
        found = self._cluster.list("Lease", f"{_SHARED_LABEL}={digest}")
        others = {lease_holder(lease) for lease in found if not self._is_void(lease)} - {key}
        return "\n".join(sorted(others))

    def _is_void(self, lease: Manifest) -> bool:
        """Return whether the campaign of a lease is gone."""
        owner = lease["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "")
        return not owner or self._cluster.read("ConfigMap", owner) is None

    def _lease(self, name: str, key: str, labels: Manifest | None = None) -> Manifest:
        return lease_manifest(name, self._campaign, holder=key, labels=labels or {})


def lease_manifest(name: str, campaign: str, *, holder: str, labels: Manifest) -> Manifest:
    """Return a Lease of a campaign."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "labels": {**campaign_labels(campaign), **labels}},
        "spec": {"holderIdentity": holder},
    }


def lease_holder(lease: Manifest | None) -> str:
    """Return who holds a lease; empty if nobody does."""
    return str((lease or {}).get("spec", {}).get("holderIdentity", ""))
