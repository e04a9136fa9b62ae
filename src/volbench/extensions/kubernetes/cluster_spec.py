"""Specification of a campaign's objects on a Kubernetes cluster: its options, checked when made."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

import click

from volbench.cli.configuration import container_image
from volbench.cli.options import Decorator, Quantity
from volbench.errors import InputError
from volbench.units import parse_duration

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(m|k|Ki|[MGTPE]i?|)")
_ZERO = re.compile(r"[0.]+\D*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")

# Lengths and ranges of the Kubernetes API. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py::test_values_that_the_cluster_rejects_are_refused
MAX_LABEL = 63
MAX_SUBDOMAIN = 253  # Also of the API. Noticed by: tests/extensions/kubernetes/test_cluster_spec.py
MAX_INT32 = 2**31 - 1
# Leaves room for a pod's number and the hash that a StatefulSet adds: 63. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py
MAX_CAMPAIGN = 40
# Twice the 500 clients with which volbench is measured. Noticed by:
# tests/extensions/kubernetes/test_cluster_spec.py
MAX_REPLICAS = 1000

LAYERS = ("device", "claim", "file")  # from the disk of a node up
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany")
_TOPOLOGY = {
    "node": "kubernetes.io/hostname",
    "zone": "topology.kubernetes.io/zone",
    "none": "",
}
_ROLES = {"data", "os"}
NAMESPACE_HELP = "Namespace. Default: that of the context."
_EXAMPLE = "write it like dedicated=disktest:NoSchedule"

UNPRIVILEGED_USER = 65532  # The user and group of distroless images.


class VolumeSource(StrEnum):
    """Origin of the volume under test."""

    CLAIM = "claim"  # a PersistentVolumeClaim; may outlive its pod
    EXISTING = "existing"  # a PersistentVolumeClaim of somebody else, which is never removed
    EPHEMERAL = "ephemeral"  # a generic ephemeral volume: a claim that is deleted with its pod
    NODE = "node"  # the node's own disk, through an emptyDir


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A taint that the pods accept."""

    key: str
    value: str | None = None  # None accepts every value
    effect: str = ""  # empty accepts every effect

    def __post_init__(self) -> None:
        """Refuse an invalid key, value or effect."""
        require_key(self.key, what="toleration")
        require_value(self.value or "", what="toleration")
        if self.effect and self.effect not in _EFFECTS:
            raise InputError(
                f"toleration: unknown effect {self.effect!r}",
                hint=f"must be one of {', '.join(_EFFECTS)}",
            )


def parse_toleration(text: str) -> Toleration:
    """Return the toleration of ``KEY[=VALUE][:EFFECT]``, as kubectl taint writes taints."""
    taint, colon, effect = text.rpartition(":") if ":" in text else (text, "", "")
    key, equals, value = taint.partition("=")
    if not key or (colon and not effect):
        raise InputError(f"toleration {text!r} is not a taint", hint=_EXAMPLE)
    return Toleration(key=key, value=value if equals else None, effect=effect)


def parse_layers(text: str) -> tuple[str, ...]:
    """Return the layers of a list such as ``device,claim,file``, from the lowest up."""
    named = text.split(",") if text else []
    if len(named) == 1 or len({*named}) < len(named) or not {*named} <= {*LAYERS}:
        raise InputError(
            f"{text!r} must be two or three different layers of {', '.join(LAYERS)}",
            hint="write it like --layers claim,file",
        )
    return tuple(layer for layer in LAYERS if layer in named)


