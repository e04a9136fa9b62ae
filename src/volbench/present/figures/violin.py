"""How rates spread within each repeat: the logs' intervals enter, a violin a repeat leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from volbench.analyse.frames.job_frames import COLOUR, KEY, key_of, labels, of_measured
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.colours import colour_map, colour_of
from volbench.present.figures.series import lack as lack_of_series
from volbench.present.formatting import printable, records
from volbench.present.style import BLACK, count_axis
from volbench.units import format_count

MOST = 16
"""Panels in one chart."""
ABREAST = 2
PANEL_IN = 2.3
CLOSE = 0.6
"""When the least is at least this share of the greatest, the axis begins above zero."""
_POINTS = 80
FEWEST = 5
"""Intervals from which on a shape can be told; fewer are dots."""


def run_rates(frames: Frames) -> pd.DataFrame:
    """Return the intervals that told IOPS, with ``label`` and ``line`` (number of the job)."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows[rows["iops"].notna()]
    rows = rows.assign(label=labels(rows))
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    return rows


def draw(frames: Frames, title: str) -> Figure:
    """Draw a panel per job, a violin for each of its Runs."""
    rows = run_rates(frames)
    jobs = [job for _, job in rows.groupby("line", sort=True)]
    shown = jobs[:MOST]
    more = len(jobs) - len(shown)
    columns = min(ABREAST, len(shown))
    lines = -(-len(shown) // columns)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            "A violin is the density of one Run's intervals, bar: their median, dots: single "
            "intervals where there are fewer than five",
            "An axis begins above zero where all its values lie close together",
            f"{more} further jobs are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.2 + PANEL_IN * lines,
        width_in=11,
    )
    colours = colour_map(records(rows.drop_duplicates(["line", *_extra(rows)])))
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes, job in zip(panels.ravel(), shown, strict=False):
        _panel(axes, job, colour_of(records(job.head(1))[0], colours))
    for axes in panels.ravel()[len(shown) :]:
        axes.set_visible(False)
    return figure


def _extra(rows: pd.DataFrame) -> list[str]:
    return [COLOUR] if COLOUR in rows else []


def _panel(axes: Axes, job: pd.DataFrame, colour: str) -> None:
    """Draw the Runs of one job side by side, from zero."""
    names = []
    for place, (_, run) in enumerate(job.groupby("run", sort=False)):
        values = run["iops"].to_numpy(dtype=float)
        _violin(axes, place, values, colour)
        names.append(str(int(run["repeat"].iloc[0])))
    head = job.iloc[0]
    axes.set_title(wrap_name(printable(f"{head['label']}, {head['direction']}"), columns=48))
    least, most = float(job["iops"].min()), float(job["iops"].max())
    room = 0.15 * (most - least) or 0.05 * most or 1
    axes.set_ylim(max(0.0, least - room) if least > CLOSE * most else 0, most + room)
    axes.set_xlim(-0.6, len(names) - 0.4)
    step = -(-len(names) // 20)
    axes.set_xticks(range(0, len(names), step), names[::step])
    axes.set_xlabel("Repeat")
    axes.set_ylabel("IOPS")
    count_axis(axes.yaxis)
    axes.grid(visible=False, axis="x")


def _violin(axes: Axes, place: int, values: np.ndarray, colour: str) -> None:
    """Draw one Run: its density, or its dots where there is none to speak of."""
    if len(values) < FEWEST or float(np.ptp(values)) == 0:
        axes.plot(
            [place] * len(values), values, linestyle="none", marker="o", markersize=4, color=colour
        )
    else:
        at, width = outline(values)
        shape = np.concatenate(
            [np.column_stack([place - width, at]), np.column_stack([place + width, at])[::-1]]
        )
        axes.add_collection(PolyCollection([shape], facecolor=colour, alpha=0.75, zorder=2))
    middle = float(np.median(values))
    axes.plot(
        [place - 0.25, place + 0.25],
        [middle] * 2,
        color=BLACK,
        linewidth=1.4,
        zorder=3,
        label="median",
    )


def outline(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places from the least to the greatest value and half the width there, at most 0.4."""
    at = np.linspace(float(values.min()), float(values.max()), _POINTS)
    density = gaussian_kde(values)(at)
    return at, 0.4 * density / density.max()


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames) or lack_of_series(frames):
        return reason
    return "" if len(run_rates(frames)) else "no IOPS over time: the logs told none"


def describe(frames: Frames) -> str:
    """Return the least and the greatest median of a Run in one sentence."""
    medians = numbers(frames)["median_iops"]
    return (
        f"Spread of IOPS within {len(medians)} Runs: their medians lie between "
        f"{format_count(float(medians.min()))} and {format_count(float(medians.max()))}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return a row for each violin: its intervals, extremes, quartiles and median."""
    rows = run_rates(frames)
    rows = rows[rows["line"] < MOST]
    key = [name for name in ("label", "job", "direction", "run", "repeat") if name in rows]
    groups = rows.groupby(key, sort=False, dropna=False)["iops"]
    told = groups.agg(["count", "min", "median", "max"])
    told["q1"], told["q3"] = groups.quantile(0.25), groups.quantile(0.75)
    named = {"count": "intervals"} | {
        name: f"{name}_iops" for name in ("min", "median", "max", "q1", "q3")
    }
    return table(
        told.rename(columns=named).reset_index(),
        ["run", "repeat", *named.values()],
    )


VIOLIN = Chart(
    name="violin",
    title="Spread of IOPS in each repeat",
    frame_names=("summary", "series"),
    draw=draw,
    help="The density of each Run's IOPS over its intervals, repeats side by side.",
    lack=lack,
    describe=describe,
    needs="a sample interval above 0",
    numbers=numbers,
)
