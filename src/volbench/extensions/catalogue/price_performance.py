"""Performance per price: configurations ranked by the cost of an I/O and of bandwidth.

Cost is worked out for each run, and only then compared, so that an interval says how sure the cost
of an I/O is, and not only how fast a volume was.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import pandas as pd

from volbench.analyse.compare.comparability import comparable_sides
from volbench.analyse.compare.rate_search import asked_of, searches_in
from volbench.analyse.compare.repeat_statistics import (
    Group,
    Interval,
    contrast,
    holm,
    location_interval,
    shortage,
)
from volbench.analyse.frames.design import ASKED, WORKLOAD, asked_rate
from volbench.analyse.frames.job_frames import plain_rows
from volbench.analyse.frames.matched_cells import cells_of_frame
from volbench.analyse.frames.run_facts import fact_columns
from volbench.analyse.frames.workload_words import first_names
from volbench.errors import InputError
from volbench.model.frames.column_names import find_column
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import VOLUME_FACTS

_MAX_NAMED = 5


@dataclass(frozen=True)
class Offer:
    """A configuration with its price, in one workload."""

    name: str  # flavor and volume type, or the values of the chosen columns
    values: Mapping[str, str]  # values by column
    workload: str  # what was done, in words
    asked: str  # what fio was asked to keep, such as ``rate_iops=3000``; then it has no rank
    family: str  # of the flavor or type; several are joined by commas
    monthly: tuple[float, float]  # min and max cost of a month; NaN without a price
    runs: int  # number of runs
    volumes: int  # number of volumes
    unsteady: int  # number of runs not shown to be steady
    unjudged: int  # number of these without a log over time, which may have been steady
    iops: Interval  # of the steady stretch, or the mean of an unsteady run
    bw_bytes_per_s: Interval  # same
    cost_per_1000_iops: Interval  # of a month
    cost_per_100_mb_per_s: Interval  # of a month
    cost_per_gib: Interval  # of a month
    # 1 and those shown to be cheaper for an I/O; None without a cost, at an asked rate, or where
    # results are not comparable
    rank: int | None = None
    # names of configurations whose cost is not significantly different, by enough repeats
    indistinct: tuple[str, ...] = ()
    beyond: int = 0  # number of runs faster than the declared IOPS, which no price pays for
    is_on_front: bool = False  # whether it is on the Pareto frontier, by the estimates
    # of one on the front, names of cheaper offers that it is not shown to beat
    no_faster_than: tuple[str, ...] = ()

    @property
    def is_shown_on_front(self) -> bool:
        """Whether it is on the frontier by more than its point estimate."""
        return self.is_on_front and not self.no_faster_than and not math.isnan(self.iops.low)


@dataclass(frozen=True)
class Market:
    """Offers side by side."""

    offers: tuple[Offer, ...]  # by workload, the cheapest for an I/O first
    currency: str  # of every cost
    notes: tuple[str, ...] = field(default=())  # omissions and assumptions, one sentence each

    @property
    def rate_words(self) -> str:
        """What the rates are: ``steady IOPS``, or ``IOPS`` where some runs were not steady."""
        return "IOPS" if any(offer.unsteady for offer in self.offers) else "steady IOPS"

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each offer, with the columns of ``volbench price --format csv``."""
        return pd.DataFrame([self.record(offer) for offer in self.offers])

    def record(self, offer: Offer) -> dict[str, object]:
        """Return the values of an offer in full precision.

        The ends of an interval are named ``_low`` and ``_high``; a range has its ends alone.
        """
        row: dict[str, object] = {"currency": self.currency}
        for offer_field in fields(offer):
            name, value = offer_field.name, getattr(offer, offer_field.name)
            if isinstance(value, Interval):
                row |= {name: value.estimate, f"{name}_low": value.low, f"{name}_high": value.high}
            elif name == "monthly":
                row |= {f"{name}_low": value[0], f"{name}_high": value[1]}
            elif isinstance(value, tuple):
                row[name] = ";".join(value)
            elif name != "values":
                row[name] = value
        return row


