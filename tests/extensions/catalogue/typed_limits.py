"""Limits of a volume of a type, as a campaign knows them once the size is known."""

from collections.abc import Mapping

from volbench.extensions.catalogue.volume_type import VolumeType, evaluate
from volbench.extensions.catalogue.volume_types import catalogue, find_type
from volbench.model.profile.profile_settings import Limits, VolumeOfType


def limits_of(
    name: str,
    *,
    writes: bool | None = None,
    types: Mapping[str, VolumeType] | None = None,
    **volume: float | None,
) -> Limits:
    """Return the limits of a volume whose size and provisioned performance are given."""
    wanted = VolumeOfType.model_validate({"type": name, **volume})
    return evaluate(find_type(name, types or catalogue()), wanted, writes=writes)
