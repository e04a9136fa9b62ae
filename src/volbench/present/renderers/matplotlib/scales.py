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
    MultipleLocator,
    NullLocator,
)

from volbench.present.plots.description import FORMATS, Axis, Panel

_PER_TICK_IN = {"x": 0.9, "y": 0.28}
_TIME_STEPS_S = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400),
)
_MARGIN = 0.6  # Room beside the outermost categories


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
    axes.tick_params(labelsize=7.5, pad=1)


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
    count = min(7, max(3, math.floor(size_in / _PER_TICK_IN[way])))
    if axis.scale == "time":
        end_s = (axis.limits or (0.0, 1.0))[1]
        return MultipleLocator(next((s for s in _TIME_STEPS_S if end_s / s <= count), end_s))
    return MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10])


def _parts(span: float) -> tuple[float, ...]:
    """Return which digits of a decade have a tick, so that their texts don't touch."""
    return (1.0, 2.0, 5.0) if span < 60 else (1.0, 3.0) if span < 6e3 else (1.0,)
