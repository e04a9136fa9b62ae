"""IOPS, bandwidth and mean latency of each job over time, a row of panels per job."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import labels, measured, of_measured
from volbench.present.formatting import printable, records
from volbench.present.plots.description import (
    AnyMark,
    Axis,
    Dash,
    Lines,
    Panel,
    Plot,
    Series,
    Texts,
    text_at,
)
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import DIRECTIONS, identified, wrap_name
from volbench.present.plots.limits import declared, limits_along
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    MEAN_LATENCY,
    SINCE_START,
    Metric,
    time_axis,
)
from volbench.units import format_count, format_duration

METRICS = (IOPS, BANDWIDTH, MEAN_LATENCY)
_DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted", "dashdot")
_PANEL_IN = 1.2


def job_series(frames: Frames) -> list[tuple[str, pd.DataFrame]]:
    """Return the intervals of each job under its label, in the order of appearance."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    return [(str(label), job) for label, job in rows.groupby("label", sort=False)]


def build(frames: Frames, _: Options) -> Plot:
    """Draw a row of panels per job; repeats are drawn over each other in other dashes."""
    jobs = job_series(frames)
    repeats = int(frames["series"]["repeat"].max())
    directions = sorted({str(name) for _, job in jobs for name in job["direction"]})
    panels = [
        panel
        for row, (label, job) in enumerate(jobs)
        for panel in _row(frames, label, job, row, is_last=row == len(jobs) - 1)
    ]
    return Plot(
        panels=tuple(panels),
        heights=(_PANEL_IN,) * len(jobs),
        widths=(1.0,) * len(METRICS),
        width_in=12,
        series=tuple(_series(name, n) for name in directions for n in range(len(_DASHES))),
        caption=("Solid: repeat 1; dashed, dotted: further repeats" * (repeats > 1),),
    )


def _series(direction: str, place: int) -> Series:
    colour = direction if direction in DIRECTIONS else "muted"
    return Series(f"{direction}/{place}", printable(direction), colour, dash=_DASHES[place])


def _row(frames: Frames, label: str, job: pd.DataFrame, row: int, *, is_last: bool) -> list[Panel]:
    """Return a panel for each metric of a job; the last job's name the time."""
    data = identified(job, ["run", "repeat", "t_s", *(metric.column for metric in METRICS)])
    turns = (job["repeat"].astype(int) - 1) % len(_DASHES)
    data = data.assign(_series=job["direction"].astype(str) + "/" + turns.astype(str))
    heading = wrap_name(printable(label), columns=40)
    x = time_axis(float(data["t_s"].max()), label=SINCE_START * is_last)
    panels = [_panel(frames, data, metric, x) for metric in METRICS]
    return [
        replace(panel, row=row, column=column, heading=heading * (column == 0))
        for column, panel in enumerate(panels)
    ]


def _panel(frames: Frames, data: pd.DataFrame, metric: Metric, x: Axis) -> Panel:
    """Draw one metric of one job, zeros as zeros and unknown values as a gap."""
    known = data[metric.column].dropna()
    limits, top = _limits(frames, data, metric, 1.08 * float(known.max()) if len(known) else 0.0)
    marks: list[AnyMark] = [
        Lines(
            data=data,
            by="_series",
            group="run",
            x="t_s",
            y=metric.column,
            width=1.2,
            has_dots=True,
        ),
        *limits,
    ]
    if known.empty:
        nothing = text_at(0.5, 0.5, "n/a")
        marks.append(
            Texts(data=nothing, x_in="panel", y_in="panel", align="center", series="muted")
        )
    return Panel(x=x, y=metric.axis(top), marks=tuple(marks))


def _limits(
    frames: Frames, data: pd.DataFrame, metric: Metric, top: float
) -> tuple[list[AnyMark], float]:
    if not metric.limit:
        return [], top
    rows = measured(frames["summary"])
    rows = rows[rows["run"].isin(data["run"])].drop_duplicates(metric.limit)
    lines, top = limits_along(declared(records(rows), metric.limit, metric.format), top=top)
    return [*lines], top


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if len(of_measured(frames["series"], frames["summary"])):
        return ""
    return "no series: the campaign was run with sample 0, or with dd alone"


def describe(frames: Frames) -> str:
    """Return the length and the extremes of IOPS in one sentence."""
    jobs = job_series(frames)
    rows = pd.concat([job for _, job in jobs], ignore_index=True)
    sentence = f"IOPS, bandwidth and mean latency over time for {len(jobs)} jobs"
    sentence += f", up to {format_duration(float(rows['t_s'].max()))} long"
    if rows["iops"].isna().all():
        return sentence + "."
    low, high = float(rows["iops"].min()), float(rows["iops"].max())
    return f"{sentence}: between {format_count(low)} and {format_count(high)} IOPS in an interval."


SERIES = Kind(
    name="series",
    title="IOPS, bandwidth and latency over time",
    frame_names=("summary", "series"),
    help="IOPS, bandwidth and mean latency over time, a row of panels per job.",
    needs="a sample interval above 0",
    missing=missing,
    build=build,
    describe=describe,
    in_report=True,
)
