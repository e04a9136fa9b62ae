"""IOPS, bandwidth and latency along a swept option, a line per access pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import OPTIONS, sweep, swept_options, with_latencies
from volbench.present.formatting import Row, number, pattern, records
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Lines, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import (
    OPTION_NAMES,
    SHORT_NAMES,
    identified,
    line_series,
    option_text,
)
from volbench.present.plots.limits import Limit, declared, limits_along
from volbench.present.plots.metrics import BANDWIDTH, IOPS, LATENCY_KINDS, Metric

_P99 = Metric("p99_s", "p99 latency", "latency")
_PANEL_IN = 2.1


def sweep_points(
    frames: Frames, option: str, statistics: Sequence[str], columns: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    """Return the points along an option with the name of their line, and the kind of latency.

    Args:
        frames: with the summary.
        option: that is swept.
        statistics: of latency, such as ``p99``.
        columns: further numeric columns.

    Returns:
        A row per point with ``label``, the columns, the statistics under their own names, and
        ``latency``; and the name of the latency's kind.
    """
    summary, kind = with_latencies(frames["summary"], tuple(statistics))
    points = sweep(summary, option, [*columns, *statistics])
    names = line_names(points, option) if len(points) else []
    latency = LATENCY_KINDS[kind]
    labels = points["line"].map(dict(enumerate(names)))
    return points.assign(label=labels, latency=latency), latency


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
        return f"{SHORT_NAMES[name]} {option_text(name, value)}"
    return str(value)


def option_axis(option: str, values: Sequence[float], *, label: str) -> Axis:
    """Return an axis with a tick at each value of an option, evenly spaced where they double."""
    ends = (min(values) / 1.1, max(values) * 1.1)
    written = "size" if option == "block_bytes" else "number"
    return Axis(label, written, "log2", ends, tuple(values))


def _points(frames: Frames, option: str) -> tuple[pd.DataFrame, list[Metric]]:
    """Return the points of the sweep and the metrics that have any."""
    metrics = [IOPS, BANDWIDTH, _P99] if option == "block_bytes" else [IOPS, _P99]
    columns = [metric.column for metric in metrics if metric is not _P99]
    points, latency = sweep_points(frames, option, ["p99"], columns)
    points = points.rename(columns={"p99": "p99_s"})
    named = [replace(m, label=f"p99 of {latency}") if m is _P99 else m for m in metrics]
    return points, [metric for metric in named if points[metric.column].notna().any()]


def build(frames: Frames, _: Options) -> Plot:
    """Draw a panel per metric and a line per pattern along the option with most values."""
    option = swept_options(frames["summary"])[0]
    points, metrics = _points(frames, option)
    data = identified(points, [*(metric.column for metric in metrics), "latency"])
    values = sorted({float(value) for value in points[option]})
    panels = []
    for row, metric in enumerate(metrics):
        top = 1.05 * float(points[metric.column].max())
        limits, top = limits_along(_declared(points, metric), top=top)
        line = Lines(data=data, by="label", x=option, y=metric.column)
        is_last = row == len(metrics) - 1
        x = option_axis(option, values, label=OPTION_NAMES[option] * is_last)
        panels.append(Panel(x=x, y=metric.axis(top), marks=(line, *limits), row=row))
    return Plot(
        panels=tuple(panels),
        heights=(_PANEL_IN,) * len(metrics),
        series=line_series(list(dict.fromkeys(points["label"]))),
        legend="right",
        caption=(pooled(frames["summary"]),),
        shared_x=True,
    )


def _declared(points: pd.DataFrame, metric: Metric) -> list[Limit]:
    return declared(records(points), metric.limit, metric.format) if metric.limit else []


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    options = swept_options(frames["summary"])
    if not options:
        return "nothing is swept: no jobs differ in queue depth, block size or numjobs alone"
    return "" if _points(frames, options[0])[1] else "the sweep has neither IOPS nor latency"


def describe(frames: Frames) -> str:
    """Return the option, its range and the best point of the first panel in one sentence."""
    option = swept_options(frames["summary"])[0]
    points, metrics = _points(frames, option)
    metric = metrics[0]
    best = records(points.nlargest(1, metric.column))[0]
    values = sorted({float(value) for value in points[option]})
    return (
        f"{', '.join(m.label for m in metrics)} over {SHORT_NAMES[option]} "
        f"{option_text(option, values[0])} to {option_text(option, values[-1])}: max "
        f"{metric.text(number(best, metric.column))} at {SHORT_NAMES[option]} "
        f"{option_text(option, number(best, option))} ({best['label']})."
    )


SWEEP = Kind(
    name="sweep",
    title="Sweep: throughput and latency",
    frame_names=("summary",),
    help="IOPS and p99 latency along the option that jobs differ in: queue depth, block size or "
    "numjobs.",
    needs="jobs that differ in queue depth, block size or numjobs alone",
    missing=missing,
    build=build,
    describe=describe,
    in_report=True,
)
