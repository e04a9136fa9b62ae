"""Limits of volumes by the metadata service of the cloud that a host is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volbench.errors import InputError
from volbench.execute.agent.cloud_metadata import cloud_machine
from volbench.execute.protocol import Executor, OperationError
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.profile.limit_sources import disk_limits


def cloud_limits(
    executor: Executor, endpoint: str, volumes: Sequence[VolumeFacts]
) -> Mapping[str, Limits]:
    """Return role to limits, of the volumes whose limits the metadata service tells."""
    try:
        found = executor.ask(cloud_machine, endpoint)
    except OperationError as error:
        hint = "leave out --limits-from cloud outside AWS, Azure and Google Cloud"
        raise InputError(f"{executor.host}: {error.reason}", hint=hint) from error
    if not found.machine:
        raise InputError(
            f"the metadata service of {executor.host} is not that of AWS, Azure or Google Cloud",
            hint="declare the limits: --set limits=azure/P15",
        )
    limits = {}
    for facts in volumes:
        names = {facts.device, *facts.backing} - {""}
        disk = next((disk for disk in found.disks if disk.device in names), None)
        known = {} if disk is None else disk._asdict()
        known.pop("device", None)
        own = disk_limits(found.provider, found.machine, **known)
        if own is not None:
            limits[facts.role] = own.model_copy(
                update={"origin": f"metadata service of {found.provider}"}
            )
    return limits
