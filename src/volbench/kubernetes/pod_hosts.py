"""Placement of a campaign on a cluster: its objects are created, and its pods become hosts."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from volbench.engine.hosts.mounts import read_mounts
from volbench.errors import DeadlineError, InputError, TransportError
from volbench.execute.protocol import Executor
from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.cluster_spec import ClusterSpec, VolumeSource
from volbench.kubernetes.manifests import CONTAINER, objects, pod_names, role_paths
from volbench.kubernetes.pod_progress import Pending, why_pending
from volbench.kubernetes.removal import KEEP
from volbench.model.campaign.host import Host, Pod

POLL_S = 1.0
PODS = "pods"  # Entry of the campaign's object: the manifests of its pods, to make one again

# Receives the name of a host and why it is not ready, whenever that changes
OnReason = Callable[[str, str], None]


def in_random_order(spec: ClusterSpec, *, seed: int | None) -> ClusterSpec:
    """Return a specification with its storage classes shuffled.

    Args:
        seed: seed of the order; None for a random one.
    """
    classes = list(spec.storage_classes)
    random.Random(seed).shuffle(classes)  # noqa: S311 - an order, not a secret
    return replace(spec, storage_classes=tuple(classes))


def create_objects(cluster: Cluster, spec: ClusterSpec) -> None:
    """Create all objects of a campaign; see `removal.remove_campaign`."""
    owner, *_ = objects(spec)
    pods = [manifest for manifest in objects(spec) if manifest["kind"] == "Pod"]
    owner["data"] = {KEEP: json.dumps(spec.keep), PODS: json.dumps(pods)}
    created = cluster.create(owner)
    for manifest in objects(spec, owner_uid=created["metadata"]["uid"])[1:]:
        cluster.create(manifest)


def check_objects(cluster: Cluster, spec: ClusterSpec) -> None:
    """Let the cluster check all objects of a campaign without creating them."""
    for name in dict.fromkeys(spec.storage_classes):
        if cluster.read_if_allowed("StorageClass", name) is None:
            raise InputError(
                f"the cluster has no storage class {name}",
                hint="list them: kubectl get storageclass; print some: volbench k8s storageclass",
            )
    for manifest in objects(spec):
        cluster.create(manifest, dry_run=True)


def host_names(spec: ClusterSpec) -> list[str]:
    """Return the name of the host of each pod: its storage class, numbered if it has several."""
    classes = [storage_class or _unnamed(spec) for _, storage_class, _ in pod_names(spec)]
    totals, seen = Counter(classes), Counter[str]()
    names = []
    for name in classes:
        names.append(f"{name}-{seen[name]}" if totals[name] > 1 else name)
        seen[name] += 1
    return names


def _unnamed(spec: ClusterSpec) -> str:
    return "node-disk" if spec.source is VolumeSource.NODE else "default"


def wait_for_hosts(
    cluster: Cluster, spec: ClusterSpec, *, timeout_s: float, on_reason: OnReason
) -> list[Host]:
    """Wait until all pods of a campaign are ready, and return them as hosts."""
    names = host_names(spec)
    places = dict(zip(names, pod_names(spec), strict=True))
    wanted = {name: (pod, claim) for name, (pod, _, claim) in places.items()}
    pods = ready_pods(cluster, wanted, timeout_s=timeout_s, on_reason=on_reason)
    return [_host(cluster, spec, name, pods[name], places[name]) for name in names]


def ready_pods(
    cluster: Cluster,
    wanted: Mapping[str, tuple[str, str]],
    *,
    timeout_s: float,
    on_reason: OnReason,
) -> dict[str, Manifest]:
    """Wait until pods are ready, and return them by the names of their hosts."""
    end_s = time.monotonic() + timeout_s
    ready: dict[str, Manifest] = {}
    shown: dict[str, str] = {}
    while len(ready) < len(wanted):
        for name, (pod_name, claim) in wanted.items():
            if name in ready:
                continue
            pod = cluster.read("Pod", pod_name)
            pending = why_pending(pod, _warnings(cluster, pod_name, claim))
            if pending is None and pod is not None:
                ready[name] = pod
            elif pending is not None:
                if shown.get(name) != pending.words:
                    on_reason(name, pending.words)
                shown[name] = pending.words
                _raise_if_over(name, pod_name, pending, is_late=time.monotonic() > end_s)
        time.sleep(POLL_S if len(ready) < len(wanted) else 0)
    return ready


def _raise_if_over(name: str, pod: str, pending: Pending, *, is_late: bool) -> None:
    hint = f"see: kubectl describe pod {pod}"
    if pending.is_final:
        raise TransportError(f"the pod of {name} cannot start: {pending.words}", hint=hint)
    if is_late:
        raise DeadlineError(
            f"the pod of {name} is not ready: {pending.words}",
            hint=f"{hint}; or wait longer: --pod-timeout",
        )


def _warnings(cluster: Cluster, pod: str, claim: str) -> list[Manifest]:
    """Return the warnings about a pod, its claim and the set that creates it, oldest first."""
    found: list[Manifest] = []
    for name in dict.fromkeys(filter(None, (pod, claim, pod.rpartition("-")[0]))):
        found += cluster.list("Event", fields=f"involvedObject.name={name},type=Warning")
    return sorted(found, key=lambda event: str(event.get("lastTimestamp") or ""))


def _host(
    cluster: Cluster, spec: ClusterSpec, name: str, pod: Manifest, key: tuple[str, str, str]
) -> Host:
    _, storage_class, claim = key
    labels = {"storage_class": storage_class or _actual_class(cluster, claim) or _unnamed(spec)}
    return Host(
        name=name,
        volumes=role_paths(spec),
        labels=labels | {"node": pod["spec"]["nodeName"]},
        pod=Pod(
            name=key[0],
            namespace=cluster.namespace,
            uid=pod["metadata"]["uid"],
            container=CONTAINER,
            node=pod["spec"]["nodeName"],
            claim=claim,
            campaign=spec.campaign,
            context=cluster.context,
        ),
    )


def _actual_class(cluster: Cluster, claim: str) -> str:
    """Return the storage class that the cluster chose for a claim without one."""
    found = cluster.read("PersistentVolumeClaim", claim) if claim else None
    return str((found or {}).get("spec", {}).get("storageClassName", ""))


def check_mounts(executor: Executor, host: Host) -> None:
    """Check that the volumes of a pod are there: fio makes missing folders, on another disk."""
    mounted = {mount.mount_point for mount in read_mounts(executor)}
    for role, path in host.volumes.items():
        found = executor.stat(path)
        if path not in mounted and (found is None or found.kind != "block"):
            raise InputError(
                f"the volume {role} of {host.name} is not mounted at {path}",
                hint=f"see: kubectl describe pod {host.pod.name if host.pod else ''}",
            )
