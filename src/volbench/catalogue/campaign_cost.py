"""Cost of a campaign: its machines and volumes for the time that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volbench.catalogue.price_list import Prices, find_price, load_prices
from volbench.catalogue.priced_runs import FLAVOR, VOLUME_TYPE
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.engine.campaign.prepare import Prepared


@dataclass(frozen=True)
class Rented:
    """A rented volume."""

    volume_type: str  # name of the type in the price list
    size_bytes: float = 0.0  # size; 0 when the price does not depend on it
    iops: float = 0.0  # provisioned IOPS
    bandwidth_bytes_per_s: float = 0.0  # provisioned bandwidth


@dataclass(frozen=True)
class Bill:
    """Cost of a campaign."""

    amount: float  # total cost
    once: float  # one-off part of the total, for new volumes
    currency: str  # currency, such as ``USD``

    def __str__(self) -> str:
        """Return the amount, such as ``1.24 USD``, or ``less than 0.01 USD``."""
        shown = (
            f"{self.amount:.2f}" if self.amount >= 0.005 or not self.amount else "less than 0.01"
        )
        return f"{shown} {self.currency}"


def money(
    prices: Prices,
    *,
    hours: float,
    flavor: str = "",
    volume_types: Sequence[Rented | str] = (),
    machines: int = 1,
) -> Bill:
    """Return the cost of machines and volumes for a time of use, including one-off costs.

    Args:
        hours: time of use, such as ``estimate.total_s / 3600``.
        flavor: flavor of each machine; empty when machines are free or not counted.
        volume_types: volumes of each machine; a name alone where the size has no price.
    """
    month = prices.hours_per_month
    total = once = 0.0
    if flavor:
        price = find_price(flavor, prices.flavors, what="flavor", path=prices.path)
        total += price.for_hours(hours, hours_per_month=month)
        once += price.once()
    for given in volume_types:
        volume = Rented(given) if isinstance(given, str) else given
        price = find_price(
            volume.volume_type, prices.volume_types, what="volume type", path=prices.path
        )
        if price.needs_size and not volume.size_bytes:
            raise InputError(
                f"{price.name} is priced per GiB, and the size is unknown",
                hint="declare the size of the volume",
            )
        total += price.for_hours(
            hours,
            hours_per_month=month,
            size_bytes=volume.size_bytes,
            iops=volume.iops,
            bandwidth_bytes_per_s=volume.bandwidth_bytes_per_s,
        )
        once += price.once(size_bytes=volume.size_bytes)
    return Bill(machines * (total + once), machines * once, prices.currency)


def bill_of(prepared: Prepared, prices: str) -> Bill:
    """Return the maximum cost of a campaign, by the labels of its hosts."""
    read, hours = load_prices(prices), (prepared.estimate.total_s or 0.0) / 3600
    bills = [
        money(
            read,
            hours=hours,
            flavor=host.labels.get(FLAVOR, ""),
            volume_types=_rented(host.labels.get(VOLUME_TYPE, ""), host.name, prepared),
        )
        for host in prepared.campaign.hosts
        if {FLAVOR, VOLUME_TYPE} & host.labels.keys()
    ]
    if not bills:
        raise InputError(
            "no host has a label that selects a price",
            hint=f"label the hosts of the inventory with {FLAVOR} and {VOLUME_TYPE}",
        )
    return Bill(sum(bill.amount for bill in bills), sum(bill.once for bill in bills), read.currency)


def _rented(volume_type: str, host: str, prepared: Prepared) -> list[Rented]:
    """Return the billed volumes of a host: every volume that a run uses."""
    if not volume_type:
        return []
    used = {run.volume.target: run for run in prepared.campaign.runs if run.host == host}
    sizes = [float(run.volume.pin.size_bytes) if run.volume.pin else 0.0 for run in used.values()]
    return [Rented(volume_type, size_bytes=size) for size in sizes]
