"""Files of prices by name or path, and the cost of some hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from volbench.errors import InputError, did_you_mean
from volbench.model.catalogue.price_list import Price, Prices, PricesFile
from volbench.plan.bundled import bundled_names, read_named
from volbench.plan.volume_types import parse_file

__all__ = ["Bill", "Rented", "find_price", "load_prices", "money", "parse_prices", "price_names"]

FOLDER = "prices"


def price_names() -> tuple[str, ...]:
    """Return the names of the bundled files of prices, sorted."""
    return bundled_names(FOLDER)


def load_prices(name_or_path: str) -> Prices:
    """Read a file of prices: a bundled one by name, or a file.

    Raises:
        InputError: there is neither, or everything that is wrong in it.
    """
    text, path = read_named(name_or_path, folder=FOLDER, what="file of prices")
    return parse_prices(text, path=path)


def parse_prices(text: str, *, path: str) -> Prices:
    """Return the prices in a text.

    Raises:
        InputError: everything that is wrong in it, in file order.
    """
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
    """Return the price of something.

    Args:
        name: of the flavor or volume type.
        prices: by name.
        what: they are of, for messages.
        path: of the file, for messages.

    Raises:
        InputError: it has none; the hint tells the nearest one.
    """
    if name in prices:
        return prices[name]
    raise InputError(
        f"{path or 'the file'} has no price of the {what} {name!r}",
        hint=did_you_mean(name, prices, f"it has {', '.join(prices) or 'none'}"),
        context={"name": name},
    )


@dataclass(frozen=True)
class Rented:
    """A volume that is paid for.

    Attributes:
        volume_type: its name in the file of prices.
        size_bytes: 0 when its price does not depend on it.
        iops: that are provisioned.
        bandwidth_bytes_per_s: that is provisioned.
    """

    volume_type: str
    size_bytes: float = 0.0
    iops: float = 0.0
    bandwidth_bytes_per_s: float = 0.0


@dataclass(frozen=True)
class Bill:
    """What a campaign costs.

    Attributes:
        amount: in all.
        once: the part of it that is paid once, for new volumes.
        currency: such as ``USD``.
    """

    amount: float
    once: float
    currency: str

    def __str__(self) -> str:
        """Return it for people, such as ``1.24 USD``; less than a cent is told as that."""
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
    """Return what machines and their volumes cost for some hours, with what is paid once.

    Args:
        prices: they have.
        hours: they are kept, such as ``estimate.total_s / 3600``.
        flavor: of each machine; empty when machines cost nothing or are not counted.
        volume_types: each volume of each machine; a name alone where its size costs nothing.
        machines: how many of these there are.

    Raises:
        InputError: something has no price, or a price needs a size that is not known.
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
                f"{price.name} is paid by the GiB, and nothing tells the size",
                hint="say how large the volume is",
                context={"type": price.name},
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
