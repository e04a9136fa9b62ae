"""Bars of IOPS and mean latency by queue depth or numjobs, with standard deviations and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from volbench.present.formatting import number
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import IOPS, MEAN_LATENCY, Metric
from volbench.present.plots.results.sweep_lines import Sweep, sweep_points

# Metric to the column of its standard deviation
_SPREADS = {IOPS: "iops_stddev", MEAN_LATENCY: "lat_stddev_s"}
_GROUP = 0.82  # Width of a group of bars, as a share of its slot
_MOST_TEXTS = 14  # Bars of a panel that have room for their value above them
_PANEL_IN, _ROW_IN = 2.0, 0.2
_CHARACTER_IN = 0.085  # Width of a character in the table, with what the legend takes from it


def read(frames: Frames, _: Options, *, option: str) -> Sweep | str:
    """Return the points along an option."""
    name = labels.SHORT_NAMES[option]
    points = sweep_points(frames, option, ["mean", "stddev"], ["iops", "iops_stddev"])
    points = points[points["iops"].notna()]
    if points.empty:
        return f"no sweep: it takes jobs that differ in {name} alone (a matrix in the profile)"
    return Sweep(points, option, tuple(_SPREADS))


def build(found: Sweep) -> Plot:
    """Draw a panel of IOPS, one of latency, and the numbers below."""
    found, _, fewer = found.slowest()
    shown, points = found.lines, found.points
    values = sorted({float(value) for value in points[found.option]})
    data = _data(points, found.option, shown, values)
    names = tuple(labels.option_text(found.option, value) for value in values)
    x = Axis(labels.OPTION_NAMES[found.option], scale="category", categories=names)
    table = _table(points, found.option, shown, values)
    return Plot(
        panels=(
            _panel(data, IOPS, replace(x, label=""), "IOPS"),
            replace(_panel(data, MEAN_LATENCY, x, f"Mean {data['latency'].iloc[0]}"), row=1),
            Panel(x=Axis(), y=Axis(), marks=(table,), row=2),
        ),
        heights=(_PANEL_IN, _PANEL_IN, _ROW_IN * (len(table.rows) + 1)),
        width_in=max(9.0, 3.0 + _names_in(table) + _cell_in(table) * len(values)),
        series=tuple(
            Series(name, labels.wrap_name(name, columns=26), labels.palette(place))
            for place, name in enumerate(shown)
        ),
        legend="right",
        caption=(
            "Whiskers: fio's standard deviation, of IOPS over windows, of latency over I/Os",
            fewer,
        ),
    )


def _data(
    points: pd.DataFrame, option: str, lines: Sequence[str], values: Sequence[float]
) -> pd.DataFrame:
    """Return the numbers with the place of each bar; whiskers end at zero."""
    width = _GROUP / len(lines)
    line = points["label"].map({name: n for n, name in enumerate(lines)})
    group = points[option].map({value: n for n, value in enumerate(values)})
    left = group - _GROUP / 2 + (line + 0.04) * width
    columns = [column for pair in _SPREADS.items() for column in (pair[0].column, pair[1])]
    data = labels.identified(points, [*columns, "latency"])
    data = data.assign(_left=left, _right=left + 0.92 * width, _middle=left + 0.46 * width)
    for metric, spread in _SPREADS.items():
        value, deviation = points[metric.column], points[spread].fillna(0)
        data[f"_{metric.column}_low"] = (value - deviation).clip(lower=0)
        data[f"_{metric.column}_high"] = value + deviation
    return data


def _panel(data: pd.DataFrame, metric: Metric, x: Axis, label: str) -> Panel:
    """Draw a group of bars at each value, with whiskers."""
    value = metric.column
    low, high = f"_{value}_low", f"_{value}_high"
    bars = marks.Bars(
        data, by="label", at="_left", at_end="_right", value=value, is_horizontal=False
    )
    whiskers = marks.Whiskers(data, at="_middle", low=low, high=high, along="y")
    texts = marks.Texts(
        data[["_middle", high]].assign(_text=[metric.text(float(own)) for own in data[value]]),
        x="_middle",
        y=high,
        offset_pt=(0, 3),
        align="center",
        valign="bottom",
        size=7.5,
    )
    y = metric.axis(1.1 * float(data[high].max()), label=label)
    shown = (texts,) if len(data) <= _MOST_TEXTS else ()
    return Panel(x=x, y=y, marks=(bars, whiskers, *shown))


def _table(
    points: pd.DataFrame, option: str, lines: Sequence[str], values: Sequence[float]
) -> marks.Table:
    """Return the numbers with their deviations: two rows a line."""
    by_place = points.set_index(["label", option])
    rows = [
        tuple(_cell(by_place, (line, value), metric) for value in values)
        for line in lines
        for metric in _SPREADS
    ]
    heads = tuple(labels.option_named(option, value) for value in values)
    names = tuple(name for line in lines for name in (f"{line}: IOPS", "latency"))
    return marks.Table(heads, tuple(rows), names, tuple(line for line in lines for _ in _SPREADS))


def _names_in(table: marks.Table) -> float:
    """Return what the names of rows take beyond the margin of the axes above."""
    return max(0.0, _CHARACTER_IN * max(map(len, table.names)) - 1.5)


def _cell_in(table: marks.Table) -> float:
    """Return the width of a column that holds the longest cell."""
    return max(1.0, _CHARACTER_IN * max(len(cell) for row in table.rows for cell in row))


def _cell(points: pd.DataFrame, place: tuple[str, float], metric: Metric) -> str:
    """Return value and deviation at a place."""
    if place not in points.index:
        return "-"
    row = points.loc[[place]].iloc[0]
    value, spread = float(row[metric.column]), float(row[_SPREADS[metric]])
    if math.isnan(value):
        return "-"
    return metric.text(value) + ("" if math.isnan(spread) else f" ± {metric.text(spread)}")


def describe(found: Sweep) -> str:
    """Return the best bar in one sentence."""
    best, at = found.best(IOPS)
    return (
        f"IOPS and mean {best['latency']} by {labels.SHORT_NAMES[found.option]}: max "
        f"{IOPS.text(number(best, 'iops'))} IOPS at {at} ({best['label']}), with "
        f"{MEAN_LATENCY.text(number(best, 'lat_mean_s'))}."
    )


def _kind(name: str, option: str, title: str) -> Kind[Sweep]:
    short = labels.SHORT_NAMES[option]
    return Kind(
        name=name,
        title=title,
        help=f"Bars of IOPS and mean latency at each {short}, with deviations and a table.",
        needs=f"jobs that differ in {short} alone",
        read=partial(read, option=option),
        build=build,
        describe=describe,
        is_pooled=True,
    )


DEPTH = _kind("depth", "iodepth", "IOPS and latency by queue depth")
NUMJOBS = _kind("numjobs", "numjobs", "IOPS and latency by jobs in parallel")
