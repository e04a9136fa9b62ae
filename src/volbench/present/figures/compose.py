"""Small multiples: a chart and frames for each panel enter, one Figure with all of them leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.present.figures.captions import setting
from volbench.present.figures.chart import (
    Chart,
    Frames,
    Panel,
    caption,
    drawn_into,
    new_figure,
    write_note,
)
from volbench.present.figures.traced import row_names

ABREAST = 2
_NARROWER = 0.8
"""Width of a panel, of what the chart alone has: beside each other they may be closer."""


def draw_panels(chart: Chart, panels: Sequence[tuple[str, Frames]], title: str) -> Figure:
    """Draw a chart for each panel that has something for it, on equal scales."""
    told = [(name, frames) for name, frames in panels if not chart.lack(frames)]
    columns = min(ABREAST, len(told))
    sizes = [chart.draw(frames, name).get_size_inches() for name, frames in told]
    rows = [
        max(float(size[1]) for size in sizes[first : first + columns])
        for first in range(0, len(sizes), columns)
    ]
    width_in = columns * max(float(size[0]) for size in sizes) * (_NARROWER if columns > 1 else 1)
    places, figure = _places(rows, columns=columns, width_in=width_in, title=title)
    notes: list[str] = []
    for place, (name, frames) in zip(places, told, strict=False):
        with drawn_into(place):
            chart.draw(frames, name)
        notes += place.notes
    _share_scales([place.figure.axes for place in places[: len(told)]])
    summaries = [frames["summary"] for _, frames in told]
    others = _sentences(notes, [setting(summary) for summary in summaries])
    if untold := len(panels) - len(told):
        others.append(f"{untold} further panels have nothing to show")
    whole = pd.concat(summaries, ignore_index=True)
    write_note(figure, caption(whole, *others), width_in=width_in)
    return figure


def _places(
    rows: Sequence[float], *, columns: int, width_in: float, title: str
) -> tuple[list[Panel], Figure]:
    """Return a place for each panel, row by row, and the figure they stand in."""
    figure = new_figure(title=title, height_in=0.9 + sum(rows), width_in=width_in, note=" ")
    found = figure.subfigures(len(rows), columns, squeeze=False, height_ratios=list(rows))
    return [Panel(place) for place in found.ravel()], figure


def _sentences(notes: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Return once what the notes say beside what `caption` tells of all panels together."""
    told = dict.fromkeys(
        sentence
        for note in notes
        for sentence in note.rstrip(".").split(". ")
        if sentence not in settings
        and not sentence.startswith("Campaign")
        and not sentence.endswith("not shown")
    )
    return [sentence for sentence in told if sentence.strip()]


def _share_scales(panels: Sequence[Sequence[Axes]]) -> None:
    """Give axes that show the same thing in each panel the same ends."""
    if len({len(panel) for panel in panels}) != 1:
        return
    for same in zip(*panels, strict=True):
        if len({(axes.get_xlabel(), axes.get_xscale(), axes.name) for axes in same}) == 1:
            _share(same, "x")
        if len({(axes.get_ylabel(), axes.get_yscale(), axes.name) for axes in same}) == 1:
            _share(same, "y")


def _share(group: Sequence[Axes], way: str) -> None:
    axes = [getattr(one, f"{way}axis") for one in group]
    if any(row_names(axis) for axis in axes):
        return  # no scale
    ends = [getattr(one, f"get_{way}lim")() for one in group]
    if any(low > high for low, high in ends):
        return
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if math.isfinite(low) and math.isfinite(high):
        for one in group:
            getattr(one, f"set_{way}lim")(low, high)


def join_numbers(parts: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return the numbers of all panels, each row with the name of its panel."""
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    named = [frame.assign(panel=name) for name, frame in parts]
    return pd.concat(named, ignore_index=True)
