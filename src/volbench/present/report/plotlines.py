"""Interactive lines: histogram, sweep, series and device rows enter, charts with zoom leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd
from bokeh.models import DataRange1d, PlainText
from bokeh.plotting import figure

from volbench.analyse.frames.job_frames import (
    KEY,
    distribution,
    keep_extremes,
    labels,
    measured,
    of_measured,
    sweep,
    swept_options,
    with_latencies,
)
from volbench.present.figures.latency import KINDS as LATENCY_KINDS
from volbench.present.figures.sweep import (
    BANDWIDTH,
    IOPS,
    NAMES,
    P99,
    line_names,
    option_text,
)
from volbench.present.formatting import number, printable, records
from volbench.present.report.plotbars import latency_ticks
from volbench.present.report.plots import (
    FAR,
    LIMIT,
    Plot,
    Toggle,
    add_hover,
    add_limit,
    colour_of,
    item_of,
    name_ticks,
    new_panel,
    numerals,
    palette,
    source,
    span,
    thin,
    unit_of,
    with_unit,
)
from volbench.units import format_latency

AT_FIRST = 8
"""Lines that are shown before one chooses: more can't be told apart."""
POINTS = 400_000
"""Of all lines over time in a page, so that it stays small."""
BUCKETS = range(100, 401)
"""Of a line over time, of which the least and the greatest are kept: about a pixel each."""
DASHES = ("solid", "dashed", "dotted", "dotdash")

Frames = Mapping[str, pd.DataFrame]


def distribution_plot(title: str, description: str, frames: Frames) -> Plot:
    """Return which share of the I/Os was faster than each latency, a line for each job."""
    pooled, kind = distribution(frames["histogram"], frames["summary"])
    panel = new_panel(
        height_px=420,
        x_label=f"{LATENCY_KINDS[kind].capitalize()} (logarithmic)",
        y_label="I/Os that were faster",
        x_log=True,
        y_log=True,
    )
    toggles: list[Toggle] = []
    least_share = 0.1
    for place, (_, line) in enumerate(pooled.groupby(list(KEY), sort=False, dropna=False)):
        first = line.iloc[0]
        name = printable(f"{first['label']}, {first['direction']}")
        slower = 1 - line["share"].to_numpy(dtype=float)
        slower[-1] = 0.5 / float(line["count"].sum())  # as in the static chart
        least_share = min(least_share, float(slower[-1]))
        toggle = Toggle(f"line{place}", name, palette(place), shown=place < AT_FIRST)
        edges_s = [float(line["bin_high_s"].iloc[0]), *line["bin_high_s"].astype(float)]
        panel.step(
            "x",
            "y",
            mode="after",
            line_width=2,
            color=toggle.colour,
            name=toggle.key,
            visible=toggle.shown,
            source=source(
                {
                    "x": edges_s,
                    "y": [1.0, *slower],
                    "name": [name] * len(edges_s),
                    "latency": [format_latency(edge) for edge in edges_s],
                    "faster": [_percent(share) for share in (1.0, *slower)],
                }
            ),
        )
        toggles.append(toggle)
    low_s, high_s = float(pooled["bin_high_s"].min()), float(pooled["bin_high_s"].max())
    panel.x_range = span(low_s * 0.9, max(high_s, 3 * low_s) * 1.1)
    panel.y_range = span(1.0, least_share)
    latency_ticks(panel, low_s=low_s, high_s=high_s)
    nines = [1.0, 0.5, *(10.0**-power for power in range(1, 9))]
    name_ticks(panel.yaxis[0], {share: _percent(share) for share in nines})
    add_hover(panel, [("job", "@name"), ("faster than", "@latency"), ("share", "@faster")])
    return Plot("distribution", title, description, tuple(toggles), item_of([panel]))


def _percent(slower: float) -> str:
    """Return the share that was faster, with as many nines as it takes."""
    return f"{100 * (1 - slower):.6f}".rstrip("0").rstrip(".") + " %"


def sweep_plot(title: str, description: str, frames: Frames) -> Plot:
    """Return IOPS, bandwidth and p99 latency along the swept option, a line for each pattern."""
    option = swept_options(frames["summary"])[0]
    summary, kind = with_latencies(frames["summary"], ("p99",))
    metrics = [IOPS, BANDWIDTH, P99] if option == "block_bytes" else [IOPS, P99]
    points = sweep(summary, option, [metric.column for metric in metrics])
    names = line_names(points, option)
    lines = [records(line) for _, line in points.groupby("line", sort=True)]
    toggles = tuple(Toggle(f"line{n}", name, palette(n)) for n, name in enumerate(names))
    values = sorted({float(value) for value in points[option]})
    panels: list[figure] = []
    for metric in metrics:
        if points[metric.column].isna().all():
            continue
        unit, factor = unit_of(metric.column, float(points[metric.column].max()))
        name = f"p99 of {LATENCY_KINDS[kind]}" if metric is P99 else metric.name
        panel = new_panel(
            height_px=280, x_label=NAMES[option], y_label=with_unit(name, unit), x_log=True
        )
        for toggle, line in zip(toggles, lines, strict=True):
            told = source(
                {
                    "x": [number(row, option) for row in line],
                    "y": [number(row, metric.column) / factor for row in line],
                    "name": [toggle.name] * len(line),
                    "option": [option_text(option, number(row, option)) for row in line],
                    "shown": [_show(row, metric.column, metric.format_value) for row in line],
                }
            )
            panel.line("x", "y", color=toggle.colour, line_width=2, name=toggle.key, source=told)
            panel.scatter("x", "y", color=toggle.colour, size=7, name=toggle.key, source=told)
        name_ticks(panel.xaxis[0], {value: option_text(option, value) for value in values})
        numerals(panel.yaxis[0])
        panel.x_range = panels[0].x_range if panels else span(values[0] * 0.8, values[-1] * 1.25)
        panel.y_range = DataRange1d(start=0)
        add_hover(panel, [("line", "@name"), ("at", "@option"), (name, "@shown")])
        panels.append(panel)
    return Plot("sweep", title, description, toggles, item_of(panels))


