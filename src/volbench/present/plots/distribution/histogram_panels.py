"""Latency histograms: bars of the share of I/Os in each step of latency, a panel per job."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, KEY, in_steps, key_of
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.distribution.job_grid import job_grid
from volbench.present.plots.distribution.latency_curves import MISSING_BINS, NEEDS_BINS
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.units import format_latency

_PER_DECADE = 20
"""Bars for each tenfold latency: fio's own bins, some 150, are finer than an eye can use."""
_MOST = 24
_PANEL_IN = 1.4


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Add up the bins of each job and direction into equal steps of the logarithm.

    Returns:
        A row for each step that holds an I/O: identity, ``low_s`` and ``high_s`` (its ends),
        ``count``, ``share`` (of the job's I/Os, 0 to 1), ``order`` (number of the job) and
        ``latency``.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=_PER_DECADE)
    if rows.empty:
        return MISSING_BINS
    key = [*key_of(rows, KEY), "label", *([COLOUR] if COLOUR in rows else [])]
    order = rows.groupby(key, sort=False, dropna=False).ngroup()
    by = ["order", *key, "step"]
    steps = rows.assign(order=order).groupby(by, dropna=False)["count"].sum().reset_index()
    return steps.assign(
        share=steps["count"] / steps.groupby("order")["count"].transform("sum"),
        low_s=10.0 ** (steps["step"] / _PER_DECADE),
        high_s=10.0 ** ((steps["step"] + 1) / _PER_DECADE),
        latency=LATENCY_KINDS[kind],
    )


def build(rows: pd.DataFrame) -> Plot:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    limits = log_limits([float(rows["low_s"].min()), float(rows["high_s"].max())], room=(0.9, 1.1))
    label = f"{rows['latency'].iloc[0].capitalize()} (logarithmic)"
    x = Axis(label, "latency", "log", limits)
    jobs = [job for _, job in rows.groupby("order", sort=True)]
    plot = job_grid(jobs, lambda job: _panel(job, x), most=_MOST, height_in=_PANEL_IN)
    return replace(
        plot,
        caption=(
            "Share of the job's I/Os in each step; repeats are added up; dashed: median and p99",
            *plot.caption,
        ),
        shared_x=True,
    )


def _panel(job: pd.DataFrame, x: Axis) -> Panel:
    """Draw the bars of one job, with its median and p99 to the step."""
    data = labels.identified(job, ["low_s", "high_s", "count", "share", "latency"])
    running = job["share"].cumsum()
    reached = [float(job.loc[running >= share - 1e-12, "high_s"].iloc[0]) for share in (0.5, 0.99)]
    lines = [
        marks.ReferenceLine(value, "x", series="muted", dash="dashed", width=0.9)
        for value in reached
    ]
    bars = marks.Bars(
        data,
        at="low_s",
        at_end="high_s",
        value="share",
        is_horizontal=False,
        series=labels.direction_role(job),
    )
    y = Axis("I/Os", "share", limits=(0.0, float(job["share"].max()) * 1.1))
    return Panel(x=x, y=y, marks=(bars, *lines))


def describe(rows: pd.DataFrame) -> str:
    """Return the commonest step of the fastest job in one sentence."""
    tops = rows.loc[rows.groupby("order")["share"].idxmax()].sort_values("low_s")
    first = tops.iloc[0]
    return (
        f"Histograms of {first['latency']} for {len(tops)} jobs: the fastest job "
        f"({first['label']}) has most I/Os between {format_latency(float(first['low_s']))} and "
        f"{format_latency(float(first['high_s']))}."
    )


HISTOGRAM = Kind(
    name="histogram",
    title="Latency histogram",
    frame_names=("summary", "histogram"),
    help="How many I/Os of each job took how long, on a logarithmic scale.",
    needs=NEEDS_BINS,
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
)
