"""Tables of price lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from volbench.catalogue.price_list import Price, Prices
from volbench.present.formatting import MISSING
from volbench.present.tables.table import IDENTITY, Column, Table


@dataclass(frozen=True)
class _PriceRow:
    kind: str
    price: Price
    hours_per_month: float


def _hour_text(row: _PriceRow) -> str:
    hourly, monthly = row.price.hourly, row.price.monthly
    if hourly is not None:
        return f"{hourly:g}"
    return MISSING if monthly is None else f"~{monthly / row.hours_per_month:.3g}"


def _month_text(row: _PriceRow) -> str:
    hourly, monthly = row.price.hourly, row.price.monthly
    if monthly is not None:
        return f"{monthly:.2f}"
    return MISSING if hourly is None else f"~{hourly * row.hours_per_month:.2f}"


def _per_mb_per_s(price: Price) -> float:
    return price.bandwidth.monthly / price.bandwidth.unit * 1e6 if price.bandwidth else 0.0


PRICE_COLUMNS: tuple[Column[_PriceRow], ...] = (
    Column("name", lambda row: row.price.name, priority=IDENTITY),
    Column("kind", lambda row: row.kind),
    Column("family", lambda row: row.price.family, priority=4, is_optional=True),
    Column("hourly", _hour_text, header="hour", is_right=True),
    Column("monthly", _month_text, header="month", is_right=True),
    Column(
        "per_gib_month",
        lambda row: f"{row.price.per_gib_month:g}" if row.price.per_gib_month else "",
        header="per GiB",
        priority=2,
        is_right=True,
    ),
    Column(
        "per_iops",
        lambda row: f"{row.price.iops.monthly:g}" if row.price.iops else "",
        header="per IOPS",
        priority=3,
        is_right=True,
    ),
    Column(
        "per_mb_per_s",
        lambda row: f"{per_mb:.4g}" if (per_mb := _per_mb_per_s(row.price)) else "",
        header="per MB/s",
        priority=3,
        is_right=True,
    ),
    Column("region", lambda row: row.price.region, priority=5, is_optional=True),
    Column("checked", lambda row: row.price.checked, priority=5),
    Column(
        "source",
        lambda row: row.price.source.title if row.price.source else "",
        priority=6,
        is_folded=True,
    ),
)


def prices_table(prices: Prices) -> Table[_PriceRow]:
    """Return a row for each price of a file; missing hourly or monthly prices are derived."""
    return Table(
        "prices",
        PRICE_COLUMNS,
        [
            _PriceRow(kind, price, prices.hours_per_month)
            for kind, named in (("flavor", prices.flavors), ("volume type", prices.volume_types))
            for price in named.values()
        ],
        record=lambda row: {"kind": row.kind, **row.price.model_dump(mode="json")},
        notes=[
            f"{prices.currency}; {prices.hours_per_month:g} hours per month",
            "~ derived from the price per month or per hour",
        ],
        document=prices.model_dump(mode="json"),
    )


def price_lists_table(lists: Mapping[str, Prices]) -> Table[dict[str, object]]:
    """Return a row for each price list, by its name."""
    return Table(
        "prices",
        (
            Column("name", priority=IDENTITY),
            Column("currency"),
            Column("flavors", is_right=True),
            Column("volume_types", is_right=True),
        ),
        [
            {
                "name": name,
                "currency": prices.currency,
                "flavors": len(prices.flavors),
                "volume_types": len(prices.volume_types),
            }
            for name, prices in lists.items()
        ],
    )
