"""Marks of a plot description, drawn on axes of matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FuncFormatter, LogLocator
from matplotlib.transforms import ScaledTranslation, Transform

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.present.formatting import printable
from volbench.present.plots.description import FORMATS
from volbench.present.plots.marks import (
    Areas,
    Bars,
    Bars3D,
    Cells,
    Lines,
    Points,
    ReferenceLine,
    Span,
    Table,
    Texts,
    Whiskers,
    series_of,
)
from volbench.present.renderers.matplotlib.look import DASHES, MARKERS, Looks, parts_of, points

_FEW_POINTS = 15  # Lines with fewer points show dots if `has_dots`
_SINGLE_POINTS = 4  # Lines with fewer points are hardly lines
_MANY_POINTS = 16  # Lines with more points have a marker at every sixth part alone
_DARK = 0.5  # Luma of a cell (ITU-R BT.601) below which its text is white
_LUMA = np.array([0.299, 0.587, 0.114])


def draw_mark(axes: Axes, mark: object, looks: Looks) -> None:
    """Draw one mark on top of earlier ones."""
    _DRAWERS[type(mark)](axes, mark, looks)


def floats(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column as floats, NaN where it is missing."""
    return frame[column].to_numpy(dtype=float)


def _draw_bars(axes: Axes, mark: Bars, looks: Looks) -> None:
    for key, rows in series_of(mark):
        at, value = floats(rows, mark.at), floats(rows, mark.value)
        if mark.at_end:
            along, up = (at, floats(rows, mark.at_end)), (np.zeros(len(rows)), value)
            x, y = (up, along) if mark.is_horizontal else (along, up)
            axes.add_collection(_rectangles(x, y, looks.filled(key)))
            axes.autoscale_view()
            continue
        draw = axes.barh if mark.is_horizontal else axes.bar
        draw(at, value, mark.thickness, **looks.filled(key))


def _rectangles(
    x: tuple[np.ndarray, np.ndarray], y: tuple[np.ndarray, np.ndarray], look: Mapping[str, Any]
) -> PolyCollection:
    corners = [(x[0], y[0]), (x[0], y[1]), (x[1], y[1]), (x[1], y[0])]
    return PolyCollection([*np.moveaxis(np.array(corners), 2, 0)], **look)


