"""Violin plot: the density of each run's IOPS over its intervals, repeats side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.present.formatting import counted_noun
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.selection import largest, unsteadiness
from volbench.present.plots.time.run_series import MISSING_SERIES
from volbench.units import format_count

_MOST = 12  # Panels in one chart
_PANEL_IN = 1.5
_CLOSE = 0.6  # Ratio of min to max from which the axis starts above zero
_POINTS = 80
_FEWEST = 5  # Minimum number of intervals for a density; fewer are dots
_MOST_TICKS = 20


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the intervals with IOPS."""
    rows = labels.labelled(frames["series"], frames["summary"])
    if rows.empty:
        return MISSING_SERIES
    known = rows[rows["iops"].notna()]
    return known if len(known) else "no IOPS over time: the logs hold none"


def build(rows: pd.DataFrame) -> Plot:
    """Draw a panel per job, a violin for each of its runs."""
    jobs = unsteadiness(rows, "line").sort_values("line")
    kept, fewer = largest(jobs, "spread", most=_MOST, what="jobs", criterion="the least steady")
    rows = rows[rows["line"].isin(kept["line"])]
    panels = [(job, _panel(job)) for _, job in rows.groupby("line", sort=True)]
    plot = labels.job_grid(panels, fewer=fewer, height_in=_PANEL_IN)
    return replace(
        plot,
        series=labels.colour_series(rows),
        legend="above",
        caption=(
            "Violin: density of one run's intervals; bar: median; dots: fewer than five",
            "An axis begins above zero where all its values lie close together",
            *plot.caption,
        ),
        rows=_statistics(rows),
    )


def _panel(job: pd.DataFrame) -> Panel:
    """Draw the runs of one job side by side."""
    runs = [run for _, run in job.groupby("run", sort=False)]
    colour = str(job[labels.colour_column(job)].iloc[0])
    values = [run["iops"].to_numpy(dtype=float) for run in runs]
    places = np.arange(len(runs))
    medians = pd.DataFrame({"_at": list(map(np.median, values))})
    medians = medians.assign(_low=places - 0.25, _high=places + 0.25)
    step = -(-len(runs) // _MOST_TICKS)
    x = Axis(
        "Repeat",
        scale="category",
        categories=tuple(str(int(run["repeat"].iloc[0])) for run in runs[::step]),
        ticks=tuple(float(place) for place in places[::step]),
        limits=(-0.6, len(runs) - 0.4),
    )
    low, high = float(job["iops"].min()), float(job["iops"].max())
    room = 0.15 * (high - low) or 0.05 * high or 1.0
    start = max(0.0, low - room) if low > _CLOSE * high else 0.0
    return Panel(
        x=x,
        y=Axis("IOPS", "count", limits=(start, high + room)),
        marks=(
            *(_run_mark(place, own, colour) for place, own in enumerate(values)),
            marks.Whiskers(medians, at="_at", width=1.4, has_caps=False),
        ),
    )


def _run_mark(place: int, values: np.ndarray, colour: str) -> marks.AnyMark:
    """Return the density of one run, or its dots where there is none to speak of."""
    if len(values) < _FEWEST or float(np.ptp(values)) == 0:
        dots = pd.DataFrame({"_x": float(place), "_y": values})
        return marks.Points(dots, size=4, series=colour)
    at, width = outline(values)
    shape = pd.DataFrame({"_x": at, "_low": place - width, "_high": place + width})
    return marks.Areas(shape, alpha=0.75, is_upright=True, series=colour)


def outline(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places from min to max, and half the width of the violin there, at most 0.4.

    The width is a Gaussian kernel density with Scott's bandwidth (D. W. Scott, *Multivariate
    Density Estimation*, 1992).
    """
    at = np.linspace(float(values.min()), float(values.max()), _POINTS)
    bandwidth = float(np.std(values, ddof=1)) * len(values) ** -0.2
    density = np.zeros(len(at))
    for part in np.array_split(values, -(-len(values) // 1000)):
        density += np.exp(-0.5 * ((at[:, None] - part) / bandwidth) ** 2).sum(axis=1)
    return at, 0.4 * density / density.max()


def _statistics(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each violin: its intervals, extremes, quartiles and median."""
    key = ["label", "job", "direction", "run", "repeat"]
    groups = rows.groupby(key, sort=False, dropna=False)["iops"]
    return groups.agg(
        intervals="count",
        min_iops="min",
        median_iops="median",
        max_iops="max",
        q1_iops=lambda values: values.quantile(0.25),
        q3_iops=lambda values: values.quantile(0.75),
    ).reset_index()


def describe(rows: pd.DataFrame) -> str:
    """Return the lowest and the highest median of a run in one sentence."""
    medians = rows.groupby(["run", "line"])["iops"].median()
    return (
        f"Spread of IOPS within {counted_noun(len(medians), 'run')}: medians from "
        f"{format_count(float(medians.min()))} to {format_count(float(medians.max()))}."
    )


VIOLIN = Kind(
    name="violin",
    title="Spread of IOPS in each repeat",
    frame_names=("summary", "series"),
    help="The density of each run's IOPS over its intervals, repeats side by side.",
    needs="a sample interval above 0",
    read=read,
    build=build,
    describe=describe,
)
