"""Charts of responses over the factors of a design: lines, bars, grids, towers and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.workload_words import factor_name
from volbench.errors import InputError
from volbench.present.factor_words import (
    level_words,
    shown_value,
    value_words,
    with_aliases,
    words_of,
)
from volbench.present.plots import labels, marks
from volbench.present.plots.description import (
    IDENTITY,
    MAX_WIDTH_IN,
    Axis,
    Panel,
    Plot,
    Series,
    named_once,
)
from volbench.present.plots.design_points import Drawing, Point, read_drawing
from volbench.present.plots.grammar import MAX_COLOURS, RESULT
from volbench.present.plots.kinds import Kind
from volbench.present.plots.metrics import (
    LOG_AXIS_SPAN,
    MAX_RATIO,
    Metric,
    category_axis,
    log_limits,
    rows_axis,
)
from volbench.units import counted_noun

_LIMIT = Series("limit", "declared limit", "ink", dash="limit")  # Across bars
_COLUMN_IN, _BARS_IN, _MIN_WIDTH_IN = 2.75, 3.2, 6.5
_MAX_HEIGHT_IN = 11.0  # Of all panels together
LEAST_SCALE = 0.67  # At which a value is as high as its bar
_PANEL_IN, _LOW_PANEL_IN = 1.75, 1.3  # Height of a panel: of few, and of many rows
_FEW_ROWS = 3
_BAR_IN, _CELL_IN, _TABLE_IN, _TOWERS_IN = 0.15, 0.32, 0.2, 3.0
_ABREAST = 3  # Panels of designs with holes
_BETWEEN = 0.55  # Room between groups of bars, as a share of a bar
_MIN_BARS_IN = 0.5  # Height of a panel of bars
_BAR_SPAN = 100.0  # Of bars, beyond which the least would be a line
_RATIO_SPAN = 4.0  # Of ratios, beyond which their scale is logarithmic
_FAR = 4.0  # Ratio of limit to data above which the limit is not drawn
_GAP = 0.125  # Between two names at the ends of lines, as a share of the height
_MAX_TABLE_ROWS = 40
_CROWDED = 8.0  # Ratio of values beside a zero that would touch on a linear axis
_LETTER_IN = 0.065  # Width of a letter of a table
_TITLE = 40  # Characters of a line over a panel
_MAX_END_NAME = 28  # Characters of a name at the end of a line


def response_kind(names: str) -> Kind[Drawing]:
    """Return the kind of chart of one or several responses, such as ``iops,p99``."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return Kind(
        name="-".join(wanted),
        title="",
        help="Any response over the factors of the design.",
        needs="a finished run",
        read=lambda frames, options: read_drawing(frames, options, wanted),
        build=build,
        describe=describe,
        frame_names=("summary", "verdicts"),
        is_over_design=True,
    )


def build(drawing: Drawing) -> Plot:
    """Draw a row of panels for each response and value of the factors of rows."""
    layout = drawing.layout
    width, places = _places(drawing)
    panels: list[Panel] = []
    heights: list[float] = []
    # The bars of a single panel have their names once, at the left of all responses.
    is_abreast = layout.view == "bars" and len(drawing.panels) == 1
    width, column_in = (len(drawing.responses), _BARS_IN) if is_abreast else (width, _COLUMN_IN)
    for place, (metric, points) in enumerate(zip(drawing.responses, drawing.points, strict=True)):
        shown = (
            replace(metric, label=f"{metric.label} / {drawing.base}") if drawing.base else metric
        )
        made = _PAINTERS[layout.view](drawing, shown, points)
        first, right = (0, place) if is_abreast else (len(heights), 0)
        rows = 1 + max(row for row, _ in places)
        heights[first:] = [_height(drawing, row, places) for row in range(rows)]
        panels += [
            replace(panel, row=first + row, column=right + column)
            for panel, (row, column) in zip(made, places, strict=True)
        ]
    panels = [
        panel if panel.column == 0 else replace(panel, y=replace(panel.y, label=""))
        for panel in named_once(panels)
    ]
    has_limits = any(isinstance(m, marks.ReferenceLine) for panel in panels for m in panel.marks)
    lower = min(1.0, _MAX_HEIGHT_IN / sum(heights))
    if lower < LEAST_SCALE and layout.view == "bars":  # their values would cover each other
        kept = (tuple(m for m in p.marks if not isinstance(m, marks.Texts)) for p in panels)
        panels = [replace(p, marks=own) for p, own in zip(panels, kept, strict=True)]
    plot = Plot(
        panels=tuple(panels),
        heights=tuple(lower * height for height in heights),
        widths=(1.0,) * width,
        width_in=max(_MIN_WIDTH_IN, min(MAX_WIDTH_IN, _names_in(drawing) + column_in * width)),
        series=_series(drawing)[: None if has_limits else -1],
        has_legend=not (_is_named_at_ends(drawing) or layout.view in {"grid", "towers"}),
        caption=drawing.notes,
        title=_title(drawing),
        answer=drawing.answer,
        rows=_numbers(drawing),
        shared_y=layout.view in {"lines", "grid"} or _has_same_names(drawing),
    )
    return _with_table(plot, drawing) if layout.view == "table" else plot


