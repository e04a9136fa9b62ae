"""Latency percentiles of each job as points on a logarithmic axis."""

from __future__ import annotations

import math

import pandas as pd

from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import (
    Axis,
    Panel,
    Plot,
    Points,
    Series,
    Texts,
    Whiskers,
)
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import identified, job_names, rows_height_in, side_by_side
from volbench.present.plots.metrics import LATENCY_KINDS, rows_axis
from volbench.units import format_latency

PERCENTILES = (
    Series("p50", "median", "palette-5", "circle"),
    Series("p90", "p90", "palette-0", "square"),
    Series("p99", "p99", "palette-4", "diamond"),
    Series("p999", "p99.9", "palette-1", "up"),
    Series("max", "max", "palette-6", "cross"),
)
"""From fast to slow; the key is the statistic."""
STATISTICS = tuple(series.key for series in PERCENTILES)


def latency_rows(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return a row per job and direction with `STATISTICS`, and the name of the latency's kind."""
    summary, kind = with_latencies(frames["summary"], STATISTICS)
    rows = side_by_side(per_job(summary, STATISTICS))
    known = rows[list(STATISTICS)].notna().any(axis=1)
    return rows[known].reset_index(drop=True), LATENCY_KINDS[kind]


def build(frames: Frames, _: Options) -> Plot:
    """Draw the percentiles of each job along a logarithmic axis."""
    rows, kind = latency_rows(frames)
    names = job_names(records(rows))
    data = _data(rows, kind)
    marks = (
        Whiskers(data=data, at="_row", low="_low", high="_high", series="pale", width=5),
        Texts(data=data, x="max_s", y="_row", text="_text", offset_pt=(8, 0), series="muted"),
        *(Points(data=data, series=name, x=f"{name}_s", y="_row") for name in STATISTICS),
    )
    x = Axis(f"{kind.capitalize()} (logarithmic)", "latency", "log", _limits(data))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=marks),),
        heights=(rows_height_in(names),),
        series=PERCENTILES,
        caption=(
            pooled(frames["summary"]),
            "Points: median of the repeats" * bool((rows["repeats"] > 1).any()),
        ),
    )


def _data(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    values = rows[list(STATISTICS)]
    return (
        identified(rows, STATISTICS)
        .rename(columns={name: f"{name}_s" for name in STATISTICS})
        .assign(
            latency=kind,
            _row=range(len(rows)),
            _low=values.min(axis=1),
            _high=values.max(axis=1),
            _text=[format_latency(value) for value in rows["max"]],
        )
    )


def _limits(data: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis, with room for the text at the right."""
    values = data[[f"{name}_s" for name in STATISTICS]]
    positive = values.where(values > 0)
    low, high = float(positive.min().min()), float(positive.max().max())
    span = max(high / low, 3.0)
    return low / span**0.04, low * span**1.14


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    rows, _ = latency_rows(frames)
    if not (rows[list(STATISTICS)] > 0).any(axis=None):
        return "no latency: no run reported any (dd does not measure it)"
    return ""


def describe(frames: Frames) -> str:
    """Return the lowest and the highest p99 in one sentence."""
    rows, kind = latency_rows(frames)
    known = sorted(
        (row for row in records(rows) if not math.isnan(number(row, "p99"))),
        key=lambda row: number(row, "p99"),
    )
    if not known:
        worst = max(records(rows), key=lambda row: number(row, "max"))
        value = format_latency(number(worst, "max"))
        return f"Max {kind} of {len(rows)} results: {value} ({text(worst, 'label')})."
    return (
        f"Percentiles of {kind} for {len(known)} results: p99 from {_p99(known[0])} "
        f"to {_p99(known[-1])}."
    )


def _p99(row: Row) -> str:
    value = format_latency(number(row, "p99"))
    return f"{value} ({text(row, 'label')}, {text(row, 'direction')})"


LATENCY = Kind(
    name="latency",
    title="Latency percentiles per job",
    frame_names=("summary",),
    help="Median, p90, p99, p99.9 and max latency of each job and direction.",
    needs="latencies of fio",
    missing=missing,
    build=build,
    describe=describe,
    in_report=True,
)
