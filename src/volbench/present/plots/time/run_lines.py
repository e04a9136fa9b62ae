"""All runs over time on one axis for each metric."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import KEY, key_of, labels, of_measured
from volbench.present.formatting import printable
from volbench.present.plots.description import Lines, Panel, Plot, Series
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.labels import identified, line_look, wrap_name
from volbench.present.plots.metrics import SINCE_START, Metric, time_axis
from volbench.present.plots.time.run_series import METRICS, missing
from volbench.units import format_count

_PANEL_IN = 1.7
_MANY = 12


def run_lines(frames: Frames) -> pd.DataFrame:
    """Return the intervals of measured runs with ``name`` (of the job) and ``line`` (from 0)."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    rows["name"] = rows["label"] + ", " + rows["direction"].fillna("?")
    rows["line"] = rows.groupby(key_of(rows, KEY), sort=False, dropna=False).ngroup()
    return rows


def build(frames: Frames, _: Options) -> Plot:
    """Draw IOPS, bandwidth and mean latency; repeats of a job share a colour."""
    rows = run_lines(frames)
    metrics = [metric for metric in METRICS if rows[metric.column].notna().any()]
    jobs = rows.drop_duplicates("line").sort_values("line")
    runs = rows.groupby(["run", "direction"]).ngroups
    data = identified(rows, ["run", "repeat", "t_s", *(metric.column for metric in METRICS)])
    data = data.assign(_line=rows["line"].astype(str), _run=rows["run"] + "/" + rows["direction"])
    end_s = float(rows["t_s"].max())
    panels = [
        _panel(data, metric, end_s, row=row, is_last=row == len(metrics) - 1, is_thin=runs > _MANY)
        for row, metric in enumerate(metrics)
    ]
    return Plot(
        panels=tuple(panels),
        heights=(max(_PANEL_IN, 0.19 * min(len(jobs), 30) / len(metrics)),) * len(metrics),
        width_in=12,
        series=tuple(
            _series(int(line), str(name))
            for line, name in zip(jobs["line"], jobs["name"], strict=True)
        ),
        legend="right",
        caption=(
            f"{runs} lines; repeats share colour and dash" if runs > len(jobs) else "",
            "Long lines keep the min and the max of each of 1,000 stretches",
        ),
        shared_x=True,
    )


def _series(line: int, name: str) -> Series:
    colour, _, dash = line_look(line)
    return Series(str(line), wrap_name(printable(name), columns=34), colour, dash=dash)


def _panel(
    data: pd.DataFrame, metric: Metric, end_s: float, *, row: int, is_last: bool, is_thin: bool
) -> Panel:
    lines = Lines(
        data=data,
        by="_line",
        group="_run",
        x="t_s",
        y=metric.column,
        width=0.8 if is_thin else 1.2,
    )
    return Panel(
        x=time_axis(end_s, label=SINCE_START * is_last),
        y=metric.axis(1.06 * float(data[metric.column].max())),
        marks=(lines,),
        row=row,
    )


def describe(frames: Frames) -> str:
    """Return how many lines there are, and the extremes of IOPS, in one sentence."""
    rows = run_lines(frames)
    runs = rows.groupby(["run", "direction"]).ngroups
    known = rows["iops"].dropna()
    if known.empty:
        return f"{runs} lines over time on one axis."
    low, high = format_count(float(known.min())), format_count(float(known.max()))
    return f"{runs} lines over time on one axis: between {low} and {high} IOPS."


LINES = Kind(
    name="lines",
    title="All runs over time",
    frame_names=("summary", "series"),
    help="IOPS, bandwidth and mean latency of many runs over time, on one axis each.",
    needs="a sample interval above 0, or logs",
    missing=missing,
    build=build,
    describe=describe,
)
