"""Plan of a campaign on pods that do not exist yet, for ``--dry-run``."""

from __future__ import annotations

import platform
import re

from volbench import __version__
from volbench.engine.campaign.prepare import Prepared, Request
from volbench.kubernetes.cluster_spec import ClusterSpec
from volbench.kubernetes.manifests import DATA_DEVICE, pod_names, role_paths
from volbench.kubernetes.pod_hosts import host_names
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.plan.expansion.estimate import estimate
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients
from volbench.store.archive import Archive, Provenance

_QUANTITY = re.compile(r"([0-9.]+)([kKMGTPE]?)(i?)")
_POWERS = " KMGTPE"


def plan_without_pods(spec: ClusterSpec, request: Request) -> Prepared:
    """Return the plan of a campaign, whose volumes are taken as they are asked for."""
    kinds = {DATA_DEVICE: VolumeKind.DEVICE}
    volumes = {
        role: Volume(role=role, kind=kinds.get(path, VolumeKind.DIRECTORY), target=path)
        for role, path in role_paths(spec).items()
    }
    sizes = dict.fromkeys(volumes, quantity_bytes(spec.size)) if spec.size else {}
    hosts = [
        Host(name=name, volumes=role_paths(spec), labels={"storage_class": storage_class})
        for name, (_, storage_class, _) in zip(host_names(spec), pod_names(spec), strict=True)
    ]
    clients = clients_of([Client(host, 0, volumes, sizes) for host in hosts], request.clients)
    campaign = expand_clients(
        request.profiles, clients, request.terms, policy=request.policy, quorum=request.quorum
    )
    provenance = Provenance(
        volbench_version=__version__, python_version=platform.python_version(), hosts=(), volumes=()
    )
    return Prepared(Archive(campaign=campaign, provenance=provenance), (), estimate(campaign))


def quantity_bytes(text: str) -> int:
    """Return the bytes of a Kubernetes quantity, such as ``250Gi`` or ``1.5G``."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** _POWERS.index(prefix.upper() or " "))
