"""Many Runs on one axis: the logs' intervals enter, a line for each Run leaves, by metric."""

from __future__ import annotations

from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from volbench.analyse.frames.job_frames import KEY, keep_extremes, key_of, labels, of_measured
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.colours import MOST_ENTRIES, line_legend
from volbench.present.figures.series import METRICS, time_text
from volbench.present.figures.series import lack as lack_of_series
from volbench.present.formatting import printable
from volbench.present.style import PALETTE
from volbench.units import format_count

Dash = Literal["-", "--", ":", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")
PANEL_IN = 2.3


def run_lines(frames: Frames) -> pd.DataFrame:
    """Return the intervals of measured Runs with ``name`` (of the line) and ``line`` (from 0)."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    rows["name"] = rows["label"] + ", " + rows["direction"].fillna("?")
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    return rows


def draw(frames: Frames, title: str) -> Figure:
    """Draw IOPS, bandwidth and mean latency; repeats of a job share a colour."""
    rows = run_lines(frames)
    metrics = [metric for metric in METRICS if rows[metric.column].notna().any()]
    lines = rows.drop_duplicates("line")
    runs = rows.groupby(["run", "direction"]).ngroups
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            f"{runs} lines; repeats share colour and dash" if runs > len(lines) else "",
            "Long lines keep the least and the greatest value of each of 1,000 stretches",
        ),
        height_in=1.3 + max(PANEL_IN * len(metrics), 0.19 * min(len(lines), MOST_ENTRIES + 1)),
        width_in=12,
    )
    panels = figure.subplots(len(metrics), 1, squeeze=False, sharex=True)[:, 0]
    thin = 1.2 if runs <= 12 else 0.8
    for axes, metric in zip(panels, metrics, strict=True):
        for (_, _), run in rows.groupby(["run", "direction"], sort=False):
            x, y = keep_extremes(
                run["t_s"].to_numpy(dtype=float), run[metric.column].to_numpy(dtype=float)
            )
            colour, dash = _look(int(run["line"].iloc[0]))
            axes.plot(
                x, y, color=colour, linestyle=dash, linewidth=thin, label=str(run["name"].iloc[0])
            )
        axes.set_ylabel(metric.name)
        _scale(axes, rows, metric.column)
        metric.format_axis(axes.yaxis)
    handles = []
    for place, name in zip(lines["line"], lines["name"], strict=True):
        colour, dash = _look(int(place))
        label = wrap_name(printable(str(name)), columns=34)
        handles.append(Line2D([], [], color=colour, linestyle=dash, label=label))
    line_legend(panels[0], handles)
    panels[-1].set_xlabel("Time since the Run's I/O began")
    return figure


def _look(line: int) -> tuple[str, Dash]:
    """Return colour and dash of a line; both together tell 28 apart."""
    return PALETTE[line % len(PALETTE)], DASHES[line // len(PALETTE) % len(DASHES)]


def _scale(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    axes.set_ylim(0, float(rows[column].max()) * 1.06 or 1)
    axes.set_xlim(0, float(rows["t_s"].max()) or 1)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 3, 6, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))


def describe(frames: Frames) -> str:
    """Return how many lines there are, and the extremes of IOPS, in one sentence."""
    rows = run_lines(frames)
    runs = rows.groupby(["run", "direction"]).ngroups
    told = rows["iops"].dropna()
    ends = (
        f": between {format_count(float(told.min()))} and {format_count(float(told.max()))} IOPS"
        if len(told)
        else ""
    )
    return f"{runs} lines over time on one axis{ends}."


def numbers(frames: Frames) -> pd.DataFrame:
    """Return every interval, of which long lines show the extremes."""
    rows = run_lines(frames)
    return table(rows, ["run", "repeat", "t_s", *(metric.column for metric in METRICS)])


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    return lack_of_runs(frames) or lack_of_series(frames)


LINES = Chart(
    name="lines",
    title="All Runs over time",
    frame_names=("summary", "series"),
    draw=draw,
    help="IOPS, bandwidth and mean latency of many Runs over time, on one axis each.",
    lack=lack,
    describe=describe,
    needs="a sample interval above 0, or logs",
    numbers=numbers,
)
