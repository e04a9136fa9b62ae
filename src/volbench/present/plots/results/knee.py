"""Latency over IOPS as the load grows, a curve per access pattern, with its knee.

The knee is where IOPS / mean latency is greatest: "power", after L. Kleinrock, "Power and
Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications" (1979).
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import swept_options
from volbench.present.formatting import number, records
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Lines, Panel, Plot, Points, Texts
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import SHORT_NAMES, identified, line_series, option_text
from volbench.present.plots.metrics import log_limits
from volbench.present.plots.results.sweep_lines import sweep_points
from volbench.units import format_count, format_latency

_LOADS = ("iodepth", "numjobs")
_WIDE = 30.0
"""Latencies that differ more than so many times stand on a logarithmic axis."""
_PANEL_IN = 3.2


def curves(frames: Frames) -> tuple[pd.DataFrame, str, str]:
    """Return the points of each curve, the option that raises the load, and the kind of latency.

    Returns:
        Rows in the order of the load with ``label``, ``iops``, ``lat_mean_s``, ``lat_p99_s`` and
        ``knee`` (bool); empty when nothing raises the load.
    """
    options = [name for name in swept_options(frames["summary"]) if name in _LOADS]
    if not options:
        return pd.DataFrame(), "", ""
    points, kind = sweep_points(frames, options[0], ["mean", "p99"], ["iops"])
    points = points.dropna(subset=["iops", "mean"])
    power = points["iops"] / points["mean"]
    knee = power == power.groupby(points["line"]).transform("max")
    renamed = {"mean": "lat_mean_s", "p99": "lat_p99_s"}
    return points.assign(knee=knee).rename(columns=renamed), options[0], kind


def build(frames: Frames, _: Options) -> Plot:
    """Draw mean and p99 latency over IOPS, each point with its load, the knee ringed."""
    points, option, kind = curves(frames)
    names = list(dict.fromkeys(points["label"]))
    numbers = ["iops", "lat_mean_s", "lat_p99_s", "knee", "latency"]
    data = identified(points, numbers).assign(
        _text=[option_text(option, float(load)) for load in points[option]]
    )
    columns = [name for name in ("lat_mean_s", "lat_p99_s") if points[name].notna().any()]
    panels = [_panel(data, column, names[0], kind) for column in columns]
    return Plot(
        panels=tuple(replace(panel, column=place) for place, panel in enumerate(panels)),
        heights=(_PANEL_IN,),
        widths=(1.0,) * len(panels),
        width_in=12,
        series=line_series(names, columns=28),
        legend="right",
        caption=(
            pooled(frames["summary"]),
            f"Along a curve the {SHORT_NAMES[option]} grows",
            "Ringed: the knee, where IOPS / mean latency is greatest (Kleinrock's power)",
        ),
    )


def _panel(data: pd.DataFrame, column: str, first: str, kind: str) -> Panel:
    """Draw the curves of one latency; the points of the first have their load beside them."""
    rings, loads = data[data["knee"]], data[data["label"] == first]
    statistic = "Mean" if column == "lat_mean_s" else "p99 of"
    return Panel(
        x=Axis("IOPS", "count", limits=(0, 1.12 * float(data["iops"].max()))),
        y=_latency_axis(data[column].dropna(), f"{statistic} {kind}"),
        marks=(
            Lines(data=data, by="label", x="iops", y=column),
            Points(data=_drawn(rings, column), x="_x", y="_y", size=13, is_hollow=True),
            Texts(data=_drawn(loads, column), offset_pt=(0, 8), align="center", size=7.5),
        ),
    )


def _drawn(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return places alone: the numbers are those of the curves."""
    return pd.DataFrame({"_x": rows["iops"], "_y": rows[column], "_text": rows["_text"]})


def _latency_axis(values: pd.Series, label: str) -> Axis:
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > _WIDE:
        ends = log_limits((low, high), room=(0.7, 1.6))
        return Axis(f"{label} (logarithmic)", "latency", "log", ends)
    return Axis(label, "latency", limits=(0, high * 1.12 or 1.0))


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if curves(frames)[0].empty:
        return "no curve: it takes jobs that differ in queue depth or numjobs alone, with latencies"
    return ""


def describe(frames: Frames) -> str:
    """Return the knee with most IOPS in one sentence."""
    points, option, kind = curves(frames)
    best = records(points[points["knee"]].nlargest(1, "iops"))[0]
    return (
        f"Mean {kind} over IOPS for {points['line'].nunique()} patterns: the highest knee is at "
        f"{SHORT_NAMES[option]} {option_text(option, number(best, option))} with "
        f"{format_count(number(best, 'iops'))} IOPS and "
        f"{format_latency(number(best, 'lat_mean_s'))} ({best['label']})."
    )


KNEE = Kind(
    name="knee",
    title="Throughput and latency, with the knee",
    frame_names=("summary",),
    help="Latency over IOPS as the load grows, a curve per pattern, with the best trade-off "
    "marked.",
    needs="jobs that differ in queue depth or numjobs alone",
    missing=missing,
    build=build,
    describe=describe,
)