def _title(drawing: Drawing) -> str:
    names = [metric.label for metric in drawing.responses]
    x = drawing.layout.x
    along = [x, drawing.layout.y] if drawing.layout.y else [x]
    factors = " and ".join(factor_name(name) for name in along if name and name != RESULT)
    compared = " and ".join(
        f"{name[0].lower()}{name[1:]}" if name[1:2].islower() else name for name in names[1:]
    )
    quantities = f"{names[0]} and {compared}" if compared else names[0]
    relative = f" relative to {drawing.base}" if drawing.base else ""
    return (
        quantities[:1].upper() + quantities[1:] + relative + (f" by {factors}" if factors else "")
    )


def _places(drawing: Drawing) -> tuple[int, list[tuple[int, int]]]:
    layout, panels = drawing.layout, drawing.panels
    rows = list(dict.fromkeys(key[: len(layout.rows)] for key in panels))
    columns = sorted(
        dict.fromkeys(key[len(layout.rows) :] for key in panels),
        key=lambda key: [
            drawing.design.by_column[name].values.index(value)
            for name, value in zip(layout.columns, key, strict=True)
        ],
    )
    is_full = len(rows) * len(columns) == len(panels)
    split = len(layout.rows)
    grid = [(rows.index(key[:split]), columns.index(key[split:])) for key in panels]
    if is_full and len(columns) == 1 and 1 < len(rows) <= _ABREAST:
        return len(rows), [(column, row) for row, column in grid]
    if is_full and 1 < len(columns) <= (_ABREAST if layout.view == "bars" else _ABREAST + 1):
        return len(columns), grid
    if is_full and len(rows) <= _ABREAST:
        return len(rows), [(column, row) for row, column in grid]
    abreast = min(_ABREAST, len(panels))
    return abreast, [divmod(number, abreast) for number in range(len(panels))]


def _height(drawing: Drawing, row: int, places: Sequence[tuple[int, int]]) -> float:
    layout = drawing.layout
    if layout.view == "grid":
        return _CELL_IN * len(drawing.values_along(layout.y))
    if layout.view == "towers":
        return _TOWERS_IN
    if layout.view == "bars" or (layout.view == "table" and not _has_lines(drawing)):
        in_row = [key for key, place in zip(drawing.panels, places, strict=True) if place[0] == row]
        return max(_MIN_BARS_IN, *(_BAR_IN * _slots(_bar_groups(drawing, key)) for key in in_row))
    rows = 1 + max(place[0] for place in places)
    return _PANEL_IN if rows * len(drawing.responses) <= _FEW_ROWS else _LOW_PANEL_IN


def _panel_title(drawing: Drawing, key: tuple[object, ...]) -> str:
    layout = drawing.layout
    values = dict(zip(layout.panels, key, strict=True))
    cell = next(
        cell
        for cell in drawing.design.cells
        if all(cell.values[name] == value for name, value in values.items())
    )
    title = level_words(with_aliases(drawing.design, cell, values))
    return labels.wrap_name(title, columns=_TITLE)


