"""Manifests of a campaign's objects on a cluster and of its access rights: plain mappings.

Field names and rules: Kubernetes API reference, versions 1.35 to 1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from volbench.extensions.kubernetes.api_values import Toleration, require_label
from volbench.extensions.kubernetes.cluster import KINDS, Manifest
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec, VolumeSource

DATA_MOUNT = "/volumes/data"
DATA_DEVICE = "/dev/volbench-data"
OS_MOUNT = "/volumes/os"
WORK_MOUNT = "/volbench"  # Folder of running programs and their results, on the node's disk

CONTAINER = "fio"
MANAGED_BY = "app.kubernetes.io/managed-by"
CAMPAIGN_LABEL = "volbench.io/campaign"
WORKLOAD_LABEL = "volbench.io/workload"
_CLASS = "volbench.io/storage-class"  # Annotation of pods and claims

# Entries of the object that owns a campaign
KEEP = "keep"  # whether its volumes stay
PODS = "pods"  # the manifest of a pod of each storage class, to make one again

_DATA, _OS, _SCRATCH, _TMP = "data", "os", "scratch", "tmp"
_POD_NAME = "POD_NAME"  # Environment variable that names the folder of a pod on a shared volume
# Annotations that stop autoscalers from draining a node in the middle of a run
_NO_EVICTION = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

# Idles until SIGTERM; as process 1 its `wait` also collects the ends of detached programs. A pod
# that is evicted while fio runs stays for a moment: only as long as there is a pod does the cluster
# know why it ends. Nothing is started in it then: it would find fio killed, and not know why.
_ENDING = "/tmp/volbench-ending"  # noqa: S108 - a volume of the pod
WAIT = (
    f"rm -f {_ENDING}; end() {{ kill $!; wait $!; touch {_ENDING}; "
    "kill -9 -1 && sleep 3; exit 0; }; "
    "trap end TERM; while :; do sleep 60 & wait $!; done"
)
ENDING_STATUS = 143  # Exit status of what is started in a pod that ends
_STARTED = f'test ! -e {_ENDING} || exit {ENDING_STATUS}; umask 022; exec "$@"'
START = ("sh", "-c", _STARTED, "sh")
_IMAGE_TEST = f"""\
for name in fio python3 rm touch sleep; do command -v $name >/dev/null || echo "no $name"; done
python3 -c 'import sys; assert sys.version_info > (3, 6)' &&
fio --name=test --directory={WORK_MOUNT} --size=1m --output=/dev/null &&
echo "the image serves: $(fio --version), $(python3 --version), $(uname -m)" && exit
echo "the image does not serve"; exit 1
"""
_API = "rbac.authorization.k8s.io"
_MADE = ("get", "list", "create", "delete")
# API group, resources and verbs within the namespace
_NAMESPACED = (
    ("", ("configmaps", "persistentvolumeclaims", "pods"), _MADE),
    # An exec over a WebSocket is a GET; from Kubernetes 1.35 on it needs create, too.
    ("", ("pods/exec",), ("get", "create")),
    ("", ("pods/log",), ("get",)),
    ("", ("events",), ("list",)),
    ("", ("namespaces",), ("get",)),  # a Role applies to the namespace that it belongs to
    ("coordination.k8s.io", ("leases",), (*_MADE, "patch")),
    ("snapshot.storage.k8s.io", ("volumesnapshots",), ("get",)),
    ("batch", ("jobs",), ("get", "create")),  # to submit controllers
)
# The same for the whole cluster: lost nodes, reclaim policies, volumes that stay behind
_CLUSTER = (
    ("", ("nodes",), ("get", "list")),
    ("", ("persistentvolumes",), ("get",)),
    ("storage.k8s.io", ("storageclasses", "csinodes"), ("get", "list")),
    ("storage.k8s.io", ("volumeattachments",), ("get",)),
    ("snapshot.storage.k8s.io", ("volumesnapshotcontents",), ("get",)),
    ("snapshot.storage.k8s.io", ("volumesnapshotclasses",), ("list",)),
)


def objects(spec: ClusterSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return all objects of a campaign in the order of their creation, the owner first.

    The owner's UID is known once it is created; without it the others do not refer to it.
    """
    name, labels = spec.campaign, campaign_labels(spec.campaign)
    manifests = [make_object("ConfigMap", name, namespace=spec.namespace, labels=labels)]
    for index in range(len(spec.volumes)):
        names = _pod_names(spec, index)
        for claim in dict.fromkeys(_claim_name(spec, index, name) for name in names):
            if spec.source is VolumeSource.CLAIM:  # without an owner it is kept
                owner = "" if spec.keep else owner_uid
                made = _owned(spec, "PersistentVolumeClaim", (index, claim), owner)
                modes = {"volumeMode": spec.volume_mode, "accessModes": [spec.access_mode]}
                content = claim_spec(spec.size, spec.volumes[index], **modes)
                content |= {"dataSource": spec.data_source} if spec.data_source else {}
                manifests.append(made | {"spec": content})
        manifests += [_pod(spec, index, name, owner_uid) for name in names]
    return manifests


