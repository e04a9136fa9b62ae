"""A row for each job: IOPS, bandwidth, CPU time and I/Os in flight as bars, latencies as points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.aggregate import in_classes
from volbench.analyse.frames.job_frames import key_of, per_job, with_latencies
from volbench.present.formatting import Row, flag, number, records, text
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
from volbench.units import counted_noun, format_latency, format_percent

_MAX_NAMED = 3  # Jobs of which a caption has the names
_MAX_RESULTS = 60  # Maximum number of rows in one chart
_ROOM = 1.14  # The axis ends this far beyond the longest bar, for its text
# The key is the column
_CPU = (Series("cpu_usr", "user", "palette-5"), Series("cpu_sys", "system", "palette-0"))
_FULL = 100.0
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
        in_report=True,
    )


IOPS_BARS = _kind(
    "iops", _JobBars(IOPS, "I/O operations per second"), needs="a finished run of fio"
)
BANDWIDTH_BARS = _kind(
    "bandwidth",
    _JobBars(BANDWIDTH, "Bandwidth (1 MB = 1,000,000 bytes)"),
    needs="a finished run",
)


def read_cpu(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job with the medians of user and system time, and of their sum."""
    # fio reports it once for a job, and both directions of a mixed job repeat it.
    jobs = _rated(frames).dropna(subset="cpu_usr").drop_duplicates(["run", "group"])
    jobs = jobs.assign(cpu=jobs["cpu_usr"] + jobs["cpu_sys"])
    rows = labels.side_by_side(per_job(jobs, [*(part.key for part in _CPU), "cpu"]))
    return rows if len(rows) else "no CPU time: no run reported it"


def build_cpu(rows: pd.DataFrame) -> Plot:
    """Draw a bar for each job; the whisker is the range of the sum over the repeats."""
    every = rows
    rows, fewer = largest(
        rows, "cpu", most=_MAX_RESULTS, what="jobs", criterion="those with the most CPU time"
    )
    total = rows["cpu_usr"] + rows["cpu_sys"]
    data = _cpu_numbers(rows).assign(
        _row=range(len(rows)),
        _high=rows["cpu_high"].where(rows["repeats"] > 1),
        _end=total.combine(rows["cpu_high"], max),
        _text=[f"{value:.3g} %" for value in total],
    )
    most = float(data["_end"].max())
    parts = (
        *((marks.ReferenceLine(_FULL, "x"),) if most > _FULL * 0.8 else ()),
        marks.Bars(data, series="cpu_usr", value="cpu_usr"),
        marks.Bars(data, series="cpu_sys", value="cpu_sys", base="cpu_usr"),
        marks.Whiskers(data, low="cpu_low"),
        marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0)),
    )
    caption = (
        "CPU time of each process of the job, as a share of one CPU",
        "Bars: medians; whiskers: min to max of the sum" * _is_repeated(rows),
        fewer,
    )
    x = Axis("CPU time, of one CPU", "percent", limits=(0, max(most * 1.15, 1.0)))
    return _rows_plot(
        rows, x, parts, series=_CPU, caption=caption, every=_cpu_numbers(every) if fewer else None
    )


def _cpu_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return labels.identified(rows, ["cpu_usr", "cpu_sys", "cpu_low", "cpu_high"])


def describe_cpu(rows: pd.DataFrame) -> str:
    """Return the busiest job in one sentence."""
    busiest = records(rows.nlargest(1, "cpu"))[0]
    value = number(busiest, "cpu_usr") + number(busiest, "cpu_sys")
    jobs = counted_noun(len(rows), "job")
    return f"CPU time of {jobs}: max {value:.3g} % of one CPU ({busiest['label']})."


CPU = Kind(
    name="cpu",
    title="CPU time",
    by_options=PER_JOB,
    help="User and system time that each job's processes used.",
    needs="a finished run of fio",
    read=read_cpu,
    build=build_cpu,
    describe=describe_cpu,
    is_pooled=True,
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
    return known.assign(latency=LATENCY_KINDS[kind], note=f"{note} percentiles" * any(is_other))


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
    in_report=True,
)


