"""Manifests of a campaign's objects on a cluster and of its access rights: plain mappings.

Field names and rules: Kubernetes API reference, versions 1.35 to 1.37.
"""

from __future__ import annotations

import re
from hashlib import sha256

from volbench.kubernetes.cluster import Manifest
from volbench.kubernetes.cluster_spec import (
    ClusterSpec,
    Toleration,
    VolumeSource,
    is_label_value,
    require_name,
)

DATA_MOUNT = "/volumes/data"
DATA_DEVICE = "/dev/volbench-data"
OS_MOUNT = "/volumes/os"
WORK_MOUNT = "/volbench"  # Folder of running programs and their results, on the node's disk

CONTAINER = "fio"
MANAGED_BY = "app.kubernetes.io/managed-by"
CAMPAIGN_LABEL = "volbench.io/campaign"
WORKLOAD_LABEL = "volbench.io/workload"
# Label with the storage class, shortened if it is long; the annotation has all of it
CLASS_LABEL = "volbench.io/storage-class"

# Entries of the object that owns a campaign
KEEP = "keep"  # whether its volumes stay
PODS = "pods"  # the manifests of its pods, to make one again

_DATA, _OS, _SCRATCH, _TMP = "data", "os", "scratch", "tmp"
# Annotations that stop autoscalers from draining a node in the middle of a run
_NO_EVICTION = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

# Idles until SIGTERM; as process 1 its `wait` also collects the ends of detached programs. A pod
# that is evicted while fio runs stays for a moment: only as long as there is a pod does the cluster
# know why it ends.
_WAIT = (
    "end() { kill $!; wait $!; kill -9 -1 && sleep 3; exit 0; }; "
    "trap end TERM; while :; do sleep 60 & wait $!; done"
)


def objects(spec: ClusterSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return all objects of a campaign in the order of their creation, the owner first.

    Args:
        owner_uid: UID of the created owner, to which the others then refer; empty before.
    """
    manifests = [campaign_object(spec)]
    for index in range(len(spec.volumes)):
        if spec.replicas > 1:
            manifests.append(stateful_set(spec, index, owner_uid=owner_uid))
            continue
        if spec.source is VolumeSource.CLAIM:
            manifests.append(claim(spec, index, owner_uid=owner_uid))
        manifests.append(pod(spec, index, owner_uid=owner_uid))
    return manifests


def campaign_object(spec: ClusterSpec) -> Manifest:
    """Return the owner of all other objects: deleting it deletes them."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": spec.campaign,
            "namespace": spec.namespace,
            "labels": campaign_labels(spec.campaign),
        },
    }


def claim(spec: ClusterSpec, index: int, *, owner_uid: str = "") -> Manifest:
    """Return the PersistentVolumeClaim of one storage class; without an owner if it is kept."""
    owner = "" if spec.keep else owner_uid
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(spec, index, owner_uid=owner),
        "spec": _claim_spec(spec, index),
    }


def pod(spec: ClusterSpec, index: int, *, owner_uid: str = "") -> Manifest:
    """Return the pod of one storage class; the cluster never starts it twice."""
    metadata = _metadata(spec, index, owner_uid=owner_uid)
    metadata["annotations"] = {**_annotations(spec, index), **_NO_EVICTION}
    content: Manifest = {"restartPolicy": "Never", "activeDeadlineSeconds": spec.deadline_s}
    if spec.is_parallel and spec.topology_key:  # no two pods of the campaign share a node
        others = {"matchLabels": {CAMPAIGN_LABEL: spec.campaign}}
        terms = [{"topologyKey": spec.topology_key, "labelSelector": others}]
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        content["affinity"] = {"podAntiAffinity": apart}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**content, **_pod_spec(spec, index)},
    }


def stateful_set(spec: ClusterSpec, index: int, *, owner_uid: str = "") -> Manifest:
    """Return the StatefulSet of one storage class, whose pods have a volume each.

    It starts its pods together and replaces none by itself. The API refuses a deadline and
    ``restartPolicy: Never`` in it.
    """
    metadata = _metadata(spec, index, owner_uid=owner_uid)
    selector = {"matchLabels": {WORKLOAD_LABEL: workload_name(spec, index)}}
    pod_spec = _pod_spec(spec, index)
    if spec.topology_key:
        pod_spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": spec.topology_key,
                "whenUnsatisfiable": "DoNotSchedule",
                # Without it, a node that takes no pods counts as one with the fewest.
                "nodeTaintsPolicy": "Honor",
                "labelSelector": selector,
            }
        ]
    described = {
        "labels": _labels(spec, index),
        "annotations": {**_annotations(spec, index), **_NO_EVICTION},
    }
    content: Manifest = {
        "replicas": spec.replicas,
        "serviceName": workload_name(spec, index),
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": selector,
        "template": {"metadata": described, "spec": pod_spec},
    }
    if spec.source is VolumeSource.CLAIM:
        content["volumeClaimTemplates"] = [_claim_template(spec, index, name=_DATA)]
        content["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": "Retain" if spec.keep else "Delete",
            "whenScaled": "Retain",
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": content,
    }


