"""Latency histograms: fio's bins enter, bars of the share of I/Os in each step leave, per job."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from volbench.analyse.frames.job_frames import COLOUR, KEY, in_steps, key_of
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.distribution import lack as lack_of_bins
from volbench.present.figures.latency import KINDS
from volbench.present.formatting import printable
from volbench.present.style import DIRECTIONS, GREY, log_latency_axis
from volbench.units import format_latency

PER_DECADE = 20
"""Bars for each tenfold latency: fio's own bins, some 150, are finer than an eye can use."""
MOST = 24
ABREAST = 2
PANEL_IN = 2.0


def steps(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Add up the bins of each job and direction into equal steps of the logarithm.

    Returns:
        A row for each step that holds an I/O: identity, ``low_s`` and ``high_s`` (its ends),
        ``count`` and ``share`` (of the job's I/Os, 0 to 1); and the kind of latency.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=PER_DECADE)
    key = [*key_of(rows, KEY), "label", *([COLOUR] if COLOUR in rows else [])]
    order = rows.groupby(key, sort=False, dropna=False).ngroup()
    by = ["order", *key, "step"]
    pooled_rows = rows.assign(order=order).groupby(by, dropna=False)["count"].sum().reset_index()
    total = pooled_rows.groupby("order")["count"].transform("sum")
    pooled_rows["share"] = pooled_rows["count"] / total
    pooled_rows["low_s"] = 10.0 ** (pooled_rows["step"] / PER_DECADE)
    pooled_rows["high_s"] = 10.0 ** ((pooled_rows["step"] + 1) / PER_DECADE)
    return pooled_rows, KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    rows, kind = steps(frames)
    jobs = [job for _, job in rows.groupby("order", sort=True)]
    shown = jobs[:MOST]
    more = len(jobs) - len(shown)
    lines = -(-len(shown) // ABREAST)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Share of the job's I/Os in each step; repeats are added up; dashed: median and p99",
            f"{more} further jobs are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.2 + PANEL_IN * lines,
        width_in=11,
    )
    columns = min(ABREAST, len(shown))
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True)
    low, high = float(rows["low_s"].min()), float(rows["high_s"].max())
    for axes, job in zip(panels.ravel(), shown, strict=False):
        _panel(axes, job)
        axes.set_xscale("log")
        axes.set_xlim(low * 0.9, max(high, 3 * low) * 1.1)
        log_latency_axis(axes.xaxis, low_s=low, high_s=max(high, 3 * low))
        axes.tick_params(labelbottom=True)
    for axes in panels.ravel()[len(shown) :]:
        axes.set_visible(False)
    for axes in panels.ravel()[max(0, len(shown) - columns) : len(shown)]:
        axes.set_xlabel(f"{kind.capitalize()} (logarithmic)")
    return figure


def _panel(axes: Axes, job: pd.DataFrame) -> None:
    """Draw the bars of one job, with its median and p99 as the steps tell them."""
    head = job.iloc[0]
    colour = DIRECTIONS.get(str(head["direction"]), GREY)
    axes.bar(
        job["low_s"], job["share"], width=job["high_s"] - job["low_s"], align="edge", color=colour
    )
    running = job["share"].cumsum()
    for share in (0.5, 0.99):
        reached = job[running >= share - 1e-12]
        axes.axvline(float(reached["high_s"].iloc[0]), color=GREY, linestyle="--", linewidth=0.9)
    axes.set_ylim(0, float(job["share"].max()) * 1.1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    name = wrap_name(printable(f"{head['label']}, {head['direction']}"), columns=48)
    axes.set_title(name)
    axes.set_ylabel("I/Os")


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    return lack_of_runs(frames) or lack_of_bins(frames)


def describe(frames: Frames) -> str:
    """Return the commonest step of each extreme in one sentence."""
    rows, kind = steps(frames)
    tops = rows.loc[rows.groupby("order")["share"].idxmax()].sort_values("low_s")
    first = tops.iloc[0]
    return (
        f"Histograms of {kind} for {len(tops)} jobs: the fastest job ({first['label']}) has most "
        f"I/Os between {format_latency(float(first['low_s']))} and "
        f"{format_latency(float(first['high_s']))}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the bars that are drawn."""
    rows, kind = steps(frames)
    rows = rows[rows["order"] < MOST]
    return table(rows, ["low_s", "high_s", "count", "share"]).assign(latency=kind)


HISTOGRAM = Chart(
    name="histogram",
    title="Latency histogram",
    frame_names=("summary", "histogram"),
    draw=draw,
    help="How many I/Os of each job took how long, on a logarithmic scale.",
    lack=lack,
    describe=describe,
    needs="latency bins (fio's json+)",
    numbers=numbers,
)
