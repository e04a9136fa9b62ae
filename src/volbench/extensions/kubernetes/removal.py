"""Removal of what a campaign made on a cluster, found by its label; and what outlives it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import click

from volbench.errors import CampaignError, DeadlineError, VolbenchError
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.disks import Disk, record_disks, remaining_disks
from volbench.extensions.kubernetes.leases import held_lease
from volbench.extensions.kubernetes.manifests import (
    CAMPAIGN_LABEL,
    KEEP,
    MANAGED_BY,
    campaign_selector,
)
from volbench.extensions.kubernetes.pod import pod_of
from volbench.extensions.kubernetes.pod_executor import PodConnections
from volbench.extensions.kubernetes.pod_status import POLL_S, node_trouble, why_ended
from volbench.model.campaign.host import Host

# A node ends a pod within the grace period of 5 s, and a provisioner deletes a disk within a
# minute. After an outage of the API server of 0 to 60 s, its controllers and kubelets took 1, 13,
# 37, 54, 69, 75 and 81 s: client-go waits up to 30 s, with jitter up to 60 s, before it watches
# again. Noticed by: tests/extensions/kubernetes/test_removal.py::test_objects_that_stay_are_named
_REMOVE_S = 300.0
# Of a volume after its claim: a provider detaches and deletes a disk within a minute. No verdict
# depends on it. Noticed by: tests/extensions/kubernetes/test_removal.py
_DELETE_S = 120.0
# A provisioner may be making a volume whose claim is deleted. No verdict depends on it.
_LATE_S = 5.0
_SILENT_S = 10.0  # a wait longer than this is explained; no verdict depends on it
# Kinds of a campaign's objects that are removed together. Their owner, which says whether volumes
# are kept, follows once they are gone, and then the leases, which record the volumes.
_KINDS = ("Pod", "PersistentVolumeClaim")
_LAST_KINDS = ("ConfigMap", "Lease")


def campaigns_on(cluster: Cluster) -> list[str]:
    """Return the names of all campaigns that have objects in the namespace."""
    kinds = (*_KINDS, *_LAST_KINDS)
    items = [item for kind in kinds for item in cluster.list(kind, f"{MANAGED_BY}=volbench")]
    names = {item["metadata"].get("labels", {}).get(CAMPAIGN_LABEL, "") for item in items}
    return sorted(names - {""})


def has_volumes_only(cluster: Cluster, campaign: str) -> bool:
    """Return whether a campaign has ended and left the volumes that it was to keep."""
    claims = cluster.list("PersistentVolumeClaim", campaign_selector(campaign))
    kept = [claim for claim in claims if "deletionTimestamp" not in claim["metadata"]]
    return bool(kept) and cluster.read("ConfigMap", campaign) is None


@contextmanager
def lease_of_remains(cluster: Cluster, campaign: str, folder: Path | None = None) -> Iterator[None]:
    """Hold the lease of a campaign to remove, if any is left; refuse an outdated folder."""
    with ExitStack() as stack:
        if (
            cluster.read("ConfigMap", campaign)
            or cluster.read("Lease", campaign)
            or cluster.list("PersistentVolumeClaim", campaign_selector(campaign))
        ):
            stack.enter_context(held_lease(cluster, campaign, folder, waits=False))
        yield


def remove_campaign(cluster: Cluster, campaign: str, *, volumes: bool = False) -> None:
    """Remove what a campaign made, with volumes that were to be kept only if `volumes` says so.

    Volumes that are left, or may be, are printed, however the removal ends.

    Raises:
        CampaignError: a volume was not deleted, or the account may not see whether it was.
    """
    disks: tuple[Disk, ...] = ()
    try:
        owner = cluster.read("ConfigMap", campaign) or {}
        keep = str(owner.get("data", {}).get(KEEP)) == "true" and not volumes
        disks = record_disks(cluster, campaign)
        count = _remove_objects(cluster, campaign, _KINDS[:1] if keep else _KINDS)
        left = disks if keep else _await_deletion(cluster, campaign, disks)
        count += sum(_remove_objects(cluster, campaign, [kind]) for kind in _LAST_KINDS)
    except BaseException:
        cluster.give_up_soon()
        click.echo(
            f"the removal of {campaign} has not ended: its pods, claims and volumes may be left "
            f"and cost money; to remove them:\n  {cluster.command('reap', campaign)}",
            err=True,
        )
        print_disks(cluster, campaign, disks)
        raise
    action = f"removed {campaign} from" if count else f"nothing of {campaign} is in"
    click.echo(f"{action} the namespace {cluster.namespace}", err=True)
    _print_kept(
        [disk for disk in left if keep or disk.policy == "Retain"], cluster, is_claimed=keep
    )
    if not keep:
        require_deletion(cluster, left)


def print_disks(cluster: Cluster, campaign: str, disks: Sequence[Disk] = ()) -> None:
    """Print volumes of a campaign that is left; without any, those that the cluster knows."""
    with suppress(VolbenchError):  # unknown: the campaign is named
        for disk in disks or record_disks(cluster, campaign):
            click.echo(f"  # {disk}", err=True)


def _print_kept(disks: Sequence[Disk], cluster: Cluster, *, is_claimed: bool) -> None:
    """Print volumes that outlive their campaign, each with the command that removes it."""
    if disks:
        click.echo("these volumes remain and may cost money; to remove them:", err=True)
    for disk in disks:
        click.echo(f"  # {disk}", err=True)
        removal = cluster.kubectl("delete", "pvc", disk.claim)
        click.echo(f"  {removal if is_claimed else disk.removal(cluster)}", err=True)


def require_deletion(cluster: Cluster, left: Sequence[Disk]) -> None:
    """Raise if volumes were not deleted with their claims, or if this account cannot see it."""
    hidden = [disk for disk in left if not disk.policy]
    if hidden:
        names = [disk.name for disk in hidden]
        look = cluster.kubectl("get", "pv", *names, is_namespaced=False)
        raise CampaignError(
            "could not check whether disks of removed claims stay and cost money: "
            + "; ".join(map(str, hidden)),
            hint=f"the account may not read PersistentVolumes: ask an administrator for: {look}; "
            "or for the ClusterRole of volbench k8s render --role NAME",
        )
    stuck = [disk for disk in left if disk.policy == "Delete"]
    if stuck:
        look = cluster.kubectl("describe", "pv", stuck[0].name, is_namespaced=False)
        raise CampaignError(
            "not deleted with their claims, and may cost money: " + "; ".join(map(str, stuck)),
            hint=f"see why the driver does not delete them: {look}",
        )


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


def _remove_objects(cluster: Cluster, campaign: str, kinds: Sequence[str]) -> int:
    """Remove the objects of some kinds, wait until they are gone, and count them."""
    begun_s = time.monotonic()
    removed = sum(_delete(cluster, kind, campaign) for kind in kinds)
    for kind in kinds:
        _await_removal(cluster, kind, campaign, since_s=begun_s)
    return removed


def _delete(cluster: Cluster, kind: str, campaign: str) -> int:
    found = [item["metadata"] for item in cluster.list(kind, campaign_selector(campaign))]
    return sum(cluster.delete(kind, item["name"], uid=item["uid"]) for item in found)


def _await_deletion(cluster: Cluster, campaign: str, disks: Sequence[Disk]) -> Sequence[Disk]:
    """Wait until the volumes of removed claims are deleted, and return those that are left."""
    begun_s, is_explained = time.monotonic(), False
    is_new = any(not disk.policy for disk in disks)  # one may have been asked for just now
    while True:
        left = remaining_disks(cluster, disks)
        awaited = [disk.name for disk in left if disk.policy == "Delete" and not disk.failure]
        waited_s = time.monotonic() - begun_s
        is_late = is_new and not left and waited_s < _LATE_S
        if waited_s > _DELETE_S or not (awaited or is_late):
            return left
        if waited_s > _SILENT_S and not is_explained:
            is_explained = True
            names = ", ".join(awaited)
            click.echo(f"waiting until the volumes of {campaign} are deleted: {names}", err=True)
        time.sleep(POLL_S / 2)


def _await_removal(cluster: Cluster, kind: str, campaign: str, *, since_s: float) -> None:
    """Wait until no object of a kind is left of a campaign."""
    is_explained = False
    while remaining := cluster.list(kind, campaign_selector(campaign)):
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
        hint = f"bring the node back; if it is lost: {cluster.kubectl('delete', 'node', node)}"
    return DeadlineError(message, hint=f"{hint}; then {cluster.command('reap', campaign)}")
