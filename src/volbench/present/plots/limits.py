"""Declared limits as reference lines: what a provider promises, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.present.formatting import Row, number, text
from volbench.present.plots.formats import FORMATS
from volbench.present.plots.marks import ReferenceLine

_FAR = 4.0
"""A limit this many times above the data would flatten it: only its name is shown."""
_HALF_ROW = 0.45


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


def declared(rows: Sequence[Row], column: str, format_name: str) -> list[Limit]:
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
        name = f"limit{owner}: {FORMATS[format_name].write(value)}"
        limits.append(Limit(value, name, tuple(places)))
    return limits


def limits_across(limits: Sequence[Limit]) -> list[ReferenceLine]:
    """Return lines across horizontal bars, each along the rows that its limit holds for."""
    return [
        ReferenceLine(
            value=limit.value,
            axis="x",
            name=limit.name if place == 0 else "",
            extent=(first - _HALF_ROW, last + _HALF_ROW),
        )
        for limit in reversed(limits)
        for place, (first, last) in enumerate(_stretches(limit.rows))
    ]


def limits_along(limits: Sequence[Limit], *, top: float) -> tuple[list[ReferenceLine], float]:
    """Return lines over a panel that begins at zero, and the end that its axis needs for them.

    Args:
        limits: on the y axis.
        top: end of the axis for the data alone.
    """
    near = [limit for limit in limits if limit.value <= _FAR * top]
    lines = [
        ReferenceLine(value=limit.value, axis="y", name=limit.name, is_beyond=limit not in near)
        for limit in limits
    ]
    return lines, max([top, *(limit.value * 1.08 for limit in near)])


def _stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each stretch of neighbours."""
    stretches: list[tuple[int, int]] = []
    for row in rows:
        if stretches and row == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], row)
        else:
            stretches.append((row, row))
    return stretches
