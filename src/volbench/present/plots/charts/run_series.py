"""IOPS, bandwidth and mean latency over time: a row of panels for each workload.

What is compared has colours and is drawn over each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.disturbed import grey_rows
from volbench.analyse.frames.job_frames import COLOUR, measured
from volbench.analyse.frames.run_view import is_partial
from volbench.present.factor_words import listed
from volbench.present.formatting import printable, short_target
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.event_lines import event_lines, events_of
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.metrics import (
    BANDWIDTH,
    IOPS,
    LATENCY_KINDS,
    LATENCY_LOGS,
    MEAN_LATENCY,
    Metric,
    declared,
    limits_along,
    shared_tops,
    time_axis,
)
from volbench.units import counted_noun, format_duration

MISSING_SERIES = "no series: the runs have no logs, or logs shorter than an interval"
_PART_LOGS = (
    "the runs have no such log; fio writes one with write_lat_log, but for submission latency only"
    " with engines that queue I/Os"
)
_SERIES_IN, _LINES_IN = 1.2, 1.7
_ROOM = Room(9, "jobs", "series")  # Rows of panels
PARTIAL = "Lighter: not all parallel jobs were running, so the sum is not the rate of the volume"
NOISY = "Lighter: the host disturbed the run (steal, waits for a CPU, other I/O)"
_OWN_SCALES = "Each row has a scale of its own, as values differ more than tenfold"
_ONE_SIZE = 1.02  # Ratio of sizes of I/Os that are one size: rates are rounded
_LIGHT = 0.35  # Opacity of disturbed intervals
_FEW, _FEW_ROOM = 3, 1.15  # Samples that would be at the edge of the axis, and its longer end


def _latency(kind: str, statistic: str) -> Metric:
    """Return a latency over time; of ``clat`` and ``slat`` there is the mean only."""
    names = {"mean": "Mean", "p50": "Median", "max": "Max"}
    label = names.get(statistic) or statistic.replace("p999", "p99.9")
    return replace(
        MEAN_LATENCY,
        column=f"{kind}_{statistic}_s",
        label=f"{label} {'latency' if kind == 'lat' else LATENCY_KINDS[kind]}",
    )


@dataclass(frozen=True)
class _Jobs:
    """Data of the chart."""

    metrics: Sequence[Metric]
    series: Mapping[str, pd.DataFrame]  # label of a job to its intervals
    every: pd.DataFrame  # intervals of all jobs
    results: pd.DataFrame  # of the runs, for their limits
    events: pd.DataFrame  # marks of watched runs


def read_series(frames: Frames, chosen: Options) -> _Jobs | str:
    """Return the intervals of each job."""
    rows = labels.labelled(frames["series"], frames["summary"])
    if rows.empty:
        return MISSING_SERIES
    latency = _latency(chosen.latency, chosen.statistic)
    if (chosen.latency, chosen.statistic) != ("lat", "mean") and rows[latency.column].isna().all():
        why = LATENCY_LOGS if chosen.latency == "lat" else _PART_LOGS
        return f"no {latency.label.lower()} over time: {why}"
    metrics = (IOPS, BANDWIDTH, latency)
    if COLOUR in rows:  # what differs in colour alone shares a row
        rows["label"] = labels.directed(rows.assign(label=rows["job"]))
    every = labels.identified(rows.sort_values("line", kind="stable"), _columns(metrics))
    device = frames["device"]
    noisy = grey_rows(rows, device[device["run"].isin(rows["run"])], frames["summary"])
    jobs = rows.assign(_light=is_partial(rows) | noisy, _noisy=noisy).groupby("label", sort=False)
    series = {str(label): job for label, job in jobs}
    results = measured(frames["summary"])
    return _Jobs(metrics, series, every, results, events_of(frames))


def build_series(jobs: _Jobs) -> Plot:
    """Draw a row of panels per job; repeats are drawn over each other in other dashes."""
    series = jobs.series
    shown = pd.concat(series.values())
    known = [each for each in jobs.metrics if shown[each.column].notna().any()]
    missing = [each.label for each in jobs.metrics if each not in known]
    if BANDWIDTH in known and IOPS in known and _is_of_one_size(shown):
        known.remove(BANDWIDTH)  # the same curve on another scale
    jobs = replace(jobs, metrics=known or jobs.metrics)
    repeats = max(int(job["repeat"].max()) for job in series.values())
    tops = [
        shared_tops(
            [metric] * len(series), [float(job[metric.column].max()) for job in series.values()]
        )
        for metric in jobs.metrics
    ]
    panels = [
        panel
        for place, (label, job) in enumerate(series.items())
        for panel in _row(jobs, label, job, [of_metric[place] for of_metric in tops])
    ]
    coloured = labels.colour_series(shown)
    is_several = len(coloured) > 1
    abreast = len(jobs.metrics)
    names = [metric.label for metric in jobs.metrics]
    names[1:] = [name[:1].lower() + name[1:] for name in names[1:]]
    return replace(
        grid(panels, height_in=_SERIES_IN, abreast=abreast),
        width_in=12,
        title=f"{listed(names)} over time",
        series=tuple(
            replace(
                each, key=f"{each.key}/{n}", dash=dash, marker=labels.marker(place) * is_several
            )
            for place, each in enumerate(coloured)
            for n, dash in enumerate(labels.DASHES)
        ),
        caption=(
            (f"Not logged, so not shown: {', '.join(missing)}" if missing else ""),
            _OWN_SCALES if any(len({*of_metric}) > 1 for of_metric in tops) else "",
            ("Solid: repeat 1; dashed, dotted: further repeats" if repeats > 1 else ""),
            PARTIAL * any((job["_light"] & ~job["_noisy"]).any() for job in series.values()),
            NOISY * any(job["_noisy"].any() for job in series.values()),
        ),
        shared_x=True,
    )


def _is_of_one_size(rows: pd.DataFrame) -> bool:
    busy = rows[rows["iops"] > 0]
    sizes = (busy["bw_bytes_per_s"] / busy["iops"]).groupby(busy["label"])
    return bool((sizes.max() <= _ONE_SIZE * sizes.min()).all())


def _columns(metrics: Sequence[Metric]) -> tuple[str, ...]:
    return ("run", "repeat", "t_s", *(metric.column for metric in metrics))


def _row(jobs: _Jobs, label: str, job: pd.DataFrame, tops: Sequence[float]) -> list[Panel]:
    turns = (job["repeat"].astype(int) - 1) % len(labels.DASHES)
    data = labels.identified(job, (*_columns(jobs.metrics), "_light"))
    coloured = job[labels.colour_column(job)].astype(str)
    data = data.assign(_series=coloured + "/" + turns.astype(str))
    events, end_s = jobs.events[jobs.events["run"].isin(job["run"])], float(job["t_s"].max())
    times = jobs.every["t_s"]
    x = time_axis(float(times.max()) * (_FEW_ROOM if times.nunique() <= _FEW else 1.0))
    panels = [
        _panel(data, metric, jobs.results, x, top)
        for metric, top in zip(jobs.metrics, tops, strict=True)
    ]
    first, *others = (
        replace(panel, marks=(*panel.marks, *event_lines(events, end_s=end_s, is_named=not index)))
        for index, panel in enumerate(panels)
    )
    return [replace(first, heading=printable(label)), *others]


def _panel(data: pd.DataFrame, metric: Metric, results: pd.DataFrame, x: Axis, top: float) -> Panel:
    """Draw one metric of one job, zeros as zeros and unknown values as a gap."""
    known = data[metric.column].dropna()
    run_results = results[results["run"].isin(data["run"])]
    promised = declared(run_results, metric)
    limits, top = limits_along(promised, top=1.08 * top)
    whole = marks.Lines(
        data, by="_series", group="run", x="t_s", y=metric.column, width=1.2, has_dots=True
    )
    lines: tuple[marks.AnyMark, ...] = (whole,)
    if data["_light"].any():
        clear = data.assign(**{metric.column: data[metric.column].mask(data["_light"])})
        lines = (replace(whole, alpha=_LIGHT), replace(whole, data=clear))
    nothing = marks.Texts(
        marks.text_at(0.5, 0.5, "n/a"), x_in="panel", y_in="panel", align="center", series="muted"
    )
    parts: tuple[marks.AnyMark, ...] = (*lines, *limits, *((nothing,) * known.empty))
    return Panel(x=x, y=metric.axis(top), marks=parts)


def describe_series(jobs: _Jobs) -> str:
    """Return what was measured, its length and the extremes of IOPS in one sentence."""
    rows = jobs.every
    runs, workloads = rows["run"].nunique(), len(jobs.series)
    volumes = [short_target(str(name)) for name in jobs.results["volume"].dropna().unique()]
    what = f"{workloads} workloads" if workloads > 1 else next(iter(jobs.series))
    place = volumes[0] if len(volumes) == 1 else f"{len(volumes)} volumes"
    where = f" on {place}" if volumes else ""
    count = f"{counted_noun(runs, 'run')} of {what}{where}"
    length = format_duration(float(rows["t_s"].max()))
    low, high = (float(end) for end in rows["iops"].agg(["min", "max"]))
    ends = "" if math.isnan(low) else f": between {IOPS.text(low)} and {IOPS.text(high)} IOPS"
    return f"{count}, up to {length}{ends}{ends and ' in an interval'}."


SERIES = Kind(
    name="series",
    across=(),
    title="Over time",
    frame_names=("summary", "series", "device", "marks"),
    help="IOPS, bandwidth and mean latency over time, a row of panels per job.",
    needs="a sample interval above 0",
    read=read_series,
    build=build_series,
    describe=describe_series,
    draws_invalid=True,
    room=_ROOM,
)
