"""Ridgeline plot: the latency distribution of each repeat, one ridge above the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import KEY, in_steps, key_of
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.distribution.job_grid import job_grid
from volbench.present.plots.distribution.latency_curves import MISSING_BINS, NEEDS_BINS
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS
from volbench.units import format_latency

_MOST = 12
_MOST_RIDGES = 30
_PER_DECADE = 50
_HIGH = 1.7
"""Height of the highest ridge, in distances between two ridges."""


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the share of each run's I/Os in equal steps of the logarithm.

    Returns:
        A row per run, direction and step: ``label``, ``line`` (number of the job), ``run``,
        ``repeat``, ``direction``, ``low_s``, ``count``, ``share`` and ``latency``.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=_PER_DECADE)
    if rows.empty:
        return MISSING_BINS
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    key = ["line", "label", "direction", "run", "repeat", "step"]
    shares = rows.groupby(key, sort=False, dropna=False)["count"].sum().reset_index()
    shares["share"] = shares["count"] / shares.groupby(["line", "run"])["count"].transform("sum")
    shares["low_s"] = 10.0 ** (shares["step"] / _PER_DECADE)
    ordered = shares.sort_values(["line", "repeat", "run", "step"], ignore_index=True)
    return ordered.assign(latency=LATENCY_KINDS[kind])


def build(rows: pd.DataFrame) -> Plot:
    """Draw a panel per job, a ridge for each run, the first repeat on top."""
    jobs = [job for _, job in rows.groupby("line", sort=True)]
    most = min(_MOST_RIDGES, max(job["run"].nunique() for job in jobs[:_MOST]))
    plot = job_grid(jobs, _panel, most=_MOST, height_in=0.5 + 0.26 * most)
    numbers = ["run", "repeat", "low_s", "count", "share", "latency"]
    return replace(
        plot,
        caption=(
            "A ridge is the share of one run's I/Os at each latency; all of a panel have one scale",
            *plot.caption,
        ),
        rows=labels.identified(rows[rows["line"] < _MOST], numbers),
    )


def _panel(job: pd.DataFrame) -> Panel:
    runs = [run for _, run in job.groupby("run", sort=False)][:_MOST_RIDGES]
    top = max(float(run["share"].max()) for run in runs)
    steps = np.arange(int(job["step"].min()) - 1, int(job["step"].max()) + 2)
    x = 10.0 ** ((steps + 0.5) / _PER_DECADE)
    parts: list[marks.AnyMark] = []
    for place, run in enumerate(runs):
        share = run.set_index("step")["share"].reindex(steps, fill_value=0).to_numpy(dtype=float)
        base = float(len(runs) - place)
        ridge = pd.DataFrame({"_x": x, "_low": base, "_high": base + _HIGH * share / top})
        parts.append(marks.Areas(ridge, alpha=0.55, series=labels.direction_role(job)))
        parts.append(marks.Lines(ridge, y="_high", width=1.0, series="paper"))
    y = Axis(
        scale="category",
        categories=tuple(f"repeat {int(run['repeat'].iloc[0])}" for run in runs),
        ticks=tuple(float(len(runs) - place) for place in range(len(runs))),
        limits=(0.8, len(runs) + _HIGH + 0.1),
    )
    label = f"{job['latency'].iloc[0].capitalize()} (logarithmic)"
    ends = (float(x[0]), float(x[-1]))
    return Panel(x=Axis(label, "latency", "log", ends), y=y, marks=tuple(parts))


def describe(rows: pd.DataFrame) -> str:
    """Return how far the commonest latency moves between runs, in one sentence."""
    tops = rows.loc[rows.groupby(["line", "run"])["share"].idxmax(), "low_s"]
    return (
        f"Ridges of {rows['latency'].iloc[0]} for {len(tops)} runs: the commonest lies between "
        f"{format_latency(float(tops.min()))} and {format_latency(float(tops.max()))}."
    )


RIDGELINE = Kind(
    name="ridgeline",
    title="Latency from repeat to repeat",
    frame_names=("summary", "histogram"),
    help="The distribution of latency in each repeat, one ridge above the other.",
    needs=NEEDS_BINS,
    read=read,
    build=build,
    describe=describe,
)
