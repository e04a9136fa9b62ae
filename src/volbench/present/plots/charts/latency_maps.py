"""Latency map: how many I/Os took how long, moment by moment, a heat map per run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import of_measured
from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.metrics import LATENCY_LOGS, log_limits, time_axis
from volbench.units import counted_noun, format_count, format_latency

_ROOM = Room(6, "runs", "latency_map")
_PANEL_IN = 1.9
_LINES = (
    ("lat_p50_s", Series("p50", "median", "ink")),
    ("lat_p99_s", Series("p99", "p99", "palette-1")),
)
_LOWEST_S = 1e-9  # Start of the first bin, which begins at zero, on a logarithmic axis
_COLUMNS = ("run", "repeat", "from_s", "t_s", "bin_low_s", "bin_high_s", "count")


@dataclass(frozen=True)
class _Maps:
    """Data of the chart."""

    runs: Mapping[str, pd.DataFrame]  # name to the cells of each run and direction
    series: pd.DataFrame  # intervals of the runs


def read(frames: Frames, _: Options) -> _Maps | str:
    """Return the cells of each run and direction."""
    rows = labels.labelled(frames["latency_map"], frames["summary"])
    if rows.empty:
        return f"no latencies over time: {LATENCY_LOGS}"
    is_repeated = rows["repeat"].astype("float64").max() > 1
    names = labels.directed(rows)
    if is_repeated:
        names += ", repeat " + rows["repeat"].astype(str)
    runs = {
        f"{name}": run
        for (_, _, name), run in rows.groupby(["run", "direction", names], sort=False)
    }
    return _Maps(runs, of_measured(frames["series"], frames["summary"]))


def build(maps: _Maps) -> Plot:
    """Draw a map for each run, all on one scale: the darker, the more I/Os had a latency."""
    rows = pd.concat([labels.identified(run, _COLUMNS) for run in maps.runs.values()])
    ends = [float(rows["bin_low_s"].clip(lower=_LOWEST_S).min()), float(rows["bin_high_s"].max())]
    y = Axis("Latency (log)", "latency", "log", log_limits(ends, room=(0.9, 1.1)))
    x = time_axis(float(rows["t_s"].max()))
    most = max(float(rows["count"].max()), 2.0)
    panels = [
        Panel(
            x=x,
            y=y,
            marks=(_map_cells(run, most, has_bar=place == 0), *_lines(run, maps.series)),
            title=labels.wrap_name(printable(name), columns=90),
        )
        for place, (name, run) in enumerate(maps.runs.items())
    ]
    return replace(
        grid(panels, height_in=_PANEL_IN),
        width_in=11,
        series=tuple(look for _, look in _LINES),
        caption=("Darker: more I/Os, on a logarithmic scale; empty: none",),
        rows=rows,
    )


def _map_cells(run: pd.DataFrame, most: float, *, has_bar: bool) -> marks.Cells:
    cells = labels.identified(run, _COLUMNS).assign(_low=run["bin_low_s"].clip(lower=_LOWEST_S))
    return marks.Cells(
        cells,
        x="from_s",
        x_end="t_s",
        y="_low",
        y_end="bin_high_s",
        value="count",
        limits=(1.0, most),
        bar="I/Os" if has_bar else "",
    )


def _lines(run: pd.DataFrame, series: pd.DataFrame) -> list[marks.AnyMark]:
    keys = ["run", "direction", "group"]
    rows = series[(series[keys] == run[keys].iloc[0]).all(axis=1)].sort_values("t_s")
    rows = rows.assign(_x=(rows["t_s"] + rows["t_s"].shift(fill_value=0.0)) / 2)
    return [
        marks.Lines(rows[["t_s", "_x", column]], y=column, width=0.9, series=look.key)
        for column, look in _LINES
        if rows[column].notna().any()
    ]


def describe(maps: _Maps) -> str:
    """Return the number of I/Os and the extremes of their latency in one sentence."""
    rows = pd.concat(maps.runs.values(), ignore_index=True)
    low, high = float(rows["bin_low_s"].min()), float(rows["bin_high_s"].max())
    return (
        f"Latency over time of {format_count(float(rows['count'].sum()))} I/Os in "
        f"{counted_noun(rows['run'].nunique(), 'run')}, between {format_latency(low)} and "
        f"{format_latency(high)}."
    )


LATENCY_MAP = Kind(
    name="latency-map",
    across=(),
    title="Latency over time",
    frame_names=("summary", "series", "latency_map"),
    help="Heat map of latency over time, with median and p99.",
    needs="logs of single I/Os or of histograms, as volbench import reads them",
    read=read,
    build=build,
    describe=describe,
    draws_invalid=True,
    room=_ROOM,
)
