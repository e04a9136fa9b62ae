"""What nothing else beats: offers enter, cost against steady IOPS with the front drawn leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from volbench.analyse.price.price_performance import Market, Offer
from volbench.errors import InputError
from volbench.present.figures.chart import new_figure
from volbench.present.formatting import printable
from volbench.present.style import BLACK, GREY, PALE, PALETTE, count_axis, styled
from volbench.present.themes import apply_theme

TITLE = "Cost and steady IOPS"
_COLUMNS = 2
_PANEL_IN = 3.6
_ROOM = 1.12
"""Part of an axis that stays free beyond the last point, for its name."""


def pareto_figure(market: Market, *, title: str = "", theme: str = "light") -> Figure:
    """Draw the cost of a month against the steady IOPS of each offer, a panel for each job.

    Args:
        market: offers with costs.
        title: instead of the usual one.
        theme: ``light``, ``dark`` or ``print``.

    Raises:
        InputError: no offer has both a cost and a rate.
    """
    known = [one for one in market.offers if _point(one) is not None]
    if not known:
        raise InputError(
            "no offer has both a price and steady IOPS",
            hint="add the flavors or volume types of these Runs to the file of prices",
        )
    panels = [(job, list(own)) for job, own in groupby(known, key=lambda offer: offer.job)]
    lines = math.ceil(len(panels) / _COLUMNS)
    with styled():
        figure = new_figure(
            title=title or TITLE,
            note=_note(market, left_out=len(market.offers) - len(known)),
            height_in=1.0 + _PANEL_IN * lines,
        )
        shape = (lines, min(_COLUMNS, len(panels)))
        places = figure.subplots(*shape, squeeze=False).flat
        for axes, (job, offers) in zip(places, panels, strict=False):
            _panel(axes, job, offers, market.currency)
        for axes in list(figure.axes)[len(panels) :]:
            axes.set_visible(False)
        apply_theme(figure, theme)
    figure.set_label("pareto")
    return figure


def _point(offer: Offer) -> tuple[float, float] | None:
    point = (offer.monthly[0], offer.iops.estimate)
    return None if any(map(math.isnan, point)) else point


def _note(market: Market, *, left_out: int) -> str:
    parts = [
        "Line: the front; nothing else gives as many IOPS for as little",
        "Bars: 95 % intervals of the measurement",
    ]
    if any(offer.no_faster_than for offer in market.offers):
        parts.append("Pale: not shown to be faster than something cheaper")
    if left_out:
        parts.append(f"Not shown for want of a cost or a rate: {left_out}")
    parts += [note[:1].upper() + note[1:] for note in market.notes]
    return ". ".join(parts) + "."


def _panel(axes: Axes, job: str, offers: Sequence[Offer], currency: str) -> None:
    families = list(dict.fromkeys(offer.family for offer in offers))
    points = {offer.name: _point(offer) or (0.0, 0.0) for offer in offers}
    most_x = max(x for x, _ in points.values()) or 1.0
    most_y = max(_top(offer) for offer in offers) or 1.0
    for offer in offers:
        x, y = points[offer.name]
        colour = PALETTE[families.index(offer.family) % len(PALETTE)]
        if not math.isnan(offer.iops.low):
            axes.vlines(x, offer.iops.low, offer.iops.high, color=colour, linewidth=1.2)
        beaten = PALE if offer.no_faster_than else "none"
        filled = colour if _is_shown(offer) else beaten
        axes.plot([x], [y], "o", color=colour, markerfacecolor=filled, markersize=7, zorder=3)
    _name_points(axes, points, most=(most_x, most_y))
    front = sorted(points[offer.name] for offer in offers if _is_shown(offer))
    _draw_front(axes, front, most_x)
    axes.set_xlim(0, most_x * _ROOM)
    axes.set_ylim(0, most_y * _ROOM)
    axes.set_title(printable(job))
    axes.set_xlabel(f"{currency} a month")
    axes.set_ylabel("steady IOPS")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    count_axis(axes.yaxis)


def _is_shown(offer: Offer) -> bool:
    """Tell whether an offer is on the front for more than its estimate."""
    return offer.is_on_front and not offer.no_faster_than


def _top(offer: Offer) -> float:
    return offer.iops.estimate if math.isnan(offer.iops.high) else offer.iops.high


def _draw_front(axes: Axes, points: Sequence[tuple[float, float]], most_x: float) -> None:
    """Draw the front as steps: up to the next offer, nothing better can be bought."""
    if not points:
        return
    x = [*(cost for cost, _ in points), most_x * _ROOM]
    y = [*(rate for _, rate in points), points[-1][1]]
    axes.step(x, y, where="post", color=GREY, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)


def _name_points(
    axes: Axes, points: dict[str, tuple[float, float]], *, most: tuple[float, float]
) -> None:
    """Write each name where it lies on the fewest other points and names."""
    places = {name: (x / most[0], y / most[1]) for name, (x, y) in points.items()}
    boxes = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for x, y in places.values()]
    for name, (x, y) in sorted(places.items(), key=lambda item: (-item[1][1], item[0])):
        width = _LETTER * len(name)
        options = [
            (x + _DOT if right else x - _DOT - width, y + up)
            for up in (_DOT / 2, -_DOT / 2 - _LINE, -_LINE / 2)
            for right in (True, False)
        ]
        left, low = min(options, key=lambda at: _clashes(at, width, boxes))
        boxes.append((left, low, left + width, low + _LINE))
        axes.annotate(
            printable(name),
            ((left if left > x else left + width) * most[0], low * most[1]),
            ha="left" if left > x else "right",
            fontsize=8,
            color=BLACK,
            va="bottom",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )


_DOT, _LETTER, _LINE = 0.03, 0.02, 0.05
"""Half a point, a letter and a line as shares of a panel."""

Box = tuple[float, float, float, float]


def _clashes(at: tuple[float, float], width: float, boxes: Sequence[Box]) -> float:
    """Return how much of a name would lie on something, or outside the panel."""
    left, low = at
    right, high = left + width, low + _LINE
    outside = max(0.0, -left) + max(0.0, right - _ROOM) + max(0.0, -low)
    covered = sum(
        max(0.0, min(right, box[2]) - max(left, box[0]))
        * max(0.0, min(high, box[3]) - max(low, box[1]))
        for box in boxes
    )
    return 10 * outside + covered