def _scale(drawing: Drawing, points: Sequence[Point]) -> bool:
    tops: dict[tuple[object, ...], float] = {}
    for point in points:
        tops[point.panel] = max(tops.get(point.panel, 0.0), point.middle)
    known = [top for top in tops.values() if top > 0]
    if known and max(known) > MAX_RATIO * min(known):
        return True
    values = [point.middle for point in points if point.middle > 0]
    is_dense = _has_lines(drawing) or drawing.layout.x == RESULT
    span = _RATIO_SPAN if drawing.base else LOG_AXIS_SPAN if is_dense else _BAR_SPAN
    return bool(values) and max(values) > span * min(values)


def _has_lines(drawing: Drawing) -> bool:
    view, factor = drawing.layout.view, drawing.design.by_column.get(drawing.layout.x)
    return view == "lines" or (view == "table" and factor is not None and factor.is_ordered)


def _value_axis(metric: Metric, points: Sequence[Point], *, is_log: bool) -> Axis:
    ends = [end for point in points for end in point.ends]
    ends += [point.limit for point in points if point.limit > 0 and is_log]
    if is_log and any(end > 0 for end in ends):
        limits = log_limits(ends, room=(0.75, 1.35))
        return Axis(f"{metric.label} (logarithmic)", metric.format, "log", limits)
    top = max(ends, default=1.0)
    near = [point.limit for point in points if point.limit <= _FAR * top]
    return metric.axis(1.12 * max([top, *near]))


def _frame(drawing: Drawing, metric: Metric, points: Sequence[Point]) -> pd.DataFrame:
    layout = drawing.layout
    column = "ratio" if drawing.base else metric.column
    constants = drawing.design.constants
    known = {name: constants[name] for name in IDENTITY if constants.get(name) is not None}
    return pd.DataFrame(
        [
            {
                **known,
                "label": point.colour,
                **dict(zip(layout.by, point.compared, strict=True)),
                **({layout.x: point.x} if layout.x else {}),
                **({layout.y: point.y} if layout.y else {}),
                **dict(zip(layout.panels, point.panel, strict=True)),
                "repeats": len(point.values),
                column: point.middle,
                f"{column}_low": point.ends[0],
                f"{column}_high": point.ends[1],
                "_value": point.middle,
                "_low": point.ends[0],
                "_high": point.ends[1],
                "_sound": not point.remark,
                "_colour": point.colour or drawing.plain,
            }
            for point in points
        ]
    )


def _numbers(drawing: Drawing) -> pd.DataFrame:
    parts = [
        _frame(drawing, metric, points)
        for metric, points in zip(drawing.responses, drawing.points, strict=True)
    ]
    keys = [
        name
        for name in dict.fromkeys(
            ("label", drawing.layout.x, drawing.layout.y, *drawing.layout.panels)
        )
        if name in parts[0]
    ]
    whole = parts[0]
    for part in parts[1:]:
        own = [name for name in part if name not in whole or name in keys]
        whole = whole.merge(part[own], on=keys, how="outer")
    return whole


def _line_panels(drawing: Drawing, metric: Metric, points: Sequence[Point]) -> list[Panel]:
    x = _ordered_axis(drawing)
    is_log = _scale(drawing, points)
    y = _value_axis(metric, points, is_log=is_log)
    at = {value: n for n, value in enumerate(drawing.values_along(drawing.layout.x))}
    made = []
    width, places = _places(drawing)
    for key, place in zip(drawing.panels, places, strict=True):
        own = [point for point in points if point.panel == key]
        data = _frame(drawing, metric, own)
        if len(data):
            numbers = x.scale != "category"
            data["_x"] = [float(str(p.x)) if numbers else float(at[p.x]) for p in own]
            data = data.sort_values("_x", kind="stable").reset_index(drop=True)
        parts = _line_marks(data) if len(data) else ()
        is_last = place[1] == width - 1 or key == drawing.panels[-1]
        names = _end_texts(drawing, metric, data, y, is_named=is_last) if len(data) else ()
        limits = _limit_marks(metric, own, y)
        title = _panel_title(drawing, key)
        made.append(Panel(x=x, y=y, marks=(*limits, *parts, *names), title=title))
    return made


