"""Price-performance of campaigns: the Python interface, and what `volbench price` shows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from volbench.api.many_campaigns import Dataset, open_campaigns
from volbench.catalogue.price_list import Prices, load_prices
from volbench.catalogue.price_performance import Market, market
from volbench.catalogue.priced_runs import Billing, billing_of, performance, priced_runs
from volbench.catalogue.ranking_table import interval_text, money_text
from volbench.model.frames.column_names import listed_names
from volbench.units import parse_size

_FRAMES = ("summary", "verdicts", "series", "device")


def price(
    *paths: str | os.PathLike[str],
    prices: str | os.PathLike[str],
    by: str | Sequence[str] = (),
    where: str = "",
    size: str | int = 0,
    unsteady: bool = False,
) -> Market:
    """Rank the configurations of campaigns by price-performance as ``volbench price`` does.

    Args:
        paths: campaign folders, or folders of campaigns.
        prices: a price list: a file, or the name of a bundled one.
        by: columns or labels that make a configuration; none for flavor and volume type.
        where: keep only runs for which this holds.
        size: of volumes whose size is not recorded, such as ``"100g"``.
        unsteady: include runs that did not reach steady state, with their means.

    Returns:
        ``offers``, ``currency`` and ``notes``; ``frame`` has a row for each configuration.

    Raises:
        InputError: a name, a price list or a path is wrong, or no run is steady.
    """
    return priced_market(
        open_campaigns(*paths, where=where),
        load_prices(os.fspath(prices)),
        by=listed_names(by),
        size_bytes=parse_size(size) if size else None,
        keep_unsteady=unsteady,
    )


def priced_market(
    dataset: Dataset,
    prices: Prices,
    *,
    by: Sequence[str],
    size_bytes: int | None,
    keep_unsteady: bool,
) -> Market:
    """Return the configurations of all campaigns, ranked within each workload."""
    frames = {name: dataset.frame(name) for name in _FRAMES}
    rows, notes = priced_runs(
        performance(frames), frames["summary"], _billing(dataset), prices, size_bytes=size_bytes
    )
    return market(
        rows,
        currency=prices.currency,
        summary=frames["summary"],
        by=by,
        keep_unsteady=keep_unsteady,
        notes=notes,
    )


def class_costs(dataset: Dataset, prices: str, by: str) -> list[str]:
    """Return a sentence on the cost of each value of a column, for a month and for 1,000 IOPS."""
    found = priced_market(
        dataset, load_prices(prices), by=[by], size_bytes=None, keep_unsteady=True
    )
    sentences = [
        f"{offer.name}, {offer.job}: {money_text(offer.monthly[0])} {found.currency} a month, "
        f"{interval_text(offer.cost_per_1000_iops, money_text)} for 1,000 IOPS."
        for offer in found.offers
    ]
    return [*sentences, *(f"{note}." for note in found.notes)]


def _billing(dataset: Dataset) -> dict[str, Billing]:
    """Return the billed resources of each run of all campaigns."""
    billing: dict[str, Billing] = {}
    for name, data in dataset.names.items():
        provenance = data.provenance
        prefix = f"{name}/" if len(dataset.names) > 1 else ""
        billing |= billing_of(data.campaign, provenance.hosts, provenance.volumes, prefix=prefix)
    return billing
