"""Sweeps: the summary enters, IOPS, bandwidth and latency along the swept option leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from volbench.analyse.frames.job_frames import OPTIONS, sweep, swept_options, with_latencies
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.latency import KINDS
from volbench.present.figures.limits import declared, draw_along
from volbench.present.formatting import Row, pattern, records
from volbench.present.style import (
    MARKERS,
    PALETTE,
    count_axis,
    linear_latency_axis,
    rate_axis,
)
from volbench.units import format_count, format_latency, format_rate, format_size

NAMES = {
    "iodepth": "I/O depth of each clone",
    "block_bytes": "Block size (1k = 1024 bytes)",
    "numjobs": "Clones of the job",
}
SHORT = {"iodepth": "depth", "block_bytes": "block", "numjobs": "clones"}
DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Metric:
    """One panel: a column, the axis it stands on, and the limit drawn into it."""

    column: str
    name: str
    format_axis: Callable[[Axis], None]
    format_value: Callable[[float], str]
    limit: str = ""


IOPS = Metric("iops", "IOPS", count_axis, format_count, "limit_iops")
BANDWIDTH = Metric("bw_bytes_per_s", "Bandwidth", rate_axis, format_rate, "limit_bw_bytes_per_s")
P99 = Metric("p99", "p99 latency", linear_latency_axis, format_latency)


def option_text(option: str, value: float) -> str:
    """Return a value of an option as people write it."""
    return format_size(value) if option == "block_bytes" else f"{value:.0f}"


def _points(frames: Frames, option: str) -> tuple[pd.DataFrame, list[Metric], str]:
    """Return the points of the sweep, the panels that have any, and the kind of latency."""
    summary, kind = with_latencies(frames["summary"], ("p99",))
    metrics = [IOPS, BANDWIDTH, P99] if option == "block_bytes" else [IOPS, P99]
    points = sweep(summary, option, [metric.column for metric in metrics])
    return points, [m for m in metrics if points[m.column].notna().any()], KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw a panel per metric and a line per pattern along the option with most values."""
    option = swept_options(frames["summary"])[0]
    points, metrics, kind = _points(frames, option)
    lines = [records(line) for _, line in points.groupby("line", sort=True)]
    height_in = 1.3 + max(2.5 * len(metrics), 0.2 * len(lines))
    figure = new_figure(
        title=title, note=caption(frames["summary"], pooled(frames["summary"])), height_in=height_in
    )
    grid = figure.subplots(len(metrics), squeeze=False, sharex=True)
    names = line_names(points, option)
    for axes, metric in zip(grid[:, 0], metrics, strict=True):
        for place, line in enumerate(lines):
            axes.plot(
                [row[option] for row in line],
                [row[metric.column] for row in line],
                color=PALETTE[place % len(PALETTE)],
                marker=MARKERS[place % len(MARKERS)],
                linestyle=DASHES[place // len(PALETTE) % len(DASHES)],
                markersize=5,
                label=wrap_name(names[place], columns=30),
            )
        latency = metric.column == "p99"
        axes.set_ylabel(f"p99 of {kind}" if latency else metric.name)
        axes.set_ylim(0, axes.get_ylim()[1])
        metric.format_axis(axes.yaxis)
        if metric.limit:
            flat = [row for line in lines for row in line]
            draw_along(axes, declared(flat, metric.limit, metric.format_value))
        _scale(axes, option, sorted({float(value) for value in points[option]}))
    grid[0, 0].legend(
        *_handles(grid[0, 0], len(lines)),
        loc="upper left",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(grid[0, 0], x_in=0.9 if _limited(points) else 0.1),
        borderaxespad=0,
    )
    grid[-1, 0].set_xlabel(NAMES[option])
    return figure


def _limited(points: pd.DataFrame) -> bool:
    """Tell whether a limit needs room beside the panels."""
    return bool(points[["limit_iops", "limit_bw_bytes_per_s"]].notna().any(axis=None))


def _handles(axes: Axes, lines: int) -> tuple[list[object], list[str]]:
    """Return the entries of the legend without the limits, which are named beside the line."""
    handles, names = axes.get_legend_handles_labels()
    return list(handles[:lines]), names[:lines]


def _scale(axes: Axes, option: str, values: list[float]) -> None:
    """Put a tick at each value of the option, evenly spaced where values double."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: option_text(option, value)))
    axes.tick_params(labelbottom=True)


def line_names(points: pd.DataFrame, option: str) -> list[str]:
    """Return a name for each line: its pattern, and what else tells lines apart."""
    heads = records(points.drop_duplicates("line").sort_values("line"))
    others = [name for name in OPTIONS if name != option]
    places = ["by"] if "by" in points else ["campaign", "profile", "host", "volume"]
    apart = [*places, "tool", "direct", "ioengine", *others]
    telling = [name for name in apart if len({str(row[name]) for row in heads}) > 1]
    parts = [[pattern(row), *(_told(row, name) for name in telling)] for row in heads]
    return [", ".join(dict.fromkeys(part)) for part in parts]


def _told(row: Row, name: str) -> str:
    value = row[name]
    if name == "direct":
        return "direct" if value else "buffered"
    if name in OPTIONS and isinstance(value, (int, float)):
        return f"{SHORT[name]} {option_text(name, value)}"
    return str(value)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    options = swept_options(frames["summary"])
    if not options:
        return "nothing is swept: no jobs differ in I/O depth, block size or number of clones alone"
    return "" if _points(frames, options[0])[1] else "the sweep told neither IOPS nor latency"


def describe(frames: Frames) -> str:
    """Return the option, its range and the best point of the first panel in one sentence."""
    option = swept_options(frames["summary"])[0]
    points, metrics, _ = _points(frames, option)
    metric = metrics[0]
    best = points.nlargest(1, metric.column).iloc[0]
    name = line_names(points, option)[int(best["line"])]
    values = sorted({float(value) for value in points[option]})
    return (
        f"{', '.join(m.name for m in metrics)} over {SHORT[option]} "
        f"{option_text(option, values[0])} to {option_text(option, values[-1])}: the most is "
        f"{metric.format_value(float(best[metric.column]))} for {name} at {SHORT[option]} "
        f"{option_text(option, float(best[option]))}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the points that are drawn."""
    option = swept_options(frames["summary"])[0]
    points, metrics, kind = _points(frames, option)
    named = points.assign(label=points["line"].map(dict(enumerate(line_names(points, option)))))
    return (
        table(named, [metric.column for metric in metrics])
        .rename(columns={"p99": "p99_s"})
        .assign(latency=kind)
    )


SWEEP = Chart(
    name="sweep",
    title="Sweep: throughput and latency",
    frame_names=("summary",),
    draw=draw,
    help="IOPS and p99 latency along the option that jobs differ in: depth, block size or clones.",
    lack=lack,
    describe=describe,
    needs="jobs that differ in depth, block size or clones alone",
    numbers=numbers,
)
