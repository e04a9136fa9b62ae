"""Share of I/Os by latency as curves: distribution, percentiles (HDR), cumulative (ECDF).

The percentile plot is that of HdrHistogram (Gil Tene): the axis counts nines, so that the slowest
thousandth has as much room as the slowest tenth.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from volbench.analyse.frames.pooled_bins import distribution
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.units import format_count, format_latency

_LINES_PER_PANEL, _MOST_LINES = 6, 28
_MOST_NINES = 8
_FASTER = "I/Os that were faster"
NEEDS_BINS = "latency bins (fio's json+)"
MISSING_BINS = "no histogram: no run reported its latency bins (fio's json+ does)"


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return the bins of each job and direction, pooled over repeats.

    Returns:
        A row per bin: identity, ``bin_high_s``, ``count``, ``share`` (0 to 1, of I/Os that were
        not slower), ``latency``, ``label`` and ``_line`` (0, 1... per job and direction). Texts
        are categories: there may be a million rows.
    """
    rows, kind = distribution(frames["histogram"], frames["summary"])
    if rows.empty:
        return MISSING_BINS
    data = labels.identified(rows, ["bin_high_s", "count", "share"])
    return data.assign(
        latency=pd.Categorical.from_codes(
            np.zeros(len(rows), dtype=np.int8), pd.Index([LATENCY_KINDS[kind]])
        ),
        label=rows["label"],
        _line=rows["line"],
    )


