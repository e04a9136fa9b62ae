"""The numbers of a figure, read back from what was drawn: a Figure enters, a frame leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from matplotlib.ticker import FixedLocator

_Point = tuple[str, object, object]
COLUMNS = ("axes", "x_axis", "y_axis", "mark", "x", "y")


def traced(figure: Figure) -> pd.DataFrame:
    """Return every point of every line, bar, step and dot of a figure.

    Returns:
        ``axes`` (number of the panel, from 1), ``x_axis`` and ``y_axis`` (their labels), ``mark``
        (the name of the line; "" for none), ``x`` and ``y`` (float, in base units; a bar's x is its
        end where it lies, and its y where it stands; NaN is a gap).
    """
    rows = [
        (number, axes.get_xlabel(), axes.get_ylabel(), mark, x, y)
        for number, axes in enumerate(figure.axes, start=1)
        for mark, x, y in _points(axes)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _points(axes: Axes) -> Iterator[_Point]:
    """Yield the name and the place of each point; rows with names have their name for a place."""
    for line in axes.lines:
        if line.get_transform().contains_branch(axes.transData):
            points = np.asarray(line.get_xydata(), dtype=float)
            yield from _placed(axes, line.get_label(), ((x, y) for x, y in points))
    for container in axes.containers:
        if isinstance(container, BarContainer):
            ends = (_bar(container, bar.get_bbox().extents) for bar in container)
            yield from _placed(axes, container.get_label(), ends)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            steps = zip(edges, np.asarray(values), strict=False)
            yield from _placed(axes, patch.get_label(), steps)
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            dots = (tuple(place) for place in np.asarray(collection.get_offsets(), dtype=float))
            yield from _placed(axes, collection.get_label(), dots)


def _placed(axes: Axes, label: object, places: Iterable[tuple[float, float]]) -> Iterator[_Point]:
    for x, y in places:
        yield _name(label), _told(axes.xaxis, x), _told(axes.yaxis, y)


def _bar(container: BarContainer, extents: np.ndarray) -> tuple[float, float]:
    x0, y0, x1, y1 = (float(value) for value in extents)
    if container.orientation == "horizontal":
        return x1, (y0 + y1) / 2
    return (x0 + x1) / 2, y1


def row_names(axis: Axis) -> dict[float, str]:
    """Return place to name where an axis has named rows, which stand on 0, 1, 2 and on."""
    locator = axis.get_major_locator()
    if not isinstance(locator, FixedLocator) or axis.get_scale() != "linear":
        return {}
    places = [float(place) for place in locator()]
    if places != [float(n) for n in range(len(places))]:
        return {}
    form = axis.get_major_formatter()
    return {place: str(form(place, n)).replace("\n", ", ") for n, place in enumerate(places)}


def _told(axis: Axis, value: float) -> object:
    """Return a value, or the name of the row that it stands for."""
    return row_names(axis).get(float(value), float(value))


def _name(label: object) -> str:
    text = str(label)
    return "" if text.startswith("_") else text.replace("\n", " ")
