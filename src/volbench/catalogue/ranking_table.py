"""Table of configurations ranked by price-performance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace

from volbench.analyse.compare.repeat_statistics import Interval
from volbench.catalogue.price_performance import Market, Offer
from volbench.present.formatting import MISSING
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_count, format_percent, format_rate


def market_table(market: Market) -> Table[Offer]:
    """Return a row for each configuration and job: cost and performance."""
    several = len({offer.job for offer in market.offers}) > 1
    return Table(
        "price",
        [column for column in OFFER_COLUMNS if several or column.name != "job"],
        market.offers,
        record=market.record,
        notes=_notes(market),
        document={
            "currency": market.currency,
            "offers": [asdict(offer) for offer in market.offers],
            "notes": list(market.notes),
        },
    )


def _mark(offer: Offer) -> str:
    """Return the mark of a configuration on the Pareto frontier."""
    if not offer.is_on_front:
        return ""
    return " (*)" if offer.no_faster_than else " *"


def _range_text(costs: tuple[float, float]) -> str:
    low, high = costs
    return money_text(low) if low == high or math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _burst_fee(offer: Offer) -> str:
    """Return the cost of bursts; empty if they are free."""
    month, ios = offer.burst_monthly, offer.burst_per_million_ios
    if any(math.isnan(cost) for cost in (*month, *ios)):
        return MISSING
    fees = [f"{_range_text(month)} a month"] if any(month) else []
    fees += [f"{_range_text(ios)} per million I/Os"] if any(ios) else []
    return " + ".join(fees)


def _notes(market: Market) -> list[str]:
    lines = [
        f"Costs in {market.currency} per month. [95 % intervals] cover the measurement only.",
        "Equal ranks: no significant difference in the cost of an I/O.",
    ]
    if any(offer.is_on_front for offer in market.offers):
        lines.append(
            "* on the Pareto frontier: no configuration has more steady IOPS at the same cost"
        )
    lines += [
        f"(*) {offer.name} in {offer.job}: not significantly faster than"
        f" {', '.join(offer.no_faster_than)}, but more expensive"
        for offer in market.offers
        if offer.no_faster_than
    ]
    if any(_burst_fee(offer) not in {MISSING, ""} for offer in market.offers):
        lines.append(
            "burst fee: charged beside the monthly cost, for I/Os above the provisioned IOPS"
        )
    if any(max(offer.once) > 0 for offer in market.offers):
        lines.append("once: charged for each new volume; not part of the monthly cost")
    if any(math.isnan(offer.iops.low) for offer in market.offers):
        lines.append(
            "no interval: fewer than 3 runs; measure more repeats: volbench run --repeat 5"
        )
    return [*lines, *market.notes]


def money_text(amount: float) -> str:
    """Return an amount with its significant digits, ``n/a`` if unknown."""
    if math.isnan(amount):
        return MISSING
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"


def interval_text(interval: Interval, words: Callable[[float], str], *, ends: bool = True) -> str:
    """Return an estimate with the ends of its interval where they are known."""
    estimate = words(interval.estimate)
    low, high = words(interval.low), words(interval.high)
    if not ends or math.isnan(interval.low) or estimate == low == high:
        return estimate
    return f"{estimate} [{low}, {high}]"


def _amount(name: str, header: str, priority: int, show: Callable[[Offer], str]) -> Column[Offer]:
    return Column(name, show, header=header, priority=priority, is_right=True)


def _rare(name: str, header: str, priority: int, show: Callable[[Offer], str]) -> Column[Offer]:
    """Return a column of amounts that is left out where no configuration has one."""
    return replace(_amount(name, header, priority, show), is_optional=True)


def _names(name: str, header: str, priority: int, separator: str) -> Column[Offer]:
    """Return a column of names, left out where there are none."""
    return Column(
        name,
        lambda offer: separator.join(getattr(offer, name)),
        header=header,
        priority=priority,
        is_folded=True,
        is_optional=True,
    )


OFFER_COLUMNS: tuple[Column[Offer], ...] = (
    _amount("rank", "", 1, lambda o: MISSING if o.rank is None else str(o.rank)),
    Column("name", lambda o: o.name + _mark(o), header="configuration", priority=IDENTITY),
    Column("job", lambda o: o.job, priority=IDENTITY),
    Column("family", lambda o: o.family, priority=6, is_optional=True),
    _amount("monthly", "month", 2, lambda o: _range_text(o.monthly)),
    _amount("iops", "steady IOPS", 2, lambda o: interval_text(o.iops, format_count)),
    _amount(
        "cost_per_1000_iops",
        "per 1,000 IOPS",
        1,
        lambda o: interval_text(o.cost_per_1000_iops, money_text),
    ),
    _amount("bw_bytes_per_s", "bandwidth", 5, lambda o: format_rate(o.bw_bytes_per_s.estimate)),
    _amount(
        "cost_per_100_mb_per_s",
        "per 100 MB/s",
        4,
        lambda o: interval_text(o.cost_per_100_mb_per_s, money_text),
    ),
    _rare(
        "cost_per_gib",
        "per GiB",
        5,
        lambda o: interval_text(o.cost_per_gib, money_text, ends=False),
    ),
    _rare("burst_iops", "burst IOPS", 7, lambda o: format_count(o.burst_iops)),
    _rare("burst_fee", "", 7, _burst_fee),
    _rare("once", "", 7, lambda o: _range_text(o.once) if any(o.once) else ""),
    _amount("runs", "", 3, lambda o: f"{o.runs}" + f" ({o.unsteady} unsteady)" * bool(o.unsteady)),
    _rare("steal_percent", "steal", 8, lambda o: format_percent(o.steal_percent / 100)),
    _names("cpu_models", "CPU", 9, "; "),
    _names("indistinct", "not significantly different from", 3, ", "),
)
