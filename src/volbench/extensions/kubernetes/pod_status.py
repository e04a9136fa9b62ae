"""State of pods: waiting for them, and why one is not ready or has ended."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click

from volbench.errors import DeadlineError, TransportError
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.manifests import MANAGED_BY
from volbench.units import format_duration

# Three requests, however many pods there are: a reason appears at once, and an API server takes
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

# Nothing ends these but a change of the cluster; the last one is no warning
_HOPELESS_TEXTS = ("exceeded quota", "violates PodSecurity", "no storage class is set")
_CLAIM_REASONS = frozenset({"ProvisioningFailed", "FailedBinding", "ExternalProvisioning"})

_SHOWN = 3  # hosts whose pods are pending for the same reason
# A pod that is placed and started soon needs no explanation. No verdict depends on it.
_SETTLE_S = 5.0
_REPEAT_S = 120.0  # between lines about the same reason
# After the first pod is ready: a cloud makes a disk within a minute. No verdict depends on it.
_LATER_S = 60.0


@dataclass(frozen=True)
class Pending:
    """Why a pod is not ready."""

    reason: str  # the cluster's words, such as ``FailedScheduling: 0/3 nodes are available``
    is_final: bool = False  # whether waiting does not help


def few_names(names: Sequence[str]) -> str:
    """Return names, the first of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def has_ended(pod: Manifest) -> bool:
    """Return whether all containers of a pod have ended."""
    return pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}


def why_pending(pod: Manifest | None, events: Sequence[Manifest]) -> Pending | None:
    """Return the reason why a pod is missing or not ready; None if it is ready."""
    latest = _words_of_last([event for event in events if event.get("type") == "Warning"])
    if pod is None:
        return Pending(latest or "not created yet", _is_hopeless(latest))
    status = pod.get("status", {})
    if has_ended(pod):
        return Pending(_end_reason(pod), is_final=True)
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
        claims = [event for event in events if event["reason"] in _CLAIM_REASONS]
        reason = _words_of_last(claims) or delay
        return Pending(reason, _is_hopeless(reason))
    return Pending(latest or "the container is being created")


def _is_hopeless(reason: str) -> bool:
    return any(text in reason for text in _HOPELESS_TEXTS)


def ready_pods(
    cluster: Cluster,
    wanted: Mapping[str, tuple[str, str]],
    *,
    timeout_s: float,
    more_time: str = "; or wait longer: --pod timeout=30m",
    is_partial: bool = False,
) -> dict[str, Manifest]:
    """Wait until the pods of hosts are ready; print why they are not, with the time that is left.

    Args:
        wanted: each host with the names of its pod and its claim.
        is_partial: whether hosts are left out whose pods cannot start, or not soon after others.
    """
    wait = _Wait(cluster, {**wanted}, time.monotonic() + timeout_s, more_time, is_partial)
    while True:
        pods = _pods(cluster, [name for name, _ in wanted.values()])
        wait.look(pods, _events(cluster))
        if len(wait.ready) == len(wait.wanted):
            return wait.ready
        time.sleep(POLL_S)


@dataclass
class _Reason:
    """Why a pod is not ready, since when, and when that is printed next."""

    text: str
    due_s: float  # monotonic


@dataclass
class _Wait:
    """Wait for the pods of hosts."""

    cluster: Cluster
    wanted: dict[str, tuple[str, str]]  # as of `ready_pods`, without hosts that are left out
    end_s: float  # monotonic
    more_time: str
    is_partial: bool
    ready: dict[str, Manifest] = field(default_factory=dict)
    reasons: dict[str, _Reason] = field(default_factory=dict)

    def look(self, pods: Mapping[str, Manifest], events: Mapping[str, list[Manifest]]) -> None:
        """Note which pods are ready, and why others are not; raise if waiting does not help."""
        for host, (name, claim) in [*self.wanted.items()]:
            if host in self.ready:
                continue
            pod = pods.get(name)
            names = dict.fromkeys((name, claim))
            about = (event for each in names for event in events.get(each, ()))
            pending = why_pending(pod, sorted(about, key=_last_seen))
            if pod is None:
                pending = Pending("it was deleted", is_final=True)
            elif pending is None:
                if self.is_partial and not self.ready:
                    self.end_s = min(self.end_s, time.monotonic() + _LATER_S)
                self.ready[host] = pod
                self.reasons.pop(host, None)
            if pending is not None:
                self._require_hope(host, pending)
        self._print_reasons()

    def _require_hope(self, host: str, pending: Pending) -> None:
        """Note why a pod is not ready; raise if that does not pass, or has lasted too long."""
        now_s = time.monotonic()
        if host not in self.reasons or self.reasons[host].text != pending.reason:
            self.reasons[host] = _Reason(pending.reason, now_s + _SETTLE_S)
        if not pending.is_final and now_s <= self.end_s:
            return
        if self.is_partial and len(self.wanted) > 1:
            click.echo(f"{host} is left out: {pending.reason}", err=True)
            del self.wanted[host], self.reasons[host]
            return
        # the pod is removed by the time that somebody looks
        hint = f"see: {self.cluster.kubectl('get', 'events')}"
        if pending.is_final:
            raise TransportError(f"the pod of {host} cannot start: {pending.reason}", hint=hint)
        raise DeadlineError(
            f"the pod of {host} is not ready: {pending.reason}", hint=hint + self.more_time
        )

    def _print_reasons(self) -> None:
        """Print reasons that have lasted for a while, once for all hosts that have them."""
        now_s = time.monotonic()
        due: defaultdict[str, list[str]] = defaultdict(list)  # reason to hosts
        for host, reason in self.reasons.items():
            if now_s >= reason.due_s:
                reason.due_s = now_s + _REPEAT_S
                due[reason.text].append(host)
        left = format_duration(self.end_s - now_s)
        for text, hosts in due.items():
            click.echo(f"{few_names(hosts)}: Pending: {text} (waiting up to {left} more)", err=True)


def _pods(cluster: Cluster, names: Sequence[str]) -> dict[str, Manifest]:
    """Return the pods that exist by name, in one request."""
    if len(names) > 1:
        listed = cluster.list("Pod", f"{MANAGED_BY}=volbench")
        return {pod["metadata"]["name"]: pod for pod in listed}
    pod = cluster.read("Pod", names[0])
    return {} if pod is None else {names[0]: pod}


def _events(cluster: Cluster) -> dict[str, list[Manifest]]:
    """Return warnings, and all events about claims, by the name of what they are about."""
    about: defaultdict[str, list[Manifest]] = defaultdict(list)
    claims = cluster.list("Event", fields="type=Normal,involvedObject.kind=PersistentVolumeClaim")
    for event in (*cluster.list("Event", fields="type=Warning"), *claims):
        if not _is_conflict(event):
            about[event["involvedObject"].get("name", "")].append(event)  # some are about no object
    return about


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


def _words_of_last(events: Sequence[Manifest]) -> str:
    """Return reason and message of the last event; empty if there is none."""
    last = events[-1] if events else {}
    return _reason_words(last.get("reason", ""), last.get("message", ""))


def _reason_words(reason: str, message: str) -> str:
    return f"{reason}: {message.strip()}" if message else reason