def make_object(
    kind: str,
    name: str,
    *,
    labels: Mapping[str, str],
    namespace: str = "",
    annotations: Mapping[str, str] | None = None,
    owner: tuple[str, str] = ("", ""),
    **content: object,
) -> Manifest:
    """Return an object.

    Args:
        owner: name and UID of the ConfigMap that owns it; an empty UID for none.
        content: its further fields, such as ``spec``.
    """
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    if owner[1]:
        metadata["ownerReferences"] = [owner_reference(*owner)]
    version = KINDS[kind].group.partition("/")[2]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def owner_reference(name: str, uid: str) -> Manifest:
    """Return the reference to the ConfigMap whose deletion deletes an object."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}


def _owned(spec: ClusterSpec, kind: str, place: tuple[int, str], owner_uid: str) -> Manifest:
    """Return an object of a storage class, by the place of the class and its own name."""
    index, name = place
    return make_object(
        kind,
        name,
        namespace=spec.namespace,
        owner=(spec.campaign, owner_uid),
        labels=campaign_labels(spec.campaign) | {WORKLOAD_LABEL: _workload_name(spec, index)},
        annotations={_CLASS: spec.volumes[index] or spec.unnamed_class},
    )


def _pod(spec: ClusterSpec, index: int, name: str, owner_uid: str) -> Manifest:
    """Return a pod of one storage class; the cluster never starts it twice."""
    content = {"restartPolicy": "Never", "activeDeadlineSeconds": spec.deadline_s}
    content |= _pod_spec(spec, _claim_name(spec, index, name))
    if spec.topology_key and spec.replicas > 1:
        constraint = {
            "maxSkew": 1,
            "topologyKey": spec.topology_key,
            "whenUnsatisfiable": "DoNotSchedule",
            # Without it, a node that takes no pods counts as one with the fewest.
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {WORKLOAD_LABEL: _workload_name(spec, index)}},
        }
        content["topologySpreadConstraints"] = [constraint]
    pod = _owned(spec, "Pod", (index, name), owner_uid) | {"spec": content}
    pod["metadata"]["annotations"] |= _NO_EVICTION
    return pod


class PlannedPod(NamedTuple):
    """A pod of a campaign."""

    name: str
    storage_class: str  # empty for the default one
    claim: str  # name of its claim; empty for a volume without
    turn: int  # pods of one turn are measured together; 0 where all are


def planned_pods(spec: ClusterSpec) -> list[PlannedPod]:
    """Return all pods of a campaign.

    Storage classes are measured one after another, in each step, where their pods may share a node,
    and its limits.
    """
    pods = []
    takes_turns = len(spec.volumes) > 1
    for index, storage_class in enumerate(spec.volumes):
        turn = index + 1 if takes_turns else 0
        pods += [
            PlannedPod(name, storage_class, _claim_name(spec, index, name), turn)
            for name in _pod_names(spec, index)
        ]
    return pods


def _pod_names(spec: ClusterSpec, index: int) -> list[str]:
    base = _workload_name(spec, index)
    return [f"{base}-{number}" for number in range(spec.replicas)] if spec.replicas > 1 else [base]


def _claim_name(spec: ClusterSpec, index: int, pod_name: str) -> str:
    if spec.source is VolumeSource.NODE:
        return ""
    if spec.source is VolumeSource.EXISTING:
        return spec.claims[index]
    return _workload_name(spec, index) if spec.is_shared else pod_name


def role_paths(spec: ClusterSpec) -> dict[str, str]:
    """Return role to folder or device in the pods."""
    if spec.source is VolumeSource.NODE:
        return {_DATA: OS_MOUNT, _OS: OS_MOUNT}
    data = {_DATA: DATA_DEVICE if spec.is_block else DATA_MOUNT}
    return {**data, _OS: OS_MOUNT} if spec.needs_os else data


def campaign_labels(campaign: str) -> dict[str, str]:
    """Return the labels by which everything of a campaign is found."""
    return {MANAGED_BY: "volbench", CAMPAIGN_LABEL: campaign}


def campaign_selector(campaign: str) -> str:
    """Return the label selector of everything of a campaign."""
    return ",".join(f"{label}={text}" for label, text in campaign_labels(campaign).items())


def _workload_name(spec: ClusterSpec, index: int) -> str:
    """Return what the names of the pods and claims of one storage class begin with."""
    return f"{spec.campaign}-{index}"


def claim_spec(size: str, storage_class: str, **more: object) -> Manifest:
    """Return the content of a PersistentVolumeClaim; an empty class is the default one."""
    content: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        **more,
        "resources": {"requests": {"storage": size}},
    }
    return content | ({"storageClassName": storage_class} if storage_class else {})


def _pod_spec(spec: ClusterSpec, claim: str) -> Manifest:
    container, secrets = _container(spec), spec.image_pull_secrets
    content = pod_spec(container, _volumes(spec, claim), user=spec.user, secrets=secrets)
    content |= {"terminationGracePeriodSeconds": 5, "automountServiceAccountToken": False}
    if spec.claims:  # fsGroup would change the group of all files of somebody else
        for name in ("fsGroup", "fsGroupChangePolicy"):
            content["securityContext"].pop(name, None)
    if spec.node_selector:
        content["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        content["tolerations"] = [_toleration(taint) for taint in spec.tolerations]
    if spec.service_account:
        content["serviceAccountName"] = spec.service_account
    return content


def _toleration(taint: Toleration) -> Manifest:
    operator = {"operator": "Exists" if taint.value is None else "Equal"}
    fields = {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
    return {**operator, **{name: text for name, text in fields.items() if text}}


def pod_spec(
    container: Manifest, volumes: list[Manifest], *, user: int, secrets: tuple[str, ...]
) -> Manifest:
    """Return the content of a pod whose processes run as a user and group; 0 is root."""
    security: Manifest = {
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if user:
        security |= {"fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch"}
    content: Manifest = {
        "containers": [container],
        "volumes": volumes,
        "securityContext": security,
        "enableServiceLinks": False,
    }
    if secrets:
        content["imagePullSecrets"] = [{"name": name} for name in secrets]
    return content


def make_container(
    name: str,
    image: str,
    command: list[str],
    *,
    environment: Mapping[str, str],
    mounts: Mapping[str, str],  # volume to folder
    pull_policy: str,
) -> Manifest:
    """Return a container without privileges, whose root file system is read-only."""
    content: Manifest = {
        "name": name,
        "image": image,
        "command": command,
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "volumeMounts": [{"name": key, "mountPath": path} for key, path in mounts.items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    return content | ({"imagePullPolicy": pull_policy} if pull_policy else {})


def _container(spec: ClusterSpec) -> Manifest:
    mounts = {_SCRATCH: WORK_MOUNT, _TMP: "/tmp"}  # noqa: S108 - a volume of the pod
    if not (spec.os_disk or spec.is_block):
        mounts[_DATA] = DATA_MOUNT
    if spec.needs_os or spec.os_disk:
        mounts[_OS] = OS_MOUNT
    # An emptyDir can be written by all users, and root's agent takes no such folder.
    private = "" if spec.user else f"chmod 755 {WORK_MOUNT}; "
    content = make_container(
        CONTAINER,
        spec.image,
        ["sh", "-c", private + WAIT],
        environment=dict.fromkeys(("HOME", "TMPDIR"), WORK_MOUNT),
        mounts=mounts,
        pull_policy=spec.image_pull_policy,
    )
    if spec.is_shared:  # a folder of its own for each pod
        own_name = {"fieldRef": {"fieldPath": "metadata.name"}}
        content["env"].append({"name": _POD_NAME, "valueFrom": own_name})
        for mount in content["volumeMounts"]:
            if mount["name"] == _DATA:
                mount["subPathExpr"] = f"$({_POD_NAME})"
    if spec.is_block:
        content["volumeDevices"] = [{"name": _DATA, "devicePath": DATA_DEVICE}]
    quantities = {"requests": dict(spec.requests), "limits": dict(spec.limits)}
    if resources := {kind: given for kind, given in quantities.items() if given}:
        content["resources"] = resources
    return content


def _volumes(spec: ClusterSpec, claim: str) -> list[Manifest]:
    volumes: list[Manifest] = [{"name": name, "emptyDir": {}} for name in (_SCRATCH, _TMP)]
    if claim:
        volumes.append({"name": _DATA, "persistentVolumeClaim": {"claimName": claim}})
    if spec.needs_os or spec.os_disk:
        limit = {"sizeLimit": spec.size} if spec.os_disk and spec.size else {}
        volumes.append({"name": _OS, "emptyDir": limit})
    return volumes


def image_test(spec: ClusterSpec) -> Manifest:
    """Return a pod that says whether its image serves; its volume is the disk of the node."""
    *_, pod = objects(spec)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", _IMAGE_TEST]
    return pod


def rights(namespace: str) -> Iterator[dict[str, str]]:
    """Yield the access rights that campaigns need, as the API describes them."""
    for place, table in ((namespace, _NAMESPACED), ("", _CLUSTER)):
        for group, resources, verbs in table:
            for resource, verb in product(resources, verbs):
                name, _, part = resource.partition("/")
                what = {"group": group, "resource": name, "subresource": part}
                yield {**what, "verb": verb, "namespace": place}


def access_manifests(*, namespace: str, name: str = "volbench") -> list[Manifest]:
    """Return a service account, and the roles and bindings that let it run campaigns."""
    require_label(namespace, what="namespace")
    require_label(name, what="name")
    wide, labels = f"{name}-volumes-{namespace}", {MANAGED_BY: "volbench"}
    inside: dict[str, Any] = {"namespace": namespace, "labels": labels}
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}

    def bound(kind: str, role: str) -> dict[str, Any]:
        reference = {"apiGroup": _API, "kind": kind, "name": role}
        return {"roleRef": reference, "subjects": [account]}

    def rules(table: Iterable[tuple[str, tuple[str, ...], tuple[str, ...]]]) -> list[Manifest]:
        return [
            {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}
            for group, resources, verbs in table
        ]

    role, binding = bound("Role", name), bound("ClusterRole", wide)
    return [
        make_object("ServiceAccount", name, **inside),
        make_object("Role", name, **inside, rules=rules(_NAMESPACED)),
        make_object("RoleBinding", name, **inside, **role),
        make_object("ClusterRole", wide, labels=labels, rules=rules(_CLUSTER)),
        make_object("ClusterRoleBinding", wide, labels=labels, **binding),
    ]
