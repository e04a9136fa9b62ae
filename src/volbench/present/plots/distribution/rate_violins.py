"""Violin plot: the density of each run's IOPS over its intervals, repeats side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import KEY, key_of, labels, of_measured
from volbench.present.plots.description import AnyMark, Areas, Axis, Panel, Plot, Points, Whiskers
from volbench.present.plots.distribution.job_grid import grid_panels, grid_size, jobs_left_out
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import colour_column, colour_series, identified
from volbench.present.plots.time.run_series import missing as missing_series
from volbench.units import format_count

MOST = 16
"""Panels in one chart."""
_PANEL_IN = 1.5
_CLOSE = 0.6
"""From this share of min to max on, the axis begins above zero."""
_POINTS = 80
_FEWEST = 5
"""Intervals from which on a shape can be drawn; fewer are dots."""
_MOST_TICKS = 20


def run_rates(frames: Frames) -> pd.DataFrame:
    """Return the intervals with IOPS, with ``label`` and ``line`` (number of the job)."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows[rows["iops"].notna()]
    rows = rows.assign(label=labels(rows))
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    return rows


def build(frames: Frames, _: Options) -> Plot:
    """Draw a panel per job, a violin for each of its runs."""
    rows = run_rates(frames)
    jobs = [job for _, job in rows.groupby("line", sort=True)]
    shown = jobs[:MOST]
    heights, widths = grid_size(len(shown), height_in=_PANEL_IN)
    return Plot(
        panels=grid_panels(shown, _panel),
        heights=heights,
        widths=widths,
        width_in=11,
        series=colour_series(rows),
        caption=(
            "Violin: density of one run's intervals; bar: median; dots: fewer than five",
            "An axis begins above zero where all its values lie close together",
            jobs_left_out(len(jobs), MOST),
        ),
        rows=_statistics(rows[rows["line"] < MOST]),
    )


def _panel(job: pd.DataFrame) -> Panel:
    """Draw the runs of one job side by side."""
    runs = [run for _, run in job.groupby("run", sort=False)]
    colour = str(job[colour_column(job)].iloc[0])
    values = [run["iops"].to_numpy(dtype=float) for run in runs]
    marks: list[AnyMark] = [_run_mark(place, own, colour) for place, own in enumerate(values)]
    places = np.arange(len(runs))
    medians = pd.DataFrame(
        {
            "_median": [float(np.median(own)) for own in values],
            "_from": places - 0.25,
            "_to": places + 0.25,
        }
    )
    marks.append(
        Whiskers(data=medians, at="_median", low="_from", high="_to", width=1.4, has_caps=False)
    )
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
    return Panel(x=x, y=Axis("IOPS", "count", limits=(start, high + room)), marks=tuple(marks))


def _run_mark(place: int, values: np.ndarray, colour: str) -> AnyMark:
    """Return the density of one run, or its dots where there is none to speak of."""
    if len(values) < _FEWEST or float(np.ptp(values)) == 0:
        dots = pd.DataFrame({"_x": float(place), "_y": values})
        return Points(data=dots, x="_x", y="_y", size=4, series=colour)
    at, width = outline(values)
    shape = pd.DataFrame({"_at": at, "_low": place - width, "_high": place + width})
    return Areas(
        data=shape, x="_at", low="_low", high="_high", alpha=0.75, is_upright=True, series=colour
    )


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
    key = [name for name in ("label", "job", "direction", "run", "repeat") if name in rows]
    groups = rows.groupby(key, sort=False, dropna=False)["iops"]
    found = groups.agg(["count", "min", "median", "max"])
    found["q1"], found["q3"] = groups.quantile(0.25), groups.quantile(0.75)
    names = {"count": "intervals"} | {
        name: f"{name}_iops" for name in ("min", "median", "max", "q1", "q3")
    }
    statistics = found.rename(columns=names).reset_index()
    return identified(statistics, ["run", "repeat", *names.values()])


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_series(frames):
        return reason
    return "" if len(run_rates(frames)) else "no IOPS over time: the logs hold none"


def describe(frames: Frames) -> str:
    """Return the lowest and the highest median of a run in one sentence."""
    medians = _statistics(run_rates(frames))["median_iops"]
    return (
        f"Spread of IOPS within {len(medians)} runs: their medians lie between "
        f"{format_count(float(medians.min()))} and {format_count(float(medians.max()))}."
    )


VIOLIN = Kind(
    name="violin",
    title="Spread of IOPS in each repeat",
    frame_names=("summary", "series"),
    help="The density of each run's IOPS over its intervals, repeats side by side.",
    needs="a sample interval above 0",
    missing=missing,
    build=build,
    describe=describe,
)
