"""Plot description: content of a chart, independent of the library that draws it.

A `Plot` is a grid of panels with two axes each and marks on them. A mark names the columns of its
frame that hold places, lengths and texts. Columns that begin with an underscore serve the drawing
alone; all others are the chart's numbers (`numbers`) and its hover texts. Colours are named by
their meaning: a mark has the key of a `Series` or a role such as ``read``, ``ink`` or
``palette-2``, and the theme of a renderer knows how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import pandas as pd

from volbench.present.plots.marks import AnyMark, Dash, Mark, ReferenceLine, Span, series_of
from volbench.units import format_count, format_duration, format_latency, format_rate, format_size

Scale = Literal["linear", "time", "log", "log2", "symlog", "category"]

MAX_WIDTH_IN = 10.0  # Of a chart that a reader gives no width
# Columns that identify a row of numbers; they come first
IDENTITY = (
    *("label", "by", "campaign", "profile", "host", "volume", "job", "group", "direction"),
    *("rw", "block_bytes", "iodepth", "numjobs", "direct", "repeats"),
)
# Ending of a frame's column to the format of its values, the first that fits
COLUMN_FORMATS = (("bytes_per_s", "rate"), ("_bytes", "size"), ("_s", "latency"))


@dataclass(frozen=True)
class Axis:
    """One axis of a panel."""

    label: str = ""  # quantity, with its unit where the ticks don't show it
    # how values are written, a name in `FORMATS`; it also gives the unit of the data
    format: str = "number"
    # ``time`` is linear with ticks at round times; ``category`` has names for 0, 1, 2..
    scale: Scale = "linear"
    limits: tuple[float, float] | None = None  # both ends; None lets the renderer choose
    ticks: tuple[float, ...] = ()  # their values; empty lets the renderer choose
    # names of the ticks of a category axis, of 0, 1, 2... unless `ticks` says otherwise.
    categories: tuple[str, ...] = ()
    inverted: bool = False  # low values at the top or right

    @property
    def unit(self) -> str:
        """Base unit of the values, such as ``s`` or ``B/s``."""
        return FORMATS[self.format].unit


@dataclass(frozen=True)
class Series:
    """Style of a series, and its legend entry."""

    key: str  # by which marks name it
    label: str  # in the legend; empty for no entry. Series with equal labels share an entry.
    colour: str  # a role
    # ``circle``, ``square``, ``up``, ``diamond``, ``down``, ``plus``, ``cross``, ``left``,
    # ``right`` or ``tick``; empty for none
    marker: str = ""
    dash: Dash = "solid"  # of its lines


@dataclass(frozen=True, eq=False)
class Panel:
    """Two axes with marks, of which later ones cover earlier ones."""

    x: Axis
    y: Axis
    marks: tuple[AnyMark, ...]
    z: Axis | None = None  # of `Bars3D`
    title: str = ""
    heading: str = ""  # in bold, over the title
    row: int = 0  # of the grid, from 0 at the top; `column` likewise from the left
    column: int = 0
    columns: int = 1
    # empty, ``hatched`` where cells may be missing, or ``quiet``
    background: Literal["", "hatched", "quiet"] = ""


@dataclass(frozen=True, eq=False)
class Plot:
    """One chart."""

    panels: tuple[Panel, ...]  # row by row
    heights: tuple[float, ...]  # of each row's panels, without their labels, in inches
    widths: tuple[float, ...] = (1.0,)  # of the columns, in relation to each other
    width_in: float = 9.0  # of the whole
    height_in: float = 0.0  # of the whole; 0 for what `heights` and the labels need
    series: tuple[Series, ...] = ()  # the looks of the marks, in the order of the legend
    has_legend: bool = True
    caption: tuple[str, ...] = ()  # sentences, without their full stops
    # numbers of the chart, if marks hold derived shapes or a part of them
    rows: pd.DataFrame | None = None
    # zooming one panel zooms all along x; `shared_y` likewise, with the names of a category axis
    # only at the left
    shared_x: bool = False
    shared_y: bool = False
    name: str = ""
    title: str = ""
    answer: str = ""  # sentence below the title: what the chart shows
    description: str = ""  # its main numbers in one sentence, for readers who cannot see it

    @property
    def has_towers(self) -> bool:
        """Whether a panel has three axes, which only matplotlib draws."""
        return any(panel.z is not None for panel in self.panels)


def grid(
    panels: Sequence[Panel], *, height_in: float, abreast: int = 1, series: Sequence[Series] = ()
) -> Plot:
    """Return a plot of panels row by row, of one height, with a legend of what they show."""
    marks = [mark for panel in panels for mark in panel.marks]
    shown = {mark.series for mark in marks if isinstance(mark, Span | ReferenceLine)}
    for mark in (each for each in marks if isinstance(each, Mark)):
        shown |= {key for key, rows in series_of(mark) if len(rows)}
    places = [divmod(index, abreast) for index in range(len(panels))]
    return Plot(
        panels=named_once(
            [
                replace(panel, row=row, column=column)
                for panel, (row, column) in zip(panels, places, strict=True)
            ]
        ),
        heights=(height_in,) * (places[-1][0] + 1),
        widths=(1.0,) * min(abreast, len(panels)),
        series=tuple(each if each.key in shown else replace(each, label="") for each in series),
    )


def named_once(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Return panels without the label of an x axis that a panel below has too."""
    return tuple(
        replace(panel, x=replace(panel.x, label=""))
        if any(
            (below.column, below.x.label) == (panel.column, panel.x.label)
            for below in panels[place + 1 :]
        )
        else panel
        for place, panel in enumerate(panels)
    )


def numbers(plot: Plot) -> pd.DataFrame:
    """Return the numbers that a chart shows: a row for each mark, identity columns first."""
    if plot.rows is not None:
        return _ordered(plot.rows)
    kept: list[pd.DataFrame] = []
    for frame in map(_ordered, frames_of(plot)):  # A logarithmic axis copies rows to place bars.
        if len(frame.columns) and not any(frame.equals(other) for other in kept):
            kept.append(frame)
    return _ordered(pd.concat(kept, ignore_index=True)) if kept else pd.DataFrame()


def frames_of(plot: Plot) -> list[pd.DataFrame]:
    """Return each frame of the marks once, in the order of drawing."""
    return list({id(mark.data): mark.data for mark in data_marks(plot)}.values())


def data_marks(plot: Plot) -> Iterator[Mark]:
    """Yield the marks that have rows, panel by panel."""
    for panel in plot.panels:
        yield from (mark for mark in panel.marks if isinstance(mark, Mark))


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    public = [name for name in frame if not str(name).startswith("_")]
    first = [name for name in IDENTITY if name in public]
    return frame[[*first, *(name for name in public if name not in first)]]


@dataclass(frozen=True)
class Format:
    """Text form of the values of one quantity."""

    unit: str  # base unit of the values; empty for counts and ratios
    write: Callable[[float], str]  # value to text


def short_time(seconds: float) -> str:
    """Return a time short enough for a tick: ``5m`` for ``5m 00s``."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")


# Name to format. ``share`` is 0 to 1.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "number": Format("", lambda value: f"{value:.4g}"),
        "count": Format("", format_count),
        "rate": Format("B/s", format_rate),
        "latency": Format("s", format_latency),
        "duration": Format("s", short_time),
        "size": Format("B", format_size),
        "bytes": Format("B", lambda value: format_rate(value).removesuffix("/s")),
        "percent": Format("%", lambda value: f"{value:g} %"),
        "share": Format("", lambda value: f"{100 * value:g} %"),
    }
)
