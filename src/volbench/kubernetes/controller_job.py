"""Manifests of a controller on a cluster: a Job that runs a campaign into a volume of its own.

Fields: Kubernetes API reference, versions 1.35 to 1.37. A pod that was evicted or killed is
replaced and resumes the campaign; one whose volbench ended with an error is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import click

from volbench.errors import InputError
from volbench.kubernetes.cluster import Manifest
from volbench.kubernetes.cluster_spec import (
    MAX_CAMPAIGN,
    MAX_INT32,
    PULL_POLICIES,
    UNPRIVILEGED_USER,
    option,
    repeatable,
    require_name,
    require_quantity,
)
from volbench.kubernetes.manifests import MANAGED_BY, pod_security

CONTROLLER_LABEL = "volbench.io/controller"
CONTAINER = "controller"
RESULTS_MOUNT = "/results"
ARGUMENTS = "arguments.json"  # Entry of the controller's object: the arguments of volbench run

_SUBMITTED = "/submitted"
# An object of the API server holds 1 MiB; the rest is for arguments and metadata. Noticed by:
# tests/kubernetes/test_controller_job.py::test_what_a_cluster_cannot_store_is_refused
MAX_SUBMITTED_BYTES = 900_000
# A campaign of days may lose its pod a few times; more often, a person should look. Noticed by:
# tests/kubernetes/test_controller.py::test_a_campaign_goes_on_without_this_machine
_RESTARTS = 3
_GRACE_S = 120  # Ending fio takes seconds, uploading the campaign up to two minutes.

# Runs or resumes the campaign, passing SIGTERM on, and uploads it. Arguments: the campaign folder,
# the address of the upload or nothing, port of the metrics or nothing, their address, and those of
# volbench run.
_RUN = f"""\
stop() {{ [ -z "$pid" ] || kill -TERM "$pid"; }}
run() {{
    "$@" & pid=$!
    while :; do
        code=0
        wait "$pid" || code=$?
        kill -0 "$pid" 2>/dev/null || break
    done
    pid=
}}
pid= campaign=$1 upload=$2 port=$3 address=$4
shift 4
trap stop TERM
cd {RESULTS_MOUNT} || exit 7
if [ -e "$campaign/campaign.json" ]; then
    run volbench resume "$campaign" ${{port:+--metrics-port "$port" --metrics-address "$address"}}
else
    run volbench run "$@" --k8s --yes ${{port:+--metrics-address "$address"}} --output "$campaign"
fi
ended=$code
if [ -n "$upload" ] && [ -e "$campaign/campaign.json" ]; then
    run volbench upload "$campaign" "$upload"
    [ "$ended" -ne 0 ] || ended=$code
fi
exit "$ended"
"""


@dataclass(frozen=True, kw_only=True)
class ControllerSpec:
    """A controller on a cluster."""

    name: str  # of all its objects
    namespace: str  # of the objects, and of the campaign
    image: str  # with Python and volbench
    arguments: tuple[str, ...]  # of volbench run, beside the profiles
    profiles: Mapping[str, str]  # texts of the profiles, by file name, in their order
    service_account: str = option(
        "--service-account",
        default="volbench",
        show_default=True,
        metavar="NAME",
        help="Account with the rights of volbench k8s role.",
    )
    claim_size: str = option(
        "--claim-size",
        default="1Gi",
        show_default=True,
        metavar="SIZE",
        help="Size of the volume for the campaign folder.",
    )
    claim_class: str = option(
        "--claim-class",
        default="",
        metavar="NAME",
        help="StorageClass of that volume. Default: the cluster's.",
    )
    upload: str = option(
        "--upload",
        default="",
        metavar="s3://BUCKET/PREFIX",
        help="Upload the campaign folder there when the campaign ends.",
    )
    secret: str = option(
        "--secret",
        default="",
        metavar="NAME",
        help="Secret whose entries become environment variables, such as AWS_ACCESS_KEY_ID.",
    )
    image_pull_policy: str | None = option(
        "--image-pull-policy",
        default=None,
        type=click.Choice(PULL_POLICIES),
        help="When to pull the controller's image. Default: the cluster's rule.",
    )
    image_pull_secrets: tuple[str, ...] = repeatable(
        "--image-pull-secret", "NAME", "Secret with registry credentials"
    )
    run_as_user: int = option(
        "--run-as-user",
        default=UNPRIVILEGED_USER,
        type=click.IntRange(0, MAX_INT32),
        show_default=True,
        metavar="UID",
        help="User and group of the controller.",
    )
    metrics_port: int | None = None  # of the pod, on which Prometheus finds metrics
    metrics_address: str = "0.0.0.0"  # noqa: S104 - of the pod, for Prometheus

    def __post_init__(self) -> None:
        """Refuse what the cluster would refuse, or what it cannot store."""
        require_name(self.name, what="name", longest=MAX_CAMPAIGN)
        require_name(self.namespace, what="namespace")
        require_quantity(self.claim_size, what="--claim-size")
        size_bytes = sum(len(text.encode()) for text in self.profiles.values())
        if size_bytes > MAX_SUBMITTED_BYTES:
            raise InputError(
                f"the profiles have {size_bytes} bytes; a cluster "
                f"stores at most {MAX_SUBMITTED_BYTES}",
                hint="submit them one by one",
            )


def controller_objects(spec: ControllerSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return all objects of a controller in the order of their creation, the owner first.

    Args:
        owner_uid: UID of the created owner, to which the others then refer; empty before.
    """
    return [_owner(spec), _claim(spec, owner_uid), _job(spec, owner_uid)]


