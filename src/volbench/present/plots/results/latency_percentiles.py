"""Latency percentiles of each job as points on a logarithmic axis."""

from __future__ import annotations

import pandas as pd

from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kind import Frames, Kind, Options
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


def latency_rows(frames: Frames) -> pd.DataFrame:
    """Return a row per job and direction with `STATISTICS` and ``latency``, the kind's name."""
    summary, kind = with_latencies(frames["summary"], STATISTICS)
    rows = labels.side_by_side(per_job(summary, STATISTICS))
    known = rows[rows[list(STATISTICS)].notna().any(axis=1)].reset_index(drop=True)
    return known.assign(latency=LATENCY_KINDS[kind])


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return `latency_rows`, if any latency is above zero."""
    rows = latency_rows(frames)
    if not (rows[list(STATISTICS)] > 0).any(axis=None):
        return "no latency: no run reported any (dd does not measure it)"
    return rows


def build(rows: pd.DataFrame) -> Plot:
    """Draw the percentiles of each job along a logarithmic axis."""
    names = labels.job_names(records(rows))
    data = _data(rows)
    kind = str(rows["latency"].iloc[0])
    parts = (
        marks.Whiskers(data, series="pale", width=5, has_caps=False),
        marks.Texts(data, x="max_s", y="_row", offset_pt=(8, 0), series="muted"),
        *(marks.Points(data, series=name, x=f"{name}_s", y="_row") for name in STATISTICS),
    )
    x = Axis(f"{kind.capitalize()} (logarithmic)", "latency", "log", _limits(data))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=parts),),
        heights=(labels.rows_height_in(names),),
        series=PERCENTILES,
        caption=("Points: median of the repeats" * bool((rows["repeats"] > 1).any()),),
    )


def _data(rows: pd.DataFrame) -> pd.DataFrame:
    values = rows[list(STATISTICS)]
    renamed = {name: f"{name}_s" for name in STATISTICS}
    numbers = labels.identified(rows, [*STATISTICS, "latency"]).rename(columns=renamed)
    return numbers.assign(
        _row=range(len(rows)),
        _low=values.min(axis=1),
        _high=values.max(axis=1),
        _text=[format_latency(value) for value in rows["max"]],
    )


def _limits(data: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis, with room for the text at the right."""
    values = data[[f"{name}_s" for name in STATISTICS]]
    positive = values.where(values > 0)
    low, high = float(positive.min().min()), float(positive.max().max())
    span = max(high / low, 3.0)
    return low / span**0.04, low * span**1.14


def describe(rows: pd.DataFrame) -> str:
    """Return the lowest and the highest p99 in one sentence."""
    kind = rows["latency"].iloc[0]
    known = records(rows.dropna(subset=["p99"]).sort_values("p99"))
    if not known:
        worst = records(rows.nlargest(1, "max"))[0]
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
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
    in_report=True,
)