def _limit_marks(metric: Metric, points: Sequence[Point], axis: Axis) -> Iterator[marks.AnyMark]:
    """Yield a dashed line for each declared limit that the axis reaches, with its name."""
    owners: dict[float, set[str]] = {}
    for point in points:
        if point.limit <= (axis.limits or (0.0, math.inf))[1]:
            owners.setdefault(point.limit, set()).add(point.colour)
    every = {point.colour for point in points}
    for limit, colours in sorted(owners.items()):
        key = next(iter(colours)) if len(colours) == 1 < len(every) else "ink"
        yield marks.ReferenceLine(limit, "y", series=key or "ink")
        data = marks.text_at(0.01, limit, f"limit {metric.text(limit)}")
        yield marks.Texts(
            data, series=key or "ink", x_in="panel", offset_pt=(0, 2), valign="bottom", size=7
        )


def _line_marks(data: pd.DataFrame) -> tuple[marks.AnyMark, ...]:
    sound, unsound = data[data["_sound"]], data[~data["_sound"].astype(bool)]
    dots: list[marks.AnyMark] = [
        marks.Points(
            rows, by="_colour", y="_value", size=6.0 if is_hollow else 5.0, is_hollow=is_hollow
        )
        for rows, is_hollow in ((sound, False), (unsound, True))
        if len(rows)
    ]
    return (
        marks.Lines(data, by="_colour", y="_value"),
        marks.Whiskers(data, by="_colour", at="_x", along="y", has_caps=False, width=1.4),
        *dots,
    )


def _ordered_axis(drawing: Drawing) -> Axis:
    """Return the x axis of lines: a scale of doublings where the values are far apart."""
    column = drawing.layout.x
    values = drawing.values_along(column)
    name = factor_name(column)
    is_table = drawing.layout.view == "table"  # its columns stand below the ticks
    if is_table or not all(isinstance(value, int | float) for value in values):
        return category_axis(name, [shown_value(column, value) for value in values])
    known = [float(str(value)) for value in values]
    form = "size" if column.endswith("_bytes") else "number"
    is_counted = known[-1] - known[0] == len(known) - 1  # repeats and blocks: 1, 2, 3...
    if known[0] == 0 and known[-1] > _CROWDED * known[1]:  # an axis of doublings has no zero
        return category_axis(name, [shown_value(column, value) for value in values])
    if known[0] > 0 and known[-1] >= 4 * known[0] and not is_counted:
        return Axis(name, form, "log2", (known[0] / 1.25, known[-1] * 1.25), tuple(known))
    room = 0.06 * (known[-1] - known[0] or 1.0)
    return Axis(name, form, limits=(known[0] - room, known[-1] + room), ticks=tuple(known))


def _end_texts(
    drawing: Drawing, metric: Metric, data: pd.DataFrame, y: Axis, *, is_named: bool
) -> tuple[marks.AnyMark, ...]:
    """Return the values at the ends of lines, with their names in the last panel of a row."""
    ends = data.groupby("_colour", sort=False).tail(1)
    shares = [_share_along(float(value), y) for value in ends["_value"]]
    named = is_named and _is_named_at_ends(drawing)
    apart = labels.moved_apart(shares, [_GAP] * len(shares))
    if not named and any(abs(a - b) > 1e-9 for a, b in zip(apart, shares, strict=True)):
        return ()  # values would touch
    text = [
        (f"{drawing.names[str(key)]}: " if named and key in drawing.names else "")
        + metric.text(float(end))
        for key, end in zip(ends["_colour"], ends["_value"], strict=True)
    ]
    placed = pd.DataFrame(
        {
            "_x": ends["_x"].to_numpy(),
            "_y": [_at_share(share, y) for share in (apart if named else shares)],
            "_text": text,
            "_colour": ends["_colour"].to_numpy(),
        }
    )
    if named:
        return (marks.Texts(placed, by="_colour", offset_pt=(7, 0), is_bold=True, size=8),)
    above = marks.Texts(placed, by="_colour", offset_pt=(0, 4), align="center", valign="bottom")
    return (replace(above, size=7),)


