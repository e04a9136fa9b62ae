"""Tables of volume types, machine types, prices and ranked configurations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from volbench.extensions.catalogue.machine_types import MachineType
from volbench.extensions.catalogue.price_list import HOURS_PER_MONTH, Metered, Price, Prices
from volbench.extensions.catalogue.volume_type import Provision, Rule, Rules, VolumeType
from volbench.model.profile.profile_settings import Limits
from volbench.present.formatting import MISSING
from volbench.present.tables.table import IDENTITY, Column, Table, text_table
from volbench.units import format_capacity, format_count, format_duration, format_rate, percent

if TYPE_CHECKING:
    from volbench.analyse.compare.repeat_statistics import Interval
    from volbench.extensions.catalogue.price_performance import Market, Offer

HEADINGS = ("type", "title", "sizes", "IOPS", "bandwidth", "burst IOPS", "burst bandwidth")
_MIB = 1 << 20
_TOO_FEW = "too few repeats to compare"
Words = Callable[[float], str]

_PRIORITIES = {"type": IDENTITY, "title": 5, "sizes": 4, "IOPS": 1, "bandwidth": 2}


def _type_column(index: int, heading: str) -> Column[VolumeType]:
    return Column(
        heading.lower().replace(" ", "_"),
        lambda kind: type_cells(kind)[index],
        header=heading,
        priority=_PRIORITIES.get(heading, 3),
        is_folded=heading not in {"type", "sizes"},
    )


TYPE_COLUMNS = tuple(_type_column(place, heading) for place, heading in enumerate(HEADINGS))


def types_table(types: Mapping[str, VolumeType]) -> Table[VolumeType]:
    """Return a row for each type: its limits as rules of its size."""
    return Table(
        "volume-types",
        TYPE_COLUMNS,
        list(types.values()),
        record=lambda kind: kind.model_dump(mode="json"),
    )


def machines_table(machines: Mapping[str, MachineType]) -> Table[tuple[str, MachineType]]:
    """Return a row for each machine type."""

    def number(key: str, words: Words) -> Callable[[tuple[str, MachineType]], str]:
        def cell(entry: tuple[str, MachineType]) -> str:
            value = getattr(entry[1], key)
            return MISSING if value is None else words(value)

        return cell

    keys = (
        ("iops", "IOPS", format_count),
        ("bandwidth_bytes_per_s", "bandwidth", rate_text),
        ("burst_iops", "burst IOPS", format_count),
        ("burst_bandwidth_bytes_per_s", "burst bandwidth", rate_text),
        ("cached_iops", "cached IOPS", format_count),
        ("cached_bandwidth_bytes_per_s", "cached bandwidth", rate_text),
    )
    columns = (
        Column[tuple[str, MachineType]]("machine", lambda entry: entry[0], priority=IDENTITY),
        *(
            Column[tuple[str, MachineType]](
                key,
                number(key, words),
                header=header,
                priority=place,
                is_right=True,
                is_optional=True,
            )
            for place, (key, header, words) in enumerate(keys, start=1)
        ),
    )
    return Table(
        "machine-types",
        columns,
        list(machines.items()),
        record=lambda entry: {"machine": entry[0], **entry[1].model_dump(mode="json")},
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
    iops = _limit_text(kind.buys_iops, kind.iops, format_count)
    bandwidth = _limit_text(kind.buys_bandwidth, kind.bandwidth, rate_text)
    if kind.write_iops:
        iops += f"; writes {rules_text(kind.write_iops, format_count)}"
    if kind.write_bandwidth:
        bandwidth += f"; writes {rules_text(kind.write_bandwidth, rate_text)}"
    return [
        kind.name,
        kind.title,
        sizes,
        iops,
        bandwidth,
        _burst_text(kind, kind.burst_iops, kind.burst_ios, format_count),
        _burst_text(
            kind, kind.burst_bandwidth, kind.burst_bytes, rate_text, credits_=format_capacity
        ),
    ]


def _limit_text(provision: Provision[float] | None, rules: Rules, text: Words) -> str:
    if provision is None:
        return rules_text(rules, text) if rules else MISSING
    least = _in_brackets(rules_text(provision.min, text)) if provision.min else "0"
    rule = f"{least} to {_in_brackets(rules_text(provision.max, text))}"
    return (
        rule if provision.included is None else f"{text(provision.included)}; provisioned: {rule}"
    )


def _in_brackets(text: str) -> str:
    return f"({text})" if "," in text else text


def _burst_text(
    kind: VolumeType, rate: Rules, full: Rules, text: Words, *, credits_: Words = format_count
) -> str:
    if not rate:
        return ""
    burst = rules_text(rate, text)
    if full:
        return f"{burst}; credits {rules_text(full, credits_)}"
    return burst if kind.burst_s is None else f"{burst} for {kind.burst_s / 60:g} min"


def rules_text(rules: Rules, text: Words) -> str:
    """Return rules in words, such as ``3 per GiB, at least 100, at most 16k``."""
    return " or, if lower, ".join(_rule_text(rule, text) for rule in rules)


def _rule_text(rule: Rule[float], text: Words) -> str:
    by_size = (rule.per_gib, "GiB")
    if text is rate_text and not text(rule.per_gib).endswith("MiB/s"):
        by_size = (rule.per_gib * 1024, "TiB")
    added = [by_size, (rule.per_iops, "IOPS"), (rule.per_mib_s, "MiB/s")]
    parts = [text(rule.base)] if rule.base else []
    parts += [f"{text(amount)} per {unit}" for amount, unit in added if amount]
    clauses = [" + ".join(parts) or text(0.0)]
    clauses += [f"at least {text(rule.min)}"] if rule.min is not None else []
    clauses += [f"at most {text(rule.max)}"] if rule.max is not None else []
    if rule.above_bytes:
        clauses.append(f"above {format_capacity(rule.above_bytes)}")
    if rule.below_bytes:
        clauses.append(f"below {format_capacity(rule.below_bytes)}")
    return ", ".join(clauses)


def rate_text(bytes_per_s: float) -> str:
    """Return a rate in the unit that gives a round number: ``125 MB/s`` or ``125 MiB/s``."""
    mib = bytes_per_s / _MIB
    if mib >= 0.001 and abs(mib * 1000 - round(mib * 1000)) < 1e-6 * mib:
        return f"{mib:.7g} MiB/s"
    return format_rate(bytes_per_s)


def type_table(kind: VolumeType, limits: Limits | None) -> Table[Any]:
    """Return the limits of a volume of a type and their source, a row for each property."""
    document: dict[str, object] = {"type": kind.model_dump(mode="json"), "limits": None}
    if limits is None:
        rows = [(key, cell) for key, cell in zip(HEADINGS, type_cells(kind), strict=True) if cell]
    else:
        rows = _limits_rows(kind, limits)
        document["limits"] = limits.model_dump(mode="json", exclude={"wanted"})
        document["bursts_s"] = _burst_lengths_s(limits)
    source = kind.source
    about = {
        "promised for": kind.time_percent and f"{kind.time_percent:g} % of the time",
        "note": kind.note,
        "source": source.title,
        "url": source.url,
        "page date": source.page,
        "checked": kind.checked,
    }
    rows += [(name, text) for name, text in about.items() if text]
    cells = [{"property": key, "value": value} for key, value in rows]
    table = text_table("volume-type", cells, identity="property", folded=["value"])
    return replace(table, document=document)


def _limits_rows(kind: VolumeType, limits: Limits) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = [("type", kind.name), ("title", kind.title)]
    for name, value, text in (
        ("IOPS", limits.iops, format_count),
        ("bandwidth", limits.bandwidth_bytes_per_s, rate_text),
        ("burst IOPS", limits.burst_iops, format_count),
        ("burst credits, I/Os", limits.burst_ios, format_count),
        ("burst bandwidth", limits.burst_bandwidth_bytes_per_s, rate_text),
        ("burst credits, bytes", limits.burst_bytes, format_capacity),
    ):
        if value is not None:
            pairs.append((name, text(value)))
    lasting = _burst_lengths_s(limits).items()
    return [*pairs, *((name, format_duration(length_s)) for name, length_s in lasting)]


def _burst_lengths_s(limits: Limits) -> dict[str, float]:
    """Return how long full credits last at the burst rate, and how long a refill takes."""
    lengths_s = {}
    bandwidth, burst = limits.bandwidth_bytes_per_s, limits.burst_bandwidth_bytes_per_s
    for what, rate, base, full in (
        ("IOPS", limits.burst_iops, limits.iops, limits.burst_ios),
        ("bandwidth", burst, bandwidth, limits.burst_bytes),
    ):
        if rate and base and full:
            lengths_s[f"burst of {what} lasts"] = full / (rate - base)
            lengths_s[f"burst of {what} is back after"] = full / base
    return lengths_s


@dataclass(frozen=True)
class _PriceRow:
    kind: str
    price: Price


def _hour_text(row: _PriceRow) -> str:
    hourly, monthly = row.price.hourly, row.price.monthly
    if hourly is not None:
        return f"{hourly:g}"
    return MISSING if monthly is None else f"~{monthly / HOURS_PER_MONTH:.3g}"


def _month_text(row: _PriceRow) -> str:
    hourly, monthly = row.price.hourly, row.price.monthly
    if monthly is not None:
        return f"{monthly:.2f}"
    return MISSING if hourly is None else f"~{hourly * HOURS_PER_MONTH:.2f}"


def _metered_text(price: Metered | None, unit: float, words: Words) -> str:
    """Return the price of one unit, and the amount that is free of charge."""
    if price is None:
        return ""
    each = f"{price.monthly / price.unit * unit:.4g}"
    return f"{each} above {words(price.included)}" if price.included else each


PRICE_COLUMNS: tuple[Column[_PriceRow], ...] = (
    Column("name", lambda row: row.price.name, priority=IDENTITY),
    Column("kind", lambda row: row.kind),
    Column("family", lambda row: row.price.family, priority=4, is_optional=True),
    Column("hourly", _hour_text, header="hour", is_right=True),
    Column("monthly", _month_text, header="month", is_right=True),
    *(
        Column[_PriceRow](name, show, header=header, priority=priority, is_right=True)
        for name, header, priority, show in (
            ("per_gib_month", "per GiB", 2, lambda row: f"{row.price.per_gib_month or '':.4}"),
            ("per_iops", "per IOPS", 3, lambda row: _metered_text(row.price.iops, 1, format_count)),
            (
                "per_mb_per_s",
                "per MB/s",
                3,
                lambda row: _metered_text(row.price.bandwidth, 1e6, format_rate),
            ),
        )
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
            _PriceRow(kind, price)
            for kind, named in (("flavor", prices.flavors), ("volume type", prices.volume_types))
            for price in named.values()
        ],
        record=lambda row: {"kind": row.kind, **row.price.model_dump(mode="json")},
        notes=[
            f"{prices.currency}; a month has {HOURS_PER_MONTH:g} hours",
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


def headline(offers: Sequence[Offer]) -> str:
    """Return which configurations have the least cost of an I/O, by how much, and how surely."""
    from volbench.analyse.compare.comparison_result import Verdict

    costs = [offer for offer in offers if offer.rank is not None]
    ranked = [[*each] for _, each in groupby(costs, key=lambda offer: offer.workload)]
    leads: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for first, second in (each[:2] for each in ranked if len(each) > 1):
        few = math.isnan(first.iops.low + second.iops.low)
        why = "too few repeats to compare" if few else Verdict.NOT_SHOWN
        doubts = [f"but {why}"] if few or second.rank == 1 else []
        doubts += ["at rates beyond the declared IOPS"] if first.beyond else []
        share = 1 - first.cost_per_1000_iops.estimate / second.cost_per_1000_iops.estimate
        lead = leads.setdefault((first.name, ", ".join(["", *doubts])), [])
        lead.append((share, first.workload))
    total = sum(map(len, leads.values()))
    clauses = [
        f"{name} {f'in {len(won)} of {total} workloads' if won[1:] else f'for {won[0][1]}'}"
        f" ({' to '.join(dict.fromkeys(percent(share) for share, _ in (min(won), max(won))))} %"
        f" less than the next{doubts})"
        for (name, doubts), won in leads.items()
    ]
    none = "No ranking: no workload has a cost of an I/O for two configurations."
    return f"Least cost of an I/O: {'; '.join(clauses)}." if clauses else none


def market_table(market: Market) -> Table[Offer]:
    """Return a row for each configuration and workload: cost and performance."""
    return Table(
        "price",
        [
            replace(column, header=market.rate_words) if column.name == "iops" else column
            for column in OFFER_COLUMNS
            if column.name != "workload" or _are_worded(market.offers)
        ],
        market.offers,
        record=market.record,
        title=headline(market.offers),
        notes=_market_notes(market),
        document={
            "currency": market.currency,
            "offers": [
                asdict(offer) | {"monthly": dict(zip(("low", "high"), offer.monthly, strict=True))}
                for offer in market.offers
            ],
            "notes": list(market.notes),
        },
    )


def _are_worded(offers: Sequence[Offer]) -> bool:
    """Return whether the workloads differ, or have an asked rate."""
    return len({offer.workload for offer in offers}) > 1 or any(offer.asked for offer in offers)


def _front_mark(offer: Offer) -> str:
    """Return the mark of a configuration on the Pareto frontier."""
    if not offer.is_on_front:
        return ""
    return " *" if offer.is_shown_on_front else " (*)"


def _range_text(costs: tuple[float, float]) -> str:
    low, high = costs
    return money_text(low) if low == high or math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _market_notes(market: Market) -> list[str]:
    are_few = [math.isnan(offer.iops.low) for offer in market.offers]
    lines = [f"Costs in {market.currency} per month. [95 % intervals] cover the measurement only."]
    equal = "Equal ranks: no significant difference in the cost of an I/O."
    few = f"Ranked by the estimate only: {_TOO_FEW} (volbench run --repeat 5)."
    lines += [*[equal][: not all(are_few)], *[few][: any(are_few)]]
    if any(offer.is_on_front for offer in market.offers):
        lines.append(
            f"* on the Pareto frontier: no configuration has more {market.rate_words} at the same"
            " cost; (*) by the point estimate only"
        )
    lines += [
        f"(*) {offer.name} in {offer.workload}: not significantly faster than"
        f" {', '.join(offer.no_faster_than)}, but more expensive"
        for offer in market.offers
        if offer.no_faster_than
    ]
    asked = "as asked: fio kept the rate or latency that it was asked for, so it has no rank"
    lines += [asked] if any(offer.asked for offer in market.offers) else []
    return [*lines, *market.notes]


def money_text(amount: float) -> str:
    """Return an amount with its significant digits, ``n/a`` if unknown."""
    if math.isnan(amount):
        return MISSING
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"


def interval_text(interval: Interval, text: Callable[[float], str]) -> str:
    """Return an estimate with the ends of its interval where they are known."""
    estimate = text(interval.estimate)
    low, high = text(interval.low), text(interval.high)
    if math.isnan(interval.low) or estimate == low == high:
        return estimate
    return f"{estimate} [{low}, {high}]"


def _amount_column(
    name: str, header: str, priority: int, show: Callable[[Offer], str]
) -> Column[Offer]:
    return Column(name, show, header=header, priority=priority, is_right=True)


def _runs_text(offer: Offer) -> str:
    counts = {"unsteady": offer.unsteady - offer.unjudged, "steadiness unknown": offer.unjudged}
    marks = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    return f"{offer.runs} ({marks})" if marks else str(offer.runs)


OFFER_COLUMNS: tuple[Column[Offer], ...] = (
    _amount_column("rank", "", 1, lambda o: MISSING if o.rank is None else str(o.rank)),
    Column("name", lambda o: o.name + _front_mark(o), header="configuration", priority=IDENTITY),
    Column(
        "workload",
        lambda o: o.workload + (f", as asked ({o.asked})" if o.asked else ""),
        priority=IDENTITY,
    ),
    Column("family", lambda o: o.family, priority=6, is_optional=True),
    _amount_column("monthly", "month", 2, lambda o: _range_text(o.monthly)),
    _amount_column("iops", "", 2, lambda o: interval_text(o.iops, format_count)),
    _amount_column(
        "cost_per_1000_iops",
        "per 1,000 IOPS",
        1,
        lambda o: interval_text(o.cost_per_1000_iops, money_text),
    ),
    _amount_column(
        "bw_bytes_per_s", "bandwidth", 5, lambda o: format_rate(o.bw_bytes_per_s.estimate)
    ),
    _amount_column(
        "cost_per_100_mb_per_s",
        "per 100 MB/s",
        4,
        lambda o: interval_text(o.cost_per_100_mb_per_s, money_text),
    ),
    Column(
        "cost_per_gib",
        lambda o: money_text(o.cost_per_gib.estimate),
        header="per GiB",
        priority=5,
        is_right=True,
        is_optional=True,
    ),
    _amount_column("runs", "", 3, _runs_text),
    Column(
        "indistinct",
        lambda offer: (
            _TOO_FEW if math.isnan(offer.iops.low) and offer.rank else ", ".join(offer.indistinct)
        ),
        header="not significantly different from",
        priority=3,
        is_folded=True,
        is_optional=True,
    ),
)