def market(
    rows: pd.DataFrame,
    *,
    currency: str,
    summary: pd.DataFrame,
    by: Sequence[str] = (),
    keep_unsteady: bool = False,
    notes: Sequence[str] = (),
) -> Market:
    """Return the offers that runs were measured on, ranked within each workload."""
    if rows.empty:
        raise InputError("no measured run finished", hint="run the campaign first")
    known = [name for name in ("flavor", "volume_type") if rows[name].notna().any()]
    known = known or [name for name in ("host", "volume") if len(set(rows[name])) > 1] or ["host"]
    of_runs = summary[summary["direction"].ne("sync")].drop_duplicates("run").set_index("run")
    columns = [find_column(name, [*rows.columns, *of_runs.columns]) for name in by] or known
    summary, within = _at_found_rates(summary)
    rows = rows[rows["run"].isin(summary["run"])]
    added = [name for name in columns if name not in rows]
    rows = _by_workload(rows.join(of_runs[added], on="run"), summary, columns)
    rows["workload"] += [f", {within[run]}" if run in within else "" for run in rows["run"]]
    kept = rows if keep_unsteady else rows[rows["steady"]]
    if kept.empty:
        raise InputError(
            f"none of {len(rows)} runs was steady",
            hint="run them longer, or use until: steady; --unsteady uses their means anyway",
        )
    cells: dict[int, list[_Cell]] = {}
    for _, of_offer in kept.groupby(["cell", *columns], sort=False, dropna=False):
        cells.setdefault(int(of_offer["cell"].iloc[0]), []).append(_Cell(of_offer, columns))
    remarks = [*notes, *(f"Rates are the highest {bounds}" for bounds in {*within.values()})]
    names = ",".join([*(name.removeprefix(LABEL_PREFIX) for name in columns), "volume"])
    remarks += [
        f"{cell.name}: one row for {len(volumes)} volumes, {first_names(volumes, _MAX_NAMED)};"
        f" to list each: --by {names}"
        for cell in itertools.chain(*cells.values())
        if len(volumes := dict.fromkeys(cell.rows["host"] + " " + cell.rows["volume"])) > 1
    ]
    if len(kept) < len(rows):
        remarks.append(_unsteady_note(rows, kept, columns))
    paid = {*columns, *ASKED, *VOLUME_FACTS, "limit_iops", "limit_bw_bytes_per_s"}
    facts = [name for name in fact_columns(summary) if name not in paid]
    offers: list[Offer] = []
    for of_cell in cells.values():
        sides = {run: cell.name for cell in of_cell for run in cell.rows["run"]}
        runs = summary[summary["run"].isin(list(sides))]
        runs = runs.assign(side=runs["run"].map(sides), cell=runs["direction"], label="")
        comparable, left_out, reserved = comparable_sides(runs, facts=facts, between="volume")
        offers += _ranked_offers(of_cell, comparable)
        remarks += [*left_out, *reserved]
    return Market(tuple(offers), currency, tuple(dict.fromkeys(remarks)))


