"""Removal of what a campaign made on a cluster, found by its label; and what outlives it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from volbench.errors import DeadlineError, quoted
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.leases import held_lease
from volbench.extensions.kubernetes.manifests import CAMPAIGN_LABEL, KEEP, MANAGED_BY
from volbench.extensions.kubernetes.pod import pod_of
from volbench.extensions.kubernetes.pod_executor import PodConnections
from volbench.extensions.kubernetes.pod_status import POLL_S, node_trouble, why_ended
from volbench.model.campaign.host import Host

# A node ends a pod within the grace period of 5 s, and a provisioner deletes a disk within a
# minute. After an outage of the API server of 0 to 60 s, its controllers and kubelets took 1, 13,
# 37, 54, 69, 75 and 81 s: client-go waits up to 30 s, with jitter up to 60 s, before it watches
# again. Noticed by: tests/extensions/kubernetes/test_removal.py::test_objects_that_stay_are_named
_REMOVE_S = 300.0
_SILENT_S = 10.0  # a wait longer than this is explained; no verdict depends on it
# Kinds of a campaign's objects, in the order of their removal: the owner last. Its leases follow
# once all others are gone.
_KINDS = ("StatefulSet", "Pod", "PersistentVolumeClaim", "ConfigMap")


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
    kinds = (*_KINDS, "Lease")
    items = [item for kind in kinds for item in cluster.list(kind, f"{MANAGED_BY}=volbench")]
    names = {item["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "") for item in items}
    return sorted(names - {""})


def has_volumes_only(cluster: Cluster, campaign: str) -> bool:
    """Return whether a campaign has ended and left the volumes that it was to keep."""
    claims = cluster.list("PersistentVolumeClaim", f"{CAMPAIGN_LABEL}={campaign}")
    return bool(claims) and cluster.read("ConfigMap", campaign) is None


@contextmanager
def lease_of_remains(cluster: Cluster, campaign: str, folder: Path | None = None) -> Iterator[None]:
    """Hold the lease of a campaign that is to be removed, unless nothing of it is there.

    Args:
        folder: the campaign folder of which this is asked; an outdated copy of it is refused.
    """
    with ExitStack() as stack:
        if cluster.read("ConfigMap", campaign) or cluster.read("Lease", campaign):
            stack.enter_context(held_lease(cluster, campaign, folder, waits=False))
        yield


def remove_campaign(cluster: Cluster, campaign: str, *, volumes: bool = False) -> None:
    """Remove what a campaign made, with volumes that were to be kept only if `volumes` says so.

    What is left is printed.
    """
    owner = cluster.read("ConfigMap", campaign) or {}
    keep = str(owner.get("data", {}).get(KEEP)) == "true" and not volumes
    count, left = _remove_objects(cluster, campaign, keep_volumes=keep)
    action = f"removed {campaign} from" if count else f"nothing of {campaign} is in"
    click.echo(f"{action} the namespace {cluster.namespace}", err=True)
    if left:
        click.echo("these volumes remain and may cost money; to remove them:", err=True)
    for volume in left:
        disk = f", disk {volume.handle}" if volume.handle else ""
        click.echo(f"  # {volume.size} of {volume.storage_class}{disk}", err=True)
        click.echo(f"  {volume.command(cluster.namespace)}", err=True)


@contextmanager
def removed_pods(
    hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
) -> Iterator[Sequence[Host]]:
    """Yield machines and the hosts whose pods are there; then remove the campaigns of `planned`."""
    with PodConnections() as connections, ExitStack() as stack:
        all_pods = [pod for host in (*hosts, *planned) if (pod := pod_of(host))]
        pods = {pod.campaign: pod for pod in all_pods}
        for campaign, pod in pods.items():
            stack.enter_context(lease_of_remains(connections.cluster(pod), campaign, root))
        yield [
            host
            for host in hosts
            if (own := pod_of(host)) is None
            or not why_ended(connections.cluster(own).read("Pod", own.name), own.uid)
        ]
        for campaign, pod in pods.items() if planned else ():
            remove_campaign(connections.cluster(pod), campaign)


def _remove_objects(
    cluster: Cluster, campaign: str, *, keep_volumes: bool
) -> tuple[int, list[RetainedVolume]]:
    """Remove all objects of a campaign, and wait until they are gone.

    Return their number and the volumes that are left: kept, or retained by their storage class.
    """
    selector = _selector(campaign)
    claims = cluster.list("PersistentVolumeClaim", selector)
    left = _retained(cluster, claims, is_kept=keep_volumes)
    kinds = [kind for kind in _KINDS if not (keep_volumes and kind == "PersistentVolumeClaim")]
    removed, begun_s = 0, time.monotonic()
    for together in (kinds, ["Lease"]):
        for kind in together:
            for item in cluster.list(kind, selector):
                name, uid = item["metadata"]["name"], item["metadata"]["uid"]
                removed += cluster.delete(kind, name, uid=uid)
        for kind in together:
            _await_removal(cluster, kind, campaign, since_s=begun_s)
    return removed, left


def _selector(campaign: str) -> str:
    return f"{MANAGED_BY}=volbench,{CAMPAIGN_LABEL}={campaign}"


def _await_removal(cluster: Cluster, kind: str, campaign: str, *, since_s: float) -> None:
    """Wait until no object of a kind is left of a campaign."""
    is_explained = False
    while remaining := cluster.list(kind, _selector(campaign)):
        waited_s = time.monotonic() - since_s
        if waited_s > _REMOVE_S:
            raise _not_removed(cluster, kind, remaining, campaign)
        if waited_s > _SILENT_S and not is_explained:
            is_explained = True
            click.echo(f"waiting until the cluster has removed the {kind} of {campaign}", err=True)
        time.sleep(POLL_S / 2)


def _not_removed(cluster: Cluster, kind: str, left: list[Manifest], campaign: str) -> DeadlineError:
    """Return the error of objects that the cluster does not remove, with the node's trouble."""
    names = ", ".join(item["metadata"]["name"] for item in left)
    message = f"the cluster has not removed the {kind} {names} within {_REMOVE_S:g} s"
    hint = "see what holds it: kubectl describe, Events and Finalizers"
    node = left[0].get("spec", {}).get("nodeName", "") if kind == "Pod" else ""
    if node:
        message += f": on its node {node}: {node_trouble(cluster.read_if_allowed('Node', node))}"
        hint = f"bring the node back; if it is lost: kubectl delete node {node}"
    return DeadlineError(
        message, hint=f"{hint}; then volbench k8s reap {quoted(campaign)} {cluster.options}"
    )


def _retained(cluster: Cluster, claims: list[Manifest], *, is_kept: bool) -> list[RetainedVolume]:
    """Return the volumes of claims that outlive the claims, or all if these are kept."""
    retained = []
    for claim in claims:
        name = claim["spec"].get("volumeName", "")
        volume = cluster.read_if_allowed("PersistentVolume", name) if name else None
        spec = (volume or {}).get("spec", {})
        if not name or not (is_kept or spec.get("persistentVolumeReclaimPolicy") == "Retain"):
            continue
        requested = claim["spec"]["resources"]["requests"]["storage"]
        retained.append(
            RetainedVolume(
                name,
                claim["spec"].get("storageClassName", ""),
                spec.get("capacity", {}).get("storage", requested),
                claim=claim["metadata"]["name"] if is_kept else "",
                handle=spec.get("csi", {}).get("volumeHandle", ""),
            )
        )
    return retained