def _draw_lines(axes: Axes, mark: Lines, looks: Looks) -> None:
    for key, rows in series_of(mark):
        look = looks.of(key)
        lines = [
            keep_extremes(floats(line, mark.x), floats(line, mark.y))
            for line in _groups(rows, mark.group)
        ]
        if lines[1:] and not look.marker and not mark.has_dots:
            lines = [_joined(lines)]
        for x, y in lines:
            marker = MARKERS[look.marker] or ("o" if mark.has_dots and len(x) < _FEW_POINTS else "")
            axes.plot(
                x,
                y,
                drawstyle=f"steps-{mark.step}" if mark.step else "default",
                linewidth=mark.width,
                alpha=mark.alpha,
                marker=marker,
                markersize=5 if look.marker or len(x) < _SINGLE_POINTS else 3,
                markevery=max(1, len(x) // 6) if len(x) > _MANY_POINTS else None,
                label=look.label or "_",
                **looks.line(key),
            )


def _joined(lines: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    gap = np.array([np.nan])
    parts = [(np.append(x, gap), np.append(y, gap)) for x, y in lines]
    x, y = (np.concatenate(values)[:-1] for values in zip(*parts, strict=True))
    return x, y


def _draw_areas(axes: Axes, mark: Areas, looks: Looks) -> None:
    columns = [mark.x, mark.low, mark.high]
    for key, rows in series_of(mark):
        areas = [area[columns].to_numpy(dtype=float) for area in _groups(rows, mark.group)]
        gap = np.full((1, 3), np.nan)
        joined = np.vstack([*(row for area in areas for row in (area, gap)), gap])
        at, low, high = joined[:-1].T
        look = looks.filled(key)
        axes.fill_between(at, low, high, step=mark.step or None, alpha=mark.alpha, **look)


def _groups(rows: pd.DataFrame, column: str) -> Iterator[pd.DataFrame]:
    if not column:
        yield rows
        return
    for _, group in rows.groupby(column, sort=False, dropna=False):
        yield group


def _draw_points(axes: Axes, mark: Points, looks: Looks) -> None:
    paper = looks.theme.colours["paper"]
    for key, rows in series_of(mark):
        colour = looks.colour(key)
        for group in _groups(rows, mark.marker_of):
            shape = looks.of(str(group[mark.marker_of].iloc[0]) if mark.marker_of else key)
            axes.plot(
                floats(group, mark.x),
                floats(group, mark.y),
                linestyle="none",
                marker=MARKERS[shape.marker or "circle"],
                markersize=mark.size,
                color=colour,
                markerfacecolor=paper if mark.is_hollow else colour,
                markeredgecolor=colour if mark.is_hollow or shape.marker == "tick" else paper,
                markeredgewidth=1.0 if mark.is_hollow else 0.6,
                label=looks.of(key).label or "_",
            )


def _draw_whiskers(axes: Axes, mark: Whiskers, looks: Looks) -> None:
    for key, rows in series_of(mark):
        ranges = rows[rows[mark.high] > rows[mark.low]]
        at, low, high = (floats(ranges, name) for name in (mark.at, mark.low, mark.high))
        colour = looks.colour(key)
        draw = axes.hlines if mark.along == "x" else axes.vlines
        draw(at, low, high, color=colour, linewidth=mark.width)
        if mark.has_caps:
            ends, places = np.concatenate([low, high]), np.concatenate([at, at])
            x, y = (ends, places) if mark.along == "x" else (places, ends)
            cap = "|" if mark.along == "x" else "_"
            axes.plot(x, y, linestyle="none", marker=cap, markersize=6, color=colour, label="_")


def _draw_cells(axes: Axes, mark: Cells, looks: Looks) -> None:
    values = floats(mark.data, mark.value)
    norm = _norm(mark, values)
    ramp = looks.ramp(mark.ramp)
    if mark.x_end:
        edges_x, edges_y, grid = _edged_grid(mark, values)
        drawn: Any = axes.pcolormesh(
            edges_x, edges_y, np.ma.masked_invalid(grid), norm=norm, cmap=ramp, rasterized=True
        )
    else:
        x, y = (mark.data[name].to_numpy(dtype=int) for name in (mark.x, mark.y))
        grid = np.full((y.max() + 1, x.max() + 1), np.nan)
        grid[y, x] = values
        drawn = axes.imshow(grid, aspect="auto", origin="lower", norm=norm, cmap=ramp)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    if mark.text:
        _write_cells(axes, mark, values, ramp(norm(values)))
    if mark.bar:
        _draw_colour_bar(axes, mark, drawn)


def _norm(mark: Cells, values: np.ndarray) -> Normalize:
    known = values[values > 0] if mark.scale == "log" else values[~np.isnan(values)]
    low, high = mark.limits or ((known.min(), known.max()) if len(known) else (1.0, 1.0))
    if mark.scale == "log":
        return LogNorm(min(low, high / 2), high)  # near equal cells have near equal colours
    return Normalize(low, high)


def _edged_grid(mark: Cells, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = floats(mark.data, mark.x), floats(mark.data, mark.y)
    edges_x = np.unique(np.concatenate([x, floats(mark.data, mark.x_end)]))
    edges_y = np.unique(np.concatenate([y, floats(mark.data, mark.y_end)]))
    grid = np.full((len(edges_y) - 1, len(edges_x) - 1), np.nan)
    grid[np.searchsorted(edges_y, y), np.searchsorted(edges_x, x)] = values
    return edges_x, edges_y, grid


def _write_cells(axes: Axes, mark: Cells, values: np.ndarray, colours: np.ndarray) -> None:
    dark = colours[:, :3] @ _LUMA < _DARK
    columns = (mark.data[name] for name in (mark.x, mark.y, mark.text))
    for x, y, text, value, is_dark in zip(*columns, values, dark, strict=True):
        if not np.isnan(value):
            colour = "#ffffff" if is_dark else "#111111"
            axes.text(x, y, text, ha="center", va="center", fontsize=points(8), color=colour)


def _draw_colour_bar(axes: Axes, mark: Cells, drawn: Any) -> None:  # noqa: ANN401 - an image or a mesh
    beside = axes.inset_axes((1.01, 0.0, 0.015, 1.0))
    low, high = drawn.norm.vmin, drawn.norm.vmax
    ticks = LogLocator(subs=parts_of(high / low)) if mark.scale == "log" else None
    bar = axes.figure.colorbar(drawn, cax=beside, ticks=ticks)
    beside.set_title(mark.bar, fontsize=points(8), loc="left")
    write = FORMATS[mark.format].write
    beside.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    bar.outline.set_visible(False)
    bar.minorticks_off()


def _draw_texts(axes: Axes, mark: Texts, looks: Looks) -> None:
    leader = {"arrowstyle": "-", "linewidth": 0.9, "shrinkB": 2, "color": looks.colour("ink")}
    box = {"facecolor": looks.theme.colours["paper"], "edgecolor": "none", "pad": 1}
    look: dict[str, Any] = {
        "ha": mark.align,
        "va": mark.valign,
        "fontsize": points(mark.size),
        "rotation": mark.rotation,
        "fontweight": "bold" if mark.is_bold else "normal",
        "fontstyle": "italic" if mark.is_italic else "normal",
        "bbox": box if mark.is_boxed else None,
    }
    at, (right_pt, up_pt) = _coordinates(axes, mark), mark.offset_pt
    beside = at + ScaledTranslation(right_pt / 72, up_pt / 72, axes.figure.dpi_scale_trans)
    for key, rows in series_of(mark):
        look["color"] = looks.colour(key)
        for x, y, text in zip(rows[mark.x], rows[mark.y], rows[mark.text], strict=True):
            if pd.isna(x) or pd.isna(y):
                continue
            if not mark.has_leader:  # an annotation takes half as long again
                axes.text(x, y, printable(str(text)), transform=beside, **look)
                continue
            axes.annotate(
                printable(str(text)),
                (x, y),
                xycoords=at,
                xytext=mark.offset_pt,
                textcoords="offset points",
                arrowprops=leader,
                annotation_clip=False,
                **look,
            )


def _coordinates(axes: Axes, mark: Texts) -> Transform:
    if mark.x_in == mark.y_in:
        return axes.transData if mark.x_in == "data" else axes.transAxes
    return axes.get_xaxis_transform() if mark.x_in == "data" else axes.get_yaxis_transform()


def _draw_reference(axes: Axes, mark: ReferenceLine, looks: Looks) -> None:
    if mark.is_beyond:
        return
    look = {"color": looks.colour(mark.series), "linestyle": DASHES[mark.dash]}
    label = mark.name or "_"
    if mark.extent is None:
        draw = axes.axvline if mark.axis == "x" else axes.axhline
        draw(mark.value, linewidth=mark.width, label=label, **look)
        return
    both = ([mark.value] * 2, list(mark.extent))
    x, y = both if mark.axis == "x" else both[::-1]
    axes.plot(x, y, linewidth=mark.width, label=label, **look)


def _draw_span(axes: Axes, mark: Span, looks: Looks) -> None:
    draw = axes.axvspan if mark.axis == "x" else axes.axhspan
    draw(mark.low, mark.high, color=looks.colour(mark.series), alpha=mark.alpha, linewidth=0)


def _draw_table(axes: Axes, mark: Table, looks: Looks) -> None:
    axes.set_axis_off()
    axes.set(xlim=(-0.5, len(mark.heads) - 0.5), ylim=(len(mark.rows) + 0.5, -0.5))
    look: dict[str, Any] = {"fontsize": points(mark.size), "va": "center"}
    for row, texts in enumerate((mark.heads, *mark.rows)):
        colour = looks.colour("muted" if row == 0 else "ink")
        for column, text in enumerate(texts):
            axes.text(column, row, printable(text), ha="center", color=colour, **look)
    names = zip((mark.corner, *mark.names), ("muted", *mark.series), strict=False)
    for row, (name, key) in enumerate(names):
        axes.annotate(
            printable(name),
            (0, row),
            xycoords=axes.get_yaxis_transform(),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            color=looks.colour(key),
            annotation_clip=False,
            **look,
        )


def _draw_towers(axes: Any, mark: Bars3D, looks: Looks) -> None:  # noqa: ANN401 - mplot3d has no types
    for key, rows in series_of(mark):
        known = rows[rows[mark.value].notna()]
        x, y, value = (floats(known, name) for name in (mark.x, mark.y, mark.value))
        axes.bar3d(x - 0.3, y - 0.3, np.zeros(len(value)), 0.6, 0.6, value, color=looks.colour(key))
        for at, top, text in zip(
            zip(x, y, strict=True), value, known.get(mark.text, ()), strict=False
        ):
            look = {"fontsize": points(6.5), "color": looks.theme.colours["paper"], "zorder": 99}
            axes.text(*at, top, text, ha="center", va="center", **look)


_DRAWERS: Mapping[type, Callable[..., None]] = {
    Bars: _draw_bars,
    Lines: _draw_lines,
    Areas: _draw_areas,
    Points: _draw_points,
    Whiskers: _draw_whiskers,
    Cells: _draw_cells,
    Texts: _draw_texts,
    ReferenceLine: _draw_reference,
    Span: _draw_span,
    Table: _draw_table,
    Bars3D: _draw_towers,
}
