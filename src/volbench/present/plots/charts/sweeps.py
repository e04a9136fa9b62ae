"""Curves with their knees, and bars over a swept option.

The knee is where IOPS / mean latency is highest: "power", after L. Kleinrock, "Power and
Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications" (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import (
    inseparable,
    sweep,
    swept_options,
    with_latencies,
)
from volbench.present.formatting import Row, number, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import MAX_LINES, Frames, Kind, Options
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    LATENCY_KINDS,
    MEAN_LATENCY,
    P99_LATENCY,
    Metric,
    declared,
    is_wide,
    limits_along,
    only_last_named,
)
from volbench.present.plots.picture import logarithmic
from volbench.present.plots.selection import REST, largest, rest_series

_LOADS = ("iodepth", "numjobs")
_HIGHEST_IOPS = "those with the highest IOPS"
_KNEE = "Ringed: the knee, where IOPS / mean latency is highest (Kleinrock's power)"
_MIN_KNEE_POINTS = 3  # Two points have no knee
_SWEEP_IN = 2.1
# Metric of bars to the column of its standard deviation
_DEVIATIONS = {IOPS: "iops_stddev", MEAN_LATENCY: "lat_stddev_s"}
_GROUP = 0.82  # Width of a group of bars, as a share of its slot
_MAX_TEXTS = 9  # Bars of a panel that have room for their value above them
_PANEL_IN, _ROW_IN = 2.0, 0.2
_CHARACTER_IN = 0.085  # Width of a character in the table, with what the legend takes from it


@dataclass(frozen=True)
class Sweep:
    """The points along one option."""

    points: pd.DataFrame  # a row per point with ``label``, the name of its line, and ``latency``
    option: str  # that is swept
    metrics: Sequence[Metric]  # that have any value
    note: str = ""  # on jobs that are left out; empty for none
    most: int = MAX_LINES  # lines with a colour of their own

    @property
    def lines(self) -> list[str]:
        """Names of the lines."""
        return list(dict.fromkeys(self.points["label"]))

    def fewer(self, column: str, criterion: str) -> tuple[Sweep, pd.DataFrame, str]:
        """Return the lines with the highest points, all points of the others, and a sentence."""
        tops = self.points.groupby("label", sort=False)[column].max().reset_index()
        kept, note = largest(tops, column, most=self.most, what="lines", criterion=criterion)
        is_shown = self.points["label"].isin(kept["label"])
        return replace(self, points=self.points[is_shown]), self.points[~is_shown], note

    def slowest(self) -> tuple[Sweep, pd.DataFrame, str]:
        """Return the lines with the slowest point likewise, or with most IOPS without latencies."""
        columns = [metric.column for metric in self.metrics if metric.is_latency]
        if not columns:
            return self.fewer("iops", _HIGHEST_IOPS)
        return self.fewer(columns[-1], "those with the slowest point")

    def best(self, metric: Metric) -> tuple[Row, str]:
        """Return the highest point of a metric, and where it is, such as ``queue depth 4``."""
        row = records(self.points.nlargest(1, metric.column))[0]
        return row, labels.option_named(self.option, number(row, self.option))


def sweep_points(
    frames: Frames, option: str, statistics: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Return the points along an option with the name of their line.

    Args:
        statistics: of latency, such as ``p99``.

    Returns:
        A row per point with ``label``, the columns, a column such as ``lat_p99_s`` for each
        statistic, and ``latency``, the name of the latency's kind.
    """
    summary, kind = with_latencies(frames["summary"], tuple(statistics))
    points = sweep(summary, option, [*columns, *statistics])
    heads = records(points.drop_duplicates("line").sort_values("line"))
    named = points["line"].map(dict(enumerate(labels.separating_names(heads, without=option))))
    renamed = {name: f"lat_{name}_s" for name in statistics}
    return points.assign(label=named, latency=LATENCY_KINDS[kind]).rename(columns=renamed)


def read_sweep(frames: Frames, chosen: Options) -> Sweep | str:
    """Return the points along the option with most values."""
    options = swept_options(frames["summary"])
    if not options:
        return "nothing is swept: no jobs differ in queue depth, block size or numjobs alone"
    rates = [IOPS, BANDWIDTH] if options[0] == "block_bytes" else [IOPS]
    points = sweep_points(frames, options[0], ["p99", "mean"], [m.column for m in rates])
    if options[0] in _LOADS:
        points["knee"] = _is_knee(points)
    note = inseparable(frames["summary"], options[:1])
    if points.empty:
        return note
    latency = replace(P99_LATENCY, label=f"p99 of {points['latency'].iloc[0]}")
    metrics = [m for m in (*rates, latency) if points[m.column].notna().any()]
    return (
        Sweep(points, options[0], metrics, note, chosen.lines)
        if metrics
        else "the sweep has no results"
    )


def _is_knee(points: pd.DataFrame) -> pd.Series[bool]:
    """Return which points have the highest IOPS / mean latency of a line of enough points."""
    power = points["iops"] / points["lat_mean_s"]
    by_line = power.groupby(points["line"])
    return power.eq(by_line.transform("max")) & by_line.transform("count").ge(_MIN_KNEE_POINTS)


