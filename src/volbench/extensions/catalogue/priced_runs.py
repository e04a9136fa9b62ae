"""Runs with their steady rates, billable resources and cost, and the ranking of campaigns."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.compare.comparability import without_invalid
from volbench.analyse.findings.data_rules import CACHED_RATE
from volbench.analyse.frames.job_frames import measured
from volbench.api.many_campaigns import Dataset
from volbench.api.one_campaign import CampaignData
from volbench.errors import InputError
from volbench.extensions.catalogue.price_list import FLAVOR, VOLUME_TYPE, Price, Prices, load_prices
from volbench.extensions.catalogue.price_performance import Market, market
from volbench.extensions.catalogue.volume_type import GIB, VolumeType
from volbench.extensions.catalogue.volume_types import catalogue
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.frames.column_names import listed_names
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.profile.profile_settings import Limits
from volbench.units import format_capacity, format_rate, parse_size

# Rate over the declared limit that a provider may allow; more is not paid for.
# Noticed by: test_price_performance.py::test_volumes_are_paid_by_size_and_by_what_is_provisioned
_MAX_PAID = 1.05
_UNPRICED = (
    "nothing has a price: name it as the price list does, by `labels: {flavor: NAME, volume_type:"
    " NAME}` in the inventory or `limits: NAME` in the profile; each imported volume by `volbench"
    " import DIR/runs --label volume_type=NAME`, or all by --labels '{volume_type}'; price them"
    " with --unsteady"
)
PER_IOPS = 1000
PER_BYTES_PER_S = 100e6

PERFORMANCE_COLUMNS = ("run", "host", "volume", "steady", "judged", "iops", "bw_bytes_per_s")


def performance(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the steady rates of each finished measured run, of ``summary`` and ``verdicts``.

    The mean of a run with `until: steady` includes its climb and is not a speed of the volume.
    Directions are added up. Where a run was steady, or became so, ``iops`` is the median of the
    steady stretch at its end and ``bw_bytes_per_s`` the same times the mean size of its I/Os;
    elsewhere they are the means of the whole run, and ``steady`` is False.
    """
    summary = measured(frames["summary"])
    summary = summary[summary["direction"] != "sync"]
    verdicts = frames["verdicts"].drop_duplicates(["run", "direction"])
    verdicts = verdicts.set_index(["run", "direction"])
    rows = [
        _performance(str(run), jobs, verdicts) for run, jobs in summary.groupby("run", sort=False)
    ]
    return pd.DataFrame(rows, columns=list(PERFORMANCE_COLUMNS))


def _performance(run: str, jobs: pd.DataFrame, verdicts: pd.DataFrame) -> dict[str, object]:
    by_direction = jobs.groupby("direction")[["iops", "bw_bytes_per_s"]].sum()
    keys = [(run, direction) for direction in by_direction.index]
    judged = verdicts.reindex(pd.MultiIndex.from_tuples(keys))
    levels = judged["steady_iops"].astype("float64")
    steady = bool(levels.notna().all())
    iops = levels if steady else by_direction["iops"].astype("float64")
    means = by_direction["bw_bytes_per_s"].astype("float64") / by_direction["iops"]
    first = jobs.iloc[0]
    return {
        "run": run,
        "host": first["host"],
        "volume": first["volume"],
        "steady": steady,
        "judged": any(key in verdicts.index for key in keys),
        "iops": float(iops.sum()),
        "bw_bytes_per_s": float((iops.to_numpy() * means.fillna(0.0).to_numpy()).sum()),
    }


@dataclass(frozen=True)
class Billing:
    """Billable resources of a run."""

    flavor: str  # of the machine; empty without a label
    volume_type: str  # of the volume, by the host's label or by the declared limits; may be empty
    size_bytes: int | None  # of the volume; None if it is unknown
    limits: Limits  # declared ones: what is provisioned of types that are paid by it
    is_folder: bool = False  # on a disk whose size need not be what was bought


