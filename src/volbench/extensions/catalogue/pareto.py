"""Cost of a month against IOPS of each configuration, with the Pareto frontier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pandas as pd

from volbench.errors import InputError
from volbench.extensions.catalogue.catalogue_tables import headline
from volbench.extensions.catalogue.price_performance import Market, Offer
from volbench.present.formatting import printable
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.labels import palette

_PANEL_IN = 2.7
_ROOM = 1.12  # The axes end this far beyond the last point, for its name
_DOT, _LETTER, _LINE = 0.03, 0.02, 0.05  # Half a point, a letter and a line, as shares of a panel

_Box = tuple[float, float, float, float]


def pareto_plot(market: Market, *, title: str = "") -> Plot:
    """Return the cost of a month against the IOPS of each configuration, a panel a workload."""
    known = [
        offer
        for offer in market.offers
        if not math.isnan(offer.monthly[0]) and not math.isnan(offer.iops.estimate)
    ]
    if not known:
        raise InputError(
            f"no configuration has both a price and {market.rate_words}",
            hint="; ".join(market.notes),
        )
    families = list(dict.fromkeys(offer.family for offer in known))
    panels = [
        _cost_panel(workload, [*offers], market)
        for workload, offers in groupby(known, key=lambda offer: offer.workload)
    ]
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=2),
        series=(
            Series("frontier", "", "muted", dash="dashed"),
            *(Series(name, "", palette(n)) for n, name in enumerate(families)),
        ),
        has_legend=False,
        caption=_caption(market),
        name="pareto",
        title=title or f"Cost of a month and {market.rate_words}",
        answer=headline(known)
        + _unranked([offer for offer in market.offers if offer not in known]),
    )


def _unranked(offers: Sequence[Offer]) -> str:
    """Return which configurations no rank can have."""
    names = ", ".join(dict.fromkeys(printable(offer.name) for offer in offers))
    return f" Not shown, because cost or rate is unknown: {names}." if names else ""


def _caption(market: Market) -> tuple[str, ...]:
    offers = market.offers
    parts = [
        "Line: Pareto frontier; filled: on it; hollow: another has as many IOPS for no more money",
        _repeats_words(offers),
    ]
    runs, unjudged = sum(offer.runs for offer in offers), sum(offer.unjudged for offer in offers)
    if unsteady := sum(offer.unsteady for offer in offers) - unjudged:
        parts.append(f"Unsteady runs count with their means: {unsteady} of {runs}")
    if unjudged:
        parts.append(f"Runs of unknown steadiness count with their means: {unjudged} of {runs}")
    if any(offer.is_on_front and not offer.is_shown_on_front for offer in offers):
        parts.append("Pale: on the frontier by the point estimate only")
    if asked := [offer for offer in offers if offer.asked]:
        rates = ", ".join(dict.fromkeys(offer.asked for offer in asked))
        parts.append(f"Not on the line: {len(asked)} as asked ({rates})")
    return (*parts, *(note[:1].upper() + note[1:].rstrip(".") for note in market.notes))


def _repeats_words(offers: Sequence[Offer]) -> str:
    """Return what the whiskers mean, and of how many runs they are."""
    counts = sorted({offer.runs for offer in offers})
    runs = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    known = [offer for offer in offers if not math.isnan(offer.iops.low)]
    if not known:
        return "One run each" if counts == [1] else f"Medians of {runs} runs, too few for intervals"
    top = max(offer.iops.high for offer in known)
    if all(offer.iops.high - offer.iops.low < _DOT * top for offer in known):
        return f"95 % intervals of {runs} runs are smaller than the points"
    of_some = "" if len(known) == len(offers) else ", where there are enough"
    return f"Whiskers: 95 % intervals of {runs} runs{of_some}"


def _cost_panel(workload: str, offers: Sequence[Offer], market: Market) -> Panel:
    data = pd.DataFrame(
        {
            "workload": [offer.workload for offer in offers],
            "asked": [offer.asked for offer in offers],
            "name": [f"{offer.name} (as asked)" if offer.asked else offer.name for offer in offers],
            "family": [offer.family for offer in offers],
            "monthly": [offer.monthly[0] for offer in offers],
            "iops": [offer.iops.estimate for offer in offers],
            "iops_low": [offer.iops.low for offer in offers],
            "iops_high": [offer.iops.high for offer in offers],
            "on_frontier": [offer.is_on_front and not offer.no_faster_than for offer in offers],
            "_filled": [offer.is_shown_on_front for offer in offers],
            "_pale": [offer.is_on_front and not offer.is_shown_on_front for offer in offers],
        }
    )
    most_x = float(data["monthly"].max()) or 1.0
    most_y = float(data[["iops", "iops_high"]].max().max()) or 1.0
    return Panel(
        x=Axis(f"{market.currency} a month", limits=(0, most_x * _ROOM)),
        y=Axis(market.rate_words, "count", limits=(0, most_y * _ROOM)),
        marks=(*_points(data), *_placed_names(data, most=(most_x, most_y))),
        title=printable(workload),
    )


def _points(data: pd.DataFrame) -> Sequence[marks.AnyMark]:
    """Return the frontier as steps, the intervals, and the points: filled, pale or hollow."""
    frontier = data[data["on_frontier"]].sort_values(["monthly", "iops"])
    filled, pale = data[data["_filled"]], data[data["_pale"]]
    steps = pd.DataFrame(
        {
            "_x": [*frontier["monthly"], float(data["monthly"].max()) * _ROOM],
            "_y": [*frontier["iops"], *frontier["iops"].tail(1)],
        }
        if len(frontier)
        else {"_x": [], "_y": []}
    )
    return (
        marks.Lines(steps, series="frontier", x="_x", y="_y", step="post", width=1.0),
        marks.Whiskers(
            data,
            by="family",
            at="monthly",
            low="iops_low",
            high="iops_high",
            along="y",
            width=1.2,
            has_caps=False,
        ),
        marks.Points(data, by="family", x="monthly", y="iops", size=7, is_hollow=True),
        marks.Points(_drawn(pale), series="pale", x="_x", y="_y", size=5),
        marks.Points(_drawn(filled), by="_family", x="_x", y="_y", size=7),
    )


def _drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """Return places alone: the numbers are those of the other marks."""
    return pd.DataFrame({"_x": rows["monthly"], "_y": rows["iops"], "_family": rows["family"]})


def _placed_names(data: pd.DataFrame, *, most: tuple[float, float]) -> Sequence[marks.AnyMark]:
    """Return the names, each at the position that covers least of other points and names."""
    points = [
        (str(name), x / most[0], y / most[1])
        for name, x, y in zip(data["name"], data["monthly"], data["iops"], strict=True)
    ]
    boxes: list[_Box] = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for _, x, y in points]
    rows = []
    for name, x, y in sorted(points, key=lambda point: (-point[2], point[0])):
        width = _LETTER * len(name)
        options = [
            (x + _DOT if right else x - _DOT - width, y + up)
            for up in (_DOT / 2, -_DOT / 2 - _LINE, -_LINE / 2)
            for right in (True, False)
        ]
        left, low = min(options, key=lambda at: _clashes(at, width, boxes))
        boxes.append((left, low, left + width, low + _LINE))
        is_right = left > x
        at = (left if is_right else left + width) * most[0]
        rows.append((at, low * most[1], name, is_right))
    texts = pd.DataFrame(rows, columns=["_x", "_y", "_text", "_right"])
    return [
        marks.Texts(
            texts[texts["_right"] == (align == "left")], align=align, valign="bottom", is_boxed=True
        )
        for align in ("left", "right")
    ]


def _clashes(at: tuple[float, float], width: float, boxes: Sequence[_Box]) -> float:
    """Return the area of a name that would overlap something or leave the panel."""
    left, low = at
    right, high = left + width, low + _LINE
    outside = max(0.0, -left) + max(0.0, right - _ROOM) + max(0.0, -low)
    covered = sum(
        max(0.0, min(right, box[2]) - max(left, box[0]))
        * max(0.0, min(high, box[3]) - max(low, box[1]))
        for box in boxes
    )
    return 10 * outside + covered
