"""Removal of what a campaign made on a cluster, found by its label; and what outlives it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from volbench.errors import DeadlineError
from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.manifests import CAMPAIGN_LABEL, MANAGED_BY
from volbench.kubernetes.pod_progress import node_trouble

KEEP = "keep"  # Entry of the campaign's object: whether its volumes stay

_REMOVE_S = 120.0
_POLL_S = 0.5
# Kinds of a campaign's objects, in the order of their removal: the owner last
_KINDS = ("StatefulSet", "Pod", "PersistentVolumeClaim", "Lease", "ConfigMap")


@dataclass(frozen=True)
class RetainedVolume:
    """A volume that outlives its campaign, and costs money."""

    name: str  # of the PersistentVolume
    storage_class: str  # its class
    size: str  # its capacity, as a quantity
    claim: str = ""  # name of a claim that was kept; empty if that is removed
    handle: str = ""  # name of the disk at the provider; empty if unknown

    def command(self, namespace: str) -> str:
        """Return the command that removes it, with its disk."""
        if self.claim:
            return f"kubectl -n {namespace} delete pvc {self.claim}"
        return (
            f"kubectl patch pv {self.name} "
            """-p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'"""
        )


def campaigns_on(cluster: Cluster) -> list[str]:
    """Return the names of all campaigns that have objects in the namespace."""
    found = [item for kind in _KINDS for item in cluster.list(kind, f"{MANAGED_BY}=volbench")]
    names = {item["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "") for item in found}
    return sorted(names - {""})


def has_volumes_only(cluster: Cluster, campaign: str) -> bool:
    """Return whether a campaign has ended and left the volumes that it was to keep."""
    claims = cluster.list("PersistentVolumeClaim", f"{CAMPAIGN_LABEL}={campaign}")
    return bool(claims) and cluster.read("ConfigMap", campaign) is None


def keeps_volumes(cluster: Cluster, campaign: str) -> bool:
    """Return whether the volumes of a campaign shall stay, as its object says."""
    found = cluster.read("ConfigMap", campaign) or {}
    return str(found.get("data", {}).get(KEEP)) == "true"


def remove_campaign(
    cluster: Cluster, campaign: str, *, keep_volumes: bool = False
) -> tuple[int, list[RetainedVolume]]:
    """Remove all objects of a campaign, and wait until they are gone.

    Returns:
        The number of objects removed, and the volumes that are left: kept, or retained by their
        storage class.
    """
    selector = f"{MANAGED_BY}=volbench,{CAMPAIGN_LABEL}={campaign}"
    claims = cluster.list("PersistentVolumeClaim", selector)
    left = _retained(cluster, claims, is_kept=keep_volumes)
    kinds = [kind for kind in _KINDS if not (keep_volumes and kind == "PersistentVolumeClaim")]
    removed = 0
    for kind in kinds:
        for own in cluster.list(kind, selector):
            removed += cluster.delete(kind, own["metadata"]["name"], uid=own["metadata"]["uid"])
    end_s = time.monotonic() + _REMOVE_S
    for kind in kinds:
        while found := cluster.list(kind, selector):
            if time.monotonic() > end_s:
                raise _not_removed(cluster, kind, found, campaign)
            time.sleep(_POLL_S)
    return removed, left


def _not_removed(cluster: Cluster, kind: str, left: list[Manifest], campaign: str) -> DeadlineError:
    """Return the error of objects that the cluster does not remove, with the node's trouble."""
    names = ", ".join(item["metadata"]["name"] for item in left)
    message = f"the cluster has not removed the {kind} {names} within {_REMOVE_S:g} s"
    hint = "see what holds it: kubectl describe, Events and Finalizers"
    node = left[0].get("spec", {}).get("nodeName", "") if kind == "Pod" else ""
    if node:
        message += f": on its node {node}: {node_trouble(cluster.read_if_allowed('Node', node))}"
        hint = f"bring the node back; if it is lost: kubectl delete node {node}"
    return DeadlineError(message, hint=f"{hint}; then volbench k8s reap {campaign}")


def _retained(cluster: Cluster, claims: list[Manifest], *, is_kept: bool) -> list[RetainedVolume]:
    """Return the volumes of claims that outlive the claims, or all if these are kept."""
    found = []
    for claim in claims:
        name = claim["spec"].get("volumeName", "")
        volume = cluster.read_if_allowed("PersistentVolume", name) if name else None
        spec = (volume or {}).get("spec", {})
        if not name or not (is_kept or spec.get("persistentVolumeReclaimPolicy") == "Retain"):
            continue
        requested = claim["spec"]["resources"]["requests"]["storage"]
        found.append(
            RetainedVolume(
                name,
                claim["spec"].get("storageClassName", ""),
                spec.get("capacity", {}).get("storage", requested),
                claim=claim["metadata"]["name"] if is_kept else "",
                handle=spec.get("csi", {}).get("volumeHandle", ""),
            )
        )
    return found