def _fewer(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the bins of the curves with most I/Os, up to the number of distinguishable lines."""
    totals = rows.groupby("_line", sort=True)["count"].sum().reset_index()
    kept, note = labels.largest(totals, "count", most=_MOST_LINES, what="jobs by number of I/Os")
    shown = rows[rows["_line"].isin(kept["_line"])] if note else rows
    texts = shown.select_dtypes("category").columns
    shown = shown.astype(dict.fromkeys(texts, str))
    return shown.assign(_name=shown["label"] + ", " + shown["direction"]), note


def _curves(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return each curve with its beginning: no I/O is faster than the first bin's end."""
    curves = []
    for _, line in rows.groupby("_line", sort=True):
        first = line.head(1).assign(count=0, share=0.0)
        curve = pd.concat([first, line], ignore_index=True)
        slower = 1 - curve["share"].to_numpy(dtype=float)
        slower[-1] = 1 / _total(line)  # no I/O is slower: the last bin ends at a single one
        curves.append(curve.assign(_slower=slower))
    return curves


def _total(line: pd.DataFrame) -> float:
    return float(line["count"].sum())


def _latency_axis(rows: pd.DataFrame, *, room: tuple[float, float]) -> Axis:
    ends = [float(rows["bin_high_s"].min()), float(rows["bin_high_s"].max())]
    label = f"{rows['latency'].iloc[0].capitalize()} (logarithmic)"
    return Axis(label, "latency", "log", log_limits(ends, room=room))


def build_distribution(rows: pd.DataFrame) -> Plot:
    """Draw which share of the I/Os was faster than each latency, nines on the upright axis."""
    shown, fewer = _fewer(rows)
    curves = _curves(shown)
    x = _latency_axis(shown, room=(0.9, 1.1))
    starts = range(0, len(curves), _LINES_PER_PANEL)
    panels = [_nines_panel(curves[first : first + _LINES_PER_PANEL], x) for first in starts]
    return replace(
        grid(panels, height_in=2.9),
        series=labels.line_series([str(curve["_name"].iloc[0]) for curve in curves], columns=26),
        legend="",
        caption=("From fio's bins, exact to 0.8 %; repeats are added up", fewer),
        rows=rows,
        shared_x=True,
    )


def _nines_panel(curves: list[pd.DataFrame], x: Axis) -> Panel:
    data = pd.concat(curves, ignore_index=True)
    lines = marks.Lines(data, by="_name", x="bin_high_s", y="_slower", step="post")
    y = _nines_axis(max(_total(curve) for curve in curves))
    return Panel(x=x, y=y, marks=(lines,), legend="right")


def _nines_axis(total: float) -> Axis:
    """Return an axis of the share that was slower: 0 %, 50 %, 90 %, 99 % were faster."""
    nines = [1.0, 0.5]
    while nines[-1] > 1 / total and len(nines) < 9:
        nines.append(0.1 ** (len(nines) - 1))
    ends = (min(nines[-1], 1 / total) * 0.5, 1.0)
    return Axis(_FASTER, "nines", "log", ends, ticks=tuple(nines), inverted=True)


def build_ecdf(rows: pd.DataFrame) -> Plot:
    """Draw the share that was faster, from 0 to 1."""
    shown, fewer = _fewer(rows)
    data = pd.concat(_curves(shown), ignore_index=True)
    lines = marks.Lines(data, by="_name", x="bin_high_s", y="share", step="post")
    y = Axis(_FASTER, "share", limits=(0.0, 1.02))
    panel = Panel(x=_latency_axis(shown, room=(0.9, 1.1)), y=y, marks=(lines,))
    return _plot(rows, shown, panel, fewer)


def build_hdr(rows: pd.DataFrame) -> Plot:
    """Draw latency over 1 / (share that was slower)."""
    shown, fewer = _fewer(rows)
    curves = _curves(shown)
    most = max(map(_total, curves))
    decades = range(1, min(_MOST_NINES, math.ceil(math.log10(max(most, 10.0)))) + 1)
    ticks = (1.0, 2.0, *(10.0**n for n in decades))
    data = pd.concat([_percentile_steps(curve) for curve in curves], ignore_index=True)
    x = Axis(
        "Percentile (each step is one nine more)",
        "percentile",
        "log",
        (1.0, max(ticks[-1], most) * 1.05),
        ticks=ticks,
    )
    lines = marks.Lines(data, by="_name", x="_inverse", y="bin_high_s")
    panel = Panel(x=x, y=_latency_axis(shown, room=(0.8, 1.25)), marks=(lines,))
    return _plot(rows, shown, panel, "The last step of a line is its slowest I/O", fewer)


def _percentile_steps(curve: pd.DataFrame) -> pd.DataFrame:
    """Return both ends of the stretch of percentiles that each bin covers."""
    slower = curve["_slower"].to_numpy(dtype=float)
    steps = curve.iloc[1:].loc[lambda bins: bins.index.repeat(2)].reset_index(drop=True)
    return steps.assign(_inverse=1 / np.column_stack([slower[:-1], slower[1:]]).ravel())


def _plot(rows: pd.DataFrame, shown: pd.DataFrame, panel: Panel, *sentences: str) -> Plot:
    """Return a plot of one panel with a line for each job and direction that is shown."""
    names = list(shown.drop_duplicates("_line")["_name"])
    return Plot(
        panels=(panel,),
        heights=(max(3.8, 0.2 * min(len(names), 30)),),
        width_in=10,
        series=labels.line_series(names),
        legend="right",
        caption=("From fio's bins, exact to 0.8 %; repeats are added up", *sentences),
        rows=rows,
    )


def describe(rows: pd.DataFrame) -> str:
    """Return the number of I/Os and the range of the medians in one sentence."""
    halves = rows[rows["share"] >= 0.5].drop_duplicates("_line").sort_values("bin_high_s")
    fast, slow = (
        f"{format_latency(float(half['bin_high_s']))}" for half in (halves.iloc[0], halves.iloc[-1])
    )
    sentence = (
        f"Distribution of {rows['latency'].iloc[0]} over {format_count(_total(rows))} I/Os: half "
        f"were faster than {fast}"
    )
    names = halves["label"].astype(str) + ", " + halves["direction"].astype(str)
    first, last = names.iloc[0], names.iloc[-1]
    if len(halves) == 1:
        return f"{sentence} ({first})."
    return f"{sentence} in the fastest job ({first}) and {slow} in the slowest ({last})."


DISTRIBUTION = Kind(
    name="distribution",
    title="Latency distribution",
    frame_names=("summary", "histogram"),
    help="Which share of the I/Os was faster than each latency, from fio's bins.",
    needs=NEEDS_BINS,
    read=read,
    build=build_distribution,
    describe=describe,
    is_pooled=True,
    in_report=True,
)
HDR = replace(
    DISTRIBUTION,
    name="hdr",
    title="Latency by percentile",
    help="Latency at each percentile, on an axis of nines: 50 %, 90 %, 99 %, 99.9 % and on.",
    build=build_hdr,
    in_report=False,
)
ECDF = replace(
    HDR,
    name="ecdf",
    title="Cumulative latency",
    help="Which share of the I/Os was faster than each latency, on an even axis of shares.",
    build=build_ecdf,
)