def parse_pairs(texts: Iterable[str], *, option: str) -> dict[str, str]:
    """Return the mapping of ``KEY=VALUE`` texts."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InputError(f"{option} {text!r} must be KEY=VALUE")
        if key in pairs:
            raise InputError(f"{option} names {key!r} twice")
        pairs[key] = value
    return pairs


def option(name: str, *, default: Any, **attributes: Any) -> Any:  # noqa: ANN401 - a field of any type
    """Return a field of a specification that is an option of the command line.

    Args:
        name: of the option.
        default: value of the field, and of the option unless `attributes` have a ``text``.
        attributes: of click's option.
    """
    attributes.setdefault("default", attributes.pop("text", default))
    metadata = {"name": name, "attributes": attributes}
    if isinstance(default, dict):
        attributes.pop("default")
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def repeatable(name: str, metavar: str, text: str, parse: Callable[[str], object] = str) -> Any:  # noqa: ANN401 - the same
    """Return a field with the values of an option that may be given several times."""
    kind = None if parse is str else Quantity(metavar, parse)
    return option(
        name, default=(), type=kind, multiple=True, metavar=metavar, help=f"{text}; repeatable."
    )


def text_option(name: str, metavar: str, text: str, default: str = "") -> Any:  # noqa: ANN401 - the same
    """Return a field with a text."""
    has_default = bool(default)
    return option(name, default=default, metavar=metavar, help=text, show_default=has_default)


def _pairs(name: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - the same
    def parse(_context: click.Context, _option: click.Parameter, texts: Iterable[str]) -> object:
        return parse_pairs(texts, option=name)

    text = f"{text}; repeatable."
    return option(name, default={}, multiple=True, metavar=metavar, callback=parse, help=text)


def _flag(name: str, text: str) -> Any:  # noqa: ANN401 - the same
    return option(name, default=False, is_flag=True, help=text)


def spec_options(spec: Any, *, without: Collection[str] = ()) -> list[Decorator]:  # noqa: ANN401 - a class with fields by `option`
    """Return the options that describe a specification, by its fields, but for some options."""
    return [
        click.option(described.metadata["name"], described.name, **described.metadata["attributes"])
        for described in fields(spec)
        if described.metadata and described.metadata["name"] not in without
    ]


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """Objects that a campaign needs on a cluster; see `manifests.objects`.

    Each field with an option is declared here and nowhere else: `options` makes the command line.
    """

    campaign: str  # unique name of the campaign, and of the object that owns its others
    needs_os: bool = False  # a job measures the role `os`: add an emptyDir on the node's disk

    # One pod and volume each, in order; a class may occur several times. Empty: the default class.
    storage_classes: tuple[str, ...] = repeatable(
        "--storage-class",
        "NAME",
        "StorageClass of the volume; several are compared with each other",
    )
    claims: tuple[str, ...] = repeatable(
        "--claim",
        "NAME",
        "Measure the volume of this claim, which exists and is never removed; several are compared",
    )
    from_snapshot: str = text_option(
        "--from-snapshot", "NAME", "Restore the volumes from this VolumeSnapshot."
    )
    from_claim: str = text_option(
        "--from-claim", "NAME", "Clone the volume of this claim, which is not changed."
    )
    attributes_class: str = text_option(
        "--attributes-class", "NAME", "VolumeAttributesClass of the volumes."
    )
    size: str = text_option("--size", "SIZE", "Size of each volume, like 250Gi.")
    expand_to: str = text_option(
        "--expand", "SIZE", "Also measure the expansion of each volume to this size."
    )
    volume_mode: str = option(
        "--volume-mode",
        default="Filesystem",
        type=click.Choice(["Filesystem", "Block"], case_sensitive=False),
        metavar="Filesystem|Block",
        show_default=True,
        help="Measure through a filesystem, or the raw block device.",
    )
    layers: tuple[str, ...] = option(
        "--layers",
        default=(),
        text="",
        type=Quantity("LIST", parse_layers),
        metavar="LAYER,LAYER...",
        help="Compare layers of the storage, as arms of one campaign in one pod: device (the disk "
        "of a node, see --device-claim), claim (a raw block volume) and file (a filesystem).",
    )
    device_claim: str = text_option(
        "--device-claim",
        "NAME",
        "Existing claim of a local block volume: the layer device. It is never removed.",
    )
    access_mode: str = option(
        "--access-mode",
        default=ACCESS_MODES[0],
        type=click.Choice(ACCESS_MODES, case_sensitive=False),
        metavar="|".join(ACCESS_MODES),
        show_default=True,
        help="Access mode of the claims. With ReadWriteMany, --replicas N measures one volume from "
        "N pods, each in a folder of its own.",
    )
    os_disk: bool = _flag("--os-disk", "Measure the node's own disk, through an emptyDir.")
    ephemeral: bool = _flag(
        "--ephemeral", "Use generic ephemeral volumes, which are deleted with their pods."
    )
    replicas: int = option(  # pods for each storage class; a StatefulSet if there are several
        "--replicas",
        default=1,
        type=click.IntRange(1, MAX_REPLICAS),
        show_default=True,
        metavar="N",
        help="Measure N volumes of each class at the same time, each in its own pod.",
    )
    spread: str = text_option(
        "--spread",
        "node|zone|none|LABEL",
        "Spread replicas evenly over nodes, zones, or values of a node label.",
        "node",
    )
    is_parallel: bool = _flag(
        "--parallel-classes",
        "Measure several storage classes at the same time, each on a node of its own (see "
        "--spread), instead of one after another.",
    )
    node_selector: Mapping[str, str] = _pairs(
        "--node-selector", "LABEL=VALUE", "Run only on nodes with this label"
    )
    tolerations: tuple[Toleration, ...] = repeatable(
        "--toleration",
        "KEY[=VALUE][:EFFECT]",
        "Also run on nodes with this taint",
        parse_toleration,
    )
    image: str = option(
        "--image",
        default="",
        callback=lambda _context, _option, image: image or container_image(),
        metavar="IMAGE",
        help="Container image with fio and python3. Default: `image` in volbench.toml.",
    )
    image_pull_policy: str | None = option(
        "--image-pull-policy",
        default=None,
        type=click.Choice(PULL_POLICIES, case_sensitive=False),
        metavar="|".join(PULL_POLICIES),
        help="When to pull the image. Default: the cluster's rule.",
    )
    image_pull_secrets: tuple[str, ...] = repeatable(
        "--image-pull-secret", "NAME", "Secret with credentials of the image's registry"
    )
    pod_requests: Mapping[str, str] = _pairs(
        "--pod-request",
        "RESOURCE=QUANTITY",
        "Resource that a node must have free for a pod, such as cpu=2",
    )
    pod_limits: Mapping[str, str] = _pairs(
        "--pod-limit",
        "RESOURCE=QUANTITY",
        "Limit of a pod. Default: none, since a CPU limit throttles fio and a memory limit its "
        "page cache",
    )
    run_as_user: int | None = option(
        "--run-as-user",
        default=None,
        type=click.IntRange(0, MAX_INT32),
        metavar="UID",
        help="User and group of the container. Default: 65532; 0 for --volume-mode Block.",
    )
    service_account: str = text_option(  # its token is not mounted
        "--service-account", "NAME", "Service account of the pods."
    )
    namespace: str = text_option("--namespace", "NAME", NAMESPACE_HELP)
    deadline_s: int = option(
        "--deadline",
        default=86400,
        text="1d",
        type=Quantity("TIME", lambda text: max(1, round(parse_duration(text)))),
        show_default=True,
        help="Time after which the cluster terminates a pod; not with --replicas.",
    )
    keep: bool = _flag("--keep", "Keep the volumes when the campaign has ended.")

    def __post_init__(self) -> None:
        """Refuse values that the cluster would refuse, and contradictions."""
        require_name(self.campaign, what="campaign", longest=MAX_CAMPAIGN)
        if self.namespace:
            require_name(self.namespace, what="namespace")
        if not _IMAGE.fullmatch(self.image):
            raise InputError(
                f"{self.image!r} is not the name of an image"
                if self.image
                else "the container image is missing",
                hint="build the Containerfile, push it to your registry, and name it: --image "
                "registry.example.com/volbench-fio:1, or image = ... in volbench.toml",
            )
        for name in self.storage_classes:
            _require(_SUBDOMAIN, name, what="storage class", longest=MAX_SUBDOMAIN)
        self._require_volume()
        self._require_placement()
        self._require_container()

    def _require_volume(self) -> None:
        for name in self.claims:
            _require(_SUBDOMAIN, name, what="claim", longest=MAX_SUBDOMAIN)
        if not self.size and not self.os_disk and not self.claims:
            raise InputError(
                "the volume size is missing",
                hint="the size decides the limits of most cloud volumes: --size 250Gi",
            )
        for what, size in (("size", self.size), ("--expand", self.expand_to)):
            if size:
                require_quantity(size, what=what)
        for what, name in (
            ("snapshot", self.from_snapshot),
            ("claim", self.from_claim),
            ("attributes class", self.attributes_class),
            ("claim", self.device_claim),
        ):
            if name:
                _require(_SUBDOMAIN, name, what=what, longest=MAX_SUBDOMAIN)
        if ("device" in self.layers) != bool(self.device_claim):
            raise InputError(
                "--device-claim names the disk for the layer device: each needs the other",
                hint="add --layers device,claim,file --device-claim NAME, or leave out both",
            )
        is_shared = self.is_shared
        contradictions = (
            ("--os-disk", "--ephemeral", self.os_disk and self.ephemeral),
            ("--os-disk", "--volume-mode Block", self.os_disk and self.is_block),
            ("--os-disk", "--storage-class", self.os_disk and self.storage_classes),
            ("--os-disk", "--keep", self.os_disk and self.keep),
            ("--ephemeral", "--keep", self.ephemeral and self.keep),
            ("--claim", "--storage-class", self.claims and self.storage_classes),
            ("--claim", "--size", self.claims and self.size),
            ("--claim", "--os-disk", self.claims and self.os_disk),
            ("--claim", "--ephemeral", self.claims and self.ephemeral),
            ("--claim", "--keep", self.claims and self.keep),
            ("--claim", "--replicas", self.claims and self.replicas > 1),
            ("--claim", "--access-mode", self.claims and self.access_mode != ACCESS_MODES[0]),
            ("--os-disk", "--access-mode", self.os_disk and self.access_mode != ACCESS_MODES[0]),
            ("--from-snapshot", "--from-claim", self.from_snapshot and self.from_claim),
            *(
                (option, other, name and is_given)
                for option, name in (
                    ("--from-snapshot", self.from_snapshot),
                    ("--from-claim", self.from_claim),
                    ("--attributes-class", self.attributes_class),
                    ("--expand", self.expand_to),
                )
                for other, is_given in (("--claim", self.claims), ("--os-disk", self.os_disk))
            ),
            ("--volume-mode Block", "ReadWriteMany with --replicas", self.is_block and is_shared),
            ("--expand", "ReadWriteMany with --replicas", self.expand_to and is_shared),
            ("--parallel-classes", "--replicas", self.is_parallel and self.replicas > 1),
            *(
                ("--layers", other, self.layers and is_given)
                for other, is_given in (
                    ("--claim", self.claims),
                    ("--os-disk", self.os_disk),
                    ("--ephemeral", self.ephemeral),
                    ("--replicas", self.replicas > 1),
                    ("--volume-mode Block", self.volume_mode == "Block"),
                    ("--expand", self.expand_to),
                    ("several storage classes", len(self.storage_classes) > 1),
                    ("restored volumes", self.data_source),
                )
            ),
        )
        for option, other, is_given in contradictions:
            if is_given:
                raise InputError(
                    f"{option} and {other} exclude each other",
                    hint="the node's own disk is an emptyDir, which is deleted with its pod"
                    if option == "--os-disk"
                    else "leave out one of them",
                )

    def _require_placement(self) -> None:
        for key, value in self.node_selector.items():
            require_key(key, what="node selector")
            require_value(value, what=f"node selector {key}")
        if self.topology_key:
            require_key(self.topology_key, what="--spread")
        _require_range(self.replicas, 1, MAX_REPLICAS, what="replicas")

    def _require_container(self) -> None:
        if self.image_pull_policy not in (None, *PULL_POLICIES):
            raise InputError(
                f"unknown image pull policy {self.image_pull_policy!r}",
                hint=f"must be one of {', '.join(PULL_POLICIES)}",
            )
        for name in (*self.image_pull_secrets, *filter(None, [self.service_account])):
            _require(_SUBDOMAIN, name, what="secret or service account", longest=MAX_SUBDOMAIN)
        for kind, quantities in (("request", self.pod_requests), ("limit", self.pod_limits)):
            for resource, quantity in quantities.items():
                require_key(resource, what=kind)
                require_quantity(quantity, what=f"{kind} of {resource}")
        if self.run_as_user is not None:
            _require_range(self.run_as_user, 0, MAX_INT32, what="user id")
        _require_range(self.deadline_s, 1, MAX_INT32, what="deadline in seconds")

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
        if self.claims:
            return VolumeSource.EXISTING
        return VolumeSource.EPHEMERAL if self.ephemeral else VolumeSource.CLAIM

    @property
    def unnamed_class(self) -> str:
        """What a volume without a known storage class is called."""
        if self.os_disk:
            return "node-disk"
        return "unknown" if self.claims else "default"

    @property
    def is_block(self) -> bool:
        """Whether there is no volume but raw block devices."""
        return self.volume_mode == "Block" or (bool(self.layers) and "file" not in self.layers)

    @property
    def is_shared(self) -> bool:
        """Whether the pods of a class measure one volume together."""
        is_claim = self.source is VolumeSource.CLAIM
        return is_claim and self.replicas > 1 and self.access_mode == "ReadWriteMany"

    @property
    def topology_key(self) -> str:
        """Node label over whose values pods are spread; empty for no rule."""
        return _TOPOLOGY.get(self.spread, self.spread)

    @property
    def user(self) -> int:
        """User and group id of the container; a block device in it belongs to root."""
        if self.run_as_user is not None:
            return self.run_as_user
        return 0 if self.is_block or self.layers else UNPRIVILEGED_USER

    @property
    def data_source(self) -> dict[str, str]:
        """What the volumes are restored or cloned from; empty for new ones."""
        if self.from_snapshot:
            kind = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot"}
            return {**kind, "name": self.from_snapshot}
        return {"kind": "PersistentVolumeClaim", "name": self.from_claim} if self.from_claim else {}

    @property
    def origin(self) -> str:
        """What the volumes are restored or cloned from, in words; empty for new ones."""
        if self.from_snapshot:
            return f"snapshot {self.from_snapshot}"
        return f"claim {self.from_claim}" if self.from_claim else ""

    @property
    def volumes(self) -> tuple[str, ...]:
        """Storage class of each volume, in order; empty text for the default or an unknown one."""
        return self.storage_classes or ("",) * max(1, len(self.claims))


def quantity_bytes(text: str) -> int:
    """Return the bytes of a Kubernetes quantity, such as ``250Gi`` or ``1.5G``; 0 if invalid."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0
    number, unit = match.groups()
    power = " kMGTPE".find(unit[:1].lower() if unit == "Ki" else unit[:1] or " ")
    return int(float(number) * (1024 if unit.endswith("i") else 1000) ** power) if power >= 0 else 0


