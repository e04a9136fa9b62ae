"""Performance per price: configurations ranked by the cost of an I/O and of bandwidth.

Cost is worked out for each run, and only then compared, so that an interval says how sure the cost
of an I/O is, and not only how fast a volume was.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from volbench.analyse.compare.repeat_statistics import Group, Interval, location_interval
from volbench.analyse.price.billing import Billing
from volbench.analyse.price.ranking import no_faster, on_frontier, orders
from volbench.errors import InputError
from volbench.model.catalogue.price_list import GIB, Burst, Price, Prices
from volbench.model.frames.column_names import find_column
from volbench.model.frames.columns import LABEL_PREFIX

PER_IOPS = 1000
PER_BYTES_PER_S = 100e6
UNITS = ("cost_per_1000_iops", "cost_per_100_mb_per_s", "cost_per_gib")
BESIDE = ("burst_monthly", "burst_per_million_ios", "once")
"""What is paid beside the month: for bursts, and once for a new volume."""


@dataclass(frozen=True)
class Offer:
    """Something that can be billing, in one job.

    Attributes:
        name: flavor and volume type, or the values of the columns that were asked for.
        values: column to value, of those columns.
        job: that was run.
        family: of the flavor or type; several are joined by commas.
        monthly: least and greatest cost of a month; NaN where there is no price.
        runs: that were counted.
        volumes: how many different ones.
        unsteady: runs that were not shown to be steady.
        iops: steady, with its interval.
        bw_bytes_per_s: steady, with its interval.
        burst_iops: median of the bursts; NaN for none.
        steal_percent: mean of the runs; NaN when nobody sampled it.
        cpu_models: of the machines.
        cost_per_1000_iops: of a month.
        cost_per_100_mb_per_s: of a month.
        cost_per_gib: of a month.
        rank: 1 and those that are shown to be cheaper for an I/O; None without a cost.
        indistinct: names of the offers that it cannot be distinguished from.
        is_on_front: nothing else gives as many IOPS for as little, by the estimates.
        no_faster_than: of one on the front, names of cheaper offers that it is not shown to beat.
        burst_monthly: least and greatest fee of a month for being allowed to burst, beside
            `monthly`; NaN where there is no price.
        burst_per_million_ios: the same, for each million of I/Os above what is provisioned.
        once: least and greatest cost that is paid once for a new volume; no part of `monthly`;
            NaN where there is no price, or no size.
    """

    name: str
    values: Mapping[str, str]
    job: str
    family: str
    monthly: tuple[float, float]
    runs: int
    volumes: int
    unsteady: int
    iops: Interval
    bw_bytes_per_s: Interval
    burst_iops: float
    steal_percent: float
    cpu_models: tuple[str, ...]
    cost_per_1000_iops: Interval
    cost_per_100_mb_per_s: Interval
    cost_per_gib: Interval
    rank: int | None = None
    indistinct: tuple[str, ...] = ()
    is_on_front: bool = False
    no_faster_than: tuple[str, ...] = ()
    burst_monthly: tuple[float, float] = (0.0, 0.0)
    burst_per_million_ios: tuple[float, float] = (0.0, 0.0)
    once: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Market:
    """Offers side by side.

    Attributes:
        offers: by job, the cheapest for an I/O first.
        currency: of every cost.
        notes: what was left out or taken as free, one sentence each.
    """

    offers: tuple[Offer, ...]
    currency: str
    notes: tuple[str, ...] = field(default=())


def priced_runs(
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    billing: Mapping[str, Billing],
    prices: Prices,
    *,
    size_bytes: int | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Add to each run what it was measured on, and what that costs.

    Args:
        rows: of `volbench.analyse.price.steady_performance.performance`.
        summary: for the labels of the hosts.
        billing: run to what it was measured on.
        prices: of flavors and volume types.
        size_bytes: of volumes whose size unknown.

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
    """Sums up what runs were measured on, and keeps what it could not."""

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
        """Return what is paid for bursts, and once; nothing where no volumes are priced."""
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
        remark = f"no price of the {what} {name}" if name else f"Runs whose {what} no label tells"
        self.notes[remark] = None
        return None


def market(
    rows: pd.DataFrame,
    *,
    currency: str,
    by: Sequence[str] = (),
    keep_unsteady: bool = False,
    notes: Sequence[str] = (),
) -> Market:
    """Return the offers that runs were measured on, ranked within each job.

    Args:
        rows: of `priced_runs`.
        currency: of their costs.
        by: columns or labels that make an offer; empty for flavor and volume type.
        keep_unsteady: count runs that were not shown to be steady with their means.
        notes: to keep with the offers.

    Raises:
        InputError: nothing can be counted, or a column is not there.
    """
    if rows.empty:
        raise InputError("no measured run finished", hint="run the campaign first")
    columns = _offer_columns(rows, by)
    kept = rows if keep_unsteady else rows[rows["steady"]]
    if kept.empty:
        raise InputError(
            f"none of {len(rows)} runs was shown to be steady",
            hint="run them longer, or until: steady; --unsteady takes their means all the same",
        )
    cells: dict[str, list[_Cell]] = {}
    for _, own in kept.groupby(["job", *columns], sort=False, dropna=False):
        cells.setdefault(str(own["job"].iloc[0]), []).append(_Cell(own, columns))
    remarks = list(notes)
    if left := len(rows) - len(kept):
        remarks.append(
            f"{left} of {len(rows)} runs were not shown to be steady and are not counted"
        )
    offers = tuple(offer for of_job in cells.values() for offer in _ranked(of_job))
    return Market(offers, currency, tuple(remarks))


def _offer_columns(rows: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the columns that make an offer, without those that are empty."""
    if by:
        return [find_column(name, list(rows.columns)) for name in by]
    named = [name for name in ("flavor", "volume_type") if rows[name].notna().any()]
    return named or ["host"]


