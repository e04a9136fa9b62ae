"""Interactive view of the device: samples beside each Run enter, a chart with zoom a Run leaves.

Panels, lines and limits are those of the static chart, `volbench.present.figures.device`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from bokeh.models import DataRange1d, PlainText
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.present.figures.device import MOST
from volbench.present.figures.devicepanels import PANELS, Panel
from volbench.present.figures.devicespans import Span, spans_of, uses_of
from volbench.present.formatting import number
from volbench.present.report.plots import (
    FAR,
    INK,
    LIMIT,
    Plot,
    Toggle,
    add_hover,
    add_limit,
    item_of,
    new_panel,
    numerals,
    source,
    span,
    thin,
    unit_of,
    with_unit,
)
from volbench.present.style import BLACK, GREY

BUCKETS = 200
"""Of a line, of which the least and the greatest are kept; eight panels share a phone's width."""
_FIO = Toggle("fio", "fio: reads and writes", "#8c8c8c")
_BACKING = Toggle("backing", "backing disk", GREY)
_TAIL = "tail"

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Curve:
    """One line of a panel.

    Attributes:
        toggle: what switches it.
        rows: with ``t_s``.
        column: of them.
        dash: of the line.
    """

    toggle: Toggle
    rows: pd.DataFrame
    column: str
    dash: str = "solid"


def device_plots(title: str, frames: Frames) -> list[Plot]:
    """Return what the device did beside each Run, as many Runs as the static chart shows."""
    return [_plot(one, title=title) for one in spans_of(frames, uses_of(frames)[:MOST])]


def _plot(shown: Span, *, title: str) -> Plot:
    toggles: dict[str, Toggle] = {}
    panels: list[figure] = []
    for panel in PANELS:
        curves = list(_curves(panel, shown))
        if not curves:
            continue
        toggles |= {one.toggle.key: one.toggle for one in curves}
        drawn, has_limit = _panel(panel, shown, curves)
        if has_limit:
            toggles[LIMIT.key] = LIMIT
        drawn.x_range = panels[0].x_range if panels else span(0, shown.length_s or 1)
        panels.append(drawn)
    panels[-1].xaxis[0].axis_label = PlainText(text="Seconds since the Run's I/O began")
    words = f"{title}: {shown.label}, {shown.did}, watched for {shown.length_s:.0f} s."
    return Plot("device", shown.label, words, tuple(toggles.values()), item_of(panels))


def _curves(panel: Panel, shown: Span) -> Iterator[Curve]:
    """Yield the lines of a panel that have something to show."""
    names = panel.names or tuple(_name(column) for column, _ in panel.columns)
    for name, (column, colour) in zip(names, panel.columns, strict=True):
        told = shown.own[column]
        if told.notna().any() and (panel.names or len(panel.columns) == 1 or told.max() > 0):
            shade = "" if colour == BLACK else colour
            yield Curve(Toggle(name.replace(" ", "-"), name, shade), shown.own, column)
    for toggle, rows, dash in ((_BACKING, shown.backing, "dotted"), (_FIO, shown.fio, "solid")):
        if panel.overlay and rows is not None and panel.overlay in rows:
            yield Curve(toggle, rows, panel.overlay, dash)


def _name(column: str) -> str:
    """Return the direction that a column tells, or the device where it tells of both."""
    direction = column.partition("_")[0]
    return f"device: {direction}s" if direction in {"read", "write"} else "device"


def _panel(panel: Panel, shown: Span, curves: list[Curve]) -> tuple[figure, bool]:
    """Draw lines as steps, each value over its own interval; tell whether a limit is drawn."""
    top = max(float(one.rows[one.column].max()) for one in curves)
    unit, factor = unit_of(panel.columns[0][0], top)
    drawn = new_panel(height_px=130, y_label=with_unit(panel.name, unit))
    for one in curves:
        x, y = _steps(one)
        line = drawn.step(
            "x",
            "y",
            mode="before",
            color=one.toggle.colour or BLACK,
            line_dash=one.dash,
            line_width=1.5,
            name=one.toggle.key,
            source=source({"x": thin(x), "y": thin(y / factor)}),
        )
        line.tags = [] if one.toggle.colour else [INK]
    drawn.y_range = DataRange1d(start=0)
    numerals(drawn.yaxis[0])
    numerals(drawn.xaxis[0])
    add_hover(drawn, [("time", "@x{0,0.[0]} s"), (panel.name, f"@y{{0,0.[000]}} {unit}".strip())])
    _shade_tail(drawn, shown)
    return drawn, _limit(drawn, panel, shown, factor=factor, top=top)


def _steps(one: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the steps of a line, the begin of the first one before them."""
    t_s, values = keep_extremes(
        one.rows["t_s"].to_numpy(dtype=float),
        one.rows[one.column].to_numpy(dtype=float),
        buckets=BUCKETS,
    )
    first_s = float(one.rows["interval_s"].iloc[0]) if "interval_s" in one.rows else math.inf
    begin_s = max(0.0, float(t_s[0]) - first_s)
    x, y = np.concatenate([[begin_s], t_s]), np.concatenate([values[:1], values])
    # After a gap a step begins where the gap ends.
    resumed = np.flatnonzero(np.isnan(y[:-1]) & np.isfinite(y[1:])) + 1
    return np.insert(x, resumed, x[resumed - 1]), np.insert(y, resumed, y[resumed])


def _shade_tail(drawn: figure, shown: Span) -> None:
    """Shade what came after the tool had ended."""
    if shown.fio_end_s < shown.length_s:
        shade = BoxAnnotation(
            left=shown.fio_end_s, fill_color=GREY, fill_alpha=0.15, line_color=None
        )
        shade.name = _TAIL
        drawn.add_layout(shade)


def _limit(drawn: figure, panel: Panel, shown: Span, *, factor: float, top: float) -> bool:
    """Draw the declared limit where it is near enough not to flatten the lines."""
    limit = number(shown.use, panel.limit) if panel.limit else math.nan
    if not limit <= FAR * top:
        return False
    add_limit(drawn, limit / factor)
    return True
