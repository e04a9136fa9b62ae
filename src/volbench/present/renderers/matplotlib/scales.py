"""Axes of matplotlib from descriptions: scale, limits, ticks and their texts."""

from __future__ import annotations

import math
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    NullLocator,
)

from volbench.present.plots.description import Axis, Panel
from volbench.present.plots.formats import FORMATS

_PER_TICK_IN = {"x": 0.9, "y": 0.34}
_STEPS = {"linear": [1, 2, 2.5, 5, 10], "time": [1, 2, 3, 6, 10]}
_MARGIN = 0.6
"""Room beside the outermost categories."""


def set_scales(axes: Axes, panel: Panel, *, width_in: float, height_in: float) -> None:
    """Give both axes of a panel their scale, ticks and labels."""
    _set_axis(axes, "x", panel.x, size_in=width_in)
    _set_axis(axes, "y", panel.y, size_in=height_in)


def _set_axis(axes: Axes, way: Literal["x", "y"], axis: Axis, *, size_in: float) -> None:
    own: Any = axes.xaxis if way == "x" else axes.yaxis
    setter = getattr(axes, f"set_{way}scale")
    if axis.scale == "log":
        setter("log")
    elif axis.scale == "log2":
        setter("log", base=2)
    elif axis.scale == "symlog":
        setter("symlog", linthresh=1, base=4, linscale=0.5)
    own.set_label_text(axis.label)
    if axis.scale == "category":
        _set_categories(axes, way, axis)
    else:
        own.set_major_locator(_locator(axis, way, size_in))
        own.set_major_formatter(FuncFormatter(lambda value, _: FORMATS[axis.format].write(value)))
    own.set_minor_locator(NullLocator())
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


def _locator(axis: Axis, way: Literal["x", "y"], size_in: float) -> Locator:
    if axis.ticks:
        return FixedLocator(list(axis.ticks))
    if axis.scale in {"log", "log2", "symlog"}:
        low, high = axis.limits or (1.0, 10.0)
        return LogLocator(base=10, subs=_parts(high / low), numticks=15)
    most = 8 if axis.scale == "time" else 6
    count = min(most, max(3, math.floor(size_in / _PER_TICK_IN[way])))
    return MaxNLocator(nbins=count, steps=_STEPS.get(axis.scale, _STEPS["linear"]))


def _parts(span: float) -> tuple[float, ...]:
    """Return which digits of a decade have a tick, so that their texts don't touch."""
    return (1.0, 2.0, 5.0) if span < 60 else (1.0, 3.0) if span < 6e3 else (1.0,)