def is_growing(claim: Mapping[str, Any]) -> bool:
    """Return whether the volume of a claim is smaller than the claim asks for."""
    wanted = claim["spec"]["resources"]["requests"]["storage"]
    size = claim.get("status", {}).get("capacity", {}).get("storage", "")
    return quantity_bytes(size) < quantity_bytes(wanted)


def require_name(text: str, *, what: str, longest: int = MAX_LABEL) -> None:
    """Refuse a text that is not a DNS label, such as the name of a namespace."""
    _require(_DNS_LABEL, text, what=what, longest=longest)


def _require(pattern: re.Pattern[str], text: str, *, what: str, longest: int) -> None:
    if len(text) > longest or not pattern.fullmatch(text):
        raise InputError(
            f"{what} {text!r} is not a valid Kubernetes name",
            hint=f"use lower-case letters, digits and -, at most {longest} characters",
        )


def require_key(text: str, *, what: str) -> None:
    """Refuse a text that is not a valid label key: ``[PREFIX/]NAME``."""
    prefix, slash, name = text.rpartition("/")
    fits = len(prefix) <= MAX_SUBDOMAIN and len(name) <= MAX_LABEL and bool(name)
    if not fits or not _LABEL_VALUE.fullmatch(name) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
        raise InputError(
            f"{what}: {text!r} is not a valid label key",
            hint="write it like disktest or example.com/disktest",
        )


def require_value(text: str, *, what: str) -> None:
    """Refuse a text that is not a valid label value."""
    if not is_label_value(text):
        raise InputError(
            f"{what}: {text!r} is not a valid label value",
            hint=f"use letters, digits, -, _ and ., at most {MAX_LABEL} characters",
        )


def require_quantity(text: str, *, what: str) -> None:
    """Refuse a text that is not a positive quantity, such as the size of a volume."""
    if not _QUANTITY.fullmatch(text) or _ZERO.fullmatch(text):
        raise InputError(
            f"{what}: {text!r} is not a positive quantity",
            hint="write it as Kubernetes does, like 250Gi, 500m or 2",
        )


def _require_range(number: int, lowest: int, highest: int, *, what: str) -> None:
    if not lowest <= number <= highest:
        raise InputError(f"{what} must be between {lowest} and {highest}, not {number}")


def is_label_value(text: str) -> bool:
    """Return whether a text is valid as the value of a label."""
    return len(text) <= MAX_LABEL and _LABEL_VALUE.fullmatch(text) is not None
