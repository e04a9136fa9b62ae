"""Controllers on a cluster: Jobs that run a campaign into a volume of their own.

A pod that was evicted or killed is replaced and resumes the campaign; one whose volbench ended with
an error is not. Fields: Kubernetes API reference, versions 1.35 to 1.37.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from volbench.errors import ArchiveError, CampaignError, ConnectError, InputError
from volbench.extensions.kubernetes.api_values import require_label, require_quantity
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.cluster_spec import MAX_CAMPAIGN, UNPRIVILEGED_USER, text_option
from volbench.extensions.kubernetes.leases import POD_VARIABLE
from volbench.extensions.kubernetes.manifests import (
    MANAGED_BY,
    WAIT,
    claim_spec,
    make_container,
    make_object,
    pod_spec,
)
from volbench.extensions.kubernetes.pod_status import has_ended, ready_pods, why_pending

CONTROLLER_LABEL = "volbench.io/controller"
CONTAINER = "controller"
RESULTS_MOUNT = "/results"
_ARGUMENTS = "arguments.json"  # Entry of the controller's object: the arguments of volbench run

_SUBMITTED = "/submitted"
# A controller of 40 pods takes 262 MB, and its timing must not wait for other pods of its node.
_REQUESTS = {"cpu": "100m", "memory": "256Mi"}
_READ = {"results", "tmp"}  # Volumes of the pod that reads the results.
# An object of the API server holds 1 MiB; the rest is for arguments and metadata. Noticed by:
# tests/test_controllers.py::test_specifications_that_a_cluster_cannot_store_are_refused
MAX_SUBMITTED_BYTES = 900_000
# A campaign of days may lose its pod a few times; more often, a person should look. Noticed by:
# tests/extensions/kubernetes/test_controller.py::test_a_campaign_goes_on_without_this_machine
_RESTARTS = 3
_GRACE_S = 120  # Ending fio takes seconds; fetching its results, up to a minute.

# Cloud disks that have just been released take minutes to attach; no verdict depends on it.
_READY_S = 300.0

# Condition of a Job to the state of its controller
_ENDED = {"Complete": "finished", "Failed": "failed", "Suspended": "cancelled"}

# Script of a controller. Arguments: the campaign folder, address and port of the metrics or
# nothing, and the arguments of volbench run. It passes SIGTERM on.
SCRIPT = f"""\
pid= campaign=$1 metrics=$2
shift 2
trap '[ -z "$pid" ] || kill -TERM "$pid"' TERM
cd {RESULTS_MOUNT} || exit 7
if [ -e "$campaign/campaign.json" ]; then
    set -- resume "$campaign" ${{metrics:+--metrics "$metrics"}}
else
    set -- run "$@" --k8s --yes ${{metrics:+--metrics "$metrics"}} --output "$campaign"
fi
volbench "$@" & pid=$!
while :; do
    code=0
    wait "$pid" || code=$?
    kill -0 "$pid" 2>/dev/null || exit "$code"
done
"""


@dataclass(frozen=True, kw_only=True)
class ControllerSpec:
    """A controller on a cluster."""

    name: str  # of all its objects
    namespace: str  # of the objects, and of the campaign
    image: str  # with Python and volbench
    arguments: tuple[str, ...]  # of volbench run, beside the profiles
    profiles: Mapping[str, str]  # texts of the profiles, by file name, in their order
    service_account: str = text_option(
        "--service-account",
        "NAME",
        "Account with the rights of volbench k8s render --role.",
        "volbench",
    )
    folder_size: str = text_option(
        "--folder-size", "SIZE", "Size of the volume for the campaign folder.", "1Gi"
    )
    folder_class: str = text_option(
        "--folder-class", "NAME", "StorageClass of that volume. Default: the cluster's."
    )
    secret: str = text_option(
        "--secret",
        "NAME",
        "Secret whose entries become environment variables, such as passwords of profiles.",
    )
    image_pull_policy: str = ""  # empty for the cluster's rule
    image_pull_secrets: tuple[str, ...] = ()
    run_as_user: int = UNPRIVILEGED_USER
    metrics: str = ""  # address and port of the pod, at which Prometheus finds metrics

    def __post_init__(self) -> None:
        """Refuse what the cluster would refuse, or what it cannot store."""
        require_label(self.name, what="name", longest=MAX_CAMPAIGN)
        require_label(self.namespace, what="namespace")
        require_quantity(self.folder_size, what="--folder-size")
        size_bytes = sum(len(text.encode()) for text in self.profiles.values())
        if size_bytes > MAX_SUBMITTED_BYTES:
            raise InputError(
                f"the profiles have {size_bytes} bytes; a cluster "
                f"stores at most {MAX_SUBMITTED_BYTES}",
                hint="submit them separately",
            )


def controller_objects(spec: ControllerSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return all objects of a controller in the order of their creation, the owner first."""
    arguments = json.dumps([*spec.profiles, *spec.arguments])
    labels = controller_labels(spec.name)
    described: Manifest = {"namespace": spec.namespace, "labels": labels}
    owned = described | {"owner": (spec.name, owner_uid)}
    data = {_ARGUMENTS: arguments, **spec.profiles}
    claim = claim_spec(spec.folder_size, spec.folder_class)
    return [
        make_object("ConfigMap", spec.name, **described, data=data),
        make_object("PersistentVolumeClaim", spec.name, **owned, spec=claim),
        make_object("Job", spec.name, **owned, spec=_job_spec(spec)),
    ]


