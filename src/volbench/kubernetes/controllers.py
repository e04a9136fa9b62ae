"""Controllers on a cluster: submission, state, and the campaign folder that one has written."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from volbench.errors import ArchiveError, CampaignError, InputError, VolbenchError
from volbench.kubernetes.cluster import Cluster, Manifest
from volbench.kubernetes.controller_job import (
    ARGUMENTS,
    CONTAINER,
    CONTROLLER_LABEL,
    RESULTS_MOUNT,
    ControllerSpec,
    controller_objects,
    reader_name,
    reader_pod,
)
from volbench.kubernetes.pod_executor import PodExecutor
from volbench.kubernetes.pod_status import ready_pods, why_pending
from volbench.model.campaign.host import Pod
from volbench.store.archive import refuse_used
from volbench.store.atomic_files import unwritable

# Cloud disks that have just been released take minutes to attach. Noticed by: no test; a timeout.
_READY_S = 300.0

# Condition of a Job to the state of its controller
_ENDED = {"Complete": "finished", "Failed": "failed"}


@dataclass(frozen=True)
class ControllerState:
    """State of a controller."""

    name: str  # of its objects
    state: str  # ``waiting``, ``running``, ``finished`` or ``failed``
    reason: str  # why it is waiting, or has failed, in the words of the cluster
    arguments: tuple[str, ...]  # of volbench run
    submitted_utc: str  # when
    ended_utc: str  # empty before
    pod: str  # its last pod; empty before the first


def submit_controller(cluster: Cluster, spec: ControllerSpec) -> None:
    """Create the objects of a controller; if one is refused, those before it are removed."""
    for manifest in controller_objects(spec):
        cluster.create(manifest, dry_run=True)
    uid = cluster.create(controller_objects(spec)[0])["metadata"]["uid"]
    try:
        for manifest in controller_objects(spec, owner_uid=uid)[1:]:
            cluster.create(manifest)
    except VolbenchError:
        cluster.delete("ConfigMap", spec.name, uid=uid)
        raise


def controllers_on(cluster: Cluster) -> list[ControllerState]:
    """Return the state of each controller in the namespace, by name."""
    owners = cluster.list("ConfigMap", CONTROLLER_LABEL)
    states = [_state_of(cluster, owner) for owner in owners if _is_controller(owner)]
    return sorted(states, key=lambda state: state.name)


def find_controller(cluster: Cluster, name: str) -> ControllerState:
    """Return the state of a controller."""
    return _state_of(cluster, _owner(cluster, name))


def _state_of(cluster: Cluster, owner: Manifest) -> ControllerState:
    name = owner["metadata"]["name"]
    job = cluster.read("Job", name)
    pods = cluster.list("Pod", f"{CONTROLLER_LABEL}={name},job-name")
    pods.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    state, reason = _judge(cluster, job, pods[-1] if pods else None)
    ends = [item["lastTransitionTime"] for item in _conditions(job) if item["type"] in _ENDED]
    return ControllerState(
        name,
        state,
        reason,
        tuple(json.loads(owner["data"][ARGUMENTS])),
        owner["metadata"]["creationTimestamp"],
        max(ends, default=""),
        pods[-1]["metadata"]["name"] if pods else "",
    )


def _conditions(job: Manifest | None) -> list[Manifest]:
    conditions: list[Manifest] = (job or {}).get("status", {}).get("conditions", [])
    return [item for item in conditions if item.get("status") == "True"]


def _judge(cluster: Cluster, job: Manifest | None, pod: Manifest | None) -> tuple[str, str]:
    """Return the state of a controller and its reason."""
    if job is None:
        return "failed", "its Job was deleted"
    for condition in _conditions(job):
        if condition["type"] == "Complete":
            return "finished", ""
        if condition["type"] == "Failed":
            return "failed", _why_failed(condition, pod)
    name = (job if pod is None else pod)["metadata"]["name"]
    events = cluster.list("Event", fields=f"involvedObject.name={name},type=Warning")
    if pod is not None and pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}:
        return "waiting", "its pod has ended, and another one takes over"
    pending = why_pending(pod, events)
    return ("running", "") if pending is None else ("waiting", pending.reason)


def _why_failed(condition: Manifest, pod: Manifest | None) -> str:
    """Return the exit code of volbench where it is reported, else the cluster's reason."""
    for container in (pod or {}).get("status", {}).get("containerStatuses", ()):
        if end := container.get("state", {}).get("terminated"):
            return f"volbench ended with exit code {end['exitCode']}"
    return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")


def last_lines(cluster: Cluster, state: ControllerState, *, count: int) -> list[str]:
    """Return the last lines that a controller has printed; none before it runs."""
    if not state.pod or state.state == "waiting":
        return []
    return cluster.logs(state.pod, CONTAINER).splitlines()[-count:]


def fetch_campaign(cluster: Cluster, name: str, folder: Path) -> None:
    """Copy the campaign folder of a controller that has ended to a new folder of this machine."""
    refuse_used(folder)
    owner = _owner(cluster, name)
    state, job = _state_of(cluster, owner), cluster.read("Job", name)
    if state.state not in _ENDED.values() or job is None:
        raise CampaignError(
            f"the controller {name} is {state.state}",
            hint=f"wait until it has ended: volbench k8s status {name}",
        )
    reader = reader_name(name)
    cluster.create(reader_pod(job, owner["metadata"]["uid"]))
    try:
        pods = ready_pods(cluster, {name: (reader, name)}, timeout_s=_READY_S)
        _fetch(cluster, name, pods[name], folder)
    finally:
        cluster.delete("Pod", reader, grace_s=0)


def remove_controller(cluster: Cluster, name: str) -> None:
    """Remove a controller with its volume."""
    owner = _owner(cluster, name)
    cluster.delete("ConfigMap", name, uid=owner["metadata"]["uid"])


def _owner(cluster: Cluster, name: str) -> Manifest:
    """Return the object that owns a controller."""
    owner = cluster.read("ConfigMap", name)
    if owner is None or not _is_controller(owner):
        raise InputError(
            f"there is no controller {name} in the namespace {cluster.namespace}",
            hint="list them: volbench k8s status",
        )
    return owner


def _is_controller(owner: Manifest) -> bool:
    labels = owner["metadata"].get("labels", {})
    return CONTROLLER_LABEL in labels and ARGUMENTS in owner.get("data", {})


def _fetch(cluster: Cluster, name: str, pod: Manifest, folder: Path) -> None:
    """Copy the campaign folder of a controller into a new folder, which appears whole or not."""
    reader = Pod(
        name=pod["metadata"]["name"],
        namespace=cluster.namespace,
        uid=pod["metadata"]["uid"],
        container=CONTAINER,
        node=pod["spec"].get("nodeName", ""),
        context=cluster.context,
    )
    executor = PodExecutor(name, reader, cluster)
    path = f"{RESULTS_MOUNT}/{name}"
    part = folder.absolute().with_name(f".{folder.name}.part")
    try:
        if executor.stat(path) is None:
            raise ArchiveError(
                f"the controller {name} left no campaign folder",
                hint=f"see what it printed: volbench k8s status {name}",
            )
        part.mkdir(parents=True)
        executor.fetch_work_folder(path, str(part))
        part.chmod(0o700)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        executor.close()
        shutil.rmtree(part, ignore_errors=True)
