"""Latencies in equal steps of the logarithm: histograms of jobs, and ridges of their repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import COLOUR
from volbench.analyse.frames.pooled_bins import in_classes, in_steps
from volbench.analyse.frames.repeats import KEY, key_of
from volbench.present.formatting import counted_noun
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.distribution.latency_curves import MISSING_BINS, NEEDS_BINS
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.present.plots.selection import largest
from volbench.units import format_latency

# Steps for each tenfold latency: fio's own bins, some 150, are finer than an eye can use
_BARS, _RIDGE_STEPS = 20, 50
_MOST_HISTOGRAMS, _MOST_RIDGE_JOBS, _MOST_RIDGES = 14, 12, 30
_PANEL_IN = 1.4
_CLASSES = "No run has latency bins (json+): these are fio's few classes, of unequal width"
_HIGH = 1.7  # Height of the highest ridge, in distances between two ridges


def read_histogram(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the steps of each job and direction; fio's own classes where no run has bins."""
    steps = _shares(frames, per_decade=_BARS)
    if not isinstance(steps, str):
        return steps
    classes = in_classes(frames["shares"], frames["summary"], "clat")
    if classes.empty:
        return steps
    low = classes["low"].where(classes["low"] > 0, classes["high"] / 2)
    ends = classes.assign(low_s=low, high_s=classes["high"].fillna(2 * low), step=low.rank())
    return _added(ends, "clat").assign(is_class=True)


def _shares(frames: Frames, names: Sequence[str] = (), *, per_decade: int) -> pd.DataFrame | str:
    """Add up the bins of runs that are equal in some columns, those of a job unless given.

    Returns:
        Rows as of `_added`.
    """
    rows, kind = in_steps(frames["histogram"], frames["summary"], per_decade=per_decade)
    if rows.empty:
        return MISSING_BINS
    low_s = 10.0 ** (rows["step"] / per_decade)
    ends = rows.assign(low_s=low_s, high_s=10.0 ** ((rows["step"] + 1) / per_decade))
    return _added(ends, kind, names)


def _added(rows: pd.DataFrame, kind: str, names: Sequence[str] = ()) -> pd.DataFrame:
    """Add up the I/Os in each step of runs that are equal in some columns.

    Returns:
        A row for each step that holds an I/O: those columns, ``order`` (number of the set),
        ``step``, ``low_s`` and ``high_s`` (its ends), ``count``, ``share`` (of the I/Os of the set,
        0 to 1) and ``latency``, the name of the kind.
    """
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    key = [*(names or (*key_of(rows, KEY), "label")), *([COLOUR] if COLOUR in rows else [])]
    order = rows.groupby(key, sort=False, dropna=False).ngroup()
    by = ["order", *key, "step", "low_s", "high_s"]
    steps = rows.assign(order=order).groupby(by, dropna=False)["count"].sum().reset_index()
    whole = steps.groupby("order")["count"].transform("sum")
    return steps.assign(share=steps["count"] / whole, latency=LATENCY_KINDS[kind])


def build_histogram(rows: pd.DataFrame) -> Plot:
    """Draw a panel of bars for each job and direction, all on one scale of latency."""
    limits = log_limits([float(rows["low_s"].min()), float(rows["high_s"].max())], room=(0.9, 1.1))
    label = f"{rows['latency'].iloc[0].capitalize()} (logarithmic)"
    x = Axis(label, "latency", "log", limits)
    kept, fewer = _slowest(rows, "order", most=_MOST_HISTOGRAMS)
    panels = [(job, _bars(job, x)) for _, job in kept.groupby("order", sort=True)]
    plot = labels.job_grid(panels, fewer=fewer, height_in=_PANEL_IN)
    note = (
        "Share of I/Os in each step, repeats added up; dashed: ends of the steps of median and p99"
    )
    return replace(
        plot, caption=(note, _CLASSES if "is_class" in rows else "", *plot.caption), shared_x=True
    )


