"""Colours and small multiples: frames are marked and split, and their plots put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.job_frames import BY, COLOUR, measured, plain_rows
from volbench.analyse.frames.workload_words import factor_name
from volbench.errors import InputError
from volbench.present.factor_words import value_words
from volbench.present.formatting import printable
from volbench.present.plots.description import (
    Axis,
    Panel,
    Plot,
    Series,
    frames_of,
)
from volbench.present.plots.grammar import MAX_COLOURS, MAX_PANELS
from volbench.present.plots.kinds import Frames
from volbench.present.plots.labels import (
    PALETTE_SIZE,
    PANEL,
    line_look,
    wrap_name,
)
from volbench.present.plots.marks import Cells, Mark, Way
from volbench.present.plots.metrics import LOG_AXIS_SPAN
from volbench.present.plots.picture import logarithmic
from volbench.present.plots.room import JOINS

MISSING = "none"
_ABREAST = 2
_WIDE = 3  # Columns of panels from which a plot has none beside it
_MAX_WIDTH_IN = 15.0
_NARROWER = 0.8  # Width of a plot beside others, as a share of its width alone


def split(frames: Frames, compared: str, panel: str) -> list[tuple[str, Frames]]:
    """Return the frames of each panel under its name.

    Args:
        compared: column whose values have colours; empty for none.
        panel: column whose values have panels; empty for a single one.

    Returns:
        One panel without a name, unless `panel` is named. Rows of runs have the columns `BY` and
        `COLOUR` where there is something to compare.
    """
    summary = frames["summary"]
    marked = dict(frames)
    if compared:
        marked = _marked(marked, BY, _texts(summary, compared))
        marked = {name: _copied(frame, BY, COLOUR) for name, frame in marked.items()}
    if panel:
        marked = _marked(marked, PANEL, _texts(summary, panel))
    if not panel:
        return [("", marked)]
    rows = measured(marked["summary"])
    values = list(rows.drop_duplicates(PANEL).sort_values(panel)[PANEL])
    name = factor_name(panel)
    if len(values) > MAX_PANELS:
        raise InputError(
            f"{name} has {len(values)} values, and a chart has {MAX_PANELS} panels",
            hint="choose some of them with --where, or name another column with --panels",
        )
    return [
        (value, {frame_name: _only(frame, value) for frame_name, frame in marked.items()})
        for value in values
    ]


def compared_of(summary: pd.DataFrame, *, is_by_design: bool) -> str:
    """Return the column whose values have colours: several campaigns, or what the design compares.

    Args:
        is_by_design: whether it is what the design compares, if an eye can tell its colours apart.
    """
    if len(summary["campaign"].unique()) > 1:
        return "campaign"
    if not is_by_design:
        return ""
    design = design_of(plain_rows(measured(summary)))
    factor = design.by_column.get(design.compared)
    if factor is None or factor.column not in summary or len(factor.values) > MAX_COLOURS:
        return ""
    return factor.column


def compose(parts: Sequence[tuple[str, Plot]]) -> Plot:
    """Return one plot with the panels of several, two abreast, on equal scales and one legend."""
    first = parts[0][1]
    abreast = min(_ABREAST, len(parts)) if len(first.widths) < _WIDE else 1
    placed: list[list[Panel]] = []
    heights: list[float] = []
    for start in range(0, len(parts), abreast):
        neighbours = parts[start : start + abreast]
        for index, (name, plot) in enumerate(neighbours):
            placed.append(_placed(plot, name, row=len(heights), column=index * len(first.widths)))
        heights += _tallest([plot.heights for _, plot in neighbours])
    return replace(
        first,
        panels=tuple(panel for panels in _on_equal_scales(placed) for panel in panels),
        heights=tuple(heights),
        widths=first.widths * abreast,
        width_in=first.width_in
        if abreast == 1
        else min(abreast * first.width_in * _NARROWER, _MAX_WIDTH_IN),
        series=_joined_series([plot.series for _, plot in parts]),
        caption=tuple(dict.fromkeys(text for _, plot in parts for text in plot.caption)),
        description=" ".join(f"{name}: {plot.description}" for name, plot in parts),
        rows=None if first.rows is None else _joined_rows(parts),
    )


def _placed(plot: Plot, name: str, *, row: int, column: int) -> list[Panel]:
    """Return the panels of a plot at their place of the grid, their rows marked with its name."""
    frames: dict[int, pd.DataFrame] = {
        id(frame): frame.assign(**{PANEL: name}) for frame in frames_of(plot)
    }
    panels = []
    for panel in plot.panels:
        marks = [
            replace(mark, data=frames[id(mark.data)]) if isinstance(mark, Mark) else mark
            for mark in panel.marks
        ]
        heading = panel.heading
        if panel is plot.panels[0]:
            heading = f"{name}\n{heading}" if heading else name
        panels.append(
            replace(
                panel,
                marks=tuple(marks),
                heading=heading,
                row=row + panel.row,
                column=column + panel.column,
            )
        )
    return panels


def _tallest(heights: Sequence[Sequence[float]]) -> list[float]:
    """Return the height of each row of adjacent plots."""
    rows = max(len(column) for column in heights)
    return [max(column[row] for column in heights if row < len(column)) for row in range(rows)]


def _joined_series(parts: Sequence[Sequence[Series]]) -> tuple[Series, ...]:
    """Return every series once; keys that share a look get a free one."""
    joined: dict[str, Series] = {}
    for series in (series for part in parts for series in part):
        if series.key in joined:
            if series.label != joined[series.key].label:  # Numbers of one part beside its name
                name = wrap_name(printable(series.key), columns=30)
                joined[series.key] = replace(joined[series.key], label=name)
        else:
            looks = {_look(other) for other in joined.values() if other.label != series.label}
            joined[series.key] = _with_free_look(series, looks)
    return tuple(joined.values())


def _look(series: Series) -> tuple[str, str, str]:
    return series.colour, series.marker, series.dash


def _with_free_look(series: Series, taken: set[tuple[str, str, str]]) -> Series:
    if _look(series) not in taken:
        return series
    for index in range(PALETTE_SIZE):
        colour, marker, dash = line_look(index)
        candidate = replace(series, colour=colour, marker=series.marker and marker, dash=dash)
        if _look(candidate) not in taken:
            return candidate
    return series


def _on_equal_scales(parts: Sequence[Sequence[Panel]]) -> list[list[Panel]]:
    """Give axes and colours that show the same quantity in each part the same ends."""
    if len({len(panels) for panels in parts}) != 1:
        return [list(panels) for panels in parts]
    columns = []
    for same in zip(*parts, strict=True):
        panels = _in_equal_colours(_on_one_scale(same))
        xs, ys = ([getattr(panel, way) for panel in panels] for way in ("x", "y"))
        columns.append(_with_axes(panels, _shared(xs), _shared(ys)))
    return [list(panels) for panels in zip(*columns, strict=True)]


def _on_one_scale(panels: Sequence[Panel]) -> Sequence[Panel]:
    """Return panels with logarithmic axes where one has them, or where their ends differ much."""
    ways: tuple[Way, Way] = ("x", "y")
    for way in ways:
        axes: list[Axis] = [getattr(panel, way) for panel in panels]
        tops = [axis.limits[1] for axis in axes if axis.scale == "linear" and axis.limits]
        is_log = any(axis.scale == "log" for axis in axes)
        if tops and min(tops) > 0 and (is_log or max(tops) > LOG_AXIS_SPAN * min(tops)):
            panels = [
                logarithmic(panel, way) if axis.scale == "linear" else panel
                for panel, axis in zip(panels, axes, strict=True)
            ]
    return panels


def _in_equal_colours(panels: Sequence[Panel]) -> Sequence[Panel]:
    """Return panels whose cells of one quantity have one scale of colours."""
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    cells = [mark for panel in panels for mark in panel.marks if isinstance(mark, Cells)]
    for mark in cells:
        low, high = mark.limits or (math.inf, -math.inf)
        before = limits.get((mark.value, mark.ramp), (low, high))
        limits[mark.value, mark.ramp] = min(before[0], low), max(before[1], high)
    return [
        replace(
            panel,
            marks=tuple(
                replace(mark, limits=limits[mark.value, mark.ramp])
                if isinstance(mark, Cells) and mark.limits
                else mark
                for mark in panel.marks
            ),
        )
        for panel in panels
    ]


def _with_axes(panels: Sequence[Panel], xs: Sequence[Axis], ys: Sequence[Axis]) -> list[Panel]:
    return [replace(p, x=x, y=y) for p, x, y in zip(panels, xs, ys, strict=True)]


def _shared(axes: Sequence[Axis]) -> list[Axis]:
    """Return axes with common ends and ticks where they have the same label and scale."""
    limits = [axis.limits for axis in axes if axis.limits is not None]
    is_same = len({(axis.label, axis.scale, axis.format) for axis in axes}) == 1
    if not is_same or len(limits) < len(axes) or axes[0].scale == "category":
        return list(axes)
    ends = (min(low for low, _ in limits), max(high for _, high in limits))
    ticks = tuple(sorted({tick for axis in axes for tick in axis.ticks}))
    return [replace(axis, limits=ends, ticks=ticks) for axis in axes]


def _joined_rows(parts: Sequence[tuple[str, Plot]]) -> pd.DataFrame:
    frames = [plot.rows.assign(**{PANEL: name}) for name, plot in parts if plot.rows is not None]
    return pd.concat(frames, ignore_index=True)


def _texts(summary: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return run, section and direction with the text of a column's value."""
    return summary[[*JOINS]].assign(text=[value_words(column, v) for v in summary[column]])


def _marked(frames: Frames, name: str, texts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the frames with a further column, joined by as much as they have of the identity."""
    marked = {}
    for frame_name, frame in frames.items():
        keys = [key for key in JOINS if key in frame]
        if "run" not in keys:
            marked[frame_name] = frame
            continue
        values = texts.drop_duplicates(keys).set_index(keys)["text"]
        index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]]
        matched = values.reindex(index).fillna(MISSING)
        marked[frame_name] = frame.assign(**{name: matched.to_numpy()})
    return marked


def _copied(frame: pd.DataFrame, source: str, name: str) -> pd.DataFrame:
    return frame.assign(**{name: frame[source]}) if source in frame else frame


def _only(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    return frame[frame[PANEL] == value].reset_index(drop=True) if PANEL in frame else frame
