"""Throughput against latency: a sweep enters, a curve per pattern with its knee leaves.

The knee is where IOPS / mean latency is greatest: "power", after L. Kleinrock, "Power and
Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications" (1979).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from volbench.analyse.frames.job_frames import sweep, swept_options, with_latencies
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.colours import line_legend
from volbench.present.figures.latency import KINDS
from volbench.present.figures.sweep import SHORT, line_names, option_text
from volbench.present.style import (
    BLACK,
    MARKERS,
    PALETTE,
    count_axis,
    linear_latency_axis,
    log_latency_axis,
)
from volbench.units import format_count, format_latency

COLUMNS = ("iops", "mean", "p99")
LOADS = ("iodepth", "numjobs")
_WIDE = 30.0
"""Latencies that differ more than so many times stand on a logarithmic axis."""


def curves(frames: Frames) -> tuple[pd.DataFrame, str, str]:
    """Return the points of each curve, the option that raises the load, and the kind of latency.

    Returns:
        Rows in the order of the load with ``label``, `COLUMNS` and ``knee`` (bool); empty when
        nothing raises the load.
    """
    options = [name for name in swept_options(frames["summary"]) if name in LOADS]
    if not options:
        return pd.DataFrame(), "", ""
    summary, kind = with_latencies(frames["summary"], ("mean", "p99"))
    points = sweep(summary, options[0], list(COLUMNS)).dropna(subset=["iops", "mean"])
    if points.empty:
        return pd.DataFrame(), "", ""
    names = dict(zip(sorted(points["line"].unique()), line_names(points, options[0]), strict=True))
    power = points["iops"] / points["mean"]
    best = power.groupby(points["line"]).transform("max")
    points = points.assign(label=points["line"].map(names), knee=power == best)
    return points, options[0], KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw mean and p99 latency over IOPS, each point with its load, the knee ringed."""
    points, option, kind = curves(frames)
    lines = [line for _, line in points.groupby("line", sort=True)]
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            f"Along a curve the {SHORT[option]} grows; ringed: the knee, where IOPS / mean latency "
            "is greatest (Kleinrock's power)",
        ),
        height_in=max(4.6, 1.5 + 0.2 * len(lines)),
        width_in=12,
    )
    metrics = [name for name in ("mean", "p99") if points[name].notna().any()]
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        for place, line in enumerate(lines):
            _curve(axes, line, place, metric, option)
        axes.set_xlim(0, float(points["iops"].max()) * 1.12)
        count_axis(axes.xaxis)
        axes.set_xlabel("IOPS")
        axes.set_ylabel(f"{'Mean' if metric == 'mean' else 'p99'} of {kind}")
        _scale(axes, points[metric].dropna())
    handles = [
        Line2D(
            [],
            [],
            color=PALETTE[n % len(PALETTE)],
            marker=MARKERS[n % len(MARKERS)],
            markersize=5,
            label=wrap_name(str(line["label"].iloc[0]), columns=28),
        )
        for n, line in enumerate(lines)
    ]
    line_legend(panels[-1], handles)
    return figure


def _curve(axes: Axes, line: pd.DataFrame, place: int, metric: str, option: str) -> None:
    axes.plot(
        line["iops"],
        line[metric],
        color=PALETTE[place % len(PALETTE)],
        marker=MARKERS[place % len(MARKERS)],
        markersize=5,
        label=str(line["label"].iloc[0]),
    )
    knee = line[line["knee"]].iloc[:1]
    axes.plot(
        knee["iops"],
        knee[metric],
        linestyle="none",
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=BLACK,
        label="_knee",
    )
    if place == 0:
        for load, x, y in zip(line[option], line["iops"], line[metric], strict=True):
            axes.annotate(
                option_text(option, float(load)),
                (x, y),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
            )


def _scale(axes: Axes, told: pd.Series[float]) -> None:
    low, high = float(told.min()), float(told.max())
    if low > 0 and high / low > _WIDE:
        axes.set_yscale("log")
        axes.set_ylim(low * 0.7, high * 1.6)
        log_latency_axis(axes.yaxis, low_s=low, high_s=high)
        axes.set_ylabel(f"{axes.get_ylabel()} (logarithmic)")
    else:
        axes.set_ylim(0, high * 1.12 or 1)
        linear_latency_axis(axes.yaxis)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if curves(frames)[0].empty:
        return "no curve: it takes jobs that differ in depth or clones alone, with latencies"
    return ""


def describe(frames: Frames) -> str:
    """Return the knee with most IOPS in one sentence."""
    points, option, kind = curves(frames)
    best = points[points["knee"]].nlargest(1, "iops").iloc[0]
    return (
        f"Mean of {kind} over IOPS for {points['line'].nunique()} patterns: the highest knee is at "
        f"{SHORT[option]} {option_text(option, float(best[option]))} with "
        f"{format_count(float(best['iops']))} IOPS and {format_latency(float(best['mean']))} "
        f"({best['label']})."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the points, and which of them are knees."""
    points, _, kind = curves(frames)
    renamed = {"mean": "lat_mean_s", "p99": "lat_p99_s"}
    return table(points, [*COLUMNS, "knee"]).rename(columns=renamed).assign(latency=kind)


KNEE = Chart(
    name="knee",
    title="Throughput and latency, with the knee",
    frame_names=("summary",),
    draw=draw,
    help="Latency over IOPS as the load grows, a curve per pattern, with the best trade marked.",
    lack=lack,
    describe=describe,
    needs="jobs that differ in depth or clones alone",
    numbers=numbers,
)