def build_sweep(swept: Sweep) -> Plot:
    """Draw a panel per metric and a line per pattern, with rings around the knees."""
    columns = [*(metric.column for metric in swept.metrics), "latency", "knee"]
    every, option = swept.points, swept.option
    swept, rest, fewer = swept.slowest()
    points = swept.points
    data = labels.identified(points, columns)
    knees = _knees(points, option)
    values = sorted({float(value) for value in every[option]})
    x = Axis(
        labels.OPTION_NAMES[option],
        "size" if option == "block_bytes" else "number",
        "log2",
        (values[0] / 1.1, values[-1] * 1.1),
        tuple(values),
    )
    panels = []
    for metric in swept.metrics:
        promised = declared(points, metric)
        limits, top = limits_along(promised, top=1.05 * float(every[metric.column].max()))
        y = metric.wide_axis(every[metric.column], label=metric.label, room=1.05, log_room=1.3)
        if y.scale != "log":
            y = metric.axis(top)
        line = marks.Lines(data, by="label", x=option, y=metric.column)
        panels.append(
            Panel(
                x=x,
                y=y,
                marks=(
                    *_pale(rest, option, metric),
                    line,
                    *_within(limits, y),
                    *(knees if metric is IOPS else ()),
                ),
            )
        )
    return replace(
        grid(only_last_named(panels), height_in=_SWEEP_IN),
        series=(*labels.line_series(swept.lines), *rest_series(rest["label"].nunique(), "lines")),
        legend="right",
        caption=(_KNEE if knees else "", fewer, swept.note),
        rows=labels.identified(every, columns) if fewer else None,
        shared_x=True,
    )


def _knees(points: pd.DataFrame, option: str) -> tuple[marks.AnyMark, ...]:
    """Return rings around the knees of lines; nothing without any."""
    if "knee" not in points or not points["knee"].any():
        return ()
    found = points[points["knee"]]
    places = pd.DataFrame({"_x": found[option], "_y": found["iops"]})
    return (marks.Points(places, size=13, is_hollow=True),)


def _pale(rest: pd.DataFrame, option: str, metric: Metric) -> tuple[marks.AnyMark, ...]:
    """Return pale lines of those without a name; nothing without any."""
    if rest[metric.column].notna().sum() == 0:
        return ()
    # Private columns: all points are among the chart's numbers
    named = rest[["label", option, metric.column]].set_axis(["_label", "_x", "_y"], axis=1)
    return (marks.Lines(named, group="_label", series=REST, width=0.8),)


def _within(limits: Sequence[marks.ReferenceLine], y: Axis) -> list[marks.ReferenceLine]:
    """Return declared limits, those outside the axis as names alone."""
    low, high = y.limits or (0.0, math.inf)
    return [
        replace(limit, is_beyond=limit.is_beyond or not low <= limit.value <= high)
        for limit in limits
    ]


def describe_sweep(swept: Sweep) -> str:
    """Return the option, its range and the best point of the first panel in one sentence."""
    option, metric = swept.option, swept.metrics[0]
    best, at = swept.best(metric)
    low, high = (
        labels.option_text(option, float(value))
        for value in (swept.points[option].min(), swept.points[option].max())
    )
    return (
        f"{', '.join(m.label for m in swept.metrics)} over {labels.SHORT_NAMES[option]} {low} to "
        f"{high}: max {metric.text(number(best, metric.column))} at {at} ({best['label']})."
    )


SWEEP = Kind(
    name="sweep",
    title="Throughput and latency",
    by_options="along one option",
    help="IOPS with the knee, and p99 latency, along the option that jobs differ in: queue depth, "
    "block size or numjobs.",
    needs="jobs that differ in queue depth, block size or numjobs alone",
    splits=("volume", "host", "rw"),
    read=read_sweep,
    build=build_sweep,
    describe=describe_sweep,
    is_pooled=True,
)


def read_bars(frames: Frames, chosen: Options) -> Sweep | str:
    """Return the points along the load with most values: queue depth, or jobs in parallel."""
    option = next((name for name in swept_options(frames["summary"]) if name in _LOADS), _LOADS[0])
    points = sweep_points(frames, option, ["mean", "stddev"], ["iops", "iops_stddev"])
    points = points[points["iops"].notna()]
    if points.empty:
        return "no sweep: no jobs differ in queue depth or numjobs alone (a matrix in the profile)"
    return Sweep(points, option, tuple(_DEVIATIONS), most=chosen.lines)


