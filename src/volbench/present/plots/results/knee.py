"""Latency over IOPS as the load grows, a curve per access pattern, with its knee.

The knee is where IOPS / mean latency is greatest: "power", after L. Kleinrock, "Power and
Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications" (1979).
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import swept_options
from volbench.present.formatting import number, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import IOPS, MEAN_LATENCY, P99_LATENCY, Metric, log_limits
from volbench.present.plots.results.sweep_lines import Sweep, sweep_points

_LOADS = ("iodepth", "numjobs")
_WIDE = 30.0
"""Latencies that differ more than so many times stand on a logarithmic axis."""
_PANEL_IN = 3.2


def read(frames: Frames, _: Options) -> Sweep | str:
    """Return the points in the order of the load, with ``knee`` (bool)."""
    options = [name for name in swept_options(frames["summary"]) if name in _LOADS]
    if not options:
        return "no curve: it takes jobs that differ in queue depth or numjobs alone"
    points = sweep_points(frames, options[0], ["mean", "p99"], ["iops"])
    points = points.dropna(subset=["iops", "lat_mean_s"])
    if points.empty:
        return "no curve: the jobs that differ in load have no latencies"
    power = points["iops"] / points["lat_mean_s"]
    knee = power == power.groupby(points["line"]).transform("max")
    metrics = [m for m in (MEAN_LATENCY, P99_LATENCY) if points[m.column].notna().any()]
    return Sweep(points.assign(knee=knee), options[0], metrics)


def build(found: Sweep) -> Plot:
    """Draw mean and p99 latency over IOPS, each point with its load, the knee ringed."""
    points, option = found.points, found.option
    names = list(dict.fromkeys(points["label"]))
    columns = ["iops", "lat_mean_s", "lat_p99_s", "knee", "latency"]
    loads = [labels.option_text(option, float(load)) for load in points[option]]
    data = labels.identified(points, columns).assign(_text=loads)
    panels = [_panel(data, metric, names[0]) for metric in found.metrics]
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=2),
        width_in=12,
        series=labels.line_series(names, columns=28),
        legend="right",
        caption=(
            f"Along a curve the {labels.SHORT_NAMES[option]} grows",
            "Ringed: the knee, where IOPS / mean latency is greatest (Kleinrock's power)",
        ),
    )


def _panel(data: pd.DataFrame, metric: Metric, first: str) -> Panel:
    """Draw the curves of one latency; the points of the first have their load beside them."""
    places = pd.DataFrame({"_x": data["iops"], "_y": data[metric.column], "_text": data["_text"]})
    rings, loads = places[data["knee"]], places[data["label"] == first]
    return Panel(
        x=IOPS.axis(1.12 * float(data["iops"].max())),
        y=_latency_axis(data[metric.column].dropna(), metric),
        marks=(
            marks.Lines(data, by="label", x="iops", y=metric.column),
            marks.Points(rings, size=13, is_hollow=True),
            marks.Texts(loads, offset_pt=(0, 8), align="center", size=7.5),
        ),
    )


def _latency_axis(values: pd.Series, metric: Metric) -> Axis:
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > _WIDE:
        ends = log_limits((low, high), room=(0.7, 1.6))
        return Axis(f"{metric.label} (logarithmic)", "latency", "log", ends)
    return metric.axis(high * 1.12)


def describe(found: Sweep) -> str:
    """Return the knee with most IOPS in one sentence."""
    points, option = found.points, found.option
    best = records(points[points["knee"]].nlargest(1, "iops"))[0]
    return (
        f"Mean {best['latency']} over IOPS for {points['line'].nunique()} patterns: the highest "
        f"knee is at {labels.SHORT_NAMES[option]} "
        f"{labels.option_text(option, number(best, option))} with "
        f"{IOPS.text(number(best, 'iops'))} IOPS and "
        f"{MEAN_LATENCY.text(number(best, 'lat_mean_s'))} ({best['label']})."
    )


KNEE = Kind(
    name="knee",
    title="Throughput and latency, with the knee",
    frame_names=("summary",),
    help="Latency over IOPS as the load grows, a curve per pattern, with the knee of each.",
    needs="jobs that differ in queue depth or numjobs alone",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
)
