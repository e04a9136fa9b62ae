"""How latency spreads from repeat to repeat: fio's bins enter, a ridge for each repeat leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.analyse.frames.job_frames import KEY, in_steps, key_of
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

MOST = 12
MOST_RIDGES = 30
ABREAST = 2
PER_DECADE = 50
_HIGH = 1.7
"""Height of the highest ridge, in distances between two ridges."""


def ridges(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return the share of each Run's I/Os in equal steps of the logarithm.

    Returns:
        A row per Run, direction and step: ``label``, ``line`` (number of the job), ``run``,
        ``repeat``, ``direction``, ``low_s``, ``count``, ``share``; and the kind of latency.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=PER_DECADE)
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    key = ["line", "label", "direction", "run", "repeat", "step"]
    told = rows.groupby(key, sort=False, dropna=False)["count"].sum().reset_index()
    total = told.groupby(["line", "run"])["count"].transform("sum")
    told["share"] = told["count"] / total
    told["low_s"] = 10.0 ** (told["step"] / PER_DECADE)
    return told.sort_values(["line", "repeat", "run", "step"], ignore_index=True), KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw a panel per job, a ridge for each Run, the first repeat on top."""
    rows, kind = ridges(frames)
    jobs = [job for _, job in rows.groupby("line", sort=True)]
    shown = jobs[:MOST]
    more = len(jobs) - len(shown)
    columns = min(ABREAST, len(shown))
    lines = -(-len(shown) // columns)
    most = min(MOST_RIDGES, max(job["run"].nunique() for job in shown))
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            "A ridge is the share of one Run's I/Os at each latency; all of a panel have one scale",
            f"{more} further jobs are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.2 + lines * (1.1 + 0.26 * most),
        width_in=11,
    )
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes, job in zip(panels.ravel(), shown, strict=False):
        _panel(axes, job, kind)
    for axes in panels.ravel()[len(shown) :]:
        axes.set_visible(False)
    return figure


def _panel(axes: Axes, job: pd.DataFrame, kind: str) -> None:
    runs = [run for _, run in job.groupby("run", sort=False)][:MOST_RIDGES]
    top = max(float(run["share"].max()) for run in runs)
    first, last = int(job["step"].min()) - 1, int(job["step"].max()) + 1
    steps = np.arange(first, last + 1)
    x = 10.0 ** ((steps + 0.5) / PER_DECADE)
    colour = DIRECTIONS.get(str(job["direction"].iloc[0]), GREY)
    for place, run in enumerate(runs):
        share = run.set_index("step")["share"].reindex(steps, fill_value=0).to_numpy(dtype=float)
        base = float(len(runs) - place)
        height = base + _HIGH * share / top
        axes.fill_between(x, base, height, color=colour, alpha=0.55, linewidth=0, zorder=place + 2)
        axes.plot(x, height, color="white", linewidth=1.0, zorder=place + 2)
    axes.set_xscale("log")
    axes.set_xlim(float(x[0]), float(x[-1]))
    log_latency_axis(axes.xaxis, low_s=float(x[0]), high_s=float(x[-1]))
    axes.set_ylim(0.8, len(runs) + _HIGH + 0.1)
    names = [f"repeat {int(run['repeat'].iloc[0])}" for run in runs]
    axes.set_yticks([len(runs) - n for n in range(len(runs))], names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    head = job.iloc[0]
    axes.set_title(wrap_name(printable(f"{head['label']}, {head['direction']}"), columns=48))
    axes.set_xlabel(f"{kind.capitalize()} (logarithmic)")
    axes.spines["left"].set_visible(False)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    return lack_of_runs(frames) or lack_of_bins(frames)


def describe(frames: Frames) -> str:
    """Return how far the commonest latency moves between Runs, in one sentence."""
    rows, kind = ridges(frames)
    tops = rows.loc[rows.groupby(["line", "run"])["share"].idxmax(), "low_s"]
    return (
        f"Ridges of {kind} for {len(tops)} Runs: the commonest lies between "
        f"{format_latency(float(tops.min()))} and {format_latency(float(tops.max()))}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the ridges: the share of each Run's I/Os from ``low_s`` to the next step."""
    rows, kind = ridges(frames)
    rows = rows[rows["line"] < MOST]
    return table(rows, ["run", "repeat", "low_s", "count", "share"]).assign(latency=kind)


RIDGELINE = Chart(
    name="ridgeline",
    title="Latency from repeat to repeat",
    frame_names=("summary", "histogram"),
    draw=draw,
    help="The distribution of latency in each repeat, one ridge above the other.",
    lack=lack,
    describe=describe,
    needs="latency bins (fio's json+)",
    numbers=numbers,
)
