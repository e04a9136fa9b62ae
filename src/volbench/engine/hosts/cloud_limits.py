"""Limits of volumes by the metadata service of the cloud that a host is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from volbench.errors import InputError
from volbench.execute.protocol import Executor, OperationError
from volbench.model.frozen_model import Count, Frozen
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.provenance import VolumeFacts
from volbench.plan.profile.limit_sources import disk_limits


class _Disk(Frozen):
    device: str
    type: str
    size_gib: Count
    iops: Count
    bytes_per_s: Count


class _Machine(Frozen):
    provider: str = ""
    machine: str = ""
    disks: tuple[_Disk, ...] = ()


def cloud_limits(
    executor: Executor, endpoint: str, volumes: Sequence[VolumeFacts]
) -> Mapping[str, Limits]:
    """Return role to limits, of the volumes whose limits the metadata service tells.

    Args:
        endpoint: address of the service.

    Raises:
        InputError: no service answers, or none of a known cloud.
    """
    try:
        answer = executor.ask("cloud_machine", within_s=10.0, endpoint=endpoint)
        found = TypeAdapter(_Machine).validate_python(answer)
    except OperationError as error:
        hint = "leave out --limits-from cloud outside AWS, Azure and Google Cloud"
        raise InputError(f"{executor.host}: {error.reason}", hint=hint) from error
    except ValidationError as error:
        raise InputError(f"the metadata service of {executor.host} cannot be read") from error
    if not found.machine:
        raise InputError(
            f"the metadata service of {executor.host} is not that of AWS, Azure or Google Cloud",
            hint="declare the limits: --set limits=azure/P15",
        )
    limits = {}
    for facts in volumes:
        names = {facts.device, *facts.backing} - {""}
        disk = next((disk for disk in found.disks if disk.device in names), None)
        own = disk_limits(
            found.provider, found.machine, **(disk.model_dump(exclude={"device"}) if disk else {})
        )
        if own is not None:
            limits[facts.role] = own.model_copy(
                update={"origin": f"metadata service of {found.provider}"}
            )
    return limits