_CLASSES = (1, 2, 4, 8, 16, 32, 64)  # Least I/Os in flight of each class of fio
_CLASS_NAMES = ("1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 and more")
_IN_FLIGHT = tuple(
    Series(f"in_flight_{least}", name, f"step-{place}")
    for place, (least, name) in enumerate(zip(_CLASSES, _CLASS_NAMES, strict=True))
)
_MAX_JOBS = 60  # Maximum number of jobs in one chart
_IN_FLIGHT_ROOM = 1.22
_IN_FLIGHT_COLUMNS = [series.key for series in _IN_FLIGHT]


def read_in_flight(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job with the share of its I/Os in each class.

    ``below`` is the share in the classes under that of the job's queue depth; 0 if that is unknown.
    """
    classes = in_classes(frames["shares"], frames["summary"], "iodepth")
    if classes.empty:
        return "no I/Os in flight: no run of fio reported them (iodepth_level)"
    order = classes.groupby(key_of(classes), sort=False, dropna=False).ngroup()
    jobs = classes.assign(_order=order).drop_duplicates("_order").reset_index(drop=True)
    for least, column in zip(_CLASSES, _IN_FLIGHT_COLUMNS, strict=True):
        counts = classes["count"].where(classes["low"] == least, 0.0).groupby(order).sum()
        jobs[column] = jobs["_order"].map(counts)
    jobs[_IN_FLIGHT_COLUMNS] = jobs[_IN_FLIGHT_COLUMNS].div(
        jobs[_IN_FLIGHT_COLUMNS].sum(axis=1), axis=0
    )
    return labels.side_by_side(jobs.assign(below=[_below(row) for row in records(jobs)]))


def _below(row: Row) -> float:
    depth = number(row, "iodepth")
    least = max((lower for lower in _CLASSES if lower <= depth), default=0)
    return math.fsum(number(row, f"in_flight_{lower}") for lower in _CLASSES if lower < least)


def build_in_flight(rows: pd.DataFrame) -> Plot:
    """Draw a bar for each job, a part for each class, and its queue depth behind it."""
    every = rows
    rows, fewer = largest(
        rows, "below", most=_MAX_JOBS, what="jobs", criterion="those farthest below queue depth"
    )
    data = _in_flight_numbers(rows).assign(
        _row=range(len(rows)), _end=1.0, _text=[_depth(r) for r in records(rows)]
    )
    running = rows[_IN_FLIGHT_COLUMNS].cumsum(axis=1)
    parts: list[marks.AnyMark] = []
    for before, series in zip(["", *_IN_FLIGHT_COLUMNS], _IN_FLIGHT, strict=False):
        base = {"_base": running[before] if before else 0.0}
        drawn = data.assign(**base)[data[series.key] > 0]
        if len(drawn):
            parts.append(marks.Bars(drawn, series=series.key, value=series.key, base="_base"))
    depths = marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0), series="muted")
    names = labels.job_names(records(rows))
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    x = Axis("I/Os of the job", "share", ticks=ticks, limits=(0.0, _IN_FLIGHT_ROOM))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=(*parts, depths)),),
        heights=(labels.rows_height_in(names),),
        series=tuple(each for each in _IN_FLIGHT if (rows[each.key] > 0).any()),
        caption=(
            "I/Os in flight at each submission, counted by each process of the job",
            "libaio with direct=0 completes I/Os during submission, yet counts the full depth"
            * any(flag(row, "direct") == "no" for row in records(rows)),
            fewer,
        ),
        rows=_in_flight_numbers(every),
    )


def _depth(row: Row) -> str:
    depth = text(row, "iodepth")
    return f"iodepth {depth}" if depth else ""


def _in_flight_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return labels.identified(rows, ["iodepth", *_IN_FLIGHT_COLUMNS])


def describe_in_flight(rows: pd.DataFrame) -> str:
    """Return the job that reached its queue depth least in one sentence."""
    row = records(rows.nlargest(1, "below"))[0]
    return (
        f"I/Os in flight of {counted_noun(len(rows), 'job')}: at most"
        f" {format_percent(number(row, 'below'))} of the I/Os were submitted below the queue depth"
        f" ({row['label']}, {_depth(row) or 'iodepth not reported'})."
    )


IN_FLIGHT = Kind(
    name="inflight",
    title="I/Os in flight",
    by_options=PER_JOB,
    help="I/Os in flight of each job, beside the configured queue depth.",
    needs="a finished run of fio",
    read=read_in_flight,
    build=build_in_flight,
    describe=describe_in_flight,
    frame_names=("summary", "shares"),
    is_pooled=True,
)
