"""All runs over time on one axis for each metric."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Panel, Plot, Series, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import IOPS, Metric, only_last_named, time_axis
from volbench.present.plots.time.run_series import METRICS, MISSING_SERIES

_PANEL_IN = 1.7
_MANY = 12


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the intervals of measured runs with ``_line`` (of the job) and ``_run``."""
    rows = labels.labelled(frames["series"], frames["summary"])
    if rows.empty:
        return MISSING_SERIES
    data = labels.identified(rows, ["run", "repeat", "t_s", *(m.column for m in METRICS)])
    return data.assign(
        _line=rows["line"].astype(str), _run=rows["run"] + "/" + rows["direction"].fillna("?")
    )


def build(rows: pd.DataFrame) -> Plot:
    """Draw IOPS, bandwidth and mean latency; repeats of a job share a colour."""
    metrics = [metric for metric in METRICS if rows[metric.column].notna().any()]
    jobs, runs = rows.drop_duplicates("_line"), rows["_run"].nunique()
    width = 0.8 if runs > _MANY else 1.2
    panels = only_last_named([_panel(rows, metric, width) for metric in metrics])
    return replace(
        grid(panels, height_in=max(_PANEL_IN, 0.19 * min(len(jobs), 30) / len(metrics))),
        width_in=12,
        series=tuple(map(_series, jobs["_line"], jobs["label"], jobs["direction"])),
        legend="right",
        caption=(
            f"{runs} lines; repeats share colour and dash" if runs > len(jobs) else "",
            "Long lines keep the min and the max of each of 1,000 stretches",
        ),
        shared_x=True,
    )


def _series(line: str, label: str, direction: str) -> Series:
    colour, _, dash = labels.line_look(int(line))
    name = labels.wrap_name(printable(f"{label}, {direction}"), columns=34)
    return Series(line, name, colour, dash=dash)


def _panel(rows: pd.DataFrame, metric: Metric, width: float) -> Panel:
    lines = marks.Lines(rows, by="_line", group="_run", x="t_s", y=metric.column, width=width)
    return Panel(
        x=time_axis(float(rows["t_s"].max())),
        y=metric.axis(1.06 * float(rows[metric.column].max())),
        marks=(lines,),
    )


def describe(rows: pd.DataFrame) -> str:
    """Return how many lines there are, and the extremes of IOPS, in one sentence."""
    sentence = f"{rows['_run'].nunique()} lines over time on one axis"
    known = rows["iops"].dropna()
    if known.empty:
        return f"{sentence}."
    low, high = IOPS.text(float(known.min())), IOPS.text(float(known.max()))
    return f"{sentence}: between {low} and {high} IOPS."


LINES = Kind(
    name="lines",
    title="All runs over time",
    frame_names=("summary", "series"),
    help="IOPS, bandwidth and mean latency of many runs over time, on one axis each.",
    needs="a sample interval above 0, or logs",
    read=read,
    build=build,
    describe=describe,
)
