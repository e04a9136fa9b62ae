"""Settings of matplotlib and the looks of series in a theme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
from matplotlib.colors import Colormap, LinearSegmentedColormap

from volbench.present.plots.description import Plot, Series
from volbench.present.plots.marks import Dash
from volbench.present.renderers.colour_themes import RAMPS, Theme

DASHES: Mapping[Dash, Any] = MappingProxyType(
    {
        "solid": "-",
        "dashed": "--",
        "dotted": ":",
        "dashdot": "-.",
        "limit": (0, (5, 3)),
    }
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
        "font.family": "DejaVu Sans",  # travels with matplotlib, so charts are equal everywhere
        "font.size": 9,
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


@contextmanager
def styled(theme: Theme | None = None) -> Iterator[None]:
    """Apply the style inside the context only."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        if theme is not None:
            colours = theme.colours
            named: dict[Any, str] = {
                name: colours[role] for role, own in _COLOURED.items() for name in own
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
