"""Small multiples and colours of ``--by``: frames are marked and split, their plots put together.

``by`` names one or two columns of the summary. Rows that are equal in the first, and in job and
direction, are pooled, and each value has its colour. Each value of the second has a panel.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import BY, COLOUR, measured
from volbench.analyse.frames.matched_workloads import named_by_workload
from volbench.errors import InputError
from volbench.model.frames.column_names import find_column
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import printable
from volbench.present.plots.description import (
    COLUMN_FORMATS,
    FORMATS,
    Axis,
    Panel,
    Plot,
    Series,
    frames_of,
)
from volbench.present.plots.kinds import Frames
from volbench.present.plots.labels import PALETTE_SIZE, SHORT_NAMES, line_look
from volbench.present.plots.marks import Mark

PANEL = "panel"
MAX_PANELS = 12
MISSING = "none"
_ABREAST = 2
_NARROWER = 0.8  # Width of a plot beside others, as a share of its width alone
# Columns of names: who colours by them wants these names
_NAMES = frozenset({"run", "job", "group", "profile"})
_JOINS = ("run", "group", "direction")


def by_columns(summary: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the columns of the summary that ``--by`` names."""
    if len(by) > 2:
        raise InputError(
            f"--by takes one or two columns, not {len(by)}",
            hint="the first gives colours, the second a panel for each of its values",
        )
    return [find_column(name, list(summary.columns)) for name in by]


def split(frames: Frames, columns: Sequence[str]) -> list[tuple[str, dict[str, pd.DataFrame]]]:
    """Return the frames of each panel under its name.

    Returns:
        One panel without a name, unless there are two columns. Frames with rows of runs have the
        columns `BY` and `COLOUR` where there is something to distinguish.
    """
    if not columns:
        return [("", _coloured_by_campaign(frames))]
    marked = _marked(frames, BY, _texts(frames["summary"], columns[0]))
    if columns[0] not in _NAMES:
        marked = named_by_workload(marked, BY, ignored=columns[0])
    marked = {name: _copied(frame, BY, COLOUR) for name, frame in marked.items()}
    if len(columns) == 1:
        return [("", marked)]
    marked = _marked(marked, PANEL, _texts(frames["summary"], columns[1]))
    rows = measured(marked["summary"])
    values = list(rows.drop_duplicates(PANEL).sort_values(columns[1])[PANEL])
    name = short_name(columns[1])
    if len(values) > MAX_PANELS:
        raise InputError(
            f"{name} has {len(values)} values, and a chart has {MAX_PANELS} panels",
            hint="choose some of them with --where, or name another second column with --by",
        )
    return [
        (
            f"{name}: {value.removeprefix(name).strip()}",
            {frame_name: _only(frame, value) for frame_name, frame in marked.items()},
        )
        for value in values
    ]


def compose(parts: Sequence[tuple[str, Plot]]) -> Plot:
    """Return one plot with the panels of several, two abreast, on equal scales and one legend."""
    abreast = min(_ABREAST, len(parts))
    first = parts[0][1]
    placed: list[list[Panel]] = []
    heights: list[float] = []
    for start in range(0, len(parts), abreast):
        neighbours = parts[start : start + abreast]
        for place, (name, plot) in enumerate(neighbours):
            placed.append(_placed(plot, name, row=len(heights), column=place * len(first.widths)))
        heights += _tallest([plot.heights for _, plot in neighbours])
    return replace(
        first,
        panels=tuple(panel for panels in _on_equal_scales(placed) for panel in panels),
        heights=tuple(heights),
        widths=first.widths * abreast,
        width_in=abreast * first.width_in * (_NARROWER if abreast > 1 else 1),
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
    rows = max(len(own) for own in heights)
    return [max(own[row] for own in heights if row < len(own)) for row in range(rows)]


def _joined_series(parts: Sequence[Sequence[Series]]) -> tuple[Series, ...]:
    """Return every series once; keys that share a look in different plots get a free one."""
    joined: dict[str, Series] = {}
    for series in (series for part in parts for series in part):
        if series.key not in joined:
            looks = {_look(other) for other in joined.values() if other.label != series.label}
            joined[series.key] = _with_free_look(series, looks)
    return tuple(joined.values())


def _look(series: Series) -> tuple[str, str, str]:
    return series.colour, series.marker, series.dash


def _with_free_look(series: Series, taken: set[tuple[str, str, str]]) -> Series:
    if _look(series) not in taken:
        return series
    for place in range(PALETTE_SIZE):
        colour, marker, dash = line_look(place)
        candidate = replace(series, colour=colour, marker=series.marker and marker, dash=dash)
        if _look(candidate) not in taken:
            return candidate
    return series


def _on_equal_scales(parts: Sequence[Sequence[Panel]]) -> list[list[Panel]]:
    """Give axes that show the same quantity in each part the same ends."""
    if len({len(panels) for panels in parts}) != 1:
        return [list(panels) for panels in parts]
    columns = [
        _with_axes(same, _shared([p.x for p in same]), _shared([p.y for p in same]))
        for same in zip(*parts, strict=True)
    ]
    return [list(panels) for panels in zip(*columns, strict=True)]


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


def short_name(column: str) -> str:
    """Return the display name of a column."""
    return SHORT_NAMES.get(column, column.removeprefix(LABEL_PREFIX))


def value_text(column: str, value: object) -> str:
    """Return a value of a column as text: ``4k``, ``direct``, ``2.5 ms``."""
    if value is None or pd.isna(value):  # type: ignore[call-overload]  # a single value, no array
        return MISSING
    if column == "direct":
        return "direct" if value else "buffered"
    if not isinstance(value, numbers.Real):
        return printable(str(value))
    number = float(value)
    for ending, name in COLUMN_FORMATS:
        if column.endswith(ending):
            return FORMATS[name].write(number)
    return f"{number:.0f}" if number.is_integer() else FORMATS["count"].write(number)


def _texts(summary: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return run, section and direction with the text of a column's value."""
    texts = summary[[*_JOINS]].copy()
    texts["text"] = [value_text(column, value) for value in summary[column]]
    if column in {"iodepth", "numjobs"}:
        texts["text"] = f"{short_name(column)} " + texts["text"]
    return texts


def _marked(frames: Frames, name: str, texts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the frames with a further column, joined by as much as they have of the identity."""
    marked = {}
    for frame_name, frame in frames.items():
        keys = [key for key in _JOINS if key in frame]
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


def _coloured_by_campaign(frames: Frames) -> dict[str, pd.DataFrame]:
    """Return the frames with a colour for each campaign, where there are several.

    Jobs of one workload then have one name.
    """
    if frames["summary"]["campaign"].nunique() < 2:
        return dict(frames)
    named = named_by_workload(frames, "campaign")
    return {name: _copied(frame, "campaign", COLOUR) for name, frame in named.items()}
