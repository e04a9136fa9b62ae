"""Specification of a campaign's objects on a Kubernetes cluster, checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from volbench.errors import InputError

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_ZERO = re.compile(r"[0.]+\D*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_MAX_LABEL = 63
_MAX_SUBDOMAIN = 253
# Leaves room for the numbers of a pod, and the hash that a StatefulSet adds to labels: 63
_MAX_CAMPAIGN = 40
_MAX_REPLICAS = 1000
_MAX_ID = 2**31 - 1
_MAX_DEADLINE_S = 2**31 - 1
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")

# User and group id of the container where the volume allows; the number that distroless uses
UNPRIVILEGED_USER = 65532


class VolumeSource(StrEnum):
    """Origin of the volume under test."""

    CLAIM = "claim"  # PersistentVolumeClaim; may outlive its pod
    # Generic ephemeral volume: a claim that Kubernetes deletes with its pod
    EPHEMERAL = "ephemeral"
    NODE = "node"  # The node's own disk, through an emptyDir


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A taint that the pods accept."""

    key: str = ""  # of the taint; empty for every taint
    value: str | None = None  # of the taint; None for every value
    effect: str = ""  # of the taint; empty for every effect

    def __post_init__(self) -> None:
        """Refuse what is not a taint."""
        if self.key:
            _require_key(self.key, what="toleration")
        _require_value(self.value or "", what="toleration")
        if self.value is not None and not self.key:
            raise InputError(
                f"a toleration of the value {self.value!r} needs a key",
                hint="write it like dedicated=disktest:NoSchedule",
            )
        if self.effect not in _EFFECTS:
            raise InputError(
                f"toleration: effect {self.effect!r} is unknown",
                hint=f"must be one of {', '.join(_EFFECTS[1:])}",
            )


def parse_toleration(text: str) -> Toleration:
    """Return the toleration of ``KEY[=VALUE][:EFFECT]``, as kubectl taint writes taints."""
    taint, colon, effect = text.rpartition(":") if ":" in text else (text, "", "")
    key, equals, value = taint.partition("=")
    if not key or (colon and not effect):
        raise InputError(
            f"toleration {text!r} names no taint",
            hint="write it like dedicated=disktest:NoSchedule",
        )
    return Toleration(key=key, value=value if equals else None, effect=effect)


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """Objects that a campaign needs on a cluster; see `manifests.objects`."""

    campaign: str  # unique key of the campaign and name of its owner object: a DNS label
    image: str  # container image with fio, a POSIX shell and its usual tools
    namespace: str = "default"  # of all objects
    # one pod and volume each, in order; a class may occur several times. Empty for the cluster's
    # default class.
    storage_classes: tuple[str, ...] = ()
    # quantity, such as ``250Gi``, requested for each volume; for the node's own disk the limit of
    # what is written, or empty
    size: str = ""
    source: VolumeSource = VolumeSource.CLAIM  # origin of the volume of the role ``data``
    block: bool = False  # the volume is a raw block device, not a filesystem
    os_disk: bool = False  # add an emptyDir on the node's disk, the role ``os``
    replicas: int = 1  # pods for each storage class; a StatefulSet if there are several
    # volumes of several storage classes are measured at the same time, each on a node (or zone, see
    # `topology_key`) without any other
    is_parallel: bool = False
    # node label over whose values replicas are spread evenly; empty for no rule
    topology_key: str = "kubernetes.io/hostname"
    node_selector: Mapping[str, str] = field(default_factory=dict)  # labels of the nodes to run on
    tolerations: tuple[Toleration, ...] = ()  # taints that the pods accept
    # ``Always``, ``IfNotPresent`` or ``Never``; empty for the cluster's rule
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()  # names of secrets with registry credentials
    # resource to quantity, such as ``cpu: 500m``
    requests: Mapping[str, str] = field(default_factory=dict)
    # the same for limits. A CPU limit throttles fio, a memory limit its page cache.
    limits: Mapping[str, str] = field(default_factory=dict)
    # user and group id of the container; None for an unprivileged one, and root for a block device,
    # whose node belongs to root
    run_as_user: int | None = None
    # of the pods; empty for that of the namespace. Its token is not mounted.
    service_account: str = ""
    # seconds after which the cluster ends a pod; not supported by StatefulSets
    deadline_s: int = 86400
    keep: bool = False  # volumes stay when the campaign's owner object is deleted

    def __post_init__(self) -> None:
        """Refuse what the cluster would refuse, or what contradicts itself."""
        require_name(self.campaign, what="campaign", longest=_MAX_CAMPAIGN)
        require_name(self.namespace, what="namespace")
        if not _IMAGE.fullmatch(self.image):
            raise InputError(
                f"{self.image!r} is not the name of an image" if self.image else "no image given",
                hint="build the Containerfile, push it to your registry, and name it: --image "
                "registry.example.com/volbench-fio:1, or image = ... in volbench.toml",
            )
        for name in self.storage_classes:
            _require(_SUBDOMAIN, name, what="storage class", longest=_MAX_SUBDOMAIN)
        self._require_volume()
        self._require_placement()
        self._require_container()

    def _require_volume(self) -> None:
        if not self.size and self.source is not VolumeSource.NODE:
            raise InputError(
                "no size of the volumes given",
                hint="the size decides the limits of most cloud volumes: --size 250Gi",
            )
        if self.size:
            require_quantity(self.size, what="size")
        if self.source is VolumeSource.NODE and self.block:
            raise InputError(
                "the node's own disk has no raw block volume",
                hint="measure it as a filesystem, or a storage class with volume mode Block",
            )
        if self.source is VolumeSource.NODE and self.storage_classes:
            raise InputError(
                f"the node's own disk has no storage class, not {self.storage_classes[0]}",
                hint="leave out one of --os-disk and --storage-class",
            )
        if self.keep and self.source is not VolumeSource.CLAIM:
            raise InputError(
                f"volumes of the kind {self.source.value} cannot be kept",
                hint="they are deleted with their pods; use claims",
            )

    def _require_placement(self) -> None:
        for key, value in self.node_selector.items():
            _require_key(key, what="node selector")
            _require_value(value, what=f"node selector {key}")
        if self.topology_key:
            _require_key(self.topology_key, what="topology key")
        _require_range(self.replicas, 1, _MAX_REPLICAS, what="replicas")
        if self.is_parallel and self.replicas > 1:
            raise InputError(
                "replicas of several storage classes cannot be measured at the same time",
                hint="leave out one of --parallel-classes and --replicas",
            )

    def _require_container(self) -> None:
        if self.image_pull_policy not in _PULL_POLICIES:
            raise InputError(
                f"image pull policy {self.image_pull_policy!r} is unknown",
                hint=f"must be one of {', '.join(_PULL_POLICIES[1:])}",
            )
        for name in (*self.image_pull_secrets, *filter(None, [self.service_account])):
            _require(_SUBDOMAIN, name, what="secret or service account", longest=_MAX_SUBDOMAIN)
        for kind, amounts in (("request", self.requests), ("limit", self.limits)):
            for resource, amount in amounts.items():
                _require_key(resource, what=kind)
                require_quantity(amount, what=f"{kind} of {resource}")
        if self.run_as_user is not None:
            _require_range(self.run_as_user, 0, _MAX_ID, what="user id")
        _require_range(self.deadline_s, 1, _MAX_DEADLINE_S, what="deadline in seconds")

    @property
    def user(self) -> int:
        """User and group id of the container."""
        if self.run_as_user is not None:
            return self.run_as_user
        return 0 if self.block else UNPRIVILEGED_USER

    @property
    def volumes(self) -> tuple[str, ...]:
        """Storage class of each volume, in order; empty text for the default or no class."""
        return self.storage_classes or ("",)


