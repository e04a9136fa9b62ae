"""Latency histograms: bars of the share of I/Os in each step of latency, a panel per job."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR, KEY, in_steps, key_of
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import AnyMark, Axis, Bars, Panel, Plot, ReferenceLine
from volbench.present.plots.distribution.job_grid import grid_panels, grid_size, jobs_left_out
from volbench.present.plots.distribution.latency_curves import NEEDS, missing
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import DIRECTIONS, identified
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.units import format_latency

PER_DECADE = 20
"""Bars for each tenfold latency: fio's own bins, some 150, are finer than an eye can use."""
MOST = 24
_PANEL_IN = 1.4


def histogram_steps(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Add up the bins of each job and direction into equal steps of the logarithm.

    Returns:
        A row for each step that holds an I/O: identity, ``low_s`` and ``high_s`` (its ends),
        ``count``, ``share`` (of the job's I/Os, 0 to 1) and ``order`` (number of the job); and the
        kind of latency.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=PER_DECADE)
    key = [*key_of(rows, KEY), "label", *([COLOUR] if COLOUR in rows else [])]
    order = rows.groupby(key, sort=False, dropna=False).ngroup()
    by = ["order", *key, "step"]
    steps = rows.assign(order=order).groupby(by, dropna=False)["count"].sum().reset_index()
    steps["share"] = steps["count"] / steps.groupby("order")["count"].transform("sum")
    steps["low_s"] = 10.0 ** (steps["step"] / PER_DECADE)
    steps["high_s"] = 10.0 ** ((steps["step"] + 1) / PER_DECADE)
    return steps, LATENCY_KINDS[kind]


def build(frames: Frames, _: Options) -> Plot:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    rows, kind = histogram_steps(frames)
    jobs = [job for _, job in rows.groupby("order", sort=True)]
    limits = log_limits([float(rows["low_s"].min()), float(rows["high_s"].max())], room=(0.9, 1.1))
    x = Axis(f"{kind.capitalize()} (logarithmic)", "latency", "log", limits)
    panels = grid_panels(jobs[:MOST], lambda job: _panel(job, x, kind))
    heights, widths = grid_size(len(panels), height_in=_PANEL_IN)
    return Plot(
        panels=panels,
        heights=heights,
        widths=widths,
        width_in=11,
        legend="",
        caption=(
            pooled(frames["summary"]),
            "Share of the job's I/Os in each step; repeats are added up; dashed: median and p99",
            jobs_left_out(len(jobs), MOST),
        ),
        shared_x=True,
    )


def _panel(job: pd.DataFrame, x: Axis, kind: str) -> Panel:
    """Draw the bars of one job, with its median and p99 to the step."""
    data = identified(job, ["low_s", "high_s", "count", "share"]).assign(latency=kind)
    direction = str(job["direction"].iloc[0])
    running = job["share"].cumsum()
    marks: list[AnyMark] = [
        Bars(
            data=data,
            at="low_s",
            at_end="high_s",
            value="share",
            is_horizontal=False,
            series=direction if direction in DIRECTIONS else "muted",
        )
    ]
    for share in (0.5, 0.99):
        reached = job[running >= share - 1e-12]
        marks.append(
            ReferenceLine(
                value=float(reached["high_s"].iloc[0]),
                axis="x",
                series="muted",
                dash="dashed",
                width=0.9,
            )
        )
    y = Axis("I/Os", "share", limits=(0.0, float(job["share"].max()) * 1.1))
    return Panel(x=x, y=y, marks=tuple(marks))


def describe(frames: Frames) -> str:
    """Return the commonest step of the fastest job in one sentence."""
    rows, kind = histogram_steps(frames)
    tops = rows.loc[rows.groupby("order")["share"].idxmax()].sort_values("low_s")
    first = tops.iloc[0]
    return (
        f"Histograms of {kind} for {len(tops)} jobs: the fastest job ({first['label']}) has most "
        f"I/Os between {format_latency(float(first['low_s']))} and "
        f"{format_latency(float(first['high_s']))}."
    )


HISTOGRAM = Kind(
    name="histogram",
    title="Latency histogram",
    frame_names=("summary", "histogram"),
    help="How many I/Os of each job took how long, on a logarithmic scale.",
    needs=NEEDS,
    missing=missing,
    build=build,
    describe=describe,
)