def _is_named_at_ends(drawing: Drawing) -> bool:
    names = [drawing.names[colour] for colour in drawing.colours]
    is_short = max(map(len, names), default=0) <= _MAX_END_NAME
    return _has_lines(drawing) and len(names) <= MAX_COLOURS and is_short


def _share_along(value: float, axis: Axis) -> float:
    low, high = axis.limits or (0.0, 1.0)
    if axis.scale == "log":
        return math.log(max(value, low) / low) / math.log(high / low)
    return (value - low) / (high - low)


def _at_share(share: float, axis: Axis) -> float:
    low, high = axis.limits or (0.0, 1.0)
    if axis.scale == "log":
        return float(low * (high / low) ** share)
    return low + share * (high - low)


def _bar_names(drawing: Drawing, key: tuple[object, ...]) -> list[object]:
    present = {p.x for points in drawing.points for p in points if p.panel == key}
    return [value for value in drawing.values_along(drawing.layout.x) if value in present]


def _has_same_names(drawing: Drawing) -> bool:
    return (
        not _has_lines(drawing)
        and len({tuple(_bar_names(drawing, k)) for k in drawing.panels}) == 1
    )


def _bar_groups(drawing: Drawing, key: tuple[object, ...]) -> dict[object, list[str]]:
    """Return each name beside the bars of a panel with the colours of its bars, in order."""
    every = (p for points in drawing.points for p in points)
    keys = {*drawing.panels} if _has_same_names(drawing) else {key}
    present = {(p.x, p.colour) for p in every if p.panel in keys}
    names = _bar_names(drawing, key)
    lines = (text.split("\n") for text in _bar_texts(drawing, names))
    groups = ([c for c in drawing.colours if (x, c) in present] for x in names)
    # A name of several lines takes the room of as many bars.
    padded = (
        [*own, *[""] * (len(text) - len(own))] for own, text in zip(groups, lines, strict=True)
    )
    return dict(zip(names, padded, strict=True))


def _slots(groups: Mapping[object, Sequence[str]]) -> float:
    return sum(len(group) + _BETWEEN for group in groups.values())


def _names_in(drawing: Drawing) -> float:
    """Return the estimated width of the names at the left."""
    is_bars = drawing.layout.view == "bars"
    names = _bar_names(drawing, drawing.panels[0]) if is_bars else []
    lines = "\n".join(_bar_texts(drawing, names)).split("\n")
    return max(1.4, *(_LETTER_IN * len(line) for line in lines), 0)


def _bars(drawing: Drawing, metric: Metric, points: Sequence[Point]) -> list[Panel]:
    """Draw a bar for each colour and value of the factor beside them."""
    ends = [end for point in points for end in point.ends]
    top = max(ends, default=1.0)
    limits = [point.limit for point in points if point.limit <= _FAR * top]
    x = metric.axis(1.18 * max([top, *limits]))
    made = []
    _, places = _places(drawing)
    for key, (row, _) in zip(drawing.panels, places, strict=True):
        own = [point for point in points if point.panel == key]
        groups = _bar_groups(drawing, key)
        firsts = [n * _BETWEEN + sum(map(len, [*groups.values()][:n])) for n in range(len(groups))]
        data = _placed_bars(drawing, metric, own, groups, dict(zip(groups, firsts, strict=True)))
        room = _height(drawing, row, places) / _BAR_IN - _slots(groups) + _BETWEEN
        span = (-room / 2, _slots(groups) - _BETWEEN + room / 2)
        middles = (at + len(group) / 2 for at, group in zip(firsts, groups.values(), strict=True))
        drawn = (*_limits_beside(own, data), *_bar_marks(data)) if len(data) else ()
        y = replace(rows_axis(_bar_texts(drawing, [*groups])), ticks=tuple(middles), limits=span)
        made.append(Panel(x=x, y=y, marks=drawn, title=_panel_title(drawing, key)))
    if not _scale(drawing, points):
        return made
    axis = _value_axis(metric, points, is_log=True)
    return [replace(panel, x=axis, marks=_as_dots(panel, axis)) for panel in made]


