"""Settings of matplotlib, the looks of series in a theme, and axes: scale, limits and ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from textwrap import fill
from types import MappingProxyType
from typing import Any, Literal
from warnings import catch_warnings, filterwarnings

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.font_manager import fontManager, get_font
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullLocator,
)

from volbench.present.plots.colour_themes import RAMPS, Theme
from volbench.present.plots.description import FORMATS, Axis, Panel, Plot, Series
from volbench.present.plots.marks import Dash

DASHES: Mapping[Dash, Any] = MappingProxyType(
    {"solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-.", "limit": (0, (5, 3))}
)
MARKERS: Mapping[str, str] = MappingProxyType(
    {
        "": "",
        "circle": "o",
        "square": "s",
        "up": "^",
        "diamond": "D",
        "down": "v",
        "plus": "P",
        "cross": "X",
        "left": "<",
        "right": ">",
        "tick": "|",
    }
)
_SETTINGS: Mapping[Any, Any] = MappingProxyType(
    {
        "font.size": 9.0,
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "lines.linewidth": 1.4,
        "hatch.linewidth": 1.0,
        "figure.dpi": 100,
        "savefig.dpi": 150,
        "text.parse_math": False,  # a dollar in a job's name is a dollar
        "svg.fonttype": "path",  # a reader's machine may lack the font
        "svg.hashsalt": "volbench",  # equal charts give equal files
        "pdf.fonttype": 42,
    }
)
# Role to the settings that have its colour
_COLOURED = MappingProxyType(
    {
        "ink": ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"),
        "muted": ("axes.edgecolor", "xtick.color", "ytick.color"),
        "pale": ("grid.color",),
        "paper": ("figure.facecolor", "axes.facecolor", "savefig.facecolor"),
    }
)


# DejaVu Sans travels with matplotlib, so that charts are equal everywhere. The others have letters
# that it lacks: Chinese, Japanese and Korean on Linux, macOS and Windows.
_FONTS = (
    "DejaVu Sans",
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "WenQuanYi Zen Hei"),
    *("Droid Sans Fallback", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic"),
)
_FONT_PT = 9.0  # Of most letters; the size of all others is in proportion to it
_CHARACTER_IN = 0.07  # Width of a letter at `_FONT_PT`
_PER_TICK_IN = {"x": 0.9, "y": 0.28}
_PER_DECADE_IN = 0.5
_TIME_STEPS_S = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400),
)
_NARROW_IN = 3.0  # Width of a logarithmic axis below which only whole decades have a text
_MARGIN = 0.6  # Room beside the outermost categories


@cache
def fonts() -> Mapping[str, frozenset[int]]:
    """Return the installed fonts among some, with the code points of their letters."""
    installed = {entry.name for entry in fontManager.ttflist}
    paths = {name: fontManager.findfont(name) for name in _FONTS if name in installed}
    return MappingProxyType(
        {name: frozenset(get_font(path).get_charmap()) for name, path in paths.items()}
    )


def without_letters(text: str) -> bool:
    """Return whether a text has printable characters that no installed font has."""
    known = frozenset().union(*fonts().values())
    return any(char.isprintable() and ord(char) not in known for char in text)


def points(size: float) -> float:
    """Return the size of letters that are of `size` points in a chart of the usual font size."""
    return size * float(mpl.rcParams["font.size"]) / _FONT_PT


@contextmanager
def styled(theme: Theme | None = None, *, font_size: float = _FONT_PT) -> Iterator[None]:
    """Apply the style inside the context only."""
    with mpl.rc_context(), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from font")  # The caption says so
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        mpl.rcParams["font.family"] = [*fonts()]
        for name in ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize"):
            mpl.rcParams[name] = _SETTINGS[name] * font_size / _FONT_PT
        if theme is not None:
            colours = theme.colours
            named: dict[Any, str] = {
                name: colours[role] for role, names in _COLOURED.items() for name in names
            }
            mpl.rcParams.update(named)
        yield


@dataclass(frozen=True)
class Looks:
    """Styles of the series of a plot in a theme."""

    theme: Theme
    series: Mapping[str, Series]

    def of(self, key: str) -> Series:
        """Return the series of a key; a role is a series without marker."""
        return self.series.get(key) or Series(key, "", key)

    def colour(self, key: str) -> str:
        """Return the colour of a series or role."""
        return self.theme.colours[self.of(key).colour]

    def filled(self, key: str) -> dict[str, Any]:
        """Return the settings of an area of a series: its colour, and a hatch where it has one."""
        hatch = self.theme.hatches.get(self.of(key).colour)
        paper = self.theme.colours["paper"]
        colour = {"facecolor": self.colour(key), "linewidth": 0}
        return colour | ({"hatch": hatch, "edgecolor": paper} if hatch else {})

    def line(self, key: str) -> dict[str, Any]:
        """Return the settings of a line of a series."""
        return {"color": self.colour(key), "linestyle": DASHES[self.of(key).dash]}

    def ramp(self, name: str) -> Colormap:
        """Return the colours of a ramp."""
        colours = RAMPS["grey" if self.theme.is_grey else name]
        return LinearSegmentedColormap.from_list(name, colours)


def looks_of(plot: Plot, theme: Theme) -> Looks:
    """Return the looks of a plot's series."""
    return Looks(theme, {series.key: series for series in plot.series})


