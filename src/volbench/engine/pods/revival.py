"""Pods of an interrupted campaign, found again or recreated on their volume and node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from volbench.engine.campaign.run_states import RunStates
from volbench.engine.pods.pod_hosts import PODS, OnReason, ready_pods
from volbench.engine.pods.removal import wait_until_gone
from volbench.errors import TransportError
from volbench.execute.kubernetes.cluster import Cluster, Manifest
from volbench.execute.kubernetes.pod_progress import why_ended
from volbench.model.campaign.host import Host, Pod
from volbench.model.campaign.planned_run import RunState
from volbench.store.archive import hold_campaign, read_campaign
from volbench.store.consent import seal_of
from volbench.store.journal import Journal, read_history
from volbench.store.layout import Layout

_OPEN = {RunState.PLANNED, RunState.RUNNING, RunState.INTERRUPTED}


def is_resumable(root: Path, owner: str) -> bool:
    """Return whether runs of a campaign are left, or may still be going on.

    Args:
        root: the campaign folder, which may be missing or that of another campaign.
        owner: name of the object that owns the campaign's others.
    """
    if not Layout(root).journal.exists():
        return False
    states = read_history(Layout(root).journal).states
    plan = read_campaign(root)[1].campaign
    if owner not in {host.pod.campaign for host in plan.hosts if host.pod}:
        return False
    return any(states.get(run.id, RunState.PLANNED) in _OPEN for run in plan.runs)


@dataclass(frozen=True)
class Revival:
    """How the pods of an interrupted campaign are found again.

    Attributes:
        root: the campaign folder.
        timeout_s: longest wait for a pod that is recreated.
        on_reason: receives what has happened to a pod.
    """

    root: Path
    timeout_s: float
    on_reason: OnReason

    def host(self, cluster: Cluster, host: Host, pod: Pod) -> Host:
        """Return a host whose pod can run programs; what ran in a lost one is recorded as lost.

        Args:
            cluster: connection to the cluster.
            host: host as planned.
            pod: its pod as planned.

        Raises:
            TransportError: it cannot be recreated, in the words of the cluster.
        """
        found = cluster.read("Pod", pod.name)
        uid = "" if found is None else found["metadata"]["uid"]
        reason = why_ended(found, uid)
        if not reason and uid == pod.uid:
            return host
        words = reason or why_ended(found, pod.uid)
        self.on_reason(host.name, f"{words}; what ran in it is lost")
        _record_loss(self.root, host.name, f"its pod has ended: {words}")
        if reason:
            _recreate(cluster, pod, found, host=host.name, reason=reason)
        wanted = {host.name: (pod.name, pod.claim)}
        pods = ready_pods(cluster, wanted, timeout_s=self.timeout_s, on_reason=self.on_reason)
        ready = pods[host.name]
        update = {"uid": ready["metadata"]["uid"], "node": ready["spec"]["nodeName"]}
        return host.model_copy(update={"pod": pod.model_copy(update=update)})


def _record_loss(root: Path, host: str, reason: str) -> None:
    """Record the active runs of a host as interrupted, unless their results are here."""
    layout = Layout(root)
    runs = read_campaign(root)[1].campaign.runs
    with hold_campaign(layout), Journal(layout.journal, seal_of(layout)) as journal:
        states = RunStates(journal, read_history(layout.journal), lambda _event: None)
        lost = [
            run
            for run in runs
            if run.host == host
            and states.state(run) is RunState.RUNNING
            and not layout.run(run.id).status.exists()
        ]
        if lost:
            states.settle(lost, RunState.INTERRUPTED, reason=reason)


def _recreate(
    cluster: Cluster, pod: Pod, ended: Manifest | None, *, host: str, reason: str
) -> None:
    """Create a pod again, on the node where it was."""
    owner = cluster.read("ConfigMap", pod.campaign)
    pods = json.loads((owner or {}).get("data", {}).get(PODS, "[]"))
    manifest = next((known for known in pods if known["metadata"]["name"] == pod.name), None)
    if ended is not None:
        cluster.delete("Pod", pod.name, uid=ended["metadata"]["uid"], grace_s=0)
        wait_until_gone(cluster, "Pod", pod.name)
    if owner is None or manifest is None:  # a StatefulSet recreates its own pods
        if owner is None:
            raise TransportError(
                f"the pod of {host} has ended ({reason}), and its volume is removed",
                hint="run the campaign again; what has finished is kept: volbench show DIR",
                context={"host": host},
            )
        return
    manifest["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": pod.campaign,
            "uid": owner["metadata"]["uid"],
        }
    ]
    manifest["spec"]["affinity"] = _only_on(pod.node)
    cluster.create(manifest)


def _only_on(node: str) -> Manifest:
    """Return the affinity to one node: results of another one are not comparable."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