class _Cell:
    """The runs of one offer in one job."""

    def __init__(self, rows: pd.DataFrame, columns: Sequence[str]) -> None:
        self.rows = rows
        self._columns = columns
        self._volumes: list[Hashable] = list(rows["host"] + "|" + rows["volume"])

    def group(self, column: str) -> Group | None:
        """Return the values of a column by volume; None where one is missing or not above 0."""
        values = self.rows[column].astype("float64")
        if not ((values > 0) & (values < math.inf)).all():
            return None
        return Group(values.tolist(), self._volumes)

    def offer(self) -> Offer:
        """Return the offer, not yet ranked."""
        rows = self.rows
        first = rows.iloc[0]
        values = {
            name.removeprefix(LABEL_PREFIX): "" if pd.isna(first[name]) else str(first[name])
            for name in self._columns
        }
        return Offer(
            name=", ".join(text for text in values.values() if text) or "unknown",
            values=values,
            job=str(first["job"]),
            family=", ".join(_texts(rows["family"])),
            monthly=self._range("monthly"),
            runs=len(rows),
            volumes=len(set(self._volumes)),
            unsteady=int((~rows["steady"].astype(bool)).sum()),
            iops=self._interval("iops"),
            bw_bytes_per_s=self._interval("bw_bytes_per_s"),
            burst_iops=float(rows["burst_iops"].median()),
            steal_percent=float(rows["steal_percent"].mean()),
            cpu_models=_texts(rows["cpu_model"]),
            cost_per_1000_iops=self._interval("cost_per_1000_iops"),
            cost_per_100_mb_per_s=self._interval("cost_per_100_mb_per_s"),
            cost_per_gib=self._interval("cost_per_gib"),
            burst_monthly=self._range("burst_monthly"),
            burst_per_million_ios=self._range("burst_per_million_ios"),
            once=self._range("once"),
        )

    def _range(self, column: str) -> tuple[float, float]:
        """Return the least and the greatest; NaN where one is not known."""
        values = self.rows[column].astype("float64")
        return float(values.min(skipna=False)), float(values.max(skipna=False))

    def _interval(self, column: str) -> Interval:
        group = self.group(column)
        if group is None:
            return Interval(math.nan, math.nan, math.nan)
        return location_interval(group.values, volumes=self._volumes)


def _texts(column: pd.Series) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(text) for text in column.dropna()))


def _ranked(cells: Sequence[_Cell]) -> list[Offer]:
    """Return the offers of one job, ranked: equal ranks can't be told apart."""
    offers = [cell.offer() for cell in cells]
    groups = [cell.group("cost_per_1000_iops") for cell in cells]
    cheaper, indistinct = orders(groups)
    front = on_frontier(
        [offer.monthly[0] for offer in offers], [offer.iops.estimate for offer in offers]
    )
    unsure = no_faster(
        [offer.monthly[0] for offer in offers], [cell.group("iops") for cell in cells], front
    )
    ranked = [
        replace(
            offer,
            no_faster_than=tuple(offers[other].name for other in unsure[place]),
            rank=None if groups[place] is None else 1 + len(cheaper[place]),
            indistinct=tuple(offers[other].name for other in indistinct[place]),
            is_on_front=front[place],
        )
        for place, offer in enumerate(offers)
    ]
    return sorted(ranked, key=lambda offer: _or_last(offer.cost_per_1000_iops.estimate))


def _or_last(cost: float) -> float:
    return math.inf if math.isnan(cost) else cost
