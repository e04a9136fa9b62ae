"""Latency percentiles per job: the summary enters, a row of points per job and direction leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.present.figures.arrange import side_by_side
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    job_names,
    lack_of_runs,
    new_figure,
    rows_height_in,
    table,
)
from volbench.present.formatting import Row, number, records, text
from volbench.present.style import GREY, PALE, log_latency_axis
from volbench.units import format_latency

POINTS = {
    "p50": ("median", "o", "#56B4E9"),
    "p90": ("p90", "s", "#0072B2"),
    "p99": ("p99", "D", "#E69F00"),
    "p999": ("p99.9", "^", "#D55E00"),
    "max": ("greatest", "X", "#222222"),
}
"""Column to name, marker and colour, from fast to slow."""
KINDS = {"lat": "total latency", "clat": "completion latency"}


def latency_rows(frames: Frames) -> tuple[list[Row], str]:
    """Return a row per job and direction with the columns of `POINTS`, and the kind's name."""
    summary, kind = with_latencies(frames["summary"], tuple(POINTS))
    rows = records(side_by_side(per_job(summary, tuple(POINTS))))
    told = [row for row in rows if not all(math.isnan(number(row, name)) for name in POINTS)]
    return list(told), KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw the percentiles of each job along a logarithmic axis."""
    rows, kind = latency_rows(frames)
    names = job_names(rows)
    repeated = any(number(row, "repeats") > 1 for row in rows)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Points: median of the repeats" * repeated,
        ),
        height_in=1.7 + rows_height_in(names),
    )
    axes = figure.add_subplot()
    axes.set_xscale("log")
    _draw_rows(axes, rows)
    for name, (label, marker, colour) in POINTS.items():
        axes.plot(
            [number(row, name) for row in rows],
            range(len(rows)),
            linestyle="none",
            marker=marker,
            color=colour,
            markersize=6.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=label,
            zorder=3,
        )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    _scale(axes, rows)
    axes.set_xlabel(f"{kind.capitalize()} (logarithmic)")
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(axes, y_in=0.1),
        ncols=len(POINTS),
        borderaxespad=0,
    )
    return figure


def _draw_rows(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw a pale line from the least to the greatest point of each row."""
    for place, row in enumerate(rows):
        told = [value for name in POINTS if not math.isnan(value := number(row, name))]
        axes.plot([min(told), max(told)], [place] * 2, color=PALE, linewidth=5, zorder=1)
        if number(row, "max") == max(told):
            axes.annotate(
                format_latency(max(told)),
                (max(told), place),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=GREY,
            )


def _scale(axes: Axes, rows: Sequence[Row]) -> None:
    """Set the ends of the axis with room for the text at the right."""
    values = [v for row in rows for name in POINTS if (v := number(row, name)) > 0]
    low, high = min(values), max(values)
    span = max(high / low, 3.0)
    axes.set_xlim(low / span**0.04, low * span**1.14)
    log_latency_axis(axes.xaxis, low_s=low, high_s=low * span)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    rows, _ = latency_rows(frames)
    if not any(number(row, name) > 0 for row in rows for name in POINTS):
        return "no latency: no Run told any (dd does not measure it)"
    return ""


def describe(frames: Frames) -> str:
    """Return the fastest and slowest p99 in one sentence."""
    rows, kind = latency_rows(frames)
    told = sorted(
        (row for row in rows if not math.isnan(number(row, "p99"))),
        key=lambda row: number(row, "p99"),
    )
    if not told:
        worst = max(rows, key=lambda row: number(row, "max"))
        value = format_latency(number(worst, "max"))
        return f"Greatest {kind} of {len(rows)} results: {value}, {text(worst, 'label')}."
    return (
        f"Percentiles of {kind} for {len(told)} results: p99 from {_p99(told[0])} "
        f"to {_p99(told[-1])}."
    )


def _p99(row: Row) -> str:
    value = format_latency(number(row, "p99"))
    return f"{value} ({text(row, 'label')}, {text(row, 'direction')})"


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the points that are drawn, in seconds."""
    rows, kind = latency_rows(frames)
    return (
        table(rows, list(POINTS))
        .rename(columns={name: f"{name}_s" for name in POINTS})
        .assign(latency=kind)
    )


LATENCY = Chart(
    name="latency",
    title="Latency percentiles per job",
    frame_names=("summary",),
    draw=draw,
    help="Median, p90, p99, p99.9 and greatest latency of each job and direction.",
    lack=lack,
    describe=describe,
    needs="latencies of fio",
    numbers=numbers,
)