def build_bars(swept: Sweep) -> Plot:
    """Draw a panel of IOPS, one of latency, and the numbers below."""
    swept, _, fewer = swept.slowest()
    drawn, points = swept.lines, swept.points
    values = sorted({float(value) for value in points[swept.option]})
    data = _bar_data(points, swept.option, drawn, values)
    names = tuple(labels.option_text(swept.option, value) for value in values)
    x = Axis(labels.OPTION_NAMES[swept.option], scale="category", categories=names)
    table = _table(points, swept.option, drawn, values)
    return Plot(
        panels=(
            _bar_panel(data, IOPS, replace(x, label=""), "IOPS"),
            replace(_bar_panel(data, MEAN_LATENCY, x, f"Mean {data['latency'].iloc[0]}"), row=1),
            Panel(x=Axis(), y=Axis(), marks=(table,), row=2),
        ),
        heights=(_PANEL_IN, _PANEL_IN, _ROW_IN * (len(table.rows) + 1)),
        width_in=max(9.0, 3.0 + _names_in(table) + _cell_in(table) * len(values)),
        series=tuple(
            Series(name, labels.wrap_name(name, columns=26), labels.palette(index))
            for index, name in enumerate(drawn)
        ),
        legend="right",
        caption=(
            "Whiskers: fio's standard deviation, of IOPS over windows, of latency over I/Os",
            fewer,
        ),
    )


def _bar_data(
    points: pd.DataFrame, option: str, lines: Sequence[str], values: Sequence[float]
) -> pd.DataFrame:
    """Return the numbers with the place of each bar; whiskers end at zero."""
    width = _GROUP / len(lines)
    line = points["label"].map({name: n for n, name in enumerate(lines)})
    group = points[option].map({value: n for n, value in enumerate(values)})
    left = group - _GROUP / 2 + (line + 0.04) * width
    columns = [column for pair in _DEVIATIONS.items() for column in (pair[0].column, pair[1])]
    data = labels.identified(points, [*columns, "latency"])
    data = data.assign(_left=left, _right=left + 0.92 * width, _middle=left + 0.46 * width)
    for metric, spread in _DEVIATIONS.items():
        value, deviation = points[metric.column], points[spread].fillna(0)
        data[f"_{metric.column}_low"] = (value - deviation).clip(lower=0)
        data[f"_{metric.column}_high"] = value + deviation
    return data


def _bar_panel(data: pd.DataFrame, metric: Metric, x: Axis, label: str) -> Panel:
    """Draw a group of bars at each value, with whiskers."""
    value = metric.column
    low, high = f"_{value}_low", f"_{value}_high"
    bars = marks.Bars(
        data, by="label", at="_left", at_end="_right", value=value, is_horizontal=False
    )
    whiskers = marks.Whiskers(data, at="_middle", low=low, high=high, along="y")
    texts = marks.Texts(
        data[["_middle", high]].assign(_text=[metric.text(float(each)) for each in data[value]]),
        x="_middle",
        y=high,
        offset_pt=(0, 3),
        align="center",
        valign="bottom",
        size=7.5,
    )
    y = metric.axis(1.1 * float(data[high].max()), label=label)
    labelled = (texts,) if len(data) <= _MAX_TEXTS else ()
    panel = Panel(x=x, y=y, marks=(bars, whiskers, *labelled))
    return logarithmic(panel) if is_wide(data[value]) else panel


def _table(
    points: pd.DataFrame, option: str, lines: Sequence[str], values: Sequence[float]
) -> marks.Table:
    """Return the numbers with their deviations: two rows a line."""
    by_place = points.set_index(["label", option])
    rows = [
        tuple(_cell(by_place, (line, value), metric) for value in values)
        for line in lines
        for metric in _DEVIATIONS
    ]
    heads = tuple(labels.option_named(option, value) for value in values)
    names = tuple(name for line in labels.brief(lines) for name in (f"{line}: IOPS", "latency"))
    return marks.Table(
        heads, tuple(rows), names, tuple(line for line in lines for _ in _DEVIATIONS)
    )


def _names_in(table: marks.Table) -> float:
    """Return what the names of rows take beyond the margin of the axes above."""
    return max(0.0, _CHARACTER_IN * max(map(len, table.names)) - 1.5)


def _cell_in(table: marks.Table) -> float:
    """Return the width of a column that holds the longest cell."""
    return max(1.0, _CHARACTER_IN * max(len(cell) for row in table.rows for cell in row))


def _cell(points: pd.DataFrame, cell: tuple[str, float], metric: Metric) -> str:
    """Return value and deviation at a place."""
    if cell not in points.index:
        return "-"
    row = points.loc[[cell]].iloc[0]
    value, spread = float(row[metric.column]), float(row[_DEVIATIONS[metric]])
    if math.isnan(value):
        return "-"
    return metric.text(value) + ("" if math.isnan(spread) else f" ± {metric.text(spread)}")


def describe_bars(swept: Sweep) -> str:
    """Return the best bar in one sentence."""
    best, at = swept.best(IOPS)
    return (
        f"IOPS and mean {best['latency']} by {labels.SHORT_NAMES[swept.option]}: max "
        f"{IOPS.text(number(best, 'iops'))} IOPS at {at} ({best['label']}), with "
        f"{MEAN_LATENCY.text(number(best, 'lat_mean_s'))}."
    )


DEPTH = Kind(
    name="depth",
    title="IOPS and latency by load",
    help="Bars of IOPS and mean latency at each queue depth, or numjobs, with deviations and a "
    "table.",
    needs="jobs that differ in queue depth or numjobs alone",
    read=read_bars,
    build=build_bars,
    describe=describe_bars,
    is_pooled=True,
)
