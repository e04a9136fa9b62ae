"""Volumes of a campaign on a cluster, recorded in its lease: each may be a disk that is billed.

A claim that is gone does not tell which volume it had. The lease is the last object of a campaign
that is removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.manifests import campaign_selector
from volbench.present.formatting import printable

_RECORD = "volbench.io/volumes"  # Annotation of the lease
_RETAIN = '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'


@dataclass(frozen=True)
class Disk:
    """A volume that a campaign has claimed."""

    name: str  # of the PersistentVolume
    storage_class: str
    size: str  # its capacity, as a quantity
    claim: str
    handle: str = ""  # name of the disk at the provider; empty if unknown
    policy: str = ""  # reclaim policy; empty if the volume does not exist yet or may not be read
    failure: str = ""  # why the cluster could not delete it

    def __str__(self) -> str:
        """Name the volume, its class and its disk, and why it could not be deleted."""
        disk = f", disk {self.handle}" if self.handle else ""
        failure = f" ({self.failure})" if self.failure else ""
        of_class = self.storage_class or "no class"
        words = f"PV {self.name}: {self.size} of {of_class}{disk}{failure}"
        return " ".join(printable(words).split())  # a line, whatever the cluster answers

    def removal(self, cluster: Cluster) -> str:
        """Return the command that removes a retained volume with its disk."""
        return cluster.kubectl("patch", "pv", self.name, "-p", _RETAIN, is_namespaced=False)


def record_disks(cluster: Cluster, campaign: str, *, replaces: bool = False) -> tuple[Disk, ...]:
    """Record the claimed volumes of a campaign; with `replaces`, recorded ones are gone."""
    lease = cluster.read("Lease", campaign)
    recorded = {disk.name: disk for disk in _recorded(lease)}
    known = {} if replaces else recorded
    claims = map(_claimed, cluster.list("PersistentVolumeClaim", campaign_selector(campaign)))
    disks = known | {disk.name: _looked_up(cluster, disk) or disk for disk in claims}
    if lease is not None and disks != recorded:
        text = json.dumps([asdict(disk) for disk in disks.values()])
        cluster.patch("Lease", campaign, {"metadata": {"annotations": {_RECORD: text}}})
    return tuple(disks.values())


def remaining_disks(cluster: Cluster, disks: Iterable[Disk]) -> list[Disk]:
    """Return the volumes that exist, and those that the account may not see, without a policy."""
    return [found for disk in disks if (found := _looked_up(cluster, disk))]


def _looked_up(cluster: Cluster, disk: Disk) -> Disk | None:
    """Return a volume as it is now; None if it does not exist, no policy if it may not be read."""
    volume = cluster.read_if_allowed("PersistentVolume", disk.name)
    if not volume:
        return None if volume is None else replace(disk, policy="")
    spec, status = volume["spec"], volume.get("status", {})
    return replace(
        disk,
        size=spec.get("capacity", {}).get("storage", disk.size),
        handle=spec.get("csi", {}).get("volumeHandle", ""),
        policy=spec.get("persistentVolumeReclaimPolicy", "Retain"),
        failure=status.get("message", "failed") if status.get("phase") == "Failed" else "",
    )


def _recorded(lease: Manifest | None) -> Iterator[Disk]:
    """Yield the volumes that a lease records; none if something else wrote the record."""
    text = (lease or {}).get("metadata", {}).get("annotations", {}).get(_RECORD, "[]")
    with suppress(ValueError, TypeError, AttributeError):
        for each in json.loads(text):
            yield Disk(**{key: str(value) for key, value in each.items()})


def _claimed(claim: Manifest) -> Disk:
    """Return the volume of a claim; a provisioner names one that is being made by the claim."""
    return Disk(
        claim["spec"].get("volumeName") or f"pvc-{claim['metadata']['uid']}",
        claim["spec"].get("storageClassName", ""),
        claim["spec"]["resources"]["requests"]["storage"],
        claim["metadata"]["name"],
    )
