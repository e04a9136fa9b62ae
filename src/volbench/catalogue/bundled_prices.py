"""Price lists by name or path, and the cost of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from volbench.catalogue.bundled_volume_types import parse_file
from volbench.catalogue.price_list import Price, Prices, PricesFile
from volbench.errors import InputError, did_you_mean
from volbench.plan.bundled import bundled_names, read_named

__all__ = ["Bill", "Rented", "find_price", "load_prices", "money", "parse_prices", "price_names"]

FOLDER = "prices"


def price_names() -> tuple[str, ...]:
    """Return the names of the bundled price lists, sorted."""
    return bundled_names(FOLDER)


def load_prices(name_or_path: str) -> Prices:
    """Return a price list: a bundled one by name, or a file."""
    text, path = read_named(name_or_path, folder=FOLDER, what="file of prices")
    return parse_prices(text, path=path)


def parse_prices(text: str, *, path: str) -> Prices:
    """Return the price list in a text."""
    needs = "a currency and prices"
    file = parse_file(text, PricesFile, path=path, what="a file of prices", needs=needs)
    return Prices(
        path=path,
        currency=file.currency,
        hours_per_month=file.hours_per_month,
        flavors=file.named(file.flavors),
        volume_types=file.named(file.volume_types),
    )


def find_price(name: str, prices: Mapping[str, Price], *, what: str, path: str = "") -> Price:
    """Return the price of a flavor or volume type."""
    if name in prices:
        return prices[name]
    raise InputError(
        f"{path or 'the file'} has no price of the {what} {name!r}",
        hint=did_you_mean(name, prices, f"it has {', '.join(prices) or 'none'}"),
    )


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
