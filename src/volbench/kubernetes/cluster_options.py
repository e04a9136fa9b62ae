"""Options that describe the pods and volumes of a campaign on a Kubernetes cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from volbench.cli.configuration import container_image
from volbench.cli.options import Decorator, Quantity, flag, option_group
from volbench.errors import InputError
from volbench.units import parse_duration

if TYPE_CHECKING:
    from volbench.kubernetes.cluster_spec import ClusterSpec, VolumeSource

_TOPOLOGY = {
    "node": "kubernetes.io/hostname",
    "zone": "topology.kubernetes.io/zone",
    "none": "",
}
_ROLES = {"data", "os"}


@dataclass(frozen=True)
class ClusterOptions:
    """Pods and volumes as described on the command line.

    Attributes:
        others: as the attributes of `ClusterSpec`, in the form in which they were written.
    """

    storage_classes: tuple[str, ...]
    size: str
    volume_mode: str
    os_disk: bool
    ephemeral: bool
    replicas: int
    is_parallel: bool
    spread: str
    node_selector: tuple[str, ...]
    tolerations: tuple[str, ...]
    image: str
    image_pull_policy: str
    image_pull_secrets: tuple[str, ...]
    requests: tuple[str, ...]
    pod_limits: tuple[str, ...]
    run_as_user: int | None
    service_account: str
    namespace: str
    deadline_s: float
    keep: bool
    given: tuple[str, ...] = ()  # names of these options on the command line, such as ``--size``

    def spec(
        self, *, campaign: str, roles: Collection[str], namespace: str = "default"
    ) -> ClusterSpec:
        """Return the specification of a campaign.

        Args:
            roles: roles of its jobs; ``os`` is the node's own disk.
        """
        from volbench.kubernetes.cluster_spec import (
            ClusterSpec,
            parse_pairs,
            parse_toleration,
        )

        if unknown := sorted({*roles} - _ROLES):
            raise InputError(
                f"pods have no volume for the role {unknown[0]}",
                hint="they have data (the volume under test) and os (the node's own disk)",
            )
        return ClusterSpec(
            campaign=campaign,
            image=self.image or container_image(),
            namespace=self.namespace or namespace,
            storage_classes=self.storage_classes,
            size=self.size,
            source=self._source,
            block=self.volume_mode == "Block",
            os_disk="os" in roles and not self.os_disk,
            replicas=self.replicas,
            is_parallel=self.is_parallel,
            topology_key=_TOPOLOGY.get(self.spread, self.spread),
            node_selector=parse_pairs(self.node_selector, option="--node-selector"),
            tolerations=tuple(map(parse_toleration, self.tolerations)),
            image_pull_policy=self.image_pull_policy,
            image_pull_secrets=self.image_pull_secrets,
            requests=parse_pairs(self.requests, option="--pod-request"),
            limits=parse_pairs(self.pod_limits, option="--pod-limit"),
            run_as_user=self.run_as_user,
            service_account=self.service_account,
            deadline_s=max(1, round(self.deadline_s)),
            keep=self.keep,
        )

    @property
    def _source(self) -> VolumeSource:
        from volbench.kubernetes.cluster_spec import VolumeSource

        if self.os_disk and self.ephemeral:
            raise InputError(
                "--os-disk and --ephemeral exclude each other",
                hint="the node's own disk is an emptyDir, which is ephemeral anyway",
            )
        if self.os_disk:
            return VolumeSource.NODE
        return VolumeSource.EPHEMERAL if self.ephemeral else VolumeSource.CLAIM


def _several(name: str, keyword: str, metavar: str, text: str) -> Decorator:
    return click.option(name, keyword, multiple=True, metavar=metavar, help=f"{text}; repeatable.")


_OPTIONS = (
    _several(
        "--storage-class",
        "storage_classes",
        "NAME",
        "StorageClass of the volume, compared with the others that are named",
    ),
    click.option("--size", default="", metavar="SIZE", help="Size of each volume, like 250Gi."),
    click.option(
        "--volume-mode",
        type=click.Choice(["Filesystem", "Block"], case_sensitive=False),
        metavar="Filesystem|Block",
        default="Filesystem",
        show_default=True,
        help="Measure through a filesystem, or the raw block device.",
    ),
    flag("--os-disk", "Measure the node's own disk, through an emptyDir."),
    flag("--ephemeral", "Use generic ephemeral volumes, which are deleted with their pods."),
    click.option(
        "--replicas",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="Measure N volumes of each class at the same time, each in its own pod.",
    ),
    click.option(
        "--spread",
        default="node",
        show_default=True,
        metavar="node|zone|none|LABEL",
        help="Spread replicas evenly over nodes, zones, or values of a node label.",
    ),
    click.option(
        "--parallel-classes",
        "is_parallel",
        is_flag=True,
        help="Measure several storage classes at the same time, each on a node of its own (see "
        "--spread), not one after another.",
    ),
    _several("--node-selector", "node_selector", "LABEL=VALUE", "Only nodes with this label"),
    _several("--toleration", "tolerations", "KEY[=VALUE][:EFFECT]", "Also nodes with this taint"),
    click.option(
        "--image",
        default="",
        metavar="IMAGE",
        help="Container image with fio and a POSIX shell. Default: `image` in volbench.toml.",
    ),
    click.option(
        "--image-pull-policy",
        type=click.Choice(["Always", "IfNotPresent", "Never"], case_sensitive=False),
        metavar="Always|IfNotPresent|Never",
        default=None,
        help="When the image is pulled. Default: the cluster's rule.",
    ),
    _several(
        "--image-pull-secret",
        "image_pull_secrets",
        "NAME",
        "Secret with credentials of the image's registry",
    ),
    _several(
        "--pod-request",
        "requests",
        "RESOURCE=QUANTITY",
        "What a node must have free for a pod, such as cpu=2",
    ),
    _several(
        "--pod-limit",
        "pod_limits",
        "RESOURCE=QUANTITY",
        "Limit of a pod. None by default: a CPU limit throttles fio, a memory limit its page cache",
    ),
    click.option(
        "--run-as-user",
        type=click.IntRange(0, 2**31 - 1),
        metavar="UID",
        help="User of the container. Default: 65532; 0 for --volume-mode Block.",
    ),
    click.option(
        "--service-account", default="", metavar="NAME", help="Service account of the pods."
    ),
    click.option(
        "--namespace", default="", metavar="NAME", help="Namespace. Default: that of the context."
    ),
    click.option(
        "--deadline",
        "deadline_s",
        type=Quantity("TIME", parse_duration),
        default="1d",
        show_default=True,
        help="Time after which the cluster ends a pod; not with --replicas.",
    ),
    flag("--keep", "Keep the volumes when the campaign has ended."),
)


def _cluster_options(**values: object) -> ClusterOptions:
    context = click.get_current_context()
    options = {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in values
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    }
    values["image_pull_policy"] = values["image_pull_policy"] or ""
    return ClusterOptions(**values, given=tuple(options.values()))  # type: ignore[arg-type]  # click passes options by name


# Options of the pods and their volumes, as the keyword `pods`
CLUSTER = option_group("pods", _cluster_options, *_OPTIONS)
