"""Latency over time: counts by time and latency enter, a map in colours for each Run leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from volbench.analyse.frames.job_frames import labels, of_measured
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.series import time_text
from volbench.present.formatting import printable
from volbench.present.style import BLACK, PALETTE, log_latency_axis
from volbench.units import format_count, format_latency

MOST = 12
PANEL_IN = 2.6
LINES = {"lat_p50_s": ("median", BLACK), "lat_p99_s": ("p99", PALETTE[1])}


def maps(frames: Frames) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells of each Run and direction under its name."""
    rows = of_measured(frames["latency_map"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    several = rows["repeat"].astype("float64").max() > 1
    found = []
    for (_, direction), run in rows.groupby(["run", "direction"], sort=False):
        head = run.iloc[0]
        name = f"{head['label']}, {direction}"
        found.append((f"{name}, repeat {head['repeat']}" if several else name, run))
    return found


def draw(frames: Frames, title: str) -> Figure:
    """Draw a map for each Run: darker where more I/Os took so long."""
    found = maps(frames)
    shown = found[:MOST]
    more = len(found) - len(shown)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            "Darker: more I/Os, on a logarithmic scale. White: none",
            f"{more} further Runs are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.2 + PANEL_IN * len(shown),
        width_in=11,
    )
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    series = of_measured(frames["series"], frames["summary"])
    for axes, (name, run) in zip(panels, shown, strict=True):
        _map(axes, run)
        _lines(axes, series, run)
        axes.set_title(wrap_name(printable(name), columns=90))
        axes.set_ylabel("Latency\n(logarithmic)")
    panels[-1].set_xlabel("Time since the Run's I/O began")
    return figure


def _map(axes: Axes, run: pd.DataFrame) -> None:
    """Draw the cells of a Run on their true edges; stretches and bins without I/Os stay white."""
    times = np.unique(run[["from_s", "t_s"]].to_numpy(dtype=float))
    edges = np.unique(run[["bin_low_s", "bin_high_s"]].to_numpy(dtype=float))
    grid = np.full((len(edges) - 1, len(times) - 1), np.nan)
    column = np.searchsorted(times, run["from_s"].to_numpy(dtype=float))
    row = np.searchsorted(edges, run["bin_low_s"].to_numpy(dtype=float))
    grid[row, column] = run["count"].to_numpy(dtype=float)
    most = float(np.nanmax(grid))
    axes.pcolormesh(
        times,
        np.maximum(edges, 1e-9),
        np.ma.masked_invalid(grid),
        norm=LogNorm(1, max(most, 2)),
        cmap="Blues",
        rasterized=True,
    )
    axes.set_yscale("log")
    low, high = max(float(edges[0]), 1e-9), float(edges[-1])
    high = max(high, 3 * low)
    axes.set_ylim(low * 0.9, high * 1.1)
    log_latency_axis(axes.yaxis, low_s=low, high_s=high)
    axes.set_xlim(0, float(times[-1]))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 3, 6, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
    axes.grid(visible=False)


def _lines(axes: Axes, series: pd.DataFrame, run: pd.DataFrame) -> None:
    """Draw median and p99 of the intervals over the map."""
    head = run.iloc[0]
    same = (series["run"] == head["run"]) & (series["direction"] == head["direction"])
    own = series[same & (series["group"] == head["group"])]
    for column, (name, colour) in LINES.items():
        if own[column].notna().any():
            axes.plot(own["t_s"], own[column], color=colour, linewidth=0.9, label=name)
    if axes.lines:
        axes.legend(loc="upper right", ncols=2, fontsize=7.5)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if len(of_measured(frames["latency_map"], frames["summary"])):
        return ""
    return (
        "no latencies over time: logs hold means only; set latency_log in the profile, or import "
        "logs of single I/Os (log_avg_msec=0) or of histograms (write_hist_log and log_hist_msec)"
    )


def describe(frames: Frames) -> str:
    """Return how many I/Os there are and the extremes of their latency in one sentence."""
    rows = pd.concat([run for _, run in maps(frames)], ignore_index=True)
    low, high = float(rows["bin_low_s"].min()), float(rows["bin_high_s"].max())
    return (
        f"Latency over time of {format_count(float(rows['count'].sum()))} I/Os in "
        f"{rows['run'].nunique()} Runs, between {format_latency(low)} and {format_latency(high)}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the cells of the maps that are drawn."""
    rows = pd.concat([run for _, run in maps(frames)[:MOST]], ignore_index=True)
    return table(rows, ["run", "repeat", "from_s", "t_s", "bin_low_s", "bin_high_s", "count"])


LATENCY_MAP = Chart(
    name="latency-map",
    title="Latency over time",
    frame_names=("summary", "series", "latency_map"),
    draw=draw,
    help="How many I/Os took how long, moment by moment, with median and p99 over it.",
    lack=lack,
    describe=describe,
    needs="logs of single I/Os or of histograms, as volbench import reads them",
    numbers=numbers,
)