def _show(row: Mapping[str, object], column: str, show: Callable[[float], str]) -> str:
    value = number(row, column)
    return "n/a" if math.isnan(value) else show(value)


@dataclass(frozen=True)
class Trace:
    """A panel over time: a column in the unit for people, and its declared limit."""

    column: str
    name: str
    limit: str = ""


SERIES_TRACES = (
    Trace("iops", "IOPS", "limit_iops"),
    Trace("bw_bytes_per_s", "Bandwidth", "limit_bw_bytes_per_s"),
    Trace("lat_mean_s", "Mean latency"),
)


def series_plots(title: str, frames: Frames) -> list[Plot]:
    """Return IOPS, bandwidth and latency over time, a chart for each job."""
    rows = of_measured(frames["series"], frames["summary"])
    rows = rows.assign(label=labels(rows))
    limits = measured(frames["summary"]).drop_duplicates("run").set_index("run")
    lines = len(SERIES_TRACES) * len(rows[["run", "direction"]].drop_duplicates())
    buckets = min(max(POINTS // 2 // max(lines, 1), BUCKETS.start), BUCKETS.stop - 1)
    return [
        _series_plot(str(label), job, limits, title=title, buckets=buckets)
        for label, job in rows.groupby("label", sort=False)
    ]


def _series_plot(
    label: str, job: pd.DataFrame, limits: pd.DataFrame, *, title: str, buckets: int
) -> Plot:
    """Return the panels of one job, its repeats in other dashes."""
    several = len(job["repeat"].unique()) > 1
    toggles: dict[str, Toggle] = {}
    panels: list[figure] = []
    for trace in SERIES_TRACES:
        told = job[trace.column]
        if told.isna().all():
            continue
        unit, factor = unit_of(trace.column, float(told.max()))
        panel = new_panel(height_px=190, y_label=with_unit(trace.name, unit))
        for (run, direction), points in job.groupby(["run", "direction"], sort=False):
            repeat = int(points["repeat"].iloc[0])
            name = f"{direction}, repeat {repeat}" if several else str(direction)
            key = f"{direction} {run}"
            toggles[key] = Toggle(key, name, colour_of(str(direction)))
            x, y = keep_extremes(
                points["t_s"].to_numpy(dtype=float),
                points[trace.column].to_numpy(dtype=float) / factor,
                buckets=buckets,
            )
            panel.line(
                "x",
                "y",
                color=colour_of(str(direction)),
                line_dash=DASHES[(repeat - 1) % len(DASHES)],
                line_width=1.5,
                name=key,
                source=source({"x": thin(x), "y": thin(y)}),
            )
        if _limit(panel, job, limits, trace, factor=factor, top=float(told.max())):
            toggles[LIMIT.key] = LIMIT
        panel.x_range = panels[0].x_range if panels else span(0, float(job["t_s"].max()) or 1)
        panel.y_range = DataRange1d(start=0)
        numerals(panel.yaxis[0])
        numerals(panel.xaxis[0])
        add_hover(
            panel, [("time", "@x{0,0.[0]} s"), (trace.name, f"@y{{0,0.[000]}} {unit}".strip())]
        )
        panels.append(panel)
    if panels:
        panels[-1].xaxis[0].axis_label = PlainText(text="Seconds since the Run's I/O began")
    description = f"{title}: {label}, {job['run'].nunique()} Runs, {job['t_s'].max():.0f} s long."
    return Plot("series", label, description, tuple(toggles.values()), item_of(panels))


def _limit(
    panel: figure,
    job: pd.DataFrame,
    limits: pd.DataFrame,
    trace: Trace,
    *,
    factor: float,
    top: float,
) -> bool:
    """Draw declared limits that are near enough not to flatten the lines; tell if there are any."""
    if not trace.limit:
        return False
    known = limits.loc[limits.index.isin(job["run"]), trace.limit].dropna().unique()
    near = [float(value) for value in known if float(value) <= FAR * top]
    for value in near:
        add_limit(panel, value / factor)
    return bool(near)
