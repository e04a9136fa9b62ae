"""Latency map: how many I/Os took how long, moment by moment, a heat map per run."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import labels, of_measured
from volbench.present.formatting import printable
from volbench.present.plots.description import AnyMark, Axis, Cells, Lines, Panel, Plot, Series
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import identified, wrap_name
from volbench.present.plots.metrics import SINCE_START, log_limits, time_axis
from volbench.units import format_count, format_latency

MOST = 12
_PANEL_IN = 1.9
_LINES = (
    ("lat_p50_s", Series("p50", "median", "ink")),
    ("lat_p99_s", Series("p99", "p99", "palette-1")),
)
_LOWEST_S = 1e-9
"""Where the first bin, which begins at zero, begins on a logarithmic axis."""


def run_maps(frames: Frames) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells of each run and direction under its name."""
    rows = of_measured(frames["latency_map"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    is_repeated = rows["repeat"].astype("float64").max() > 1
    found = []
    for (_, direction), run in rows.groupby(["run", "direction"], sort=False):
        head = run.iloc[0]
        name = f"{head['label']}, {direction}"
        found.append((f"{name}, repeat {head['repeat']}" if is_repeated else name, run))
    return found


def build(frames: Frames, _: Options) -> Plot:
    """Draw a map for each run: darker where more I/Os took so long."""
    found = run_maps(frames)
    shown = found[:MOST]
    more = len(found) - len(shown)
    series = of_measured(frames["series"], frames["summary"])
    panels = [
        _panel(name, run, series, row=row, is_last=row == len(shown) - 1)
        for row, (name, run) in enumerate(shown)
    ]
    return Plot(
        panels=tuple(panels),
        heights=(_PANEL_IN,) * len(panels),
        width_in=11,
        series=tuple(look for _, look in _LINES),
        caption=(
            "Darker: more I/Os, on a logarithmic scale; empty: none",
            f"{more} further runs are not shown: choose with --where" * (more > 0),
        ),
        rows=pd.concat([_cells(run) for _, run in shown], ignore_index=True),
    )


def _cells(run: pd.DataFrame) -> pd.DataFrame:
    columns = ["run", "repeat", "from_s", "t_s", "bin_low_s", "bin_high_s", "count"]
    return identified(run, columns)


def _panel(name: str, run: pd.DataFrame, series: pd.DataFrame, *, row: int, is_last: bool) -> Panel:
    """Draw the cells of a run on their true edges, median and p99 of the intervals over them."""
    cells = _cells(run).assign(_low=run["bin_low_s"].clip(lower=_LOWEST_S))
    most = max(float(cells["count"].max()), 2.0)
    marks: list[AnyMark] = [
        Cells(
            data=cells,
            x="from_s",
            x_end="t_s",
            y="_low",
            y_end="bin_high_s",
            value="count",
            limits=(1.0, most),
        ),
        *_lines(run, series),
    ]
    ends = [float(cells["_low"].min()), float(cells["bin_high_s"].max())]
    return Panel(
        x=time_axis(float(cells["t_s"].max()), label=SINCE_START * is_last),
        y=Axis("Latency (log)", "latency", "log", log_limits(ends, room=(0.9, 1.1))),
        marks=tuple(marks),
        title=wrap_name(printable(name), columns=90),
        row=row,
    )


def _lines(run: pd.DataFrame, series: pd.DataFrame) -> list[AnyMark]:
    head = run.iloc[0]
    is_own = (series["run"] == head["run"]) & (series["direction"] == head["direction"])
    own = series[is_own & (series["group"] == head["group"])]
    return [
        Lines(data=own[["t_s", column]], x="t_s", y=column, width=0.9, series=look.key)
        for column, look in _LINES
        if own[column].notna().any()
    ]


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if len(of_measured(frames["latency_map"], frames["summary"])):
        return ""
    return (
        "no latencies over time: logs hold means only; set latency_log in the profile, or import "
        "logs of single I/Os (log_avg_msec=0) or of histograms (write_hist_log and log_hist_msec)"
    )


def describe(frames: Frames) -> str:
    """Return how many I/Os there are and the extremes of their latency in one sentence."""
    rows = pd.concat([run for _, run in run_maps(frames)], ignore_index=True)
    low, high = float(rows["bin_low_s"].min()), float(rows["bin_high_s"].max())
    return (
        f"Latency over time of {format_count(float(rows['count'].sum()))} I/Os in "
        f"{rows['run'].nunique()} runs, between {format_latency(low)} and {format_latency(high)}."
    )


LATENCY_MAP = Kind(
    name="latency-map",
    title="Latency over time",
    frame_names=("summary", "series", "latency_map"),
    help="How many I/Os took how long, moment by moment, with median and p99 over it.",
    needs="logs of single I/Os or of histograms, as volbench import reads them",
    missing=missing,
    build=build,
    describe=describe,
)
