"""What all interactive charts share: bokeh figures enter, JSON that a page can draw leaves.

Names come from files. They reach bokeh as plain text or as columns of points, never as
markup: bokeh would read a text with dollars as mathematics. Series are named and switched by the
page's own buttons, so that a keyboard reaches them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import (
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    PlainText,
    Range1d,
)
from bokeh.models.annotations import Span
from bokeh.models.axes import Axis
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from volbench.present.formatting import printable
from volbench.present.style import DIRECTIONS, GREY, PALETTE

INK = "ink"
"""Tag of what has the colour of text, which the page sets for its light and dark looks."""
FAR = 4.0
"""A limit this much above the data would flatten it."""
QUIET = "quiet"
"""Tag of what tells nothing when pointed at."""
NAME_CHARS = 24
"""Letters of a name beside an axis: a phone has no room for more; pointing tells the whole."""

Column = Sequence[str] | Sequence[float] | npt.NDArray[np.float32] | npt.NDArray[np.float64]


@dataclass(frozen=True)
class Toggle:
    """A series that can be switched off and on.

    Attributes:
        key: name of its renderers in bokeh.
        name: for people.
        colour: of its line or bars; empty for ink.
        shown: whether it is shown at first.
    """

    key: str
    name: str
    colour: str
    shown: bool = True


LIMIT = Toggle("limit", "declared limit", "")
"""What a provider promised; in ink, as is every toggle without a colour."""


@dataclass(frozen=True)
class Plot:
    """One interactive chart.

    Attributes:
        kind: of the static chart whose numbers it shows.
        title: its heading.
        description: its main numbers in a sentence, for who can't see it.
        toggles: its series.
        item: JSON for bokeh's ``embed_item``.
    """

    kind: str
    title: str
    description: str
    toggles: tuple[Toggle, ...]
    item: str


def new_panel(
    *,
    height_px: int,
    x_label: str = "",
    y_label: str = "",
    x_log: bool = False,
    y_log: bool = False,
) -> figure:
    """Return an empty panel as wide as the page, in the look of the static charts."""
    panel = figure(
        height=height_px,
        sizing_mode="stretch_width",
        x_axis_type="log" if x_log else "linear",
        y_axis_type="log" if y_log else "linear",
        tools="xbox_zoom",
        toolbar_location=None,
    )
    panel.min_border_right = 12
    panel.outline_line_color = None
    panel.background_fill_color = panel.border_fill_color = None
    for axis, label in ((panel.xaxis[0], x_label), (panel.yaxis[0], y_label)):
        axis.axis_label = PlainText(text=label)
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.minor_tick_line_color = None
        axis.major_tick_out = 3
    return panel


def source(columns: Mapping[str, Column]) -> ColumnDataSource:
    """Return points, a column for each name."""
    return ColumnDataSource(data=dict(columns))


def numerals(axis: Axis, *, pattern: str = "0,0.[00]") -> None:
    """Write the ticks of an axis in full, without an exponent."""
    axis.formatter = NumeralTickFormatter(format=pattern)


def name_ticks(axis: Axis, names: Mapping[float, str]) -> None:
    """Put ticks at some places only, with a text at each."""
    axis.ticker = FixedTicker(ticks=list(names), minor_ticks=[])
    axis.major_label_overrides = {
        place: PlainText(text=printable(name)) for place, name in names.items()
    }


def span(low: float, high: float) -> Range1d:
    """Return the range of an axis that the page's buttons zoom in and out of."""
    return Range1d(start=low, end=high)


def add_hover(panel: figure, told: Sequence[tuple[str, str]]) -> None:
    """Tell the columns of a point under the pointer."""
    loud = [
        one for one in panel.renderers if isinstance(one, GlyphRenderer) and QUIET not in one.tags
    ]
    panel.add_tools(HoverTool(tooltips=list(told), renderers=list(loud)))


def add_limit(panel: figure, place: float) -> None:
    """Draw a declared limit across a panel, in ink and switched by `LIMIT`."""
    line = Span(location=place, dimension="width", line_dash="dashed", line_width=1.5)
    line.tags = [INK]
    line.name = LIMIT.key
    panel.add_layout(line)


def unit_of(column: str, most: float) -> tuple[str, float]:
    """Return the unit in which the values of a column are short, and how much of the base it is.

    Args:
        column: of a frame.
        most: the greatest of the values.
    """
    steps = next((steps for ending, steps in _UNITS.items() if ending in column), _PLAIN)
    return next((step for step in steps if most >= step[1]), steps[-1])


def with_unit(name: str, unit: str) -> str:
    """Return what stands beside an axis."""
    return f"{name} ({unit})" if unit else name


_PLAIN = (("", 1.0),)
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
_BYTES = (("GB", 1e9), ("MB", 1e6))
_UNITS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "bw_bytes_per_s": (("MB/s", 1e6),),
    "lat_": _SECONDS,
    "p99": _SECONDS,
    "_percent": (("%", 1.0),),
    "request_bytes": (("KiB", 1024.0),),
    "dirty_bytes": _BYTES,
    "writeback_bytes": _BYTES,
}
"""Part of a column's name to its units, the largest first."""


def colour_of(direction: str) -> str:
    """Return the colour of a direction."""
    return DIRECTIONS.get(direction, GREY)


def palette(place: int) -> str:
    """Return the colour of the n-th series; ink would be lost on a dark page."""
    colours = PALETTE[:-1]
    return colours[place % len(colours)]


def clipped(name: str) -> str:
    """Return the beginning of a name that is too long for an axis."""
    return name if len(name) <= NAME_CHARS else name[: NAME_CHARS - 1] + "…"


def thin(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return values to seven digits, which is more than a screen can show, in half the bytes."""
    return values.astype(np.float32)


def item_of(panels: Sequence[figure]) -> str:
    """Return panels, one below the other, as JSON."""
    root = panels[0] if len(panels) == 1 else column(*panels, sizing_mode="stretch_width")
    return json.dumps(json_item(root), separators=(",", ":"))