def pod_names(spec: ClusterSpec) -> list[tuple[str, str, str]]:
    """Return name of the pod, storage class and name of the claim for every pod of a campaign.

    The storage class is empty for the default one, the claim for a volume without.
    """
    names = []
    for index, storage_class in enumerate(spec.volumes):
        name = workload_name(spec, index)
        pods = [f"{name}-{n}" for n in range(spec.replicas)] if spec.replicas > 1 else [name]
        names += [(each, storage_class, _claim_name(spec, each)) for each in pods]
    return names


def _claim_name(spec: ClusterSpec, pod_name: str) -> str:
    if spec.source is VolumeSource.NODE:
        return ""
    if spec.source is VolumeSource.EPHEMERAL:
        return f"{pod_name}-{_DATA}"
    return f"{_DATA}-{pod_name}" if spec.replicas > 1 else pod_name


def role_paths(spec: ClusterSpec) -> dict[str, str]:
    """Return role to folder or device in the pods."""
    if spec.source is VolumeSource.NODE:
        return {_DATA: OS_MOUNT, _OS: OS_MOUNT}
    data = {_DATA: DATA_DEVICE if spec.is_block else DATA_MOUNT}
    return {**data, _OS: OS_MOUNT} if spec.needs_os else data


def campaign_labels(campaign: str) -> dict[str, str]:
    """Return the labels by which everything of a campaign is found."""
    return {MANAGED_BY: "volbench", CAMPAIGN_LABEL: campaign}


def workload_name(spec: ClusterSpec, index: int) -> str:
    """Return the name of the pod or StatefulSet of one storage class, and of its claim."""
    return f"{spec.campaign}-{index}"


def label_value(text: str) -> str:
    """Return a text as the value of a label: itself, or else shortened and with a hash."""
    if is_label_value(text):
        return text
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text)[:48].strip("-")
    return f"{plain}-{sha256(text.encode()).hexdigest()[:8]}".lstrip("-")


def _labels(spec: ClusterSpec, index: int) -> dict[str, str]:
    return {
        **campaign_labels(spec.campaign),
        WORKLOAD_LABEL: workload_name(spec, index),
        CLASS_LABEL: label_value(_class_name(spec, index)),
    }


def _annotations(spec: ClusterSpec, index: int) -> dict[str, str]:
    return {CLASS_LABEL: _class_name(spec, index)}


def _class_name(spec: ClusterSpec, index: int) -> str:
    if spec.source is VolumeSource.NODE:
        return "node-disk"
    return spec.volumes[index] or "default"


def _metadata(spec: ClusterSpec, index: int, *, owner_uid: str) -> Manifest:
    metadata: Manifest = {
        "name": workload_name(spec, index),
        "namespace": spec.namespace,
        "labels": _labels(spec, index),
        "annotations": _annotations(spec, index),
    }
    if owner_uid:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": spec.campaign, "uid": owner_uid}
        metadata["ownerReferences"] = [owner]
    return metadata


def _claim_spec(spec: ClusterSpec, index: int) -> Manifest:
    content: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Block" if spec.is_block else "Filesystem",
        "resources": {"requests": {"storage": spec.size}},
    }
    if spec.volumes[index]:
        content["storageClassName"] = spec.volumes[index]
    return content


def _claim_template(spec: ClusterSpec, index: int, *, name: str = "") -> Manifest:
    metadata = {"labels": _labels(spec, index), "annotations": _annotations(spec, index)}
    named = {"name": name, **metadata} if name else metadata
    return {"metadata": named, "spec": _claim_spec(spec, index)}