def _at_found_rates(summary: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Keep, of each search for a rate within a latency, the runs at the rate that was found.

    Returns:
        The rows, where these runs have no asked rate, and run to the bounds that they kept.
    """
    rows = plain_rows(summary[summary["direction"].ne("sync")])
    within: dict[str, str] = {}
    tried: set[str] = set()
    for found in searches_in(rows):
        trials = [rows[place] for place in found.places]
        tried.update(str(row["run"]) for row in trials)
        kept_rate = found.search.kept.asked if found.search.kept else math.nan
        for row in trials:
            if (asked_of(row) or math.inf) == kept_rate:
                within[str(row["run"])] = found.words
    if not tried:
        return summary, within
    known = summary[~summary["run"].isin(tried - within.keys())].copy()
    known.loc[known["run"].isin(list(within)), "rate_iops"] = None
    return known, within


def _by_workload(rows: pd.DataFrame, summary: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return runs with their ``cell``, their ``workload`` in words and what was ``asked``.

    A run of several sections has the names of all their workloads.
    """
    sides = {str(row["run"]): _offer_name(row, columns) for _, row in rows.iterrows()}
    kept = summary[summary["run"].isin(list(sides)) & summary["direction"].ne("sync")]
    sections = kept.drop_duplicates(["run", "group"]).drop(columns="direction")
    matched = cells_of_frame(
        sections,
        sections["run"].map(sides).tolist(),
        compared=columns,
        always=[name for name in WORKLOAD if name not in columns],
    )
    asked = [asked_rate(row) for row in plain_rows(sections)]
    named = sections[["run"]].assign(_number=matched.numbers, _words=matched.labels, _asked=asked)
    runs = named.groupby("run").agg(
        cell=("_number", tuple),
        workload=("_words", lambda words: " + ".join(dict.fromkeys(words))),
        asked=("_asked", lambda texts: ", ".join(filter(None, dict.fromkeys(texts)))),
    )
    runs["cell"] = runs["cell"].factorize()[0]
    return rows.join(runs, on="run")


def _unsteady_note(rows: pd.DataFrame, kept: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return which runs are not counted because they are not steady, and what they would add."""
    left = f"{len(rows) - len(kept)} of {len(rows)} runs were not shown to be steady and are not"
    counted = {(row["workload"], _offer_name(row, columns)) for _, row in kept.iterrows()}
    new = [
        f"{name} in {row['workload']}"
        for _, row in rows.iterrows()
        if (row["workload"], name := _offer_name(row, columns)) not in counted
    ]
    names = list(dict.fromkeys(new))
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    adds = f", and {', '.join(names[:_MAX_NAMED])}{more}" if names else ""
    return f"{left} counted; --unsteady adds their means{adds}"


def _offer_name(row: pd.Series, columns: Sequence[str]) -> str:
    texts = ("" if pd.isna(row[name]) else str(row[name]) for name in columns)
    return ", ".join(text for text in texts if text) or "unknown"


class _Cell:
    """The runs of one offer in one workload."""

    def __init__(self, rows: pd.DataFrame, columns: Sequence[str]) -> None:
        self.rows = rows
        self._columns = columns
        self.name = _offer_name(rows.iloc[0], columns)
        self._volumes: list[Hashable] = list(rows["host"] + "|" + rows["volume"])

    def group(self, column: str) -> Group | None:
        """Return the values of a column by volume; None where one is missing or not above 0."""
        values = self.rows[column].astype("float64")
        if not ((values > 0) & (values < math.inf)).all():
            return None
        return Group(values.tolist(), self._volumes)

    def offer(self) -> Offer:
        """Return the offer, not yet ranked."""
        rows = self.rows
        first, monthly = rows.iloc[0], rows["monthly"].astype("float64")
        values = {
            name.removeprefix(LABEL_PREFIX): "" if pd.isna(first[name]) else str(first[name])
            for name in self._columns
        }
        return Offer(
            name=self.name,
            values=values,
            workload=str(first["workload"]),
            asked=str(first["asked"]),
            family=", ".join(dict.fromkeys(map(str, rows["family"].dropna()))),
            monthly=(float(monthly.min(skipna=False)), float(monthly.max(skipna=False))),
            runs=len(rows),
            volumes=len(set(self._volumes)),
            unsteady=int((~rows["steady"].astype(bool)).sum()),
            unjudged=int((~rows["judged"].astype(bool)).sum()),
            beyond=int(sum(rows.get("beyond", ()))),
            iops=self._interval("iops"),
            bw_bytes_per_s=self._interval("bw_bytes_per_s"),
            cost_per_1000_iops=self._cost("cost_per_1000_iops", "iops"),
            cost_per_100_mb_per_s=self._cost("cost_per_100_mb_per_s", "bw_bytes_per_s"),
            cost_per_gib=self._interval("cost_per_gib"),
        )

    def _interval(self, column: str) -> Interval:
        group = self.group(column)
        if group is None:
            return Interval(math.nan, math.nan, math.nan)
        return location_interval(group.values, volumes=self._volumes)

    def _cost(self, column: str, rate: str) -> Interval:
        """Return the cost of a rate, whose estimate is the month over the estimate of the rate."""
        cost = self._interval(column)
        paid = float((self.rows[column] * self.rows[rate]).median())
        each = paid / self._interval(rate).estimate if cost.estimate > 0 else math.nan
        return replace(cost, low=min(cost.low, each), estimate=each, high=max(cost.high, each))


def _ranked_offers(cells: Sequence[_Cell], comparable: Collection[str]) -> list[Offer]:
    """Return the offers of one workload, ranked: equal ranks are not significantly different.

    An offer at an asked rate, or that is not comparable, has no rank and is on no front.
    """
    offers = [cell.offer() for cell in cells]
    free = [not offer.asked and offer.name in comparable for offer in offers]
    groups = [
        cell.group("cost_per_1000_iops") if is_free else None
        for cell, is_free in zip(cells, free, strict=True)
    ]
    costs = [offer.cost_per_1000_iops.estimate for offer in offers]
    cheaper, indistinct = _cost_orders(groups, costs)
    months = [offer.monthly[0] for offer in offers]
    rates = [
        o.iops.estimate if is_free else math.nan for o, is_free in zip(offers, free, strict=True)
    ]
    front = on_frontier(months, rates)
    unsure = _cheaper_and_not_slower(months, [cell.group("iops") for cell in cells], front)
    ranked = [
        replace(
            offer,
            no_faster_than=tuple(offers[other].name for other in unsure[index]),
            rank=None if groups[index] is None else 1 + len(cheaper[index]),
            indistinct=tuple(offers[other].name for other in indistinct[index]),
            is_on_front=front[index],
        )
        for index, offer in enumerate(offers)
    ]
    order = sorted(range(len(ranked)), key=lambda n: (not free[n], math.isnan(costs[n]), costs[n]))
    return [ranked[index] for index in order]


def _ratios(
    groups: Sequence[Group | None], pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], Interval]:
    """Return the ratio of the second of each pair to the first, where enough repeats are known."""
    contrasts = {}
    for first, second in pairs:
        base, other = groups[first], groups[second]
        if base is not None and other is not None and not shortage(base, other):
            contrasts[first, second] = contrast(base, other)
    levels = holm([ratio.p_value for ratio in contrasts.values()])
    return {
        pair: ratio.interval(level)
        for (pair, ratio), level in zip(contrasts.items(), levels, strict=True)
    }


def _cost_orders(
    costs: Sequence[Group | None], points: Sequence[float]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the offers cheaper than each, with few repeats by the estimate, and those alike."""
    cheaper: list[list[int]] = [[] for _ in costs]
    indistinct: list[list[int]] = [[] for _ in costs]
    known = [(place, points[place]) for place, cost in enumerate(costs) if cost is not None]
    ratios = _ratios(costs, itertools.combinations(range(len(costs)), 2))
    for (first, before), (second, after) in itertools.combinations(known, 2):
        if (ratio.high < 1) if (ratio := ratios.get((first, second))) else after < before:
            cheaper[first].append(second)
        elif (ratio.low > 1) if ratio else after > before:
            cheaper[second].append(first)
        elif ratio:
            indistinct[first].append(second)
            indistinct[second].append(first)
    return cheaper, [sorted(others) for others in indistinct]


def _cheaper_and_not_slower(
    costs: Sequence[float], rates: Sequence[Group | None], front: Sequence[bool]
) -> list[list[int]]:
    """Return for each offer on the front the cheaper ones that it is not shown to be faster than.

    Too few repeats say nothing.
    """
    pairs = (
        (cheaper, faster)
        for faster, cheaper in itertools.permutations(range(len(costs)), 2)
        if front[faster] and costs[cheaper] < costs[faster]
    )
    unsure: list[list[int]] = [[] for _ in costs]
    for (cheaper, faster), ratio in _ratios(rates, pairs).items():
        if ratio.low <= 1:
            unsure[faster].append(cheaper)
    return unsure


def on_frontier(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Return whether each configuration is on the Pareto frontier.

    One beats another when it costs no more and gives no less, and is better in one of the two
    (Pareto, Manuale di economia politica, 1906).

    Returns:
        For each configuration in order; False where cost or gain is NaN.
    """
    points = list(zip(costs, gains, strict=True))
    return [
        not (math.isnan(cost) or math.isnan(gain))
        and not any(
            other[0] <= cost and other[1] >= gain and other != (cost, gain) for other in points
        )
        for cost, gain in points
    ]