def _job_spec(spec: ControllerSpec) -> Manifest:
    paths = [f"{_SUBMITTED}/{name}" for name in spec.profiles]
    port = spec.metrics.rpartition(":")[2]
    settings = (spec.name, spec.metrics)
    program = make_container(
        CONTAINER,
        spec.image,
        ["sh", "-c", SCRIPT, "volbench", *settings, *paths, *spec.arguments],
        environment={"HOME": RESULTS_MOUNT, "XDG_STATE_HOME": f"{RESULTS_MOUNT}/.state"},
        mounts={"results": RESULTS_MOUNT, "tmp": "/tmp"},  # noqa: S108 - a volume of the pod
        pull_policy=spec.image_pull_policy,
    )
    submitted = {"name": "submitted", "mountPath": _SUBMITTED, "readOnly": True}
    program["volumeMounts"].append(submitted)
    own_name = {"fieldRef": {"fieldPath": "metadata.name"}}
    program["env"].append({"name": POD_VARIABLE, "valueFrom": own_name})
    program["resources"] = {"requests": _REQUESTS}
    if spec.secret:
        program["envFrom"] = [{"secretRef": {"name": spec.secret}}]
    metadata: Manifest = {"labels": controller_labels(spec.name)}
    if port:
        program["ports"] = [{"name": "metrics", "containerPort": int(port)}]
        metadata["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": port}
    volumes: list[Manifest] = [
        {"name": "results", "persistentVolumeClaim": {"claimName": spec.name}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "submitted", "configMap": {"name": spec.name}},
    ]
    content = {
        "restartPolicy": "Never",
        "serviceAccountName": spec.service_account,
        "terminationGracePeriodSeconds": _GRACE_S,
        **pod_spec(program, volumes, user=spec.run_as_user, secrets=spec.image_pull_secrets),
    }
    failed = {"containerName": CONTAINER, "operator": "In", "values": [*range(1, 126)]}
    return {
        "backoffLimit": _RESTARTS,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": failed}]},
        "template": {"metadata": metadata, "spec": content},
    }


def reader_pod(job: Manifest, owner_uid: str) -> Manifest:
    """Return the pod that reads the volume of a controller whose Job has ended."""
    name = str(job["metadata"]["name"])
    template = job["spec"]["template"]["spec"]
    (program,) = template["containers"]
    kept = ("name", "image", "imagePullPolicy", "env", "securityContext")
    reader = {key: program[key] for key in kept if key in program} | {
        "command": ["sh", "-c", WAIT],
        "volumeMounts": [item for item in program["volumeMounts"] if item["name"] in _READ],
    }
    volumes = [item for item in template["volumes"] if item["name"] in _READ]
    secrets = tuple(item["name"] for item in template.get("imagePullSecrets", ()))
    user = template["securityContext"]["runAsUser"]
    content = pod_spec(reader, volumes, user=user, secrets=secrets) | {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 3600,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
    }
    return make_object(
        "Pod",
        f"{name}-fetch",
        namespace=str(job["metadata"]["namespace"]),
        labels=controller_labels(name),
        owner=(name, owner_uid),
        spec=content,
    )


def controller_labels(name: str) -> dict[str, str]:
    """Return the labels by which everything of a controller is found."""
    return {MANAGED_BY: "volbench", CONTROLLER_LABEL: name}


@dataclass(frozen=True)
class ControllerState:
    """State of a controller."""

    name: str  # of its objects
    state: str  # ``waiting``, ``running``, ``finished``, ``failed`` or ``cancelled``
    reason: str  # why it is waiting, or has failed, in the words of the cluster
    submitted_utc: str  # when
    ended_utc: str  # empty before
    pod: str  # its last pod; empty before the first