def _pod_spec(spec: ClusterSpec, index: int) -> Manifest:
    content: Manifest = {
        "containers": [_container(spec)],
        "volumes": _volumes(spec, index),
        "securityContext": pod_security(spec.user),
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    if spec.node_selector:
        content["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        content["tolerations"] = [_toleration(taint) for taint in spec.tolerations]
    if spec.image_pull_secrets:
        content["imagePullSecrets"] = [{"name": name} for name in spec.image_pull_secrets]
    if spec.service_account:
        content["serviceAccountName"] = spec.service_account
    return content


def _toleration(taint: Toleration) -> Manifest:
    content: Manifest = {"operator": "Exists" if taint.value is None else "Equal"}
    named = {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
    return {**content, **{name: text for name, text in named.items() if text}}


def pod_security(user: int) -> Manifest:
    """Return the security context of a pod whose processes run as a user; 0 is root."""
    content: Manifest = {
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if user:
        content |= {"fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch"}
    return content


def _container(spec: ClusterSpec) -> Manifest:
    content: Manifest = {
        "name": CONTAINER,
        "image": spec.image,
        "command": ["sh", "-c", _WAIT],
        "env": [{"name": name, "value": WORK_MOUNT} for name in ("HOME", "TMPDIR")],
        "volumeMounts": _mounts(spec),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if spec.image_pull_policy:
        content["imagePullPolicy"] = spec.image_pull_policy
    if spec.is_block:
        content["volumeDevices"] = [{"name": _DATA, "devicePath": DATA_DEVICE}]
    amounts = {"requests": dict(spec.pod_requests), "limits": dict(spec.pod_limits)}
    if resources := {kind: given for kind, given in amounts.items() if given}:
        content["resources"] = resources
    return content


def _mounts(spec: ClusterSpec) -> list[Manifest]:
    mounts: list[Manifest] = [
        {"name": _SCRATCH, "mountPath": WORK_MOUNT},
        {"name": _TMP, "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod
    ]
    if spec.source is not VolumeSource.NODE and not spec.is_block:
        mounts.append({"name": _DATA, "mountPath": DATA_MOUNT})
    if _has_os_disk(spec):
        mounts.append({"name": _OS, "mountPath": OS_MOUNT})
    return mounts


def _has_os_disk(spec: ClusterSpec) -> bool:
    return spec.needs_os or spec.os_disk


def _volumes(spec: ClusterSpec, index: int) -> list[Manifest]:
    volumes: list[Manifest] = [{"name": name, "emptyDir": {}} for name in (_SCRATCH, _TMP)]
    if spec.source is VolumeSource.EPHEMERAL:
        template = _claim_template(spec, index)
        volumes.append({"name": _DATA, "ephemeral": {"volumeClaimTemplate": template}})
    elif spec.source is VolumeSource.CLAIM and spec.replicas == 1:
        claimed = {"claimName": workload_name(spec, index)}
        volumes.append({"name": _DATA, "persistentVolumeClaim": claimed})
    if _has_os_disk(spec):
        is_limited = spec.source is VolumeSource.NODE and spec.size
        limit = {"sizeLimit": spec.size} if is_limited else {}
        volumes.append({"name": _OS, "emptyDir": limit})
    return volumes


_API = "rbac.authorization.k8s.io"

_MADE = ("get", "list", "create", "delete")
# API group, resources and verbs within the namespace
_NAMESPACED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("configmaps", "persistentvolumeclaims", "pods"), _MADE),
    # An exec over a WebSocket is a GET; from Kubernetes 1.35 on it needs create, too.
    ("", ("pods/exec",), ("get", "create")),
    ("", ("pods/log",), ("get",)),
    ("", ("events",), ("list",)),
    ("apps", ("statefulsets",), ("list", "create", "delete")),
    ("batch", ("jobs",), ("get", "create")),
    ("coordination.k8s.io", ("leases",), (*_MADE, "patch")),
)

# The same for the whole cluster: lost nodes, reclaim policies, volumes that stay behind
_CLUSTER: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("nodes", "persistentvolumes"), ("get",)),
    ("storage.k8s.io", ("storageclasses",), ("get",)),
)


def access_manifests(*, namespace: str, name: str = "volbench") -> list[Manifest]:
    """Return a service account, and the roles and bindings that let it run campaigns."""
    require_name(namespace, what="namespace")
    require_name(name, what="name")
    wide = f"{name}-volumes"
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    inside = {"name": name, "namespace": namespace}
    return [
        _object("v1", "ServiceAccount", inside),
        _object(f"{_API}/v1", "Role", inside, rules=_rules(_NAMESPACED)),
        _object(f"{_API}/v1", "RoleBinding", inside, **_bound("Role", name, account)),
        _object(f"{_API}/v1", "ClusterRole", {"name": wide}, rules=_rules(_CLUSTER)),
        _object(
            f"{_API}/v1",
            "ClusterRoleBinding",
            {"name": f"{wide}-{namespace}"},
            **_bound("ClusterRole", wide, account),
        ),
    ]


def _object(version: str, kind: str, metadata: dict[str, str], **content: object) -> Manifest:
    labelled = {**metadata, "labels": {MANAGED_BY: "volbench"}}
    return {"apiVersion": version, "kind": kind, "metadata": labelled, **content}


def _rules(
    table: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...],
) -> list[dict[str, list[str]]]:
    return [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
        for group, resources, verbs in table
    ]


def _bound(kind: str, name: str, account: dict[str, str]) -> Manifest:
    reference = {"apiGroup": _API, "kind": kind, "name": name}
    return {"roleRef": reference, "subjects": [account]}
