"""IOPS, bandwidth and latency along a swept option, a line per access pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import OPTIONS, sweep, swept_options, with_latencies
from volbench.present.formatting import Row, number, pattern, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.limits import declared, limits_along
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    LATENCY_KINDS,
    P99_LATENCY,
    Metric,
    only_last_named,
)

_PANEL_IN = 2.1


@dataclass(frozen=True)
class Sweep:
    """The points along one option.

    Attributes:
        points: a row per point with ``label``, the name of its line, and ``latency``.
        option: that is swept.
        metrics: that have any value.
    """

    points: pd.DataFrame
    option: str
    metrics: Sequence[Metric]


def sweep_points(
    frames: Frames, option: str, statistics: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Return the points along an option with the name of their line.

    Args:
        frames: with the summary.
        option: that is swept.
        statistics: of latency, such as ``p99``.
        columns: further numeric columns.

    Returns:
        A row per point with ``label``, the columns, a column such as ``lat_p99_s`` for each
        statistic, and ``latency``, the name of the latency's kind.
    """
    summary, kind = with_latencies(frames["summary"], tuple(statistics))
    points = sweep(summary, option, [*columns, *statistics])
    names = line_names(points, option) if len(points) else []
    named = points["line"].map(dict(enumerate(names)))
    renamed = {name: f"lat_{name}_s" for name in statistics}
    return points.assign(label=named, latency=LATENCY_KINDS[kind]).rename(columns=renamed)


def line_names(points: pd.DataFrame, option: str) -> list[str]:
    """Return a name for each line: its pattern, and what else distinguishes lines."""
    heads = records(points.drop_duplicates("line").sort_values("line"))
    others = [name for name in OPTIONS if name != option]
    places = ["by"] if "by" in points else ["campaign", "profile", "host", "volume"]
    candidates = [*places, "tool", "direct", "ioengine", *others]
    telling = [name for name in candidates if len({str(row[name]) for row in heads}) > 1]
    parts = [[pattern(row), *(_value(row, name) for name in telling)] for row in heads]
    return [", ".join(dict.fromkeys(part)) for part in parts]


def _value(row: Row, name: str) -> str:
    value = row[name]
    if name == "direct":
        return "direct" if value else "buffered"
    if name in OPTIONS and isinstance(value, (int, float)):
        return f"{labels.SHORT_NAMES[name]} {labels.option_text(name, value)}"
    return str(value)


def read(frames: Frames, _: Options) -> Sweep | str:
    """Return the points along the option with most values."""
    options = swept_options(frames["summary"])
    if not options:
        return "nothing is swept: no jobs differ in queue depth, block size or numjobs alone"
    rates = [IOPS, BANDWIDTH] if options[0] == "block_bytes" else [IOPS]
    points = sweep_points(frames, options[0], ["p99"], [metric.column for metric in rates])
    latency = replace(P99_LATENCY, label=f"p99 of {points['latency'].iloc[0]}")
    metrics = [m for m in (*rates, latency) if points[m.column].notna().any()]
    return Sweep(points, options[0], metrics) if metrics else "the sweep has no results"


def build(found: Sweep) -> Plot:
    """Draw a panel per metric and a line per pattern."""
    points, option = found.points, found.option
    data = labels.identified(points, [*(m.column for m in found.metrics), "latency"])
    values = sorted({float(value) for value in points[option]})
    x = Axis(
        labels.OPTION_NAMES[option],
        "size" if option == "block_bytes" else "number",
        "log2",
        (values[0] / 1.1, values[-1] * 1.1),
        tuple(values),
    )
    panels = []
    for metric in found.metrics:
        top = 1.05 * float(points[metric.column].max())
        promised = declared(records(points), metric.limit, metric.format) if metric.limit else []
        limits, top = limits_along(promised, top=top)
        line = marks.Lines(data, by="label", x=option, y=metric.column)
        panels.append(Panel(x=x, y=metric.axis(top), marks=(line, *limits)))
    return replace(
        grid(only_last_named(panels), height_in=_PANEL_IN),
        series=labels.line_series(list(dict.fromkeys(points["label"]))),
        legend="right",
        shared_x=True,
    )


def describe(found: Sweep) -> str:
    """Return the option, its range and the best point of the first panel in one sentence."""
    option, metric = found.option, found.metrics[0]
    best = records(found.points.nlargest(1, metric.column))[0]
    low, high, at = (
        labels.option_text(option, float(value))
        for value in (found.points[option].min(), found.points[option].max(), number(best, option))
    )
    name = labels.SHORT_NAMES[option]
    return (
        f"{', '.join(m.label for m in found.metrics)} over {name} {low} to {high}: max "
        f"{metric.text(number(best, metric.column))} at {name} {at} ({best['label']})."
    )


SWEEP = Kind(
    name="sweep",
    title="Sweep: throughput and latency",
    frame_names=("summary",),
    help="IOPS and p99 latency along the option that jobs differ in: queue depth, block size or "
    "numjobs.",
    needs="jobs that differ in queue depth, block size or numjobs alone",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
    in_report=True,
)
