"""Objects of a campaign on a Kubernetes cluster, as options and settings describe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

import click

from volbench.cli.options import Decorator, Quantity
from volbench.errors import InputError
from volbench.extensions.kubernetes.api_values import (
    Toleration,
    parse_toleration,
    require_label,
    require_quantity,
)
from volbench.extensions.kubernetes.pod_settings import (
    PULL_POLICIES,
    TOPOLOGY,
    parse_boolean,
    parse_deadline,
    parse_pull_policy,
    parse_resource,
    parse_selector,
    parse_user,
    setting,
)
from volbench.units import parse_duration

# Leaves room for the numbers of a class and a pod: 63. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py
MAX_CAMPAIGN = 40
# Twice the 500 clients with which volbench is measured. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py
MAX_REPLICAS = 1000
ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany")
NAMESPACE_HELP = "Namespace. Default: that of the context."
UNPRIVILEGED_USER = 65532  # The user and group of distroless images.

_ROLES = {"data", "os"}
_OPTION = "option"
# Kind of a source to the reference of the API without its name
_SOURCES = {
    "snapshot": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot"},
    "claim": {"kind": "PersistentVolumeClaim"},
}
_NEW_VOLUME = ("--storage-class", "--keep", "--access-mode", "--from")
# Option to the options that make no sense with it
_EXCLUDED = {
    "--pod os-disk": (*_NEW_VOLUME, "--volume-mode Block"),
    "--claim": (*_NEW_VOLUME, "--claim-size", "--replicas", "--pod os-disk"),
    "--volume-mode Block": ("ReadWriteMany with --replicas",),
}


class VolumeSource(StrEnum):
    """Origin of the volume under test."""

    CLAIM = "claim"  # a PersistentVolumeClaim; may outlive its pod
    EXISTING = "existing"  # a PersistentVolumeClaim of somebody else, which is never removed
    NODE = "node"  # the node's own disk, through an emptyDir


def parse_source(text: str) -> tuple[str, str]:
    """Return kind and name of ``snapshot:NAME`` or ``claim:NAME``; of an empty text, none."""
    if not text:
        return "", ""
    kind, _, name = text.partition(":")
    if kind not in _SOURCES or not name:
        raise InputError(
            f"{text!r} is neither a snapshot nor a claim",
            hint="write it like --from snapshot:NAME or --from claim:NAME",
        )
    return kind, name


def option(name: str, *, default: Any, **attributes: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a specification that is an option of the command line."""
    attributes.setdefault("default", attributes.pop("text", default))
    return field(default=default, metadata={_OPTION: (name, attributes)})


def text_option(name: str, metavar: str, text: str, default: str = "") -> Any:  # noqa: ANN401 - the same
    """Return a field with a text."""
    return option(name, default=default, metavar=metavar, help=text, show_default=bool(default))


def _names(name: str, text: str) -> Any:  # noqa: ANN401 - the same
    return option(name, default=(), multiple=True, metavar="NAME", help=f"{text}; repeatable.")


def _choice(name: str, choices: tuple[str, ...], text: str) -> Any:  # noqa: ANN401 - the same
    return option(
        name,
        default=choices[0],
        type=click.Choice(choices, case_sensitive=False),
        metavar="|".join(choices),
        show_default=True,
        help=text,
    )


