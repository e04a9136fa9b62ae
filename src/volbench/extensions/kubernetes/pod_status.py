"""State of pods: waiting for them, and why one is not ready or has ended."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import click

from volbench.errors import DeadlineError, TransportError
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.manifests import MANAGED_BY

# Two requests, however many pods there are: a reason appears at once, and an API server takes
# hundreds of requests a second. No verdict depends on it.
POLL_S = 1.0

# Reasons of a waiting container that do not pass by themselves, or were retried already
_HOPELESS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)

_PROGRESS = frozenset({"ContainerCreating", "PodInitializing"})

_SHOWN = 3  # hosts whose pods are pending for the same reason


@dataclass(frozen=True)
class Pending:
    """Why a pod is not ready."""

    reason: str  # the cluster's words, such as ``FailedScheduling: 0/3 nodes are available``
    is_final: bool = False  # whether waiting does not help


def has_ended(pod: Manifest) -> bool:
    """Return whether all containers of a pod have ended."""
    return pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}


def why_pending(pod: Manifest | None, events: Sequence[Manifest]) -> Pending | None:
    """Return the reason why a pod is missing or not ready; None if it is ready."""
    latest = _latest_warning(events)
    if pod is None:
        return Pending(latest or "not created yet", "exceeded quota" in latest)
    status = pod.get("status", {})
    if has_ended(pod):
        owners = pod["metadata"].get("ownerReferences", ())  # a StatefulSet replaces its pods
        return Pending(_end_reason(pod), all(owner["kind"] != "StatefulSet" for owner in owners))
    for container in status.get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting", {})
        reason = waiting.get("reason", "")
        if reason and reason not in _PROGRESS:
            return Pending(_reason_words(reason, waiting.get("message", "")), reason in _HOPELESS)
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False" and not _is_conflict(scheduled):
        delay = _reason_words("FailedScheduling", scheduled.get("message", ""))
        claims = [event for event in events if event["reason"] == "ProvisioningFailed"]
        return Pending(_latest_warning(claims) or delay)
    return Pending(latest or "the container is being created")


def ready_pods(
    cluster: Cluster,
    wanted: Mapping[str, tuple[str, str]],
    *,
    timeout_s: float,
    more_time: str = "; or wait longer: --pod timeout=30m",
) -> dict[str, Manifest]:
    """Wait until the pods of hosts are ready; print why they are not.

    Args:
        wanted: each host with the names of its pod and its claim.
    """
    end_s = time.monotonic() + timeout_s
    ready: dict[str, Manifest] = {}
    printed: dict[str, str] = {}
    while len(ready) < len(wanted):
        pods, warnings = _pods(cluster, [name for name, _ in wanted.values()]), _warnings(cluster)
        new: defaultdict[str, list[str]] = defaultdict(list)  # reason to hosts
        try:
            for host, (name, claim) in wanted.items():
                if host in ready:
                    continue
                pod = pods.get(name)
                pending = why_pending(pod, _about(warnings, name, claim))
                if pending is None and pod is not None:
                    ready[host] = pod
                    continue
                if pending is not None and printed.get(host) != pending.reason:
                    new[pending.reason].append(host)
                    printed[host] = pending.reason
                what = f"describe pod {name}" if pod else "get events"
                hint = f"see: kubectl -n {cluster.namespace} {what}"
                if pending is not None and pending.is_final:
                    raise TransportError(
                        f"the pod of {host} cannot start: {pending.reason}", hint=hint
                    )
                if time.monotonic() > end_s:
                    raise DeadlineError(
                        f"the pod of {host} is not ready: {printed.get(host, 'it was deleted')}",
                        hint=hint + more_time,
                    )
        finally:
            for reason, hosts in new.items():
                more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
                click.echo(f"{', '.join(hosts[:_SHOWN])}{more}: Pending: {reason}", err=True)
        time.sleep(POLL_S if len(ready) < len(wanted) else 0)
    return ready


def _pods(cluster: Cluster, names: Sequence[str]) -> dict[str, Manifest]:
    """Return the pods that exist by name, in one request."""
    if len(names) > 1:
        listed = cluster.list("Pod", f"{MANAGED_BY}=volbench")
        return {pod["metadata"]["name"]: pod for pod in listed}
    pod = cluster.read("Pod", names[0])
    return {} if pod is None else {names[0]: pod}


def _warnings(cluster: Cluster) -> dict[str, list[Manifest]]:
    """Return the warnings about each object of the namespace, by its name, in one request."""
    about: defaultdict[str, list[Manifest]] = defaultdict(list)
    for event in cluster.list("Event", fields="type=Warning"):
        if not _is_conflict(event):
            about[event["involvedObject"].get("name", "")].append(event)  # some are about no object
    return about


def _about(warnings: Mapping[str, list[Manifest]], pod: str, claim: str) -> list[Manifest]:
    """Return the warnings about a pod, its claim and the set that creates it, oldest first."""
    names = dict.fromkeys((pod, claim, pod.rpartition("-")[0]))
    return sorted((event for name in names for event in warnings.get(name, ())), key=_last_seen)


def _is_conflict(event: Manifest) -> bool:
    """Return whether two components changed an object at once: the later one tries again."""
    return "the object has been modified" in event.get("message", "")


def _last_seen(event: Manifest) -> str:
    """Return when an event last occurred; the scheduler's have no ``lastTimestamp``."""
    repeated = (event.get("series") or {}).get("lastObservedTime")
    return str(repeated or event.get("lastTimestamp") or event.get("eventTime") or "")


