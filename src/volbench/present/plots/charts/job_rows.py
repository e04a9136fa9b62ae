"""A row for each job: IOPS and bandwidth as bars, latency percentiles as points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import per_job, with_latencies
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kinds import PER_JOB, Frames, Kind, Options
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    LATENCY_KINDS,
    Metric,
    declared,
    is_wide,
    limits_across,
    rows_axis,
)
from volbench.present.plots.picture import logarithmic
from volbench.present.plots.selection import largest
from volbench.units import counted_noun, format_latency

_MAX_NAMED = 3  # Jobs of which a caption has the names
_MAX_RESULTS = 60  # Maximum number of rows in one chart
_ROOM = 1.14  # The axis ends this far beyond the longest bar, for its text
# From fast to slow; the key is the statistic
_PERCENTILES = (
    Series("p50", "median", "muted", "circle"),
    Series("p90", "p90", "muted", "square"),
    Series("p99", "p99", "muted", "diamond"),
    Series("p999", "p99.9", "muted", "up"),
    Series("max", "max", "muted", "cross"),
)
_STATISTICS = tuple(series.key for series in _PERCENTILES)


def _rows_plot(
    rows: pd.DataFrame,
    x: Axis,
    parts: tuple[marks.AnyMark, ...],
    *,
    series: tuple[Series, ...],
    caption: Sequence[str],
    every: pd.DataFrame | None = None,
) -> Plot:
    """Return one panel with the name of each row at its left; `every` has rows it leaves out."""
    names = labels.job_names(records(rows))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=parts),),
        heights=(labels.rows_height_in(names),),
        series=series,
        caption=tuple(caption),
        rows=every,
    )


def _rated(frames: Frames) -> pd.DataFrame:
    """Return results without sync, which has latencies but no rate."""
    return frames["summary"][frames["summary"]["direction"] != "sync"]


def _is_repeated(rows: pd.DataFrame) -> bool:
    return bool((rows["repeats"] > 1).any())


def _whose(row: Row) -> str:
    return f"({text(row, 'label')}, {text(row, 'direction')})"


@dataclass(frozen=True)
class _JobBars:
    """Bars of one metric."""

    metric: Metric
    axis_label: str

    def read(self, frames: Frames, _: Options) -> pd.DataFrame | str:
        """Return a row per job and direction."""
        rows = labels.side_by_side(per_job(_rated(frames), [self.metric.column]))
        if rows[self.metric.column].isna().all():
            return f"no {self.metric.label}: no run reported it"
        return rows

    def build(self, rows: pd.DataFrame) -> Plot:
        """Draw horizontal bars from zero, with the declared limits."""
        column = self.metric.column
        every = rows
        rows, fewer = largest(
            rows, column, most=_MAX_RESULTS, what="results", criterion=self._criterion
        )
        data = self._data(rows)
        limits = declared(rows, self.metric)
        longest = max([*data["_end"], *(limit.value for limit in limits)])
        parts: tuple[marks.AnyMark, ...] = (
            marks.Bars(data, by="_series", value=column),
            *limits_across(limits),
            marks.Whiskers(data, low=f"{column}_low"),
            marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0), is_boxed=True),
        )
        x = Axis(self.axis_label, self.metric.format, limits=(0, _ROOM * longest or 1))
        note = "Median of the repeats; whiskers: min to max" * _is_repeated(rows)
        plot = _rows_plot(
            rows,
            x,
            parts,
            series=labels.colour_series(rows),
            caption=(note, fewer),
            every=self._data(every) if fewer else None,
        )
        if is_wide(rows[column]):
            return replace(plot, panels=tuple(map(logarithmic, plot.panels)))
        return plot

    def _data(self, rows: pd.DataFrame) -> pd.DataFrame:
        column = self.metric.column
        ends = [column, f"{column}_low", f"{column}_high", self.metric.limit]
        return labels.identified(rows, ends).assign(
            _series=rows[labels.colour_column(rows)],
            _row=range(len(rows)),
            _end=rows[f"{column}_high"].fillna(0),
            _high=rows[f"{column}_high"].where(rows["repeats"] > 1),
            _text=[self._value(row) for row in records(rows)],
        )

    @property
    def _criterion(self) -> str:
        label = self.metric.label
        return f"those with the highest {label if label.isupper() else label.lower()}"

    def _value(self, row: Row) -> str:
        value = number(row, self.metric.column)
        if math.isnan(value):
            return f"not reported by {text(row, 'tool', missing='the tool')}"
        return self.metric.text(value)

    def describe(self, rows: pd.DataFrame) -> str:
        """Return the extremes and the limits in one sentence."""
        known = records(rows.dropna(subset=[self.metric.column]).sort_values(self.metric.column))
        most, least = (f"{self._value(row)} {_whose(row)}" for row in (known[-1], known[0]))
        sentence = f"{self.metric.label} of {counted_noun(len(known), 'result')}: max {most}"
        if len(known) > 1:
            sentence += f", min {least}"
        limits = declared(rows, self.metric)
        return "; ".join([sentence, *(f"declared {limit.name}" for limit in limits)]) + "."


def _kind(name: str, bars: _JobBars, *, needs: str) -> Kind[pd.DataFrame]:
    label = bars.metric.label
    return Kind(
        name=name,
        title=label,
        by_options=PER_JOB,
        help=f"{label} of each job and direction, with the declared limits.",
        needs=needs,
        read=bars.read,
        build=bars.build,
        describe=bars.describe,
        is_pooled=True,
    )


IOPS_BARS = _kind(
    "iops", _JobBars(IOPS, "I/O operations per second"), needs="a finished run of fio"
)
BANDWIDTH_BARS = _kind(
    "bandwidth",
    _JobBars(BANDWIDTH, "Bandwidth (1 MB = 1,000,000 bytes)"),
    needs="a finished run",
)


def read_latency(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job and direction with each percentile and ``latency``, the kind's name."""
    summary, kind = with_latencies(frames["summary"], _STATISTICS)
    other = "lat" if kind == "clat" else "clat"
    theirs = [f"{other}_{name}_s" for name in _STATISTICS]
    is_other = summary[list(_STATISTICS[:-1])].isna().all(axis=1)
    is_other &= summary[theirs[:-1]].notna().any(axis=1)
    summary.loc[is_other, list(_STATISTICS)] = summary.loc[is_other, theirs].to_numpy(float)
    pooled = per_job(summary, _STATISTICS)
    rows = labels.side_by_side(pooled)
    known = rows[rows[list(_STATISTICS)].notna().any(axis=1)].reset_index(drop=True)
    if not (known[list(_STATISTICS)] > 0).any(axis=None):
        return "no latency: no run reported any"
    note = (
        f"{_some(summary.loc[is_other, 'job'])}: {LATENCY_KINDS[other]}, as fio reported no other"
    )
    return known.assign(
        latency=LATENCY_KINDS[kind], note=(f"{note} percentiles" if any(is_other) else "")
    )


