"""Size, letters and scales that a reader chooses for a chart, applied to its description."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from volbench.errors import InputError
from volbench.present.plots.description import FORMATS, Axis, Panel, Plot, numbers
from volbench.present.plots.kinds import AxisEnd, Picture
from volbench.present.plots.marks import (
    AnyMark,
    Areas,
    Bars,
    Lines,
    Mark,
    Points,
    ReferenceLine,
    Texts,
    Way,
    Whiskers,
)
from volbench.present.plots.metrics import log_limits

_ROOM = (0.7, 1.3)  # Around the values of a logarithmic axis, so that no point is on its edge


def with_picture(plot: Plot, picture: Picture) -> Plot:
    """Return a plot with size and scales as chosen, its numbers unchanged.

    Raises:
        InputError: no axis of the plot shows the unit of `y_max`, or none can be logarithmic.
    """
    if picture.is_log:
        panels = [logarithmic(panel) for panel in plot.panels]
        is_log = any(axis.scale == "log" for panel in panels for axis in (panel.x, panel.y))
        plot = _changed(plot, panels if is_log else (), "can be logarithmic")
    if end := picture.y_max:
        unit = {"s": "a latency", "B/s": "a bandwidth"}.get(end.unit, "a count")
        panels = [_ended(panel, end) for panel in plot.panels]
        is_ended = any(new is not old for new, old in zip(panels, plot.panels, strict=True))
        plot = _changed(plot, panels if is_ended else (), f"shows {unit}, the unit of --y-max")
    return replace(
        plot,
        width_in=picture.width_in or plot.width_in,
        height_in=picture.height_in or plot.height_in,
    )


def _changed(plot: Plot, panels: Sequence[Panel], change: str) -> Plot:
    if not panels:
        raise InputError(
            f"no axis of the chart {plot.name} {change}",
            hint="volbench plot --list says what each chart shows",
        )
    return replace(plot, panels=tuple(panels), rows=numbers(plot))


def _value_axis(panel: Panel) -> Way | None:
    """Return the axis of values: upright, unless that has names; None for a map of cells."""
    ways: tuple[Way, Way] = ("y", "x")
    return next((way for way in ways if getattr(panel, way).scale != "category"), None)


def _ended(panel: Panel, end: AxisEnd) -> Panel:
    way = _value_axis(panel)
    axis: Axis | None = getattr(panel, way) if way else None
    if way is None or axis is None or axis.limits is None or axis.unit.strip("%") != end.unit:
        return panel
    low = axis.limits[0] if axis.limits[0] < end.value else 0.0
    cut = [
        _cut(mark, way, axis, end.value)
        for mark in panel.marks
        if isinstance(mark, Bars) or (isinstance(mark, Points) and mark.is_named_beyond)
    ]
    signs = [sign for sign in cut if len(sign.data)]
    kept = [_below(mark, way, end.value) for mark in panel.marks]
    ended = replace(panel, marks=(*kept, *signs))
    return _with_axis(ended, way, replace(axis, limits=(low, end.value), ticks=()))


def _cut(mark: Bars | Points, way: Way, axis: Axis, end: float) -> Texts:
    """Return an arrow with the value for each bar or point that is beyond the axis."""
    rows = mark.data
    if isinstance(mark, Bars):
        top, at = rows[mark.value].astype(float), _middles(mark)
        if mark.base:
            top += rows[mark.base].astype(float)
    else:
        top, at = rows[getattr(mark, way)].astype(float), rows["_across"]
    arrow = "→" if way == "x" else "↑"
    texts = [f"{FORMATS[axis.format].write(value)} {arrow}" for value in top]
    data = pd.DataFrame({"_at": at, "_end": end, "_text": texts})[top > end]
    if way == "x":
        return Texts(data, x="_end", y="_at", align="right", size=7.5, is_boxed=True)
    return Texts(data, x="_at", y="_end", align="center", valign="top", size=7.5, is_boxed=True)


def _below(mark: AnyMark, way: Way, end: float) -> AnyMark:
    """Return a mark without its texts beyond the end of an axis; of a line the name stays."""
    if isinstance(mark, Texts) and (mark.x_in if way == "x" else mark.y_in) == "data":
        at = mark.data[mark.x if way == "x" else mark.y].astype(float)
        return replace(mark, data=mark.data[~(at > end)])
    if isinstance(mark, ReferenceLine) and mark.axis == way and mark.value > end:
        return replace(mark, is_beyond=True)
    return mark


def _with_axis(panel: Panel, way: Way, axis: Axis) -> Panel:
    return replace(panel, x=axis) if way == "x" else replace(panel, y=axis)


def logarithmic(panel: Panel) -> Panel:
    """Return a panel with a logarithmic axis of values, from the least value above zero."""
    way = _value_axis(panel)
    axis: Axis | None = getattr(panel, way) if way else None
    if way is None or axis is None or axis.scale != "linear" or panel.z or axis.limits is None:
        return panel
    known = pd.concat([pd.Series(dtype=float), *_values(panel.marks, way)])
    known = known[known > 0]
    if known.empty or any(isinstance(mark, Bars) and mark.base for mark in panel.marks):
        return panel
    low, high = log_limits([float(known.min()), float(known.max())], room=_ROOM)
    label = f"{axis.label} (logarithmic)".strip()
    scaled = replace(axis, label=label, scale="log", limits=(low, high), ticks=())
    marks = tuple(_raised(mark, way, low) for mark in panel.marks)
    return _with_axis(replace(panel, marks=marks), way, scaled)


def _values(marks: Iterable[AnyMark], way: Way) -> list[pd.Series[float]]:
    """Return every value that marks show along an axis."""
    columns: list[tuple[Mark, str]] = []
    lines: list[float] = []
    for mark in marks:
        if isinstance(mark, (Lines, Points)):
            columns.append((mark, getattr(mark, way)))
        elif isinstance(mark, Bars):
            columns.append((mark, mark.value))
        elif isinstance(mark, (Areas, Whiskers)):
            columns += [(mark, mark.low), (mark, mark.high)]
        elif isinstance(mark, ReferenceLine) and mark.axis == way and not mark.is_beyond:
            lines.append(mark.value)
    return [
        *(mark.data[name].astype(float) for mark, name in columns),
        pd.Series(lines, dtype=float),
    ]


def _raised(mark: AnyMark, way: Way, low: float) -> AnyMark:
    """Return a mark without zeros along an axis that begins at `low`."""
    if isinstance(mark, Bars):
        return _tips(mark)
    if isinstance(mark, Texts) and (mark.x_in if way == "x" else mark.y_in) == "data":
        at = mark.data[mark.x if way == "x" else mark.y].astype(float).clip(lower=low)
        place = f"_{way}_raised"  # Of its own: both axes may be logarithmic
        data = mark.data.assign(**{place: at})
        return replace(mark, data=data, **{way: place})  # type: ignore[arg-type]  # x or y
    return mark


def _tips(bars: Bars) -> Points:
    """Return the ends of bars as points: a logarithmic axis has no zero where bars could begin."""
    data = bars.data.assign(_across=_middles(bars))
    x, y = (bars.value, "_across") if bars.is_horizontal else ("_across", bars.value)
    return Points(data, by=bars.by, series=bars.series, x=x, y=y, is_named_beyond=True)


def _middles(bars: Bars) -> pd.Series[float]:
    """Return where each bar is on the axis across it."""
    at = bars.data[bars.at].astype(float)
    return (at + bars.data[bars.at_end].astype(float)) / 2 if bars.at_end else at