def why_ended(pod: Manifest | None, uid: str) -> str:
    """Return the reason why the pod with a UID can run no more programs; empty if it can."""
    if pod is None:
        return "it was deleted"
    if pod["metadata"]["uid"] != uid:
        return "it was replaced by another pod of the same name"
    if has_ended(pod):
        return _end_reason(pod)
    if "deletionTimestamp" in pod["metadata"]:
        reason = _disruption(pod)
        return f"it is being deleted ({reason})" if reason else "it is being deleted"
    return ""


def node_trouble(node: Manifest | None) -> str:
    """Return the reason why a node does not terminate a pod, if it is known."""
    if node is None:
        return "the node was deleted"
    for condition in node.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition.get("status") != "True":
            return _reason_words(condition.get("reason", "NotReady"), condition.get("message", ""))
    return "the pod is terminating"


def _disruption(pod: Manifest) -> str:
    """Return the reason of a disruption, such as ``EvictionByEvictionAPI: Eviction API: evicting``.

    Source: "Pod disruption conditions" in the documentation of Kubernetes 1.34.
    """
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "DisruptionTarget" and condition.get("status") == "True":
            return _reason_words(condition.get("reason", ""), condition.get("message", ""))
    return ""


def _end_reason(pod: Manifest) -> str:
    """Return the reason of the end of a pod, such as ``Evicted: The node was low on memory``."""
    status = pod.get("status", {})
    if status.get("reason"):
        return _reason_words(status["reason"], status.get("message", ""))
    if reason := _disruption(pod):
        return reason
    for container in status.get("containerStatuses", ()):
        if end := container.get("state", {}).get("terminated"):
            reason = _reason_words(end.get("reason", "ended"), end.get("message", ""))
            if end.get("reason") == "OOMKilled":
                reason += ": it exceeded its memory limit (--pod limit.memory=...)"
            return f"its container ended with status {end.get('exitCode')}: {reason}"
    return f"it has ended: {status.get('phase', 'unknown')}"


def _latest_warning(events: Iterable[Manifest]) -> str:
    warnings = [event for event in events if event.get("type") == "Warning"]
    if not warnings:
        return ""
    return _reason_words(warnings[-1].get("reason", ""), warnings[-1].get("message", ""))


def _reason_words(reason: str, message: str) -> str:
    return f"{reason}: {message.strip()}" if message else reason
