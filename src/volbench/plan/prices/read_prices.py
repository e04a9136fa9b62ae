"""The text of a file of prices in, Prices out, or every problem with its place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from volbench.errors import InputError, Problems
from volbench.model.catalogue.price_list import (
    HOURS_PER_MONTH,
    Burst,
    Initialisation,
    Metered,
    Price,
    Prices,
)
from volbench.model.catalogue.volume_type import TypeSource
from volbench.model.document.yaml_nodes import Entry, Node, parse_document
from volbench.plan.profile.declared_limits import LIMIT_KEYS
from volbench.plan.profile.document_fields import FieldReader
from volbench.plan.volume_types.read_types import (
    known_entries,
    raise_problems,
    read_date,
    read_source,
)

COMMON_KEYS = ("provider", "region", "checked", "source")
FILE_KEYS = ("currency", "hours_per_month", *COMMON_KEYS, "flavors", "volume_types")
FLAVOR_KEYS = ("family", *COMMON_KEYS, "hourly", "monthly")
METER_KEYS = ("monthly", "per", "included")
BURST_KEYS = ("monthly", "per_million_ios")
ONCE_KEYS = ("once", "per_gib")
VOLUME_KEYS = (
    *FLAVOR_KEYS,
    "per_gib_month",
    "iops",
    "bandwidth",
    "burst",
    "initialisation",
)
_CURRENCY = re.compile(r"[A-Z]{3}")
_DIGITS = re.compile(r"\d+(\.\d+)?")


def parse_prices(text: str, *, path: str) -> Prices:
    """Read a file of prices.

    Args:
        text: YAML 1.2.
        path: for messages.

    Raises:
        InputError: everything that is wrong in it, in file order.
    """
    reader = FieldReader(Problems(path))
    top = parse_document(
        text, reader.problems, what="a file of prices", needs="a currency and prices"
    )
    prices = Prices(path=path, currency="") if top is None else _prices(reader, top, path)
    raise_problems(reader.problems)
    return prices


def _prices(reader: FieldReader, top: Node, path: str) -> Prices:
    entries = known_entries(reader, top, FILE_KEYS, "a file of prices")
    if "currency" not in entries:
        reader.complain(top, "currency is missing", key="currency", hint="add currency: USD")
    if not {"flavors", "volume_types"} & entries.keys():
        reader.complain(top, "it has no price", hint="add flavors, or volume_types")
    common = {name: entries[name].value for name in COMMON_KEYS if name in entries}
    hours = HOURS_PER_MONTH
    if "hours_per_month" in entries:
        hours = reader.value(entries["hours_per_month"].value, "hours_per_month", _hours, hours)
    return Prices(
        path=path,
        currency=_currency(reader, entries["currency"].value) if "currency" in entries else "",
        hours_per_month=hours,
        flavors=_of_each(reader, entries.get("flavors"), FLAVOR_KEYS, common),
        volume_types=_of_each(reader, entries.get("volume_types"), VOLUME_KEYS, common),
    )


def _currency(reader: FieldReader, node: Node) -> str:
    text = reader.given(node, "currency")
    if text and not _CURRENCY.fullmatch(text):
        reader.complain(node, f"{text!r} is no currency", hint="write its three letters: USD")
    return text


def read_amount(text: str) -> float:
    """Return an amount of money.

    Raises:
        InputError: it is none, or below 0.
    """
    if not _DIGITS.fullmatch(text):
        raise InputError(f"{text!r} is no price", hint="write digits only, such as 0.022")
    return float(text)


def _hours(text: str) -> float:
    hours = read_amount(text)
    if not 0 < hours <= 744:
        raise InputError(f"no month has {text} hours", hint="providers take 720, 730 or 744")
    return hours


def _of_each(
    reader: FieldReader,
    entry: Entry | None,
    known: tuple[str, ...],
    common: Mapping[str, Node],
) -> dict[str, Price]:
    if entry is None:
        return {}
    found = {}
    for one in reader.entries(entry.value, entry.name):
        found[one.name] = _price(reader, one, known, common)
    return found


def _price(
    reader: FieldReader, entry: Entry, known: tuple[str, ...], common: Mapping[str, Node]
) -> Price:
    """Return one price; what the file says of all stands behind what it says itself."""
    own = known_entries(reader, entry.value, known, "a price")
    nodes = {**common, **{name: one.value for name, one in own.items()}}
    values: dict[str, object] = {"name": entry.name}
    for name in ("family", "provider", "region"):
        if name in nodes:
            values[name] = reader.given(nodes[name], name)
    for name in ("hourly", "monthly", "per_gib_month"):
        if name in own:
            values[name] = reader.value(nodes[name], name, read_amount, 0.0)
    if "checked" in nodes:
        values["checked"] = reader.value(nodes["checked"], "checked", read_date, "")
    else:
        reader.complain(entry, "it has no date", hint="add checked: 2026-01-31")
    values["source"] = _source(reader, nodes.get("source"), entry)
    values |= _beside(reader, {name: nodes[name] for name in own})
    if not {"hourly", "monthly", "per_gib_month"} & own.keys():
        hint = "add hourly, monthly" + (", or per_gib_month" if "iops" in known else "")
        reader.complain(entry, "it has no price", hint=hint)
    return Price.model_validate(values)


def _beside(reader: FieldReader, own: Mapping[str, Node]) -> dict[str, object]:
    """Return what is paid for beside time and size."""
    values: dict[str, object] = {
        name: _metered(reader, own[name], name) for name in ("iops", "bandwidth") if name in own
    }
    if "burst" in own:
        values["burst"] = Burst.model_validate(_amounts(reader, own["burst"], BURST_KEYS))
    if "initialisation" in own:
        once = _amounts(reader, own["initialisation"], ONCE_KEYS)
        values["initialisation"] = Initialisation.model_validate(once)
    return values


def _source(reader: FieldReader, node: Node | None, entry: Entry) -> TypeSource:
    if node is None:
        reader.complain(entry, "nobody can check it without a source", hint="add source: ...")
        return TypeSource(title="")
    return read_source(reader, node)


def _metered(reader: FieldReader, node: Node, name: str) -> Metered:
    read = LIMIT_KEYS[name].read
    entries = known_entries(reader, node, METER_KEYS, name)
    if "monthly" not in entries:
        reader.complain(node, "monthly is missing: what does one cost?")
    if name == "bandwidth" and "per" not in entries:
        reader.complain(node, "per is missing: a price for how much?", hint="add per: 1MiB/s")
    amount, unit, included = (
        reader.value(entries[key].value, key, how, default) if key in entries else default
        for key, how, default in _meters(read)
    )
    return Metered(monthly=amount, unit=unit, included=included)


def _meters(
    read: Callable[[str], float],
) -> tuple[tuple[str, Callable[[str], float], float], ...]:
    return (("monthly", read_amount, 0.0), ("per", read, 1.0), ("included", read, 0.0))


def _amounts(reader: FieldReader, node: Node, known: tuple[str, ...]) -> dict[str, float]:
    """Return the amounts of a mapping by name."""
    entries = known_entries(reader, node, known, "a price")
    found = {
        name: reader.value(one.value, name, read_amount, math.nan)
        for name, one in entries.items()
        if name in known
    }
    if not entries:
        reader.complain(node, "it has no price", hint=f"add {' or '.join(known)}")
    return found
