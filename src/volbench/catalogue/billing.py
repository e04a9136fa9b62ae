"""Billing of runs: flavor and volume type of each, and their cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.catalogue.price_list import GIB, Burst, Price, Prices
from volbench.model.campaign.planned_run import Campaign
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.provenance import HostFacts, VolumeFacts

FLAVOR, VOLUME_TYPE = "flavor", "volume_type"  # Labels of hosts that prices are found by

PER_IOPS = 1000
PER_BYTES_PER_S = 100e6
UNITS = ("cost_per_1000_iops", "cost_per_100_mb_per_s", "cost_per_gib")
# Costs beside the monthly one: for bursts, and once for a new volume
BESIDE = ("burst_monthly", "burst_per_million_ios", "once")


@dataclass(frozen=True)
class Billing:
    """Billable resources of a run."""

    flavor: str  # of the machine; empty without a label
    volume_type: str  # of the volume, by the host's label or by the declared limits; may be empty
    size_bytes: int | None  # of the volume; None if it is unknown
    limits: Limits  # declared ones: what is provisioned of types that are paid by it
    cpu_model: str  # of the machine; may be empty


def billing_of(
    campaign: Campaign,
    hosts: Sequence[HostFacts],
    volumes: Sequence[VolumeFacts] = (),
    *,
    prefix: str = "",
) -> dict[str, Billing]:
    """Return the billable resources of each run of a campaign."""
    models = {host.host: host.cpu_model for host in hosts}
    sizes = {volume.target: volume.size_bytes for volume in volumes}
    found = {}
    for run in campaign.runs:
        own = campaign.labels_of(run)
        pinned = run.volume.pin.size_bytes if run.volume.pin else None
        found[prefix + run.id] = Billing(
            flavor=own.get(FLAVOR, ""),
            volume_type=own.get(VOLUME_TYPE, "") or run.limits.name,
            size_bytes=pinned or sizes.get(run.volume.target),
            limits=run.limits,
            cpu_model=models.get(run.host, ""),
        )
    return found


def priced_runs(
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    billing: Mapping[str, Billing],
    prices: Prices,
    *,
    size_bytes: int | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Add its billable resources and their cost to each run.

    Returns:
        The rows with ``flavor``, ``volume_type``, ``family``, ``provider``, ``cpu_model``,
        ``monthly``, `UNITS` (money a month, NaN where there is no price), `BESIDE` (money that is
        no part of it) and the labels; and sentences about what has no price.
    """
    bill = _Bill(prices, size_bytes)
    added = [bill.row(billing[str(run)]) for run in rows["run"]]
    whole = pd.concat([rows, pd.DataFrame(added, index=rows.index)], axis=1)
    whole["cost_per_1000_iops"] = whole["monthly"] / whole["iops"] * PER_IOPS
    whole["cost_per_100_mb_per_s"] = whole["monthly"] / whole["bw_bytes_per_s"] * PER_BYTES_PER_S
    whole["cost_per_gib"] = whole["monthly"] / (whole["size_bytes"] / GIB)
    labels = [name for name in summary.columns if name.startswith(LABEL_PREFIX)]
    values = summary.drop_duplicates("run").set_index("run")[labels]
    return whole.join(values, on="run"), tuple(bill.notes)


class _Bill:
    """Sums up the cost of runs, and notes what has no price."""

    def __init__(self, prices: Prices, size_bytes: int | None) -> None:
        self._prices = prices
        self._size_bytes = size_bytes
        self.notes: dict[str, None] = {}

    def row(self, billing: Billing) -> dict[str, object]:
        size_bytes = billing.size_bytes or self._size_bytes
        parts = [
            self._flavor(billing),
            self._volume(billing, size_bytes),
        ]
        known = [price for price, _ in parts if price is not None]
        costs = [cost for _, cost in parts if cost is not None]
        return {
            "flavor": billing.flavor or None,
            "volume_type": billing.volume_type or None,
            "family": ", ".join(dict.fromkeys(p.family for p in known if p.family)) or None,
            "provider": ", ".join(dict.fromkeys(p.provider for p in known if p.provider)) or None,
            "cpu_model": billing.cpu_model or None,
            "size_bytes": float(size_bytes) if size_bytes else math.nan,
            "monthly": sum(costs) if costs else math.nan,
            **self._beside(billing, size_bytes),
        }

    def _beside(self, billing: Billing, size_bytes: int | None) -> dict[str, float]:
        """Return the costs of bursts and of a new volume; 0 where no volumes are priced."""
        types = self._prices.volume_types
        if not types:
            return dict.fromkeys(BESIDE, 0.0)
        price = types.get(billing.volume_type)
        if price is None:
            return dict.fromkeys(BESIDE, math.nan)
        burst = price.burst or Burst()
        paid_once = price.initialisation
        if paid_once is not None and paid_once.per_gib and not size_bytes:
            remark = f"{price.name} is paid once by the GiB, and its size is unknown: --size"
            self.notes[remark] = None
            once = math.nan
        else:
            once = price.once(size_bytes=size_bytes or 0.0)
        return dict(
            zip(BESIDE, (burst.monthly, burst.per_million_ios, once), strict=True),
        )

    def _flavor(self, billing: Billing) -> tuple[Price | None, float | None]:
        if not self._prices.flavors:
            return None, None
        price = self._find(billing.flavor, self._prices.flavors, "flavor")
        if price is None:
            return None, math.nan
        return price, price.month(hours_per_month=self._prices.hours_per_month)

    def _volume(
        self, billing: Billing, size_bytes: int | None
    ) -> tuple[Price | None, float | None]:
        if not self._prices.volume_types:
            self.notes["there are no prices of volumes: only machines are counted"] = None
            return None, None
        price = self._find(billing.volume_type, self._prices.volume_types, "volume type")
        if price is None:
            return None, math.nan
        if price.needs_size and not size_bytes:
            self.notes[f"{price.name} is paid by the GiB, and its size is unknown: --size"] = None
            return price, math.nan
        return price, price.month(
            hours_per_month=self._prices.hours_per_month,
            size_bytes=size_bytes or 0.0,
            iops=billing.limits.iops or 0.0,
            bandwidth_bytes_per_s=billing.limits.bandwidth_bytes_per_s or 0.0,
        )

    def _find(self, name: str, prices: Mapping[str, Price], what: str) -> Price | None:
        if name in prices:
            return prices[name]
        remark = (
            f"no price of the {what} {name}" if name else f"runs without a label for the {what}"
        )
        self.notes[remark] = None
        return None
