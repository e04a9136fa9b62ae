"""Which colour a row has: rows enter, a colour for each and the entries of a legend leave."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from volbench.analyse.frames.job_frames import COLOUR
from volbench.present.figures.chart import beside, wrap_name
from volbench.present.formatting import Row, text
from volbench.present.style import DIRECTIONS, GREY, PALETTE

MOST_ENTRIES = 20
"""Entries of a legend beyond which the rest is counted."""


def colour_map(rows: Sequence[Row]) -> dict[str, str]:
    """Return text to colour: of what was asked to be told apart, else of directions."""
    if any(COLOUR in row for row in rows):
        values = dict.fromkeys(text(row, COLOUR) for row in rows)
        return {value: PALETTE[n % len(PALETTE)] for n, value in enumerate(values)}
    found = dict.fromkeys(text(row, "direction") for row in rows)
    return {name: DIRECTIONS.get(name, GREY) for name in found}


def colour_of(row: Row, colours: dict[str, str]) -> str:
    """Return the colour of a row out of `colour_map`."""
    return colours[text(row, COLOUR) if COLOUR in row else text(row, "direction")]


def line_legend(axes: Axes, handles: Sequence[Artist], *, x_in: float = 0.1) -> None:
    """Name lines beside the axes; what has no room is counted."""
    shown = list(handles[:MOST_ENTRIES])
    if len(handles) > MOST_ENTRIES:
        shown.append(Patch(color="none", label=f"and {len(handles) - MOST_ENTRIES} more"))
    axes.legend(
        handles=shown,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(axes, x_in=x_in),
        borderaxespad=0,
    )


def legend_above(axes: Axes, colours: dict[str, str], *, y_in: float, columns: int) -> None:
    """Name colours over the right end of the axes, in so many columns at most."""
    axes.legend(
        handles=patches(colours),
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(axes, y_in=y_in),
        ncols=min(len(colours), columns),
        borderaxespad=0,
    )


def patches(colours: dict[str, str]) -> list[Patch]:
    """Return the entries of a legend, the last of which counts those that have no room."""
    entries = [
        Patch(color=colour, label=wrap_name(name, columns=30)) for name, colour in colours.items()
    ]
    if len(entries) <= MOST_ENTRIES:
        return entries
    more = Patch(color="none", label=f"and {len(entries) - MOST_ENTRIES} more")
    return [*entries[:MOST_ENTRIES], more]
