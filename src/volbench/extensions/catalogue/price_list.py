"""Price list of machines and volumes: file format and cost calculation.

Hourly and monthly prices are stored separately, because providers discount only one of them; a
missing one is converted by 730 hours per month.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from volbench.errors import InputError
from volbench.extensions.catalogue.volume_type import GIB, TypeSource
from volbench.extensions.catalogue.volume_types import Count, Day
from volbench.model.document.document_model import (
    Document,
    Filled,
    Rate,
    Text,
    parsed,
    value_schema,
)
from volbench.model.document.located_errors import Fault, reject
from volbench.model.document.yaml_text import read_document
from volbench.model.frozen_model import Frozen
from volbench.plan.bundled_files import bundled_names, read_named

FLAVOR, VOLUME_TYPE = "flavor", "volume_type"  # Labels of hosts that prices are found by
# 365 x 24 / 12, as providers count. Noticed by:
# tests/extensions/catalogue/test_price_performance.py::test_families_are_compared
HOURS_PER_MONTH = 730.0

FOLDER = "prices"  # Name of the folder with the bundled price lists

_DIGITS = re.compile(r"\d+(\.\d+)?")
_COMMON = ("provider", "region", "checked", "source")


def _parse_amount(text: str) -> float:
    if not _DIGITS.fullmatch(text):
        raise InputError(f"must be a price, not {text!r}", hint="write digits only, such as 0.022")
    return float(text)


def _checked_currency(text: str) -> str:
    if not re.fullmatch("[A-Z]{3}", text):
        reject(Fault(f"must be a currency, not {text!r}", "write its three letters: USD"))
    return text


Amount = Annotated[float, parsed(_parse_amount), Field(ge=0), value_schema("amount of money")]


class Metered(Document):
    """Price of provisioned I/O operations a second."""

    monthly: Amount = Field(description="Price of one unit per month.")
    unit: Count = Field(default=1.0, alias="per", description="Amount per unit.")
    included: Count = Field(default=0.0, description="Amount free of charge.")

    def month(self, provisioned: float) -> float:
        """Return the monthly cost of a provisioned amount."""
        return max(0.0, provisioned - self.included) / self.unit * self.monthly


class MeteredBandwidth(Metered):
    """Price of provisioned bandwidth."""

    unit: Rate = Field(alias="per", description="Amount per unit.", examples=["1MiB/s"])
    included: Rate = Field(default=0.0, description="Amount free of charge.")


class FlavorPrice(Document):
    """Price of a machine."""

    family: Filled = Field(default="", description="Group for `--by family`.")
    provider: Filled = Field(default="", description="Provider.")
    region: Filled = Field(default="", description="Region in which the price holds.")
    checked: Day = Field(
        default="", description="Date the price was looked up; required here or for the whole file."
    )
    source: TypeSource | None = Field(
        default=None, description="A title, or `{title, url}`; required here or for the whole file."
    )
    hourly: Amount | None = Field(default=None, description="Price per hour.")
    monthly: Amount | None = Field(default=None, description="Price per month.")


class VolumePrice(FlavorPrice):
    """Price of a volume."""

    per_gib_month: Amount = Field(default=0.0, description="Price per GiB (2^30 bytes) and month.")
    iops: Metered | None = Field(
        default=None, description="[Price of provisioned IOPS](#provisioned-performance)."
    )
    bandwidth: MeteredBandwidth | None = Field(
        default=None, description="[Price of provisioned bandwidth](#provisioned-performance)."
    )


class Price(VolumePrice):
    """Price of a machine or a volume."""

    name: str  # name of the flavor, or of the volume type with its provider

    def month(
        self, size_bytes: float = 0.0, iops: float = 0.0, bandwidth_bytes_per_s: float = 0.0
    ) -> float:
        """Return the cost per month, without fees for bursts and for a new volume."""
        by_hours = (self.hourly or 0.0) * HOURS_PER_MONTH
        metered = self.per_gib_month * size_bytes / GIB
        metered += self.iops.month(iops) if self.iops else 0.0
        metered += self.bandwidth.month(bandwidth_bytes_per_s) if self.bandwidth else 0.0
        return (by_hours if self.monthly is None else self.monthly) + metered


class PricesFile(Document):
    """Prices of machines and volumes in one currency."""

    currency: Annotated[Text, AfterValidator(_checked_currency)] = Field(
        description="Three letters; one currency for the whole file.", examples=["USD"]
    )
    provider: Filled = Field(default="", description="Default for prices without their own.")
    region: Filled = Field(default="", description="Default for prices without their own.")
    checked: Day = Field(
        default="", description="Date the prices without their own were looked up."
    )
    source: TypeSource | None = Field(
        default=None, description="A title, or `{title, url}`; default for prices without it."
    )
    flavors: dict[Text, FlavorPrice] = Field(
        default_factory=dict,
        description="Name to price of a machine; these or `volume_types` are required.",
    )
    volume_types: dict[Text, VolumePrice] = Field(
        default_factory=dict,
        description="Type, such as aws/gp3, to price of a volume.",
        examples=["{azure/P15: {monthly: 38.41}}"],
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        groups: dict[str, Mapping[str, FlavorPrice]] = {
            "flavors": self.flavors,
            "volume_types": self.volume_types,
        }
        if not any(groups.values()):
            reject(Fault("has no price", "add flavors, or volume_types"))
        faults = []
        for key, group in groups.items():
            for name, price in group.items():
                faults += [
                    Fault(message, hint, at=(key, name), on_key=True)
                    for message, hint in self._missing_parts(price)
                ]
        if faults:
            reject(*faults)
        return self

    def _missing_parts(self, price: FlavorPrice) -> Iterator[tuple[str, str]]:
        if not (price.checked or self.checked):
            yield "has no date", "add checked: 2026-01-31"
        if not (price.source or self.source):
            yield "has no source", "add source: ..., so that others can check it"
        if not {"hourly", "monthly", "per_gib_month"} & price.model_fields_set:
            by_size = ", or per_gib_month" if isinstance(price, VolumePrice) else ""
            yield "has no price", f"add hourly, monthly{by_size}"

    def named(self, prices: Mapping[str, FlavorPrice]) -> dict[str, Price]:
        """Return prices by name, with the defaults of the file filled in."""
        common = {name: getattr(self, name) for name in _COMMON}
        return {
            name: Price.model_validate(
                {"name": name}
                | {key: value for key, value in common.items() if value}
                | {key: getattr(price, key) for key in price.model_fields_set}
            )
            for name, price in prices.items()
        }


class Prices(Frozen):
    """A price list."""

    path: str  # path of the file
    currency: str  # currency of all prices, such as ``USD``
    flavors: dict[str, Price] = Field(default_factory=dict)  # prices of machines by name
    # prices of volumes by name, such as ``aws/gp3``
    volume_types: dict[str, Price] = Field(default_factory=dict)


def price_names() -> tuple[str, ...]:
    """Return the names of the bundled price lists, sorted."""
    return bundled_names(FOLDER)


def load_prices(name_or_path: str) -> Prices:
    """Return a price list: a bundled one by name, or a file."""
    text, path = read_named(name_or_path, folder=FOLDER, what="price list")
    return parse_prices(text, path=path)


def parse_prices(text: str, *, path: str) -> Prices:
    """Return the price list in a text."""
    what, needs = "a price list", "a currency and prices"
    file = read_document(text, PricesFile, path=path, what=what, needs=needs)
    return Prices(
        path=path,
        currency=file.currency,
        flavors=file.named(file.flavors),
        volume_types=file.named(file.volume_types),
    )
