"""Tables of volume types, price lists and storage classes, and the bundled storage classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from volbench.catalogue.price_list import Price, Prices
from volbench.catalogue.volume_type import Provision, Rule, Rules, VolumeType
from volbench.errors import InputError, Problems, did_you_mean
from volbench.model.document.located_errors import Node
from volbench.model.document.yaml_text import parse_document
from volbench.model.profile.profile_settings import Limits
from volbench.plan.bundled_files import bundled_folder, bundled_names
from volbench.present.formatting import MISSING
from volbench.present.tables.table import IDENTITY, Column, Table, text_table
from volbench.units import format_capacity, format_count, format_duration, format_rate

HEADINGS = ("type", "title", "sizes", "IOPS", "bandwidth", "burst IOPS", "burst bandwidth")
_MIB = 1 << 20
Words = Callable[[float], str]


_PRIORITIES = {"type": IDENTITY, "title": 5, "sizes": 4, "IOPS": 1, "bandwidth": 2}


def _column(place: int, heading: str) -> Column[VolumeType]:
    return Column(
        heading.lower().replace(" ", "_"),
        lambda kind: type_cells(kind)[place],
        header=heading,
        priority=_PRIORITIES.get(heading, 3),
        is_folded=heading not in {"type", "sizes"},
    )


TYPE_COLUMNS = tuple(_column(place, heading) for place, heading in enumerate(HEADINGS))


def types_table(types: Mapping[str, VolumeType]) -> Table[VolumeType]:
    """Return a row for each type: its limits as rules of its size."""
    return Table(
        "volume-types",
        TYPE_COLUMNS,
        list(types.values()),
        record=lambda kind: kind.model_dump(mode="json"),
    )


def type_cells(kind: VolumeType) -> list[str]:
    """Return the cells of a type under `HEADINGS`."""
    sizes = f"{format_capacity(kind.min_bytes)} to {format_capacity(kind.max_bytes)}"
    if kind.size_bytes:
        sizes = format_capacity(kind.size_bytes)
    if kind.tiers:
        names = [tier.name.partition("/")[2] for tier in kind.tiers]
        tiers = f"of its tier, {names[0]} to {names[-1]}"
        sizes = f"up to {format_capacity(kind.tiers[-1].size_bytes)}"
        return [kind.name, kind.title, sizes, tiers, "", "", ""]
    iops = _limit(kind.buys_iops, kind.iops, format_count)
    bandwidth = _limit(kind.buys_bandwidth, kind.bandwidth, rate_text)
    writes = (("IOPS", kind.write_iops), ("bandwidth", kind.write_bandwidth))
    for name, rules in writes:
        if rules and name == "IOPS":
            iops += f"; writes {rules_text(rules, format_count)}"
        elif rules:
            bandwidth += f"; writes {rules_text(rules, rate_text)}"
    return [
        kind.name,
        kind.title,
        sizes,
        iops,
        bandwidth,
        _burst(kind, kind.burst_iops, kind.burst_ios, format_count),
        _burst(kind, kind.burst_bandwidth, kind.burst_bytes, rate_text, credits_=format_capacity),
    ]


def _limit(provision: Provision[float] | None, rules: Rules, words: Words) -> str:
    if provision is None:
        return rules_text(rules, words) if rules else MISSING
    least = _bracketed(rules_text(provision.min, words)) if provision.min else "0"
    rule = f"{least} to {_bracketed(rules_text(provision.max, words))}"
    return (
        rule if provision.included is None else f"{words(provision.included)}; provisioned: {rule}"
    )


def _bracketed(text: str) -> str:
    return f"({text})" if "," in text else text


def _burst(
    kind: VolumeType, rate: Rules, full: Rules, words: Words, *, credits_: Words = format_count
) -> str:
    if not rate:
        return ""
    burst = rules_text(rate, words)
    if full:
        return f"{burst}; credits {rules_text(full, credits_)}"
    return burst if kind.burst_s is None else f"{burst} for {kind.burst_s / 60:g} min"


def rules_text(rules: Rules, words: Words) -> str:
    """Return rules in words, such as ``3 per GiB, at least 100, at most 16k``."""
    return " or, if lower, ".join(_rule(rule, words) for rule in rules)


def _rule(rule: Rule[float], words: Words) -> str:
    by_size = (rule.per_gib, "GiB")
    if words is rate_text and not words(rule.per_gib).endswith("MiB/s"):
        by_size = (rule.per_gib * 1024, "TiB")
    added = [by_size, (rule.per_iops, "IOPS"), (rule.per_mib_s, "MiB/s")]
    parts = [words(rule.base)] if rule.base else []
    parts += [f"{words(amount)} per {unit}" for amount, unit in added if amount]
    clauses = [" + ".join(parts)]
    clauses += [f"at least {words(rule.min)}"] if rule.min is not None else []
    clauses += [f"at most {words(rule.max)}"] if rule.max is not None else []
    if rule.above_bytes:
        clauses.append(f"above {format_capacity(rule.above_bytes)}")
    if rule.below_bytes:
        clauses.append(f"below {format_capacity(rule.below_bytes)}")
    return ", ".join(clauses)


def rate_text(bytes_per_s: float) -> str:
    """Return a rate in the unit that gives a round number: ``125 MB/s`` or ``125 MiB/s``."""
    mib = bytes_per_s / _MIB
    if mib >= 0.001 and abs(mib * 1000 - round(mib * 1000)) < 1e-6 * mib:
        return f"{mib:.6g} MiB/s"
    return format_rate(bytes_per_s)


def type_table(kind: VolumeType, limits: Limits | None) -> Table[Any]:
    """Return the limits of a volume of a type and their source, a row for each property.

    Args:
        limits: of a volume of some size; None for the rules of the type.
    """
    document: dict[str, object] = {"type": kind.model_dump(mode="json"), "limits": None}
    if limits is None:
        rows = [(key, cell) for key, cell in zip(HEADINGS, type_cells(kind), strict=True) if cell]
    else:
        rows = _limits_rows(kind, limits)
        document["limits"] = limits.model_dump(mode="json", exclude={"wanted"})
        document["bursts_s"] = _lasting(limits)
    cells = [{"property": key, "value": value} for key, value in (*rows, *_about_rows(kind))]
    table = text_table("volume-type", cells, identity="property", folded=["value"])
    return replace(table, document=document)


def _limits_rows(kind: VolumeType, limits: Limits) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = [("type", kind.name), ("title", kind.title)]
    for name, value, words in (
        ("IOPS", limits.iops, format_count),
        ("bandwidth", limits.bandwidth_bytes_per_s, rate_text),
        ("burst IOPS", limits.burst_iops, format_count),
        ("burst credits, I/Os", limits.burst_ios, format_count),
        ("burst bandwidth", limits.burst_bandwidth_bytes_per_s, rate_text),
        ("burst credits, bytes", limits.burst_bytes, format_capacity),
    ):
        if value is not None:
            pairs.append((name, words(value)))
    for name, lasts in _lasting(limits).items():
        pairs.append((name, format_duration(lasts)))
    return pairs


def _lasting(limits: Limits) -> dict[str, float]:
    """Return how long full credits last at the burst rate, and how long a refill takes."""
    found = {}
    for what, rate, base, full in (
        ("IOPS", limits.burst_iops, limits.iops, limits.burst_ios),
        (
            "bandwidth",
            limits.burst_bandwidth_bytes_per_s,
            limits.bandwidth_bytes_per_s,
            limits.burst_bytes,
        ),
    ):
        if rate and base and full:
            found[f"burst of {what} lasts"] = full / (rate - base)
            found[f"burst of {what} is back after"] = full / base
    return found


def _about_rows(kind: VolumeType) -> Sequence[tuple[str, str]]:
    pairs = [("note", kind.note), ("source", kind.source.title), ("url", kind.source.url)]
    return [(name, text) for name, text in (*pairs, ("checked", kind.checked)) if text]


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


FOLDER = "storage-classes"


@dataclass(frozen=True)
class StorageClass:
    """A bundled storage class."""

    name: str  # of the object, and of its file
    title: str  # first comment of the file
    provisioner: str  # CSI driver
    parameters: dict[str, str]  # of the driver


def storage_classes() -> list[StorageClass]:
    """Return the bundled storage classes, sorted by provisioner and name."""
    found = [_parsed(name, read_class(name)) for name in bundled_names(FOLDER)]
    return sorted(found, key=lambda each: (each.provisioner, each.name))


def read_class(name: str) -> str:
    """Return the manifest of a bundled storage class."""
    names = bundled_names(FOLDER)
    if name not in names:
        raise InputError(
            f"there is no bundled storage class {name!r}",
            hint=did_you_mean(name, names, "see volbench k8s storageclass --list"),
        )
    return (bundled_folder(FOLDER) / f"{name}.yaml").read_text("utf-8")


def _parsed(name: str, text: str) -> StorageClass:
    problems = Problems(name)
    node = parse_document(text, problems, what="a storage class", needs="a provisioner")
    problems.raise_if_any()
    content = _values(node)
    parameters = {key: str(value.raw) for key, value in _values(content.get("parameters")).items()}
    title = text.partition("\n")[0].removeprefix("#").strip()
    return StorageClass(name, title, str(content["provisioner"].raw), parameters)


def _values(node: Node | None) -> dict[str, Node]:
    return {entry.name: entry.value for entry in (node.entries or ())} if node else {}


CLASS_COLUMNS: tuple[Column[StorageClass], ...] = (
    Column("name", lambda each: each.name, priority=IDENTITY),
    Column("title", lambda each: each.title, priority=2, is_folded=True),
    Column("provisioner", lambda each: each.provisioner, priority=4),
    Column(
        "parameters",
        lambda each: ", ".join(f"{key}: {value}" for key, value in each.parameters.items()),
        priority=3,
        is_folded=True,
    ),
)


def classes_table(classes: Sequence[StorageClass]) -> Table[StorageClass]:
    """Return a row for each storage class."""
    return Table("storage-classes", CLASS_COLUMNS, classes, record=asdict)
