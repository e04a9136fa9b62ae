"""What each run was measured on, as far as money is concerned: plan and facts enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from volbench.model.campaign.planned_run import Campaign
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.provenance import HostFacts, VolumeFacts

FLAVOR, VOLUME_TYPE = "flavor", "volume_type"
"""Labels of hosts that prices are found by."""


@dataclass(frozen=True)
class Billing:
    """What a run was measured on.

    Attributes:
        flavor: of the machine; empty when no label tells it.
        volume_type: of the volume, by the host's label or by the declared limits; may be empty.
        size_bytes: of the volume; None if it is unknown.
        limits: declared ones: what is provisioned of types that are paid by it.
        cpu_model: of the machine; may be empty.
    """

    flavor: str
    volume_type: str
    size_bytes: int | None
    limits: Limits
    cpu_model: str


def billing_of(
    campaign: Campaign,
    hosts: Sequence[HostFacts],
    volumes: Sequence[VolumeFacts] = (),
    *,
    prefix: str = "",
) -> dict[str, Billing]:
    """Return what each run of a campaign was measured on.

    Args:
        campaign: the plan.
        hosts: what was found out about its machines.
        volumes: what was found out about its volumes.
        prefix: what stands before the ids of runs in frames of several campaigns.
    """
    labels = {host.name: host.labels for host in campaign.hosts}
    models = {host.host: host.cpu_model for host in hosts}
    sizes = {volume.target: volume.size_bytes for volume in volumes}
    found = {}
    for run in campaign.runs:
        own = labels.get(run.host, {})
        pinned = run.volume.pin.size_bytes if run.volume.pin else None
        found[prefix + run.id] = Billing(
            flavor=own.get(FLAVOR, ""),
            volume_type=own.get(VOLUME_TYPE, "") or run.limits.name,
            size_bytes=pinned or sizes.get(run.volume.target),
            limits=run.limits,
            cpu_model=models.get(run.host, ""),
        )
    return found
