"""Plot description: what a chart shows, independent of the library that draws it.

A `Plot` is a grid of panels with two axes each and marks on them. A mark names the columns of its
frame that hold places, lengths and texts. Columns that begin with an underscore serve the drawing
alone; all others are the chart's numbers (`numbers`) and its hover texts. Colours are named by
their meaning: a mark has the key of a `Series` or a role such as ``read``, ``ink`` or
``palette-2``, and the theme of a renderer knows how it looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from volbench.present.plots.formats import FORMATS

Scale = Literal["linear", "time", "log", "log2", "symlog", "category"]
Dash = Literal["solid", "dashed", "dotted", "dashdot", "limit"]
Align = Literal["left", "center", "right"]

IDENTITY = (
    "label",
    "by",
    "campaign",
    "profile",
    "host",
    "volume",
    "job",
    "group",
    "direction",
    "rw",
    "block_bytes",
    "iodepth",
    "numjobs",
    "direct",
    "repeats",
)
"""Columns that identify a row of numbers; they come first."""


@dataclass(frozen=True)
class Axis:
    """One axis of a panel.

    Attributes:
        label: quantity, with its unit where the ticks don't show it.
        format: how values are written, a name in `FORMATS`; it also gives the unit of the data.
        scale: ``time`` is linear with ticks at round times; ``category`` has names for 0, 1, 2...
        limits: both ends; None lets the renderer choose.
        ticks: their values; empty lets the renderer choose.
        categories: names of the ticks of a category axis, of 0, 1, 2... unless `ticks` says
            otherwise.
        inverted: low values at the top or right.
    """

    label: str = ""
    format: str = "number"
    scale: Scale = "linear"
    limits: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    inverted: bool = False

    @property
    def unit(self) -> str:
        """Base unit of the values, such as ``s`` or ``B/s``."""
        return FORMATS[self.format].unit


@dataclass(frozen=True)
class Series:
    """One look, and its entry in the legend.

    Attributes:
        key: by which marks name it.
        label: in the legend; empty for no entry. Series with equal labels share an entry.
        colour: a role.
        marker: ``circle``, ``square``, ``up``, ``diamond``, ``down``, ``plus``, ``cross``,
            ``left``, ``right`` or ``tick``; empty for none.
        dash: of its lines.
    """

    key: str
    label: str
    colour: str
    marker: str = ""
    dash: Dash = "solid"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """Something drawn for each row of a frame.

    Attributes:
        data: a row for each point; NaN leaves a gap.
        series: key of a `Series`, or a role, of all rows.
        by: column that holds the series of each row instead.
    """

    data: pd.DataFrame
    series: str = "ink"
    by: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars(Mark):
    """Bars from `base` (0 without one) by `value`, at `at` or from `at` to `at_end`."""

    at: str
    value: str
    at_end: str = ""
    base: str = ""
    thickness: float = 0.62
    is_horizontal: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Lines(Mark):
    """A line for each value of `group` and each series; dots where it has few points.

    Attributes:
        step: ``post`` keeps a value up to the next point, ``pre`` has it since the last one.
    """

    x: str
    y: str
    group: str = ""
    step: Literal["", "post", "pre"] = ""
    width: float = 1.4
    has_dots: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Areas(Mark):
    """Filled bands from `low` to `high` along `x`; upright, along the y axis, if so told."""

    x: str
    low: str
    high: str
    group: str = ""
    step: Literal["", "post", "pre"] = ""
    alpha: float = 0.85
    is_upright: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Points(Mark):
    """Markers; `marker_of` is a column with the key of the series that gives the shape."""

    x: str
    y: str
    marker_of: str = ""
    size: float = 6.5
    is_hollow: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Whiskers(Mark):
    """Ranges from `low` to `high` along one axis, at the place of the point on the other."""

    at: str
    low: str
    high: str
    along: Literal["x", "y"] = "x"
    width: float = 1.0
    has_caps: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Mark):
    """Coloured cells centred on whole numbers, or from `x` to `x_end` and `y` to `y_end`.

    Attributes:
        ramp: ``blue``, ``orange`` or ``purple``, from pale to dark.
        limits: values of the palest and the darkest colour.
        bar: title of a bar that explains the colours; empty for none.
        format: of the values.
    """

    x: str
    y: str
    value: str
    x_end: str = ""
    y_end: str = ""
    text: str = ""
    ramp: Literal["blue", "orange", "purple"] = "blue"
    scale: Literal["linear", "log"] = "log"
    limits: tuple[float, float] | None = None
    bar: str = ""
    format: str = "count"


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts(Mark):
    """Texts beside points.

    Attributes:
        x_in: what `x` counts in: the ``data``, or shares of the ``panel``.
        y_in: the same for `y`.
        offset_pt: distance from the point.
        has_leader: a thin line joins text and point.
    """

    x: str = "_x"
    y: str = "_y"
    text: str = "_text"
    x_in: Literal["data", "panel"] = "data"
    y_in: Literal["data", "panel"] = "data"
    offset_pt: tuple[float, float] = (0, 0)
    align: Align = "left"
    valign: Literal["top", "center", "bottom"] = "center"
    size: float = 8
    rotation: float = 0
    is_bold: bool = False
    is_italic: bool = False
    is_boxed: bool = False
    has_leader: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars3D(Mark):
    """Towers of `value` on two category axes; only matplotlib draws them."""

    x: str
    y: str
    value: str
    z: Axis


@dataclass(frozen=True)
class ReferenceLine:
    """A line across the panel at a value, such as a declared limit.

    Attributes:
        value: where it crosses the axis.
        axis: that it crosses.
        name: beside it; empty for none.
        extent: its ends on the other axis; None for the whole panel.
        is_beyond: the value lies outside the panel, so only its name is shown.
    """

    value: float
    axis: Literal["x", "y"]
    name: str = ""
    extent: tuple[float, float] | None = None
    series: str = "ink"
    dash: Dash = "limit"
    width: float = 1.2
    is_beyond: bool = False


@dataclass(frozen=True)
class Span:
    """A shaded stretch of one axis, across the panel."""

    low: float
    high: float
    axis: Literal["x", "y"] = "x"
    series: str = "shade"
    alpha: float = 1.0


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns, in a panel of its own; `series` gives each row a colour."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    size: float = 7.5


AnyMark = Mark | ReferenceLine | Span | Table


@dataclass(frozen=True, eq=False)
class Panel:
    """Two axes with marks, of which later ones cover earlier ones.

    Attributes:
        heading: in bold, over the title.
        row: of the grid, from 0 at the top; `column` likewise from the left.
        has_grid: lines at the ticks of axes without categories.
        background: empty, ``hatched`` where cells may be missing, or ``quiet``.
        legend: where the panel explains its own series; empty to leave it to the plot.
    """

    x: Axis
    y: Axis
    marks: tuple[AnyMark, ...]
    title: str = ""
    heading: str = ""
    row: int = 0
    column: int = 0
    columns: int = 1
    has_grid: bool = True
    background: Literal["", "hatched", "quiet"] = ""
    legend: Literal["", "right", "inside"] = ""


@dataclass(frozen=True, eq=False)
class Plot:
    """One chart.

    Attributes:
        panels: row by row.
        heights: of each row's panels, without their labels, in inches.
        widths: of the columns, in relation to each other.
        width_in: of the whole.
        series: the looks of the marks, in the order of the legend.
        legend: where it stands; empty for none.
        caption: sentences, without their full stops.
        rows: the numbers of the chart, where marks hold shapes that are made from them.
        shared_x: zooming one panel zooms all along x; `shared_y` likewise, with the names of a
            category axis only at the left.
    """

    panels: tuple[Panel, ...]
    heights: tuple[float, ...]
    widths: tuple[float, ...] = (1.0,)
    width_in: float = 9.0
    series: tuple[Series, ...] = ()
    legend: Literal["", "above", "right"] = "above"
    caption: tuple[str, ...] = ()
    rows: pd.DataFrame | None = None
    shared_x: bool = False
    shared_y: bool = False
    name: str = ""
    title: str = ""


def text_at(x: float, y: float, text: str) -> pd.DataFrame:
    """Return the data of `Texts` for a single text."""
    return pd.DataFrame({"_x": [x], "_y": [y], "_text": [text]})


def numbers(plot: Plot) -> pd.DataFrame:
    """Return the numbers that a chart shows: a row for each mark, identity columns first."""
    if plot.rows is not None:
        return _ordered(plot.rows)
    frames = [_ordered(frame) for frame in frames_of(plot)]
    kept = [frame for frame in frames if len(frame.columns)]
    return _ordered(pd.concat(kept, ignore_index=True)) if kept else pd.DataFrame()


def frames_of(plot: Plot) -> list[pd.DataFrame]:
    """Return each frame of the marks once, in the order of drawing."""
    return list({id(mark.data): mark.data for mark in data_marks(plot)}.values())


def data_marks(plot: Plot) -> Iterator[Mark]:
    """Yield the marks that have rows, panel by panel."""
    for panel in plot.panels:
        yield from (mark for mark in panel.marks if isinstance(mark, Mark))


def series_of(mark: Mark) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each series of a mark under its key."""
    if not mark.by:
        return [(mark.series, mark.data)]
    return [(str(key), rows) for key, rows in mark.data.groupby(mark.by, sort=False, dropna=False)]


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    public = [name for name in frame if not str(name).startswith("_")]
    first = [name for name in IDENTITY if name in public]
    return frame[[*first, *(name for name in public if name not in first)]]