def _as_dots(panel: Panel, axis: Axis) -> tuple[marks.AnyMark, ...]:
    """Return marks with dots at the ends of bars: a logarithmic axis has no zero to begin at."""
    low = (axis.limits or (0.0, 1.0))[0]
    return tuple(
        marks.Points(mark.data, by=mark.by, x=mark.value, y="_middle")
        if isinstance(mark, marks.Bars)
        else replace(mark, data=mark.data.assign(_high=mark.data["_high"].clip(lower=low)))
        if isinstance(mark, marks.Texts)
        else mark
        for mark in panel.marks
    )


def _limits_beside(points: Sequence[Point], data: pd.DataFrame) -> Iterator[marks.ReferenceLine]:
    top = max((point.middle for point in points), default=0.0)
    for point, low, high in zip(points, data["_from"], data["_to"], strict=True):
        if 0 < point.limit <= _FAR * top:
            ends = (float(low), float(high))
            yield marks.ReferenceLine(point.limit, "x", series=_LIMIT.key, extent=ends)


def _placed_bars(
    drawing: Drawing,
    metric: Metric,
    points: Sequence[Point],
    groups: Mapping[object, Sequence[str]],
    firsts: Mapping[object, float],
) -> pd.DataFrame:
    data = _frame(drawing, metric, points)
    first = [firsts[p.x] + groups[p.x].index(p.colour) for p in points]
    return data.assign(
        _from=[at + 0.06 for at in first],
        _to=[at + 0.94 for at in first],
        _middle=[at + 0.5 for at in first],
        _text=[", ".join(filter(None, (metric.text(p.middle), p.remark))) for p in points],
    )


def _bar_texts(drawing: Drawing, names: Sequence[object]) -> list[str]:
    x = drawing.layout.x
    words = words_of(x, drawing.values_along(x)) if x not in {"", RESULT} else {}
    texts = (words.get(name, str(name or "")) for name in names)
    return [labels.wrap_name(text, columns=60) for text in texts]


def _bar_marks(data: pd.DataFrame) -> tuple[marks.AnyMark, ...]:
    return (
        marks.Bars(data, by="_colour", at="_from", at_end="_to", value="_value"),
        marks.Whiskers(data, at="_middle", has_caps=False, width=1.2),
        marks.Texts(data, x="_high", y="_middle", offset_pt=(5, 0), size=7.5, is_boxed=True),
    )


def _grid(drawing: Drawing, metric: Metric, points: Sequence[Point]) -> list[Panel]:
    """Draw a cell or tower for each pair of values, all on one scale."""
    layout = drawing.layout
    xs, ys = drawing.values_along(layout.x), drawing.values_along(layout.y)
    positive = [point.middle for point in points if point.middle > 0] or [1.0]
    cells = marks.Cells(
        pd.DataFrame(),
        value="_value",
        text="_text",
        ramp="purple" if metric.is_latency else "blue",
        format=metric.format,
        limits=(min(positive), max(positive)),
    )
    panel = Panel(
        x=category_axis(factor_name(layout.x), [shown_value(layout.x, v) for v in xs]),
        y=category_axis(factor_name(layout.y), [shown_value(layout.y, v) for v in ys]),
        marks=(),
    )
    upright = Axis(metric.label, metric.format, limits=(0, 1.02 * max(positive)))
    label = metric.label if len(drawing.responses) > 1 else ""
    made = []
    for key in drawing.panels:
        own = [point for point in points if point.panel == key]
        data = _frame(drawing, metric, own).assign(
            _x=[xs.index(point.x) for point in own],
            _y=[ys.index(point.y) for point in own],
            _text=[metric.text(point.middle) for point in own],
        )
        title = ", ".join(filter(None, (_panel_title(drawing, key), label)))
        if layout.view == "towers":
            towers = marks.Bars3D(data, value="_value", text="_text", series=drawing.plain)
            made.append(replace(panel, marks=(towers,), z=upright, title=title))
        else:
            bar = metric.label if key == drawing.panels[-1] else ""
            drawn = replace(cells, data=data, bar=bar)
            made.append(replace(panel, marks=(drawn,), title=title, background="hatched"))
    return made