def spec_options(spec: Any, *, only: Collection[str] = ()) -> list[Decorator]:  # noqa: ANN401 - a class with fields by `option`
    """Return the options that describe a specification, by its fields: all, or some."""
    described = {
        each.name: each.metadata[_OPTION] for each in fields(spec) if _OPTION in each.metadata
    }
    return [
        click.option(name, parameter, **attributes)
        for parameter, (name, attributes) in described.items()
        if not only or name in only
    ]


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """Objects that a campaign needs on a cluster; see `manifests.objects`.

    Each option and each setting of pods is declared here and nowhere else.
    """

    campaign: str  # unique name of the campaign, and of the object that owns its others
    needs_os: bool = False  # a job measures the role `os`: add an emptyDir on the node's disk

    # One pod and volume each, in order; a class may occur several times. Empty: the default class.
    storage_classes: tuple[str, ...] = _names(
        "--storage-class", "StorageClass of the volume; several are compared with each other"
    )
    claims: tuple[str, ...] = _names(
        "--claim",
        "Measure the volume of this claim, which exists and is never removed; several are compared",
    )
    origin: tuple[str, str] = option(  # kind and name; two empty texts for new volumes
        "--from",
        default=("", ""),
        text="",
        type=Quantity("KIND:NAME", parse_source),
        metavar="snapshot:NAME|claim:NAME",
        help="Restore the volumes from a VolumeSnapshot, or clone the volume of a claim.",
    )
    size: str = text_option("--claim-size", "SIZE", "Size of each volume, like 250Gi.")
    volume_mode: str = _choice(
        "--volume-mode",
        ("Filesystem", "Block"),
        "Measure through a filesystem, or the raw block device.",
    )
    access_mode: str = _choice(
        "--access-mode",
        ACCESS_MODES,
        "Access mode of the claims. With ReadWriteMany, --replicas N measures one volume from N "
        "pods, each in a folder of its own.",
    )
    replicas: int = option(  # pods for each storage class
        "--replicas",
        default=1,
        type=click.IntRange(1, MAX_REPLICAS),
        show_default=True,
        metavar="N",
        help="Measure N volumes of each class at the same time, each in its own pod.",
    )
    keep: bool = option(
        "--keep", default=False, is_flag=True, help="Keep the volumes when the campaign has ended."
    )
    namespace: str = text_option("--namespace", "NAME", NAMESPACE_HELP)

    image: str = setting("image", "IMAGE", "Container image with fio and python3.", default="")
    image_pull_policy: str = setting(
        "image-pull-policy",
        "|".join(PULL_POLICIES),
        "When to pull the image. Default: the cluster's rule.",
        parse_pull_policy,
        default="",
    )
    image_pull_secrets: tuple[str, ...] = setting(
        "image-pull-secret",
        "NAME",
        "Secret with credentials of the image's registry; repeatable.",
        default=(),
    )
    node_selector: Mapping[str, str] = setting(
        "node-selector",
        "LABEL=VALUE",
        "Run only on nodes with this label; repeatable.",
        parse_selector,
        default={},
    )
    tolerations: tuple[Toleration, ...] = setting(
        "toleration",
        "KEY[=VALUE][:EFFECT]",
        "Also run on nodes with this taint; repeatable.",
        parse_toleration,
        default=(),
    )
    topology_key: str = setting(
        "spread",
        "node|zone|none|LABEL",
        "Spread replicas evenly over nodes, zones, or values of a node label. Default: node.",
        lambda text: TOPOLOGY.get(text, text),
        default=TOPOLOGY["node"],
    )
    requests: Mapping[str, str] = setting(
        "request.",
        "QUANTITY",
        "Resource that a node must have free for a pod, such as request.cpu=2.",
        parse_resource,
        default={},
    )
    limits: Mapping[str, str] = setting(
        "limit.",
        "QUANTITY",
        "Limit of a pod. Default: none, since a CPU limit throttles fio and a memory limit its "
        "page cache.",
        parse_resource,
        default={},
    )
    run_as_user: int | None = setting(
        "run-as-user",
        "UID",
        "User and group of the container. Default: 65532; 0 for raw block devices.",
        parse_user,
        default=None,
    )
    service_account: str = setting(  # its token is not mounted
        "service-account", "NAME", "Service account of the pods.", default=""
    )
    os_disk: bool = setting(
        "os-disk",
        "true",
        "Measure the node's own disk, through an emptyDir.",
        parse_boolean,
        default=False,
    )
    deadline_s: int = setting(
        "deadline",
        "TIME",
        "Time after which the cluster terminates a pod. Default: 1d.",
        parse_deadline,
        default=86400,
    )
    timeout_s: float = setting(
        "timeout",
        "TIME",
        "How long to wait for pods that cannot start, such as for a new node. Default: 10m.",
        parse_duration,
        default=600.0,
    )

    def __post_init__(self) -> None:
        """Refuse values that the cluster would refuse, and contradictions."""
        require_label(self.campaign, what="campaign", longest=MAX_CAMPAIGN)
        if self.namespace:
            require_label(self.namespace, what="namespace")
        if not self.image:
            raise InputError(
                "the container image is missing",
                hint="build the Containerfile, push it to your registry, and name it: --pod image="
                "registry.example.com/volbench-fio:1, or image = ... below [pod] in volbench.toml",
            )
        if self.size:
            require_quantity(self.size, what="size")
        elif not self.os_disk and not self.claims:
            raise InputError(
                "the volume size is missing",
                hint="the size decides the limits of most cloud volumes: --claim-size 250Gi",
            )
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        given = {
            "--storage-class": self.storage_classes,
            "--claim-size": self.size,
            "--keep": self.keep,
            "--replicas": self.replicas > 1,
            "--access-mode": self.access_mode != ACCESS_MODES[0],
            "ReadWriteMany with --replicas": self.is_shared,
            "--from": self.data_source,
            "--volume-mode Block": self.volume_mode == "Block",
            "--claim": self.claims,
            "--pod os-disk": self.os_disk,
        }
        for option, others in _EXCLUDED.items():
            other = next((name for name in others if given[name]), "")
            if given[option] and other:
                raise InputError(
                    f"{option} and {other} exclude each other",
                    hint="the node's own disk is an emptyDir, which is deleted with its pod"
                    if option == "--pod os-disk"
                    else "leave out one of them",
                )

    def for_roles(self, roles: Collection[str]) -> ClusterSpec:
        """Return the specification of a campaign whose jobs measure volumes of these roles."""
        if unknown := sorted({*roles} - _ROLES):
            raise InputError(
                f"pods have no volume for the role {unknown[0]}",
                hint="they have data (the volume under test) and os (the node's own disk)",
            )
        return replace(self, needs_os="os" in roles and not self.os_disk)

    @property
    def source(self) -> VolumeSource:
        """Origin of the volume of the role ``data``."""
        if self.os_disk:
            return VolumeSource.NODE
        return VolumeSource.EXISTING if self.claims else VolumeSource.CLAIM

    @property
    def unnamed_class(self) -> str:
        """Name of a volume without a known storage class."""
        if self.os_disk:
            return "node-disk"
        return "unknown" if self.claims else "default"

    @property
    def is_block(self) -> bool:
        """Whether the volume is a raw block device."""
        return self.volume_mode == "Block"

    @property
    def is_shared(self) -> bool:
        """Whether the pods of a class measure one volume together."""
        is_claim = self.source is VolumeSource.CLAIM
        return is_claim and self.replicas > 1 and self.access_mode == "ReadWriteMany"

    @property
    def user(self) -> int:
        """User and group id of the container; a block device in it belongs to root."""
        if self.run_as_user is not None:
            return self.run_as_user
        return 0 if self.is_block else UNPRIVILEGED_USER

    @property
    def data_source(self) -> dict[str, str]:
        """Reference to the snapshot or claim that volumes are made from; empty for new ones."""
        kind, name = self.origin
        return {**_SOURCES[kind], "name": name} if kind else {}

    @property
    def volumes(self) -> tuple[str, ...]:
        """Storage class of each volume, in order; empty text for the default or an unknown one."""
        return self.storage_classes or ("",) * max(1, len(self.claims))
