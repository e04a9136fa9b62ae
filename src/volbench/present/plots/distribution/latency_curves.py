"""Share of I/Os by latency as curves: distribution, percentiles (HDR), cumulated (ECDF).

The percentile plot is the one that HdrHistogram made known (Gil Tene): percentiles stand on an axis
of nines, so that the slowest thousandth has as much room as the slowest tenth.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import distribution, key_of
from volbench.present.formatting import printable
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Lines, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import identified, line_series
from volbench.present.plots.metrics import LATENCY_KINDS, log_limits
from volbench.units import format_count, format_latency

_LINES_PER_PANEL = 6
_MOST_NINES = 8
_SOURCE = "From fio's bins, exact to 0.8 %; repeats are added up"
_FASTER = "I/Os that were faster"


def latency_curves(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return the bins of each job and direction, pooled over repeats, and the kind of latency.

    Returns:
        A row per bin: identity, ``bin_high_s``, ``count``, ``share`` (0 to 1, of I/Os that were
        not slower), ``latency``, ``_line`` (0, 1... per job and direction) and ``_name``.
    """
    rows, kind = distribution(frames["histogram"], frames["summary"])
    line = rows.groupby(key_of(rows), sort=False, dropna=False).ngroup()
    names = [
        printable(f"{label}, {direction}")
        for label, direction in zip(rows["label"], rows["direction"], strict=True)
    ]
    data = identified(rows, ["bin_high_s", "count", "share"])
    return data.assign(latency=LATENCY_KINDS[kind], _line=line, _name=names), LATENCY_KINDS[kind]


def _curve(line: pd.DataFrame, *, total: float) -> pd.DataFrame:
    """Return a curve with its beginning: no I/O is faster than the first bin's end."""
    first = line.head(1).assign(count=0, share=0.0)
    curve = pd.concat([first, line], ignore_index=True)
    slower = 1 - curve["share"].to_numpy(dtype=float)
    slower[-1] = 1 / total  # no I/O is slower: the last bin ends at a single one
    return curve.assign(_slower=slower)


def _latency_axis(rows: pd.DataFrame, kind: str, *, room: tuple[float, float]) -> Axis:
    limits = log_limits(
        [float(rows["bin_high_s"].min()), float(rows["bin_high_s"].max())], room=room
    )
    return Axis(f"{kind.capitalize()} (logarithmic)", "latency", "log", limits)


def _curves(rows: pd.DataFrame) -> list[pd.DataFrame]:
    return [
        _curve(line, total=float(line["count"].sum()))
        for _, line in rows.groupby("_line", sort=True)
    ]


def _plot(frames: Frames, rows: pd.DataFrame, panel: Panel, *sentences: str) -> Plot:
    """Return a plot of one panel with a line for each job and direction."""
    names = list(rows.drop_duplicates("_line")["_name"])
    return Plot(
        panels=(panel,),
        heights=(max(3.8, 0.2 * min(len(names), 30)),),
        width_in=10,
        series=line_series(names),
        legend="right",
        caption=(pooled(frames["summary"]), _SOURCE, *sentences),
        rows=rows,
    )


def build_distribution(frames: Frames, _: Options) -> Plot:
    """Draw which share of the I/Os was faster than each latency, nines on the upright axis."""
    rows, kind = latency_curves(frames)
    curves = _curves(rows)
    x = _latency_axis(rows, kind, room=(0.9, 1.1))
    groups = [
        curves[first : first + _LINES_PER_PANEL]
        for first in range(0, len(curves), _LINES_PER_PANEL)
    ]
    panels = [
        Panel(
            x=x,
            y=_nines_axis(max(float(curve["count"].sum()) for curve in group)),
            marks=(
                Lines(
                    data=pd.concat(group, ignore_index=True),
                    by="_name",
                    x="bin_high_s",
                    y="_slower",
                    step="post",
                ),
            ),
            row=row,
            legend="right",
        )
        for row, group in enumerate(groups)
    ]
    return Plot(
        panels=tuple(panels),
        heights=(2.9,) * len(panels),
        series=line_series([str(curve["_name"].iloc[0]) for curve in curves], columns=26),
        legend="",
        caption=(pooled(frames["summary"]), _SOURCE),
        rows=rows,
        shared_x=True,
    )


