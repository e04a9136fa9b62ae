"""Rules that every chart keeps, checked on its description; see docs/explanation on charts."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.marks import Bars, Lines, Mark, Points, ReferenceLine, Texts, Whiskers

MAX_WIDTH_IN, MAX_HEIGHT_IN = 10.0, 12.0
_MARKED = (Bars, Lines, Points, Whiskers)


def broken_rules(plot: Plot) -> list[str]:
    """Return a sentence for each rule that a chart breaks."""
    return [
        *_scales(plot),
        *_bars_from_zero(plot),
        *_values_inside(plot),
        *_colours(plot),
        *_texts_apart(plot),
        *_facts_once(plot),
        *_size(plot),
        *_second_cue(plot),
        *_lines_named(plot),
        *_answer(plot),
    ]


def _quantities(plot: Plot) -> Iterator[tuple[str, Panel, Axis]]:
    for panel in plot.panels:
        for way in ("x", "y"):
            axis: Axis = getattr(panel, way)
            if axis.format in {"count", "rate", "latency"} and axis.limits:
                yield f"{way} {axis.format}", panel, axis


def _scales(plot: Plot) -> Iterator[str]:
    """One quantity has one scale: linear never stands beside logarithmic."""
    scales: dict[str, set[str]] = defaultdict(set)
    for name, _, axis in _quantities(plot):
        scales[name].add(axis.scale)
    for name, kinds in scales.items():
        if {"linear", "log"} <= kinds:
            yield f"{name} is linear in one panel and logarithmic in another"


def _bars_from_zero(plot: Plot) -> Iterator[str]:
    for panel in plot.panels:
        for mark in panel.marks:
            if isinstance(mark, Bars):
                axis = panel.x if mark.is_horizontal else panel.y
                if axis.scale == "log" or (axis.limits and axis.limits[0] > 0):
                    yield f"bars of {panel.title!r} do not begin at zero"


def _values_inside(plot: Plot) -> Iterator[str]:
    """The scale fits the data: no mark lies beyond it, and the data fill a part of it."""
    for panel in plot.panels:
        for way in ("x", "y"):
            axis: Axis = getattr(panel, way)
            if axis.limits is None or axis.scale == "category":
                continue
            values = np.concatenate([np.array([]), *_values(panel, way)])
            values = values[~np.isnan(values)]
            low, high = axis.limits
            if len(values) and (values.max() > high * 1.001 or values.min() < low - 1e-9 * high):
                yield f"{panel.title!r}: {way} from {values.min():g} to {values.max():g} is cut"
            limits = [m.value for m in panel.marks if isinstance(m, ReferenceLine)]
            top = max([values.max(initial=0.0), *limits])
            if len(values) and axis.scale == "linear" and way == "y" and high > 8 * top > 0:
                yield f"{panel.title!r}: the data lie on the floor of the scale"


def _values(panel: Panel, way: str) -> Iterator[np.ndarray]:
    for mark in panel.marks:
        if isinstance(mark, (Lines, Points)):
            yield mark.data[getattr(mark, way)].to_numpy(dtype=float)
        elif isinstance(mark, Bars) and (way == "x") == mark.is_horizontal:
            yield mark.data[mark.value].to_numpy(dtype=float)
        elif isinstance(mark, Whiskers) and mark.along == way:
            yield mark.data[mark.high].to_numpy(dtype=float)


def _colours(plot: Plot) -> Iterator[str]:
    looks = [(s.colour, s.marker, s.dash) for s in plot.series if s.label]
    labels = {s.label for s in plot.series if s.label}
    if len({*looks}) < len(labels):
        yield "two series look alike"
    known = {series.key for series in plot.series}
    for panel in plot.panels:
        for mark in panel.marks:
            if isinstance(mark, _MARKED) and mark.by:
                unnamed = {*map(str, mark.data[mark.by].dropna())} - known - {"ink", "palette-0"}
                if unnamed and plot.has_legend:
                    yield f"{panel.title!r}: {min(unnamed)} is not in the legend"


def _texts_apart(plot: Plot) -> Iterator[str]:
    for panel in plot.panels:
        height_in = plot.heights[panel.row]
        for mark in panel.marks:
            if not isinstance(mark, Texts) or mark.y_in != "data" or len(mark.data) < 2:
                continue
            if panel.y.scale == "category" or panel.y.limits is None:
                continue
            places = sorted(
                (float(x), _share(float(y), panel.y))
                for x, y in zip(mark.data[mark.x], mark.data[mark.y], strict=True)
                if not math.isnan(float(y))
            )
            for (x, lower), (other, upper) in pairwise(places):
                if x == other and (upper - lower) * height_in < mark.size / 72 * 0.9:
                    yield f"{panel.title!r}: texts touch at {x:g}"


def _share(value: float, axis: Axis) -> float:
    low, high = axis.limits or (0.0, 1.0)
    if axis.scale in {"log", "log2"}:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _facts_once(plot: Plot) -> Iterator[str]:
    """A fact stands once: no sentence twice, no value twice in a title of a panel."""
    if len({*plot.caption}) < len(plot.caption):
        yield "the caption says one sentence twice"
    for panel in plot.panels:
        first, *_ = panel.title.split("\n")
        words = [word.rstrip("s") for word in first.replace(",", " ").split() if len(word) > 3]
        if len({*words}) < len(words) and "queue" not in words:
            yield f"the title {panel.title!r} says one thing twice"
        if panel.title and plot.title.startswith(f"{panel.title} by"):
            yield f"the title of the chart repeats {panel.title!r}"


def _size(plot: Plot) -> Iterator[str]:
    height = plot.height_in or sum(plot.heights)
    if plot.width_in > MAX_WIDTH_IN or height > MAX_HEIGHT_IN:
        yield f"the chart has {plot.width_in:g} by {height:g} inches"


def _second_cue(plot: Plot) -> Iterator[str]:
    """Lines that differ in colour differ in marker or dash as well, for grey and for all eyes."""
    lines: set[str] = set()
    for panel in plot.panels:
        for mark in panel.marks:
            if isinstance(mark, Mark) and isinstance(mark, Lines) and mark.by:
                lines |= {*map(str, mark.data[mark.by])}
    looks = {s.key: (s.marker, s.dash) for s in plot.series if s.key in lines}
    if len({*looks.values()}) < len(looks) and plot.name != "device":  # its lines differ in width
        yield "two lines differ in colour alone"


def _lines_named(plot: Plot) -> Iterator[str]:
    labelled = {series.key for series in plot.series if series.label and plot.has_legend}
    named = {
        float(mark.value)
        for panel in plot.panels
        for mark in panel.marks
        if isinstance(mark, ReferenceLine) and mark.name
    }
    for panel in plot.panels:
        texts = [mark for mark in panel.marks if isinstance(mark, Texts)]
        for mark in panel.marks:
            if not isinstance(mark, ReferenceLine) or mark.dash == "solid":
                continue
            places = {float(at) for text in texts for at in text.data[getattr(text, mark.axis)]}
            near = any(abs(at - mark.value) < 0.12 * _span(panel, mark.axis) for at in places)
            if mark.series not in labelled and mark.value not in named and not near:
                yield f"{panel.title!r}: the line at {mark.value:g} has no name"


def _span(panel: Panel, way: str) -> float:
    axis: Axis = getattr(panel, way)
    low, high = axis.limits or (0.0, float(len(axis.categories)))
    return high - low


def _answer(plot: Plot) -> Iterator[str]:
    """Below the title stands what the chart shows; no line over a panel breaks a date."""
    if plot.name and plot.title and not plot.answer:
        yield "no sentence below the title says what the chart shows"
    for panel in plot.panels:
        if re.search(r"\d\d-\n\d\d\b", panel.title):
            yield f"the title {panel.title!r} breaks a date"
