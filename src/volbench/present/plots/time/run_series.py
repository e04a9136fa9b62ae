"""IOPS, bandwidth and mean latency of each job over time, a row of panels per job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.present.formatting import printable, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Panel, Plot, Series, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.limits import declared, limits_along
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    MEAN_LATENCY,
    Metric,
    only_last_named,
    time_axis,
)
from volbench.units import format_duration

METRICS = (IOPS, BANDWIDTH, MEAN_LATENCY)
MISSING_SERIES = "no series: the campaign was run with sample 0, or with dd alone"
_PANEL_IN = 1.2


@dataclass(frozen=True)
class _Jobs:
    """What is drawn.

    Attributes:
        series: label of a job to its intervals, in the order of appearance.
        results: of the runs, for their limits.
    """

    series: Mapping[str, pd.DataFrame]
    results: pd.DataFrame


def read(frames: Frames, _: Options) -> _Jobs | str:
    """Return the intervals of each job."""
    rows = labels.labelled(frames["series"], frames["summary"])
    if rows.empty:
        return MISSING_SERIES
    jobs = rows.groupby("label", sort=False)
    return _Jobs({str(label): job for label, job in jobs}, measured(frames["summary"]))


def build(jobs: _Jobs) -> Plot:
    """Draw a row of panels per job; repeats are drawn over each other in other dashes."""
    directions = sorted({str(name) for job in jobs.series.values() for name in job["direction"]})
    repeats = max(int(job["repeat"].max()) for job in jobs.series.values())
    panels = [panel for label, job in jobs.series.items() for panel in _row(jobs, label, job)]
    abreast = len(METRICS)
    return replace(
        grid(only_last_named(panels, abreast=abreast), height_in=_PANEL_IN, abreast=abreast),
        width_in=12,
        series=tuple(_series(name, n) for name in directions for n in range(len(labels.DASHES))),
        caption=("Solid: repeat 1; dashed, dotted: further repeats" * (repeats > 1),),
    )


def _series(direction: str, place: int) -> Series:
    colour = direction if direction in labels.DIRECTIONS else "muted"
    return Series(f"{direction}/{place}", printable(direction), colour, dash=labels.DASHES[place])


def _row(jobs: _Jobs, label: str, job: pd.DataFrame) -> list[Panel]:
    """Return a panel for each metric of a job."""
    data = labels.identified(job, ["run", "repeat", "t_s", *(m.column for m in METRICS)])
    turns = (job["repeat"].astype(int) - 1) % len(labels.DASHES)
    data = data.assign(_series=job["direction"].astype(str) + "/" + turns.astype(str))
    first, *others = (_panel(data, metric, jobs.results) for metric in METRICS)
    return [replace(first, heading=labels.wrap_name(printable(label), columns=40)), *others]


def _panel(data: pd.DataFrame, metric: Metric, results: pd.DataFrame) -> Panel:
    """Draw one metric of one job, zeros as zeros and unknown values as a gap."""
    known = data[metric.column].dropna()
    top = 1.08 * float(known.max()) if len(known) else 0.0
    own = results[results["run"].isin(data["run"])]
    promised = declared(records(own), metric.limit, metric.format) if metric.limit else []
    limits, top = limits_along(promised, top=top)
    lines = marks.Lines(
        data, by="_series", group="run", x="t_s", y=metric.column, width=1.2, has_dots=True
    )
    nothing = marks.Texts(
        marks.text_at(0.5, 0.5, "n/a"), x_in="panel", y_in="panel", align="center", series="muted"
    )
    parts: tuple[marks.AnyMark, ...] = (lines, *limits, *((nothing,) * known.empty))
    return Panel(x=time_axis(float(data["t_s"].max())), y=metric.axis(top), marks=parts)


def describe(jobs: _Jobs) -> str:
    """Return the length and the extremes of IOPS in one sentence."""
    rows = pd.concat(jobs.series.values(), ignore_index=True)
    sentence = f"IOPS, bandwidth and mean latency over time for {len(jobs.series)} jobs"
    sentence += f", up to {format_duration(float(rows['t_s'].max()))} long"
    if rows["iops"].isna().all():
        return sentence + "."
    low, high = IOPS.text(float(rows["iops"].min())), IOPS.text(float(rows["iops"].max()))
    return f"{sentence}: between {low} and {high} IOPS in an interval."


SERIES = Kind(
    name="series",
    title="IOPS, bandwidth and latency over time",
    frame_names=("summary", "series"),
    help="IOPS, bandwidth and mean latency over time, a row of panels per job.",
    needs="a sample interval above 0",
    read=read,
    build=build,
    describe=describe,
    in_report=True,
)