def parse_pairs(texts: Iterable[str], *, option: str) -> dict[str, str]:
    """Return the mapping of ``KEY=VALUE`` texts."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InputError(f"{option} {text!r} is not KEY=VALUE")
        if key in pairs:
            raise InputError(f"{option} names {key!r} twice")
        pairs[key] = value
    return pairs


def require_name(text: str, *, what: str, longest: int = _MAX_LABEL) -> None:
    """Refuse what is not a DNS label, such as the name of a namespace."""
    _require(_DNS_LABEL, text, what=what, longest=longest)


def _require(pattern: re.Pattern[str], text: str, *, what: str, longest: int) -> None:
    if len(text) > longest or not pattern.fullmatch(text):
        raise InputError(
            f"{what} {text!r} is not a name that Kubernetes accepts",
            hint=f"use lower-case letters, digits and -, at most {longest} characters",
        )


def _require_key(text: str, *, what: str) -> None:
    """Refuse what is not the key of a label: ``[PREFIX/]NAME``."""
    prefix, slash, name = text.rpartition("/")
    fits = len(prefix) <= _MAX_SUBDOMAIN and len(name) <= _MAX_LABEL and bool(name)
    if not fits or not _LABEL_VALUE.fullmatch(name) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
        raise InputError(
            f"{what}: {text!r} is not the key of a label",
            hint="write it like disktest or example.com/disktest",
        )


def _require_value(text: str, *, what: str) -> None:
    if not is_label_value(text):
        raise InputError(
            f"{what}: {text!r} is not the value of a label",
            hint=f"use letters, digits, -, _ and ., at most {_MAX_LABEL} characters",
        )


def require_quantity(text: str, *, what: str) -> None:
    """Refuse what is not a quantity, such as the size of a volume."""
    if not _QUANTITY.fullmatch(text) or _ZERO.fullmatch(text):
        raise InputError(
            f"{what}: {text!r} is not a quantity above zero",
            hint="write it as Kubernetes does, like 250Gi, 500m or 2",
        )


def _require_range(number: int, least: int, most: int, *, what: str) -> None:
    if not least <= number <= most:
        raise InputError(f"{what} must be between {least} and {most}, not {number}")


def is_label_value(text: str) -> bool:
    """Return whether a text is valid as the value of a label."""
    return len(text) <= _MAX_LABEL and _LABEL_VALUE.fullmatch(text) is not None
