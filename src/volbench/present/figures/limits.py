"""Declared limits: what a provider promised enters, dashed lines with a name leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from volbench.present.figures.chart import beside
from volbench.present.formatting import Row, number, text
from volbench.present.style import BLACK

CROWDED = 0.2
"""Share of the axis below which two names would touch."""


@dataclass(frozen=True)
class Limit:
    """A promise.

    Attributes:
        value: in the unit of the axis.
        name: such as ``limit of data: 1.1k``.
        rows: numbers of the rows it holds for, ascending.
    """

    value: float
    name: str
    rows: tuple[int, ...]


def declared(rows: Sequence[Row], column: str, format_value: Callable[[float], str]) -> list[Limit]:
    """Return the distinct limits of rows, ascending; roles are named when limits differ."""
    found: dict[float, list[int]] = {}
    for place, row in enumerate(rows):
        value = number(row, column)
        if not math.isnan(value):
            found.setdefault(value, []).append(place)
    limits = []
    everywhere = len(found) == 1 and sum(map(len, found.values())) == len(rows)
    for value, places in sorted(found.items()):
        roles = dict.fromkeys(text(rows[place], "role") for place in places)
        owner = "" if everywhere or not any(roles) else f" of {', '.join(roles)}"
        limits.append(Limit(value, f"limit{owner}: {format_value(value)}", tuple(places)))
    return limits


def draw_across(axes: Axes, limits: Sequence[Limit], *, half_row: float) -> None:
    """Draw limits over horizontal bars, each along the rows it holds for, named on top."""
    right = axes.get_xlim()[1]
    level, last = 0, math.inf
    for limit in reversed(limits):
        for first, end in _stretches(limit.rows):
            axes.plot(
                [limit.value] * 2,
                [first - half_row, end + half_row],
                color=BLACK,
                linestyle=(0, (5, 3)),
                linewidth=1.2,
                label=limit.name,
                zorder=3,
            )
        place = limit.value / right
        level = level + 1 if last - place < CROWDED else 0
        last = place
        axes.annotate(
            limit.name,
            (place, 1),
            xycoords=axes.transAxes,
            xytext=(place, 1),
            textcoords=beside(axes, y_in=0.05 + 0.17 * level),
            va="bottom",
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.8,
                "relpos": (0, 0),
                "shrinkA": 0,
                "shrinkB": 0,
            },
            fontsize=8.5,
        )


def draw_along(axes: Axes, limits: Sequence[Limit]) -> None:
    """Draw limits over lines, from left to right, named at the right outside the data.

    A limit far above the data would flatten it: it is then only told, not drawn.
    """
    top = max(axes.get_ylim()[1], 0.0)
    drawn = [limit for limit in limits if limit.value <= 4 * top]
    axes.set_ylim(0, max([top, *(limit.value * 1.08 for limit in drawn)]))
    for limit in limits:
        near = limit in drawn
        if near:
            axes.axhline(
                limit.value, color=BLACK, linestyle=(0, (5, 3)), linewidth=1.2, label=limit.name
            )
        axes.annotate(
            limit.name.replace(": ", "\n")
            if near
            else f"{limit.name}\n(above)".replace(": ", "\n"),
            (1, limit.value if near else 1),
            xycoords=axes.get_yaxis_transform() if near else axes.transAxes,
            xytext=(4, 0),
            textcoords="offset points",
            va="center" if near else "top",
            fontsize=7.5,
            annotation_clip=False,
        )


def _stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each stretch of neighbours."""
    stretches: list[tuple[int, int]] = []
    for row in rows:
        if stretches and row == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], row)
        else:
            stretches.append((row, row))
    return stretches