def set_scales(axes: Axes, panel: Panel, *, width_in: float, height_in: float) -> None:
    """Give both axes of a panel their scale, ticks and labels."""
    _set_axis(axes, "x", panel.x, size_in=width_in)
    _set_axis(axes, "y", panel.y, size_in=height_in)
    if panel.z is not None:
        _set_upright(axes, panel.z)


def _set_upright(axes: Any, axis: Axis) -> None:  # noqa: ANN401 - mplot3d has no types
    """Scale the third axis, and look at all three from where towers cover each other least."""
    axes.set_zlim(*(axis.limits or (None, None)))
    write = FORMATS[axis.format].write
    axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axes.set_zlabel(axis.label)
    axes.view_init(elev=24, azim=-125)
    axes.tick_params(labelsize=points(7.5), pad=1)


def _set_axis(axes: Axes, way: Literal["x", "y"], axis: Axis, *, size_in: float) -> None:
    drawn: Any = axes.xaxis if way == "x" else axes.yaxis
    setter = getattr(axes, f"set_{way}scale")
    if axis.scale == "log":
        setter("log")
    elif axis.scale == "log2":
        setter("log", base=2)
    elif axis.scale == "symlog":
        setter("symlog", linthresh=1, base=4, linscale=0.5)
    room = int(size_in / _CHARACTER_IN * _FONT_PT / float(mpl.rcParams["font.size"]))
    label = fill(axis.label, max(room, 1), break_long_words=False)
    drawn.set_label_text(label if way == "y" else axis.label)
    if axis.scale == "category":
        _set_categories(axes, way, axis)
    else:
        drawn.set_major_locator(locator(axis, way, size_in))
        drawn.set_major_formatter(FuncFormatter(lambda value, _: FORMATS[axis.format].write(value)))
    drawn.set_minor_locator(NullLocator())
    if limits := _limits(axis):
        getattr(axes, f"set_{way}lim")(*(limits[::-1] if axis.inverted else limits))


def _limits(axis: Axis) -> tuple[float, float] | None:
    if axis.limits is None and axis.scale == "category":
        places = axis.ticks or range(len(axis.categories))
        return min(places) - _MARGIN, max(places) + _MARGIN
    return axis.limits


def _set_categories(axes: Axes, way: Literal["x", "y"], axis: Axis) -> None:
    places = axis.ticks or range(len(axis.categories))
    getattr(axes, f"set_{way}ticks")(list(places), list(axis.categories))
    axes.tick_params(axis=way, length=0)
    axes.grid(visible=False, axis=way)


def locator(axis: Axis, way: Literal["x", "y"], size_in: float) -> Locator:
    """Return the ticks of an axis whose texts do not touch."""
    if axis.ticks:
        return FixedLocator(ticks_apart(axis, size_in) if way == "x" else list(axis.ticks))
    if axis.scale in {"log", "log2", "symlog"}:
        low, high = axis.limits or (1.0, 10.0)
        is_narrow = way == "x" and size_in < _NARROW_IN
        most = max(2, int(size_in / _PER_DECADE_IN)) if way == "x" else 15
        return LogLocator(10, parts_of(high / low) if not is_narrow else (1.0,), numticks=most)
    count = min(7, max(3, math.floor(size_in / _PER_TICK_IN[way])))
    if axis.scale == "time":
        count = max(4, count)
        end_s = (axis.limits or (0.0, 1.0))[1]
        return MultipleLocator(next((s for s in _TIME_STEPS_S if end_s / s <= count), end_s))
    return MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3)


def ticks_apart(axis: Axis, size_in: float) -> list[float]:
    """Return the ticks whose texts do not touch, the first and as many others as have room."""
    if axis.limits is None:
        return list(axis.ticks)
    scaled = np.log10 if axis.scale in {"log", "log2"} else np.asarray
    low, *places, high = scaled([axis.limits[0], *axis.ticks, axis.limits[1]])
    kept: list[float] = []
    end_in = -math.inf
    for tick, position in zip(axis.ticks, places, strict=True):
        at_in = size_in * (position - low) / (high - low)
        half_in = _CHARACTER_IN * (len(FORMATS[axis.format].write(tick)) + 1) / 2
        if at_in - half_in >= end_in:
            kept.append(tick)
            end_in = at_in + half_in
    return kept


def parts_of(span: float) -> tuple[float, ...]:
    """Return which digits of a decade have a tick, so that their texts don't touch."""
    return (1.0, 2.0, 5.0) if span < 60 else (1.0, 3.0) if span < 6e3 else (1.0,)