def _billing(data: CampaignData, prefix: str) -> dict[str, Billing]:
    """Return the billable resources of each run of a campaign.

    Pods without labels of prices are billed by the machine type of their node, and their volumes
    by storage class.
    """
    campaign, provenance = data.campaign, data.provenance
    made = {host.host: host.volume_bytes for host in provenance.hosts}
    sizes = {volume.target: volume.size_bytes for volume in provenance.volumes}
    billing = {}
    for run in campaign.runs:
        labels = campaign.labels_of(run)
        pinned = run.volume.size_bytes
        billing[prefix + run.id] = Billing(
            flavor=labels.get(FLAVOR, "") or labels.get("machine_type", ""),
            volume_type=labels.get(VOLUME_TYPE, "")
            or run.limits.name
            or labels.get("storage_class", ""),
            size_bytes=pinned or made.get(run.host) or sizes.get(run.volume.target),
            limits=run.limits,
            is_folder=run.volume.kind is VolumeKind.DIRECTORY and not made.get(run.host),
        )
    return billing


def priced_runs(
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    billing: Mapping[str, Billing],
    prices: Prices,
    *,
    size_bytes: int | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Add to each run what is billed, what it costs a month (or NaN) and labels; return remarks."""
    bill = _Bill(prices, size_bytes)
    added = [bill.row(billing[str(run)]) for run in rows["run"]]
    priced = pd.concat([rows, pd.DataFrame(added, index=rows.index)], axis=1)
    monthly = priced["monthly"]
    priced["cost_per_1000_iops"] = monthly / priced["iops"] * PER_IOPS
    priced["cost_per_100_mb_per_s"] = monthly / priced["bw_bytes_per_s"] * PER_BYTES_PER_S
    priced["cost_per_gib"] = monthly / (priced["size_bytes"] / GIB)
    limits = [billing[str(run)].limits.iops or math.inf for run in rows["run"]]
    priced["beyond"] = rows["iops"] > pd.Series(limits, rows.index) * _MAX_PAID
    if free := int(priced["beyond"].sum()):
        bill.note(
            f"{free} of {len(rows)} runs were faster than the declared IOPS: what a cache or burst"
            " adds is not paid for, but counted"
        )
    labels = [name for name in summary.columns if name.startswith(LABEL_PREFIX)]
    values = summary.drop_duplicates("run").set_index("run")[labels]
    return priced.join(values, on="run"), tuple(bill.notes)


class _Bill:
    """Sums up the cost of runs, and notes what has no price."""

    def __init__(self, prices: Prices, size_bytes: int | None) -> None:
        self._prices = prices
        self._size_bytes, self._types = size_bytes, catalogue()
        self.notes: dict[str, None] = {}

    def row(self, billing: Billing) -> dict[str, object]:
        known, asked = billing.size_bytes, self._size_bytes
        is_fixed = bool(known) and not billing.is_folder
        size_bytes = known if is_fixed else asked or known
        if asked and known and is_fixed:
            self.note(f"--size is not used for a volume of known size: {format_capacity(known)}")
        elif asked:
            which = "folders" if billing.is_folder else "volumes of unknown size"
            self.note(f"{which} are counted as {format_capacity(asked)}")
        machine, machine_cost = self._flavor(billing)
        volume, volume_cost = self._volume(billing, size_bytes)
        prices = [price for price in (machine, volume) if price is not None]
        costs = [cost for cost in (machine_cost, volume_cost) if cost is not None]
        return {
            "flavor": billing.flavor or None,
            "volume_type": billing.volume_type or None,
            "family": ", ".join(dict.fromkeys(p.family for p in prices if p.family)) or None,
            "provider": ", ".join(dict.fromkeys(p.provider for p in prices if p.provider)) or None,
            "size_bytes": float(size_bytes) if size_bytes else math.nan,
            "monthly": sum(costs) if costs else math.nan,
        }

    def _flavor(self, billing: Billing) -> tuple[Price | None, float | None]:
        if not self._prices.flavors:
            return None, None
        price = self._find(billing.flavor, self._prices.flavors, "flavor")
        return price, math.nan if price is None else price.month()

    def _volume(
        self, billing: Billing, size_bytes: int | None
    ) -> tuple[Price | None, float | None]:
        if not self._prices.volume_types:
            self.note("the price list has no volumes: only machines are counted")
            return None, None
        price = self._find(billing.volume_type, self._prices.volume_types, "volume type")
        if price is None:
            return None, math.nan
        iops, bytes_per_s = billing.limits.iops, billing.limits.bandwidth_bytes_per_s
        limits = "declare it in limits"
        unknown = [
            f"no cost of {price.name}: it is priced by {what}, which is unknown: {remedy}"
            for what, per_unit, amount, remedy in (
                ("size", price.per_gib_month, size_bytes, "set --size"),
                ("provisioned IOPS", price.iops, iops, limits),
                ("provisioned bandwidth", price.bandwidth, bytes_per_s, limits),
            )
            if per_unit and not amount
        ]
        if unknown:
            self.notes |= dict.fromkeys(unknown)
            return price, math.nan
        if billing.limits.machine_limits and (price.iops or price.bandwidth):
            self.note(f"amounts of {price.name} count only up to the limits of the machine")
        kind = self._types.get(billing.limits.name or price.name)
        self.notes |= dict.fromkeys(_unpriced(price, billing.limits, kind))
        return price, price.month(size_bytes or 0.0, iops or 0.0, bytes_per_s or 0.0)

    def _find(self, name: str, prices: Mapping[str, Price], what: str) -> Price | None:
        if name not in prices:
            absent = f"the price list has no {what} {name}"
            self.note(absent if name else f"runs without a {what} label have no price")
        return prices.get(name)

    def note(self, sentence: str) -> None:
        self.notes[sentence] = None


def _unpriced(price: Price, limits: Limits, kind: VolumeType | None) -> Iterator[str]:
    """Yield each declared amount that has no price, unless its type includes it."""
    iops, rate = limits.iops or 0.0, limits.bandwidth_bytes_per_s or 0.0
    bandwidth = f"{format_rate(rate)} of declared bandwidth"
    for amount, text, meter, provision in (
        (iops, f"{iops:,.10g} declared IOPS", price.iops, kind and kind.buys_iops),
        (rate, bandwidth, price.bandwidth, kind and kind.buys_bandwidth),
    ):
        is_bought = amount > (provision.included or 0.0) if provision else kind is None
        if price.per_gib_month and amount and meter is None and is_bought:
            yield f"no price in the list, so no cost here: {text} of {price.name}"


def price_of(
    dataset: Dataset,
    *,
    prices: str | os.PathLike[str],
    by: str | Sequence[str] = (),
    size: str | int = 0,
    unsteady: bool = False,
) -> Market:
    """Rank the configurations of campaigns by price-performance as ``volbench price`` does.

    Args:
        dataset: campaigns; `campaign.price(...)` calls it.
        prices: a price list: a file, or the name of a bundled one.
        by: columns or labels that make a configuration; none for flavor and volume type.
        size: of folders and volumes of unknown size, such as ``"100g"``.
        unsteady: include runs that did not reach steady state, with their means.

    Returns:
        ``offers``, ``currency`` and ``notes``; ``frame`` has a row for each configuration.

    Raises:
        InputError: a name, a price list or a path is wrong, or no run is steady and valid.
    """
    price_list = load_prices(os.fspath(prices))
    frames = {"summary": dataset.summary(options=True), "verdicts": dataset.frame("verdicts")}
    findings = dataset.frame("findings").assign(direction=None)  # a price is of a whole run
    findings.loc[findings["message"].str.startswith(CACHED_RATE), "severity"] = "invalid"
    summary, invalid = without_invalid(frames["summary"].assign(side="all runs"), findings)
    if summary.empty and len(frames["summary"]):
        raise InputError(
            f"no price: {'; '.join(invalid)}", hint="volbench check says why and what to do"
        )
    if len(summary) and frames["verdicts"].empty and not unsteady:
        raise InputError(
            "no run has a log over time, so nothing says whether one was steady",
            hint="--unsteady counts their means",
        )
    frames["summary"] = summary.drop(columns="side")
    billing: dict[str, Billing] = {}
    for name, data in dataset.names.items():
        billing |= _billing(data, prefix=f"{name}/" if len(dataset.names) > 1 else "")
    known, size_bytes = frames["summary"], parse_size(size) if size else None
    rows, notes = priced_runs(
        performance(frames), known, billing, price_list, size_bytes=size_bytes
    )
    return market(
        rows,
        currency=price_list.currency,
        summary=known,
        by=listed_names(by),
        keep_unsteady=unsteady,
        notes=[*notes, *invalid, *[_UNPRICED][: bool(rows["monthly"].isna().all())]],
    )
