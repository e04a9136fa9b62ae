"""Ridgeline plot: the latency distribution of each repeat, one ridge above the other."""

from __future__ import annotations

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import KEY, in_steps, key_of
from volbench.present.plots.description import AnyMark, Areas, Axis, Lines, Panel, Plot
from volbench.present.plots.distribution.job_grid import grid_panels, grid_size, jobs_left_out
from volbench.present.plots.distribution.latency_curves import NEEDS, missing
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import DIRECTIONS, identified
from volbench.present.plots.metrics import LATENCY_KINDS
from volbench.units import format_latency

MOST = 12
MOST_RIDGES = 30
PER_DECADE = 50
_HIGH = 1.7
"""Height of the highest ridge, in distances between two ridges."""


def ridges(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return the share of each run's I/Os in equal steps of the logarithm.

    Returns:
        A row per run, direction and step: ``label``, ``line`` (number of the job), ``run``,
        ``repeat``, ``direction``, ``low_s``, ``count``, ``share``; and the kind of latency.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=PER_DECADE)
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    key = ["line", "label", "direction", "run", "repeat", "step"]
    shares = rows.groupby(key, sort=False, dropna=False)["count"].sum().reset_index()
    shares["share"] = shares["count"] / shares.groupby(["line", "run"])["count"].transform("sum")
    shares["low_s"] = 10.0 ** (shares["step"] / PER_DECADE)
    ordered = shares.sort_values(["line", "repeat", "run", "step"], ignore_index=True)
    return ordered, LATENCY_KINDS[kind]


def build(frames: Frames, _: Options) -> Plot:
    """Draw a panel per job, a ridge for each run, the first repeat on top."""
    rows, kind = ridges(frames)
    jobs = [job for _, job in rows.groupby("line", sort=True)]
    shown = jobs[:MOST]
    most = min(MOST_RIDGES, max(job["run"].nunique() for job in shown))
    heights, widths = grid_size(len(shown), height_in=0.5 + 0.26 * most)
    return Plot(
        panels=grid_panels(shown, lambda job: _panel(job, kind)),
        heights=heights,
        widths=widths,
        width_in=11,
        legend="",
        caption=(
            "A ridge is the share of one run's I/Os at each latency; all of a panel have one scale",
            jobs_left_out(len(jobs), MOST),
        ),
        rows=identified(
            rows[rows["line"] < MOST], ["run", "repeat", "low_s", "count", "share"]
        ).assign(latency=kind),
    )


def _panel(job: pd.DataFrame, kind: str) -> Panel:
    runs = [run for _, run in job.groupby("run", sort=False)][:MOST_RIDGES]
    top = max(float(run["share"].max()) for run in runs)
    steps = np.arange(int(job["step"].min()) - 1, int(job["step"].max()) + 2)
    x = 10.0 ** ((steps + 0.5) / PER_DECADE)
    direction = str(job["direction"].iloc[0])
    colour = direction if direction in DIRECTIONS else "muted"
    marks: list[AnyMark] = []
    for place, run in enumerate(runs):
        share = run.set_index("step")["share"].reindex(steps, fill_value=0).to_numpy(dtype=float)
        base = float(len(runs) - place)
        ridge = pd.DataFrame({"_x": x, "_low": base, "_high": base + _HIGH * share / top})
        marks.append(Areas(data=ridge, x="_x", low="_low", high="_high", alpha=0.55, series=colour))
        marks.append(Lines(data=ridge, x="_x", y="_high", width=1.0, series="paper"))
    names = tuple(f"repeat {int(run['repeat'].iloc[0])}" for run in runs)
    y = Axis(
        scale="category",
        categories=names,
        ticks=tuple(float(len(runs) - place) for place in range(len(runs))),
        limits=(0.8, len(runs) + _HIGH + 0.1),
    )
    ends = (float(x[0]), float(x[-1]))
    return Panel(
        x=Axis(f"{kind.capitalize()} (logarithmic)", "latency", "log", ends),
        y=y,
        marks=tuple(marks),
    )


def describe(frames: Frames) -> str:
    """Return how far the commonest latency moves between runs, in one sentence."""
    rows, kind = ridges(frames)
    tops = rows.loc[rows.groupby(["line", "run"])["share"].idxmax(), "low_s"]
    return (
        f"Ridges of {kind} for {len(tops)} runs: the commonest lies between "
        f"{format_latency(float(tops.min()))} and {format_latency(float(tops.max()))}."
    )


RIDGELINE = Kind(
    name="ridgeline",
    title="Latency from repeat to repeat",
    frame_names=("summary", "histogram"),
    help="The distribution of latency in each repeat, one ridge above the other.",
    needs=NEEDS,
    missing=missing,
    build=build,
    describe=describe,
)
