"""Offers and prices for people and programs: a Market or Prices enter, a table or records leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields

from rich.table import Table

from volbench.analyse.compare.repeat_statistics import Interval
from volbench.analyse.price.price_performance import Market, Offer
from volbench.model.catalogue.price_list import Price, Prices
from volbench.present.export.csv_text import csv_text
from volbench.present.formatting import MISSING
from volbench.present.tables.result_tables import text_table
from volbench.units import format_count, format_rate

_WORDS = {"offer", "job", "family", "CPU", "can't be told from"}
_OPTIONAL = {
    *("family", "per GiB", "burst IOPS", "burst fee", "once", "steal", "CPU"),
    "can't be told from",
}
"""Columns that are left out where no offer has anything in them."""


def market_table(market: Market) -> Table:
    """Return a row for each offer and job: what it costs, and what one gets for it."""
    several = len({offer.job for offer in market.offers}) > 1
    headings = ["rank", "offer", *(["job"] if several else []), "family", "month", "steady IOPS"]
    headings += ["per 1,000 IOPS", "bandwidth", "per 100 MB/s", "per GiB", "burst IOPS"]
    headings += ["burst fee", "once", "Runs", "steal", "CPU", "can't be told from"]
    rows = [_offer_cells(offer, several=several) for offer in market.offers]
    used = [
        place
        for place, heading in enumerate(headings)
        if heading not in _OPTIONAL or any(row[place] not in {MISSING, ""} for row in rows)
    ]
    return text_table(
        [headings[place] for place in used],
        [[row[place] for place in used] for row in rows],
        words=_WORDS,
        caption="\n".join(_caption(market)),
    )


def _offer_cells(offer: Offer, *, several: bool) -> list[str]:
    return [
        MISSING if offer.rank is None else str(offer.rank),
        offer.name + _mark(offer),
        *([offer.job] if several else []),
        offer.family,
        _range_text(offer.monthly),
        interval_text(offer.iops, format_count),
        interval_text(offer.cost_per_1000_iops, money_text),
        format_rate(offer.bw_bytes_per_s.estimate),
        interval_text(offer.cost_per_100_mb_per_s, money_text),
        interval_text(offer.cost_per_gib, money_text, ends=False),
        format_count(offer.burst_iops),
        _burst_fee(offer),
        _range_text(offer.once) if any(offer.once) else "",
        f"{offer.runs}" + (f" ({offer.unsteady} unsteady)" if offer.unsteady else ""),
        MISSING if math.isnan(offer.steal_percent) else f"{offer.steal_percent:.1f} %",
        "; ".join(offer.cpu_models),
        ", ".join(offer.alike),
    ]


def _mark(offer: Offer) -> str:
    """Return what tells an offer on the front from others."""
    if not offer.is_on_front:
        return ""
    return " (*)" if offer.no_faster_than else " *"


def _range_text(costs: tuple[float, float]) -> str:
    low, high = costs
    return money_text(low) if low == high or math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _burst_fee(offer: Offer) -> str:
    """Return what bursts cost; empty where they cost nothing."""
    month, ios = offer.burst_monthly, offer.burst_per_million_ios
    if any(math.isnan(cost) for cost in (*month, *ios)):
        return MISSING
    told = [f"{_range_text(month)} a month"] if any(month) else []
    told += [f"{_range_text(ios)} per million I/Os"] if any(ios) else []
    return " + ".join(told)


def _caption(market: Market) -> list[str]:
    lines = [
        f"Costs in {market.currency} a month. [95 % intervals] are of the measurement.",
        "Equal ranks can't be told apart by the cost of an I/O.",
    ]
    if any(offer.is_on_front for offer in market.offers):
        lines.append("* nothing else gives as many steady IOPS for as little")
    lines += [
        f"(*) {offer.name} in {offer.job}: not shown to be faster than"
        f" {', '.join(offer.no_faster_than)}, for more money"
        for offer in market.offers
        if offer.no_faster_than
    ]
    if any(_burst_fee(offer) not in {MISSING, ""} for offer in market.offers):
        lines.append("burst fee: paid beside the month, for what is above the provisioned IOPS")
    if any(max(offer.once) > 0 for offer in market.offers):
        lines.append("once: paid for each new volume; no part of the month")
    if any(math.isnan(offer.iops.low) for offer in market.offers):
        lines.append("no interval: fewer than 3 Runs; run more repeats: volbench run --repeat 5")
    return [*lines, *market.notes]


def money_text(amount: float) -> str:
    """Return an amount with as many digits as tell something, ``n/a`` when unknown."""
    if math.isnan(amount):
        return MISSING
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"


def interval_text(interval: Interval, words: Callable[[float], str], *, ends: bool = True) -> str:
    """Return an estimate with the ends of its interval where they are known."""
    told = words(interval.estimate)
    low, high = words(interval.low), words(interval.high)
    if not ends or math.isnan(interval.low) or told == low == high:
        return told
    return f"{told} [{low}, {high}]"


def market_records(market: Market) -> dict[str, object]:
    """Return all numbers in full precision for JSON; unknown ones are None."""
    return {
        "currency": market.currency,
        "offers": [_plain(asdict(offer)) for offer in market.offers],
        "notes": list(market.notes),
    }


def market_csv(market: Market) -> str:
    """Return a line for each offer in full precision; unknown is empty, names are joined by ``;``.

    An estimate has the ends of its interval behind it, as ``_low`` and ``_high``; a range has its
    ends alone.
    """
    return csv_text([_flat(offer, market.currency) for offer in market.offers])


def _flat(offer: Offer, currency: str) -> dict[str, object]:
    row: dict[str, object] = {"currency": currency}
    for field in fields(offer):
        name, value = field.name, getattr(offer, field.name)
        if isinstance(value, Interval):
            row |= {name: value.estimate, f"{name}_low": value.low, f"{name}_high": value.high}
        elif name in _RANGES:
            row |= {f"{name}_low": value[0], f"{name}_high": value[1]}
        elif isinstance(value, tuple):
            row[name] = ";".join(value)
        elif name != "values":
            row[name] = value
    return {name: _plain(value) for name, value in row.items()}


_RANGES = ("monthly", "burst_monthly", "burst_per_million_ios", "once")


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def prices_table(prices: Prices) -> Table:
    """Return a row for each price of a file; hours and months are worked out where missing."""
    headings = ["name", "kind", "family", "hour", "month", "per GiB", "per IOPS", "per MB/s"]
    headings += ["region", "checked", "source"]
    rows = [
        _price_cells(price, kind, prices.hours_per_month)
        for kind, named in (("flavor", prices.flavors), ("volume type", prices.volume_types))
        for price in named.values()
    ]
    caption = (
        f"{prices.currency}; {prices.hours_per_month:g} hours a month. "
        "~ worked out from the other one"
    )
    words = {"name", "kind", "family", "region", "checked", "source"}
    return text_table(headings, rows, words=words, caption=caption)


def _price_cells(price: Price, kind: str, hours_per_month: float) -> list[str]:
    hourly, monthly = price.hourly, price.monthly
    told_hour = MISSING if hourly is None else f"{hourly:g}"
    told_month = MISSING if monthly is None else f"{monthly:.2f}"
    if hourly is None and monthly is not None:
        told_hour = f"~{monthly / hours_per_month:.3g}"
    if monthly is None and hourly is not None:
        told_month = f"~{hourly * hours_per_month:.2f}"
    per_mb = price.bandwidth.monthly / price.bandwidth.unit * 1e6 if price.bandwidth else 0.0
    return [
        price.name,
        kind,
        price.family,
        told_hour,
        told_month,
        f"{price.per_gib_month:g}" if price.per_gib_month else "",
        f"{price.iops.monthly:g}" if price.iops else "",
        f"{per_mb:.4g}" if per_mb else "",
        price.region,
        price.checked,
        price.source.title,
    ]