def _slowest(rows: pd.DataFrame, key: str, *, most: int) -> tuple[pd.DataFrame, str]:
    """Return the steps of the jobs with the slowest p99, and a sentence about the others."""
    running = rows.groupby("order")["share"].cumsum()
    reached = rows[running >= 0.99 - 1e-12].drop_duplicates("order")
    jobs = reached.sort_values("high_s", ascending=False, kind="stable").drop_duplicates(key)
    kept, fewer = largest(
        jobs.sort_values(key),
        "high_s",
        most=most,
        what="jobs",
        criterion="those with the slowest p99",
    )
    return rows[rows[key].isin(kept[key])], fewer


def _bars(job: pd.DataFrame, x: Axis) -> Panel:
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


def describe_histogram(rows: pd.DataFrame) -> str:
    """Return the most common step of the fastest job in one sentence."""
    tops = rows.loc[rows.groupby("order")["share"].idxmax()].sort_values("low_s")
    first = tops.iloc[0]
    return (
        f"Histograms of {first['latency']} for {counted_noun(len(tops), 'job')}: the fastest job "
        f"({first['label']}) has most I/Os between {format_latency(float(first['low_s']))} and "
        f"{format_latency(float(first['high_s']))}."
    )


HISTOGRAM = Kind(
    name="histogram",
    title="Latency histogram",
    frame_names=("summary", "histogram", "shares"),
    help="How many I/Os of each job took how long, on a logarithmic scale.",
    needs="a finished run of fio; with latency bins (json+) it is finer",
    read=read_histogram,
    build=build_histogram,
    describe=describe_histogram,
    is_pooled=True,
)


def read_ridges(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the steps of each run and direction, job by job."""
    names = ("line", "label", "direction", "run", "repeat")
    steps = _shares(frames, names, per_decade=_RIDGE_STEPS)
    if isinstance(steps, str):
        return steps
    return steps.sort_values(["line", "repeat", "run", "step"], ignore_index=True)


def build_ridges(rows: pd.DataFrame) -> Plot:
    """Draw a panel per job, a ridge for each run, the first repeat on top."""
    rows, fewer = _slowest(rows, "line", most=_MOST_RIDGE_JOBS)
    jobs = [_slowest_runs(job) for _, job in rows.groupby("line", sort=True)]
    most = max(job["run"].nunique() for job, _ in jobs)
    panels = [(job, _ridges(job)) for job, _ in jobs]
    plot = labels.job_grid(panels, fewer=fewer, height_in=0.5 + 0.26 * most)
    note = "A ridge is the share of one run's I/Os at each latency; all of a panel have one scale"
    numbers = ["run", "repeat", "low_s", "count", "share", "latency"]
    return replace(
        plot,
        caption=(note, *dict.fromkeys(sentence for _, sentence in jobs), *plot.caption),
        rows=labels.identified(rows, numbers),
    )


def _slowest_runs(job: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the steps of the runs of a job with the slowest p99."""
    runs = job.drop(columns=[name for name in (COLOUR,) if name in job])
    kept, fewer = _slowest(runs, "run", most=_MOST_RIDGES)
    return job[job["run"].isin(kept["run"])], fewer.replace(" jobs,", " runs of a job,")


def _ridges(job: pd.DataFrame) -> Panel:
    runs = [run for _, run in job.groupby("run", sort=False)]
    top = max(float(run["share"].max()) for run in runs)
    steps = np.arange(int(job["step"].min()) - 1, int(job["step"].max()) + 2)
    x = 10.0 ** ((steps + 0.5) / _RIDGE_STEPS)
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


def describe_ridges(rows: pd.DataFrame) -> str:
    """Return the range of the most common latency over the runs, in one sentence."""
    tops = rows.loc[rows.groupby(["line", "run"])["share"].idxmax(), "low_s"]
    return (
        f"Ridges of {rows['latency'].iloc[0]} for {counted_noun(len(tops), 'run')}: "
        f"the most common is between {format_latency(float(tops.min()))} and"
        f" {format_latency(float(tops.max()))}."
    )


RIDGELINE = Kind(
    name="ridgeline",
    title="Latency from repeat to repeat",
    frame_names=("summary", "histogram"),
    help="The distribution of latency in each repeat, one ridge above the other.",
    needs=NEEDS_BINS,
    read=read_ridges,
    build=build_ridges,
    describe=describe_ridges,
)
