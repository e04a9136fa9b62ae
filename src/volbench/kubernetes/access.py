"""Least access rights that campaigns on a cluster need, as manifests of RBAC."""

from __future__ import annotations

from volbench.kubernetes.cluster_spec import require_name
from volbench.kubernetes.manifests import MANAGED_BY, Manifest

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