def submit_controller(cluster: Cluster, spec: ControllerSpec) -> None:
    """Create the objects of a controller; if one is refused, those before it are removed."""
    for manifest in controller_objects(spec):
        cluster.create(manifest, dry_run=True)
    if spec.folder_class:
        cluster.require_storage_class(spec.folder_class)
    with ExitStack() as stack:
        try:
            uid = cluster.create(controller_objects(spec)[0])["metadata"]["uid"]
            stack.callback(cluster.delete, "ConfigMap", spec.name, uid=uid)
            for manifest in controller_objects(spec, owner_uid=uid)[1:]:
                cluster.create(manifest)
        except ConnectError as error:
            remove = cluster.kubectl("delete", "configmap", spec.name)
            error.hint += f"; once it answers, remove what was created: {remove}"
            stack.pop_all()
            raise
        stack.pop_all()


def controllers_on(cluster: Cluster, name: str = "") -> list[ControllerState]:
    """Return the state of each controller in the namespace, or of one, by name."""
    listed = filter(_is_controller, [] if name else cluster.list("ConfigMap", CONTROLLER_LABEL))
    owners = [_owner_of(cluster, name)] if name else listed
    return sorted((_state_of(cluster, owner) for owner in owners), key=lambda state: state.name)


def _state_of(cluster: Cluster, owner: Manifest) -> ControllerState:
    name = owner["metadata"]["name"]
    job = cluster.read("Job", name)
    pods = sorted(
        cluster.list("Pod", f"job-name={name}") if job else [],
        key=lambda item: str(item["metadata"]["creationTimestamp"]),
    )
    state, reason = _judge(cluster, job, pods[-1] if pods else None)
    ends = [item["lastTransitionTime"] for item in _conditions(job) if item["type"] in _ENDED]
    return ControllerState(
        name,
        state,
        reason,
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
        if condition["type"] in {"Complete", "Suspended"}:
            return _ENDED[condition["type"]], ""
        if condition["type"] == "Failed":
            return "failed", _why_failed(condition, pod)
    name = (job if pod is None else pod)["metadata"]["name"]
    events = cluster.list("Event", fields=f"involvedObject.name={name},type=Warning")
    if pod is not None and has_ended(pod):
        return "waiting", "its pod has ended; a new one is taking over"
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
    from volbench.store.archive import refuse_used

    refuse_used(folder)
    owner = _owner_of(cluster, name)
    state, job = _state_of(cluster, owner), cluster.read("Job", name)
    if state.state not in _ENDED.values() or job is None:
        raise CampaignError(
            f"the controller {name} is {state.state}",
            hint=f"wait until it has ended: {cluster.command('status', name)}",
        )
    claim = cluster.read("PersistentVolumeClaim", name) or {}
    if claim.get("status", {}).get("phase") != "Bound":
        raise ArchiveError(
            f"the controller {name} has no results: it never had a volume",
            hint=f"remove it: {cluster.kubectl('delete', 'configmap', name)}",
        )
    reader = f"{name}-fetch"
    cluster.create(reader_pod(job, owner["metadata"]["uid"]))
    try:
        wanted = {name: (reader, name)}
        pods = ready_pods(cluster, wanted, timeout_s=_READY_S, more_time="; then try again")
        _fetch(cluster, name, pods[name], folder)
    finally:
        cluster.delete("Pod", reader, grace_s=0)


def _owner_of(cluster: Cluster, name: str) -> Manifest:
    """Return the object that owns a controller."""
    owner = cluster.read("ConfigMap", name)
    if owner is None or not _is_controller(owner):
        raise InputError(
            f"there is no controller {name} in the namespace {cluster.namespace}",
            hint=f"list them: {cluster.command('status')}",
        )
    return owner


def _is_controller(owner: Manifest) -> bool:
    labels = owner["metadata"].get("labels", {})
    return CONTROLLER_LABEL in labels and _ARGUMENTS in owner.get("data", {})


def _fetch(cluster: Cluster, name: str, pod: Manifest, folder: Path) -> None:
    """Copy the campaign folder of a controller into a new folder, which appears whole or not."""
    from volbench.engine.hosts.described_volumes import identities_of
    from volbench.extensions.kubernetes.pod import Pod
    from volbench.extensions.kubernetes.pod_executor import PodExecutor
    from volbench.store.atomic_files import unwritable

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
    place = folder.absolute().parent
    try:
        if identities_of(executor, [path]) == (None,):
            raise ArchiveError(
                f"the controller {name} left no campaign folder",
                hint=f"see its output: {cluster.command('status', name)}",
            )
        place.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=place) as made:
            partial = Path(made, "campaign")
            partial.mkdir(mode=0o700)
            executor.fetch_work_folder(path, str(partial))
            if folder.exists():
                folder.rmdir()
            partial.rename(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        executor.close()