def _nines_axis(total: float) -> Axis:
    """Return an axis of the share that was slower: 0 %, 50 %, 90 %, 99 % were faster."""
    nines = [1.0, 0.5]
    while nines[-1] > 1 / total and len(nines) < 9:
        nines.append(0.1 ** (len(nines) - 1))
    ends = (min(nines[-1], 1 / total) * 0.5, 1.0)
    return Axis(_FASTER, "nines", "log", ends, ticks=tuple(nines), inverted=True)


def build_ecdf(frames: Frames, _: Options) -> Plot:
    """Draw the share that was faster, from 0 to 1."""
    rows, kind = latency_curves(frames)
    data = pd.concat(_curves(rows), ignore_index=True)
    panel = Panel(
        x=_latency_axis(rows, kind, room=(0.9, 1.1)),
        y=Axis(_FASTER, "share", limits=(0.0, 1.02)),
        marks=(Lines(data=data, by="_name", x="bin_high_s", y="share", step="post"),),
    )
    return _plot(frames, rows, panel)


def build_hdr(frames: Frames, _: Options) -> Plot:
    """Draw latency over 1 / (share that was slower)."""
    rows, kind = latency_curves(frames)
    curves = _curves(rows)
    most = max(float(curve["count"].sum()) for curve in curves)
    decades = range(1, min(_MOST_NINES, math.ceil(math.log10(max(most, 10.0)))) + 1)
    ticks = (1.0, 2.0, *(10.0**n for n in decades))
    data = pd.concat([_percentile_steps(curve) for curve in curves], ignore_index=True)
    panel = Panel(
        x=Axis(
            "Percentile (each step is one nine more)",
            "percentile",
            "log",
            (1.0, max(ticks[-1], most) * 1.05),
            ticks=ticks,
        ),
        y=_latency_axis(rows, kind, room=(0.8, 1.25)),
        marks=(Lines(data=data, by="_name", x="_inverse", y="bin_high_s"),),
    )
    return _plot(frames, rows, panel, "The last step of a line is its slowest I/O")


def _percentile_steps(curve: pd.DataFrame) -> pd.DataFrame:
    """Return both ends of the stretch of percentiles that each bin covers."""
    slower = curve["_slower"].to_numpy(dtype=float)
    steps = curve.iloc[1:].loc[lambda bins: bins.index.repeat(2)].reset_index(drop=True)
    ends = np.column_stack([slower[:-1], slower[1:]]).ravel()
    return steps.assign(_inverse=1 / ends)


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    rows, _ = distribution(frames["histogram"], frames["summary"])
    return "" if len(rows) else "no histogram: no run reported its latency bins (fio's json+ does)"


def describe(frames: Frames) -> str:
    """Return the number of I/Os and the range of the medians in one sentence."""
    rows, kind = latency_curves(frames)
    lines = [line for _, line in rows.groupby("_line", sort=True)]
    medians = sorted(
        (float(line.loc[line["share"] >= 0.5, "bin_high_s"].iloc[0]), str(line["_name"].iloc[0]))
        for line in lines
    )
    (fast, fast_name), (slow, slow_name) = medians[0], medians[-1]
    total = format_count(float(rows["count"].sum()))
    sentence = f"Distribution of {kind} over {total} I/Os: half were faster than"
    if len(lines) == 1:
        return f"{sentence} {format_latency(fast)} ({fast_name})."
    return (
        f"{sentence} {format_latency(fast)} in the fastest job ({fast_name}) and "
        f"{format_latency(slow)} in the slowest ({slow_name})."
    )


NEEDS = "latency bins (fio's json+)"

DISTRIBUTION = Kind(
    name="distribution",
    title="Latency distribution",
    frame_names=("summary", "histogram"),
    help="Which share of the I/Os was faster than each latency, from fio's bins.",
    needs=NEEDS,
    missing=missing,
    build=build_distribution,
    describe=describe,
    in_report=True,
)
HDR = Kind(
    name="hdr",
    title="Latency by percentile",
    frame_names=("summary", "histogram"),
    help="Latency at each percentile, on an axis of nines: 50 %, 90 %, 99 %, 99.9 % and on.",
    needs=NEEDS,
    missing=missing,
    build=build_hdr,
    describe=describe,
)
ECDF = Kind(
    name="ecdf",
    title="Cumulative latency",
    frame_names=("summary", "histogram"),
    help="Which share of the I/Os was faster than each latency, on an even axis of shares.",
    needs=NEEDS,
    missing=missing,
    build=build_ecdf,
    describe=describe,
)