def _owner(spec: ControllerSpec) -> Manifest:
    """Return the object that holds the profiles; deleting it deletes the others."""
    arguments = json.dumps([*spec.profiles, *spec.arguments])
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(spec.name, spec.namespace, ""),
        "data": {ARGUMENTS: arguments, **spec.profiles},
    }


def _claim(spec: ControllerSpec, owner_uid: str) -> Manifest:
    content: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.claim_size}},
    }
    if spec.claim_class:
        content["storageClassName"] = spec.claim_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(spec.name, spec.namespace, owner_uid),
        "spec": content,
    }


def _job(spec: ControllerSpec, owner_uid: str) -> Manifest:
    paths = [f"{_SUBMITTED}/{name}" for name in spec.profiles]
    port = "" if spec.metrics_port is None else str(spec.metrics_port)
    settings = (spec.name, spec.upload, port, spec.metrics_address)
    command = ["sh", "-c", _RUN, "volbench", *settings, *paths, *spec.arguments]
    pod_spec = _pod_spec(spec, command)
    container = pod_spec["containers"][0]
    container["volumeMounts"].append(
        {"name": "submitted", "mountPath": _SUBMITTED, "readOnly": True}
    )
    pod_spec["volumes"].append({"name": "submitted", "configMap": {"name": spec.name}})
    pod_spec |= {
        "serviceAccountName": spec.service_account,
        "terminationGracePeriodSeconds": _GRACE_S,
    }
    if spec.secret:
        container["envFrom"] = [{"secretRef": {"name": spec.secret}}]
    metadata: Manifest = {"labels": controller_labels(spec.name)}
    if port:
        container["ports"] = [{"name": "metrics", "containerPort": spec.metrics_port}]
        metadata["annotations"] = {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": port,
        }
    failed = {"containerName": CONTAINER, "operator": "In", "values": [*range(1, 126)]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(spec.name, spec.namespace, owner_uid),
        "spec": {
            "backoffLimit": _RESTARTS,
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": failed}]},
            "template": {"metadata": metadata, "spec": pod_spec},
        },
    }


def reader_pod(job: Manifest, owner_uid: str) -> Manifest:
    """Return the pod that reads the volume of a controller that has ended."""
    name, namespace = str(job["metadata"]["name"]), str(job["metadata"]["namespace"])
    template = job["spec"]["template"]["spec"]
    (container,) = template["containers"]
    wait = "trap 'exit 0' TERM; while :; do sleep 60 & wait $!; done"
    kept = ("name", "image", "imagePullPolicy", "env", "securityContext")
    mounts = [item for item in container["volumeMounts"] if item["name"] in {"results", "tmp"}]
    volumes = [item for item in template["volumes"] if item["name"] in {"results", "tmp"}]
    same = ("securityContext", "imagePullSecrets")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**_metadata(name, namespace, owner_uid), "name": reader_name(name)},
        "spec": {
            **{key: template[key] for key in same if key in template},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 3600,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    **{key: container[key] for key in kept if key in container},
                    "command": ["sh", "-c", wait],
                    "volumeMounts": mounts,
                }
            ],
            "volumes": volumes,
        },
    }


def reader_name(name: str) -> str:
    """Return the name of the pod that reads the volume of a controller."""
    return f"{name}-fetch"


def controller_labels(name: str) -> dict[str, str]:
    """Return the labels by which everything of a controller is found."""
    return {MANAGED_BY: "volbench", CONTROLLER_LABEL: name}


def _metadata(name: str, namespace: str, owner_uid: str) -> Manifest:
    metadata: Manifest = {
        "name": name,
        "namespace": namespace,
        "labels": controller_labels(name),
    }
    if owner_uid:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner_uid}
        metadata["ownerReferences"] = [owner]
    return metadata


def _pod_spec(spec: ControllerSpec, command: list[str]) -> Manifest:
    folders = {"HOME": RESULTS_MOUNT, "XDG_STATE_HOME": f"{RESULTS_MOUNT}/.state"}
    container: Manifest = {
        "name": CONTAINER,
        "image": spec.image,
        "command": command,
        "env": [{"name": name, "value": value} for name, value in folders.items()],
        "volumeMounts": [
            {"name": "results", "mountPath": RESULTS_MOUNT},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if spec.image_pull_policy:
        container["imagePullPolicy"] = spec.image_pull_policy
    content: Manifest = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "securityContext": pod_security(spec.run_as_user),
        "containers": [container],
        "volumes": [
            {"name": "results", "persistentVolumeClaim": {"claimName": spec.name}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    if spec.image_pull_secrets:
        content["imagePullSecrets"] = [{"name": name} for name in spec.image_pull_secrets]
    return content
