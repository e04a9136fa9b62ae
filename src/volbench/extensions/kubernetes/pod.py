"""Pod of a cluster as a host: how to connect to it, as the host's description keeps it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from volbench.errors import ArchiveError
from volbench.extensions.kubernetes.pod_settings import KIND
from volbench.model.campaign.host import Host
from volbench.model.frozen_model import Frozen


class Pod(Frozen):
    """Pod of a Kubernetes cluster."""

    name: str  # its name
    namespace: str  # its namespace
    uid: str  # its UID; another pod of the same name has another one
    container: str  # the container that programs are started in
    node: str  # node that it runs on
    claim: str = ""  # name of its PersistentVolumeClaim; empty without one
    campaign: str = ""  # name of the object that owns everything of the campaign
    context: str = ""  # context of the kubeconfig file; empty for a controller inside the cluster
    machine: str = ""  # identity of the node's machine: that of its firmware, or its machine-id
    claim_uid: str = ""  # UID of the claim; another claim of the same name has another one

    @property
    def connection(self) -> dict[str, Any]:
        """The connection of a host."""
        return {"kind": KIND, **self.model_dump(exclude_defaults=True)}


def pod_of(host: Host) -> Pod | None:
    """Return the pod that is a host; None for a machine.

    Raises:
        ArchiveError: the campaign folder was damaged.
    """
    if host.kind != KIND:
        return None
    try:
        return Pod.model_validate({k: v for k, v in host.connection.items() if k != "kind"})
    except ValidationError as error:
        raise ArchiveError(
            f"the pod of {host.name} is not described as volbench does: {error.errors()[0]['msg']}",
            hint="restore a copy of the campaign folder",
        ) from error


def require_pod(host: Host) -> Pod:
    """Return the pod that is a host, which is known not to be a machine."""
    pod = pod_of(host)
    if pod is None:
        raise ArchiveError(f"{host.name} is not a pod", hint="restore a copy of the folder")
    return pod