def _some(jobs: pd.Series[str]) -> str:
    """Return the names of a few jobs, and the number of many."""
    names = dict.fromkeys(map(str, jobs))
    return ", ".join(names) if len(names) <= _MAX_NAMED else f"{len(names)} jobs"


def build_latency(rows: pd.DataFrame) -> Plot:
    """Draw the percentiles of each job along a logarithmic axis."""
    columns = {name: f"{name}_s" for name in _STATISTICS}
    every = labels.identified(rows, [*_STATISTICS, "latency"]).rename(columns=columns)
    rows, fewer = largest(
        rows, "max", most=_MAX_RESULTS, what="results", criterion="those with the slowest I/O"
    )
    values = rows[list(_STATISTICS)]
    data = labels.identified(rows, [*_STATISTICS, "latency"]).rename(columns=columns)
    data = data.assign(
        _row=range(len(rows)),
        _series=rows[labels.colour_column(rows)],
        **{f"_{key}": key for key in _STATISTICS},
        _low=values.min(axis=1),
        _high=values.max(axis=1),
        _text=[format_latency(value) for value in rows["max"]],
    )
    parts = (
        marks.Whiskers(data, series="pale", width=5, has_caps=False),
        marks.Texts(data, x="max_s", y="_row", offset_pt=(8, 0), series="muted"),
        *(
            marks.Points(data, by="_series", marker_of=f"_{key}", x=column, y="_row")
            for key, column in columns.items()
        ),
    )
    positive = values.where(values > 0)
    low, high = float(positive.min().min()), float(positive.max().max())
    span = max(high / low, 3.0)
    ends = (low / span**0.04, low * span**1.14)  # with room for the text at the right
    x = Axis(f"{rows['latency'].iloc[0].capitalize()} (logarithmic)", "latency", "log", ends)
    note = "Points: percentiles of the I/Os of all repeats" * _is_repeated(rows)
    bare = rows.loc[rows[list(_STATISTICS[:-1])].isna().all(axis=1), "label"]
    only_max = f"{_some(bare)}: max only, as fio reported none of these percentiles"
    return _rows_plot(
        rows,
        x,
        parts,
        series=(*labels.colour_series(rows), *_PERCENTILES),
        caption=(note, str(rows["note"].iloc[0]), only_max * bool(len(bare)), fewer),
        every=every if fewer else None,
    )


def describe_latency(rows: pd.DataFrame) -> str:
    """Return the lowest and the highest p99 in one sentence."""
    kind = rows["latency"].iloc[0]
    known = records(rows.dropna(subset=["p99"]).sort_values("p99"))
    if not known:
        worst = records(rows.nlargest(1, "max"))[0]
        value = format_latency(number(worst, "max"))
        return (
            f"Max {kind} of {counted_noun(len(rows), 'result')}: {value} ({text(worst, 'label')})."
        )
    low, high = (
        f"{format_latency(number(row, 'p99'))} {_whose(row)}" for row in (known[0], known[-1])
    )
    return (
        f"Percentiles of {kind} for {counted_noun(len(known), 'result')}: p99 from {low} to {high}."
    )


LATENCY = Kind(
    name="latency",
    title="Latency percentiles",
    by_options=PER_JOB,
    help="Median, p90, p99, p99.9 and max latency of each job and direction.",
    needs="latencies of fio",
    read=read_latency,
    build=build_latency,
    describe=describe_latency,
    is_pooled=True,
)