def _with_table(plot: Plot, drawing: Drawing) -> Plot:
    """Return a plot with its numbers below: a row for each panel, colour and response."""
    layout = drawing.layout
    xs = drawing.values_along(layout.x)
    rows: dict[str, list[str]] = {}
    series: list[str] = []
    for metric, points in zip(drawing.responses, drawing.points, strict=True):
        for point in points:
            parts = [_panel_title(drawing, point.panel), drawing.names[point.colour]]
            parts += [metric.label] if len(drawing.responses) > 1 else []
            name = ", ".join(filter(None, parts)) or metric.label
            if name not in rows:
                rows[name] = ["-"] * len(xs)
                series.append(point.colour or drawing.plain)
            rows[name][xs.index(point.x)] = metric.text(point.middle)
    if len(rows) > _MAX_TABLE_ROWS:
        raise InputError(
            f"--as table has {len(rows)} rows, and a picture has room for {_MAX_TABLE_ROWS}",
            hint="choose results with --where, or print numbers with volbench show",
        )
    heads = [shown_value(layout.x, x) if layout.x else "" for x in xs]
    longest = max(len(text) for texts in (heads, *rows.values()) for text in texts)
    names_in = _LETTER_IN * max(map(len, [*rows, factor_name(layout.x)]))
    fitting = max(1, int((plot.width_in - names_in - 1) / (_LETTER_IN * (longest + 2))))
    step = math.ceil(len(xs) / math.ceil(len(xs) / fitting))
    panels, heights = [*plot.panels], [*plot.heights]
    for first in range(0, len(xs), step):
        part = slice(first, first + step)
        table = marks.Table(
            tuple(heads[part]),
            tuple(tuple(texts[part]) for texts in rows.values()),
            tuple(rows),
            tuple(series),
            corner=factor_name(layout.x),
        )
        panels.append(
            Panel(x=Axis(), y=Axis(), marks=(table,), row=len(heights), columns=len(plot.widths))
        )
        heights.append(_TABLE_IN * (len(rows) + 1))
    return replace(plot, panels=tuple(panels), heights=tuple(heights))


def _series(drawing: Drawing) -> tuple[Series, ...]:
    series = labels.line_series([*drawing.places])  # also of what is not drawn
    drawn = (each for each in series if each.key in drawing.colours)
    named = (replace(each, label=drawing.names[each.key]) for each in drawn)
    return (*named, _LIMIT)


def describe(drawing: Drawing) -> str:
    """Return the highest and the lowest point of each response in a sentence."""
    sentences = []
    for metric, points in zip(drawing.responses, drawing.points, strict=True):
        if not points:
            continue
        known = sorted(points, key=lambda point: point.middle)
        low, high = (
            f"{metric.text(point.middle)}{_where(drawing, point)}"
            for point in (known[0], known[-1])
        )
        ends = f"highest {high}, lowest {low}" if known[1:] else high
        sentences.append(f"{metric.label} of {counted_noun(len(known), 'result')}: {ends}")
    return ". ".join(sentences) + "."


def _where(drawing: Drawing, point: Point) -> str:
    layout = drawing.layout
    parts = [_panel_title(drawing, point.panel), point.colour]
    if layout.x and layout.x not in layout.by:
        parts.append(str(point.x) if layout.x == RESULT else value_words(layout.x, point.x))
    where = ", ".join(filter(None, parts))
    return f" ({where})" if where else ""


_PAINTERS: Mapping[str, Callable[[Drawing, Metric, Sequence[Point]], list[Panel]]] = {
    "lines": _line_panels,
    "bars": _bars,
    "grid": _grid,
    "towers": _grid,
    "table": lambda drawing, *rest: (_line_panels if _has_lines(drawing) else _bars)(
        drawing, *rest
    ),
}
