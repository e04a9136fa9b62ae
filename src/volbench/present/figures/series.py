"""Series: the logs' intervals enter, IOPS, bandwidth and latency over time leave, job by job."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from volbench.analyse.frames.job_frames import keep_extremes, labels, measured, of_measured
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    lack_of_runs,
    new_figure,
    wrap_name,
)
from volbench.present.figures.limits import declared, draw_along
from volbench.present.figures.sweep import BANDWIDTH, IOPS, Metric
from volbench.present.formatting import printable, records
from volbench.present.style import DIRECTIONS, GREY, linear_latency_axis
from volbench.units import format_count, format_duration, format_latency

LATENCY = Metric("lat_mean_s", "Mean latency", linear_latency_axis, format_latency)
METRICS = (IOPS, BANDWIDTH, LATENCY)
DASHES = ("-", "--", ":", "-.")
PANEL_IN = 1.75


def _jobs(frames: Frames) -> list[tuple[str, pd.DataFrame]]:
    """Return the intervals of each job under its label, in the order of appearance."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    return [(str(label), job) for label, job in rows.groupby("label", sort=False)]


def draw(frames: Frames, title: str) -> Figure:
    """Draw a row of panels per job; repeats are drawn over each other in other dashes."""
    jobs = _jobs(frames)
    repeats = int(frames["series"]["repeat"].max())
    note = "Solid: repeat 1; dashed, dotted: further repeats" * (repeats > 1)
    figure = new_figure(
        title=title,
        note=caption(frames["summary"], note),
        height_in=1.2 + PANEL_IN * len(jobs),
        width_in=12,
    )
    grid = figure.subplots(len(jobs), len(METRICS), squeeze=False)
    for panels, (label, job) in zip(grid, jobs, strict=True):
        panels[0].set_title(wrap_name(printable(label), columns=40), fontweight="bold")
        for axes, metric in zip(panels, METRICS, strict=True):
            _panel(axes, job, metric)
            _limits(axes, job, frames["summary"], metric)
    for axes, metric in zip(grid[0], METRICS, strict=True):
        if metric is not IOPS:
            axes.set_title(" ")
    found = sorted({str(name) for _, job in jobs for name in job["direction"]})
    grid[0, -1].legend(
        handles=[Line2D([], [], color=DIRECTIONS.get(name, GREY), label=name) for name in found],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(grid[0, -1], y_in=0.05),
        ncols=len(found),
        borderaxespad=0,
    )
    for axes in grid[-1]:
        axes.set_xlabel("Time since the Run's I/O began")
    return figure


def _panel(axes: Axes, job: pd.DataFrame, metric: Metric) -> None:
    """Draw one metric of one job, zeros as zeros and what was not told as a gap."""
    for (_, direction), run in job.groupby(["run", "direction"], sort=False):
        x, y = keep_extremes(
            run["t_s"].to_numpy(dtype=float), run[metric.column].to_numpy(dtype=float)
        )
        repeat = int(run["repeat"].iloc[0])
        axes.plot(
            x,
            y,
            color=DIRECTIONS.get(str(direction), GREY),
            linestyle=DASHES[(repeat - 1) % len(DASHES)],
            linewidth=1.2,
            marker="o" if len(x) < 15 else "",
            markersize=3,
            label=str(direction),
        )
    told = job[metric.column].notna()
    top = float(job.loc[told, metric.column].max()) if told.any() else 0.0
    axes.set_ylim(0, top * 1.08 or 1)
    axes.set_xlim(0, float(job["t_s"].max()) or 1)
    axes.set_ylabel(metric.name)
    metric.format_axis(axes.yaxis)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 3, 6, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    if not told.any():
        axes.annotate("not told", (0.5, 0.5), xycoords="axes fraction", ha="center", color=GREY)


def time_text(seconds: float) -> str:
    """Return a time short enough for a tick: ``5m`` for ``5m 00s``."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")


def _limits(axes: Axes, job: pd.DataFrame, summary: pd.DataFrame, metric: Metric) -> None:
    if metric.limit:
        rows = measured(summary)
        rows = rows[rows["run"].isin(job["run"])].drop_duplicates(metric.limit)
        draw_along(axes, declared(records(rows), metric.limit, metric.format_value))


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if len(of_measured(frames["series"], frames["summary"])):
        return ""
    return "no series: the campaign was run with sample 0, or with dd alone"


def describe(frames: Frames) -> str:
    """Return the length and the extremes of IOPS in one sentence."""
    jobs = _jobs(frames)
    rows = pd.concat([job for _, job in jobs], ignore_index=True)
    sentence = f"IOPS, bandwidth and mean latency over time for {len(jobs)} jobs"
    sentence += f", up to {format_duration(float(rows['t_s'].max()))} long"
    if rows["iops"].isna().all():
        return sentence + "."
    low, high = float(rows["iops"].min()), float(rows["iops"].max())
    return f"{sentence}: between {format_count(low)} and {format_count(high)} IOPS in an interval."


SERIES = Chart(
    name="series",
    title="IOPS, bandwidth and latency over time",
    frame_names=("summary", "series"),
    draw=draw,
    help="IOPS, bandwidth and mean latency over time, a row of panels per job.",
    lack=lack,
    describe=describe,
    needs="a sample interval above 0",
)
