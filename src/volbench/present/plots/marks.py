"""Marks of a plot description: shapes on a panel, and the columns that hold their positions.

Columns that begin with an underscore serve the drawing alone. A mark uses ``_x``, ``_y``, ``_row``,
``_low``, ``_high`` and ``_text`` unless it names others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

Dash = Literal["solid", "dashed", "dotted", "dashdot", "limit"]
Step = Literal["", "post", "pre"]
Way = Literal["x", "y"]
Within = Literal["data", "panel"]


@dataclass(frozen=True, eq=False)
class Mark:
    """Shape drawn for each row of a frame."""

    data: pd.DataFrame  # a row for each point; NaN leaves a gap
    series: str = "ink"  # key of a series, or a role, of all rows
    by: str = ""  # column that holds the series of each row instead


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars(Mark):
    """Bars from 0 to `value`, at `at` or from `at` to `at_end`."""

    value: str
    at: str = "_row"
    at_end: str = ""
    thickness: float = 0.62
    is_horizontal: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Lines(Mark):
    """A line for each value of `group` and each series."""

    x: str = "_x"
    y: str = "_y"
    group: str = ""
    step: Step = ""  # ``post`` holds a value until the next point, ``pre`` from the previous one
    width: float = 1.4
    alpha: float = 1.0
    has_dots: bool = False  # lines of few points show them


@dataclass(frozen=True, eq=False, kw_only=True)
class Areas(Mark):
    """Filled bands from `low` to `high` along `x`."""

    x: str = "_x"
    low: str = "_low"
    high: str = "_high"
    group: str = ""
    step: Step = ""
    alpha: float = 0.85


@dataclass(frozen=True, eq=False, kw_only=True)
class Points(Mark):
    """Markers; `marker_of` is a column with the key of the series that gives the shape."""

    x: str = "_x"
    y: str = "_y"
    marker_of: str = ""
    size: float = 6.5
    is_hollow: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Whiskers(Mark):
    """Ranges from `low` to `high` along one axis, at the position of the point on the other."""

    at: str = "_row"
    low: str = "_low"
    high: str = "_high"
    along: Way = "x"
    width: float = 1.0
    has_caps: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Mark):
    """Coloured cells centred on whole numbers, or from `x` to `x_end` and `y` to `y_end`."""

    value: str
    x: str = "_x"
    y: str = "_y"
    x_end: str = ""
    y_end: str = ""
    text: str = ""
    ramp: Literal["blue", "orange", "purple"] = "blue"  # from pale to dark
    scale: Literal["linear", "log"] = "log"
    limits: tuple[float, float] | None = None  # values of the palest and the darkest colour
    bar: str = ""  # title of a bar that explains the colours; empty for none
    format: str = "count"  # of the values


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts(Mark):
    """Texts beside points."""

    x: str = "_x"
    y: str = "_y"
    text: str = "_text"
    # unit of `x`: that of the ``data``, or shares of the ``panel``; `y_in` likewise
    x_in: Within = "data"
    y_in: Within = "data"
    offset_pt: tuple[float, float] = (0, 0)  # distance from the point
    align: Literal["left", "center", "right"] = "left"
    valign: Literal["top", "center", "bottom"] = "center"
    size: float = 8
    rotation: float = 0
    is_bold: bool = False
    is_italic: bool = False
    is_boxed: bool = False
    has_leader: bool = False  # a thin line joins text and point


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars3D(Mark):
    """Towers of `value` on two category axes and the panel's z axis; only matplotlib draws them."""

    value: str
    x: str = "_x"
    y: str = "_y"
    text: str = ""  # on top of each tower


@dataclass(frozen=True)
class ReferenceLine:
    """A line across the panel at a value, such as a declared limit."""

    value: float  # its position on the axis
    axis: Way  # the axis it crosses
    name: str = ""  # its label; empty for none
    # its ends on the other axis; None for the whole panel
    extent: tuple[float, float] | None = None
    series: str = "ink"
    dash: Dash = "limit"
    width: float = 1.2
    is_beyond: bool = False  # the value is outside the panel, and only its label is shown


@dataclass(frozen=True)
class Span:
    """A shaded range of one axis, across the panel."""

    low: float
    high: float
    axis: Way = "x"
    series: str = "shade"
    alpha: float = 1.0


@dataclass(frozen=True)
class Table:
    """Text table in a separate panel; `series` gives each row a colour."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    size: float = 7.5
    corner: str = ""  # head of the names: what the columns are


AnyMark = Mark | ReferenceLine | Span | Table


def text_at(x: float, y: float, text: str) -> pd.DataFrame:
    """Return the data of `Texts` for a single text."""
    return pd.DataFrame({"_x": [x], "_y": [y], "_text": [text]})


def series_of(mark: Mark) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each series of a mark under its key."""
    if not mark.by:
        return [(mark.series, mark.data)]
    return [(str(key), rows) for key, rows in mark.data.groupby(mark.by, sort=False, dropna=False)]
