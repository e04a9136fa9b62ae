"""A fleet at a glance: results of many hosts enter, a dot a host for each job leaves.

Outliers are those beyond 1.5 interquartile ranges of the quartiles (J. W. Tukey, "Exploratory Data
Analysis", 1977); they are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from volbench.analyse.frames.job_frames import BY, COLOUR, labels, measured, with_latencies
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.colours import colour_map, colour_of, legend_above
from volbench.present.figures.latency import KINDS
from volbench.present.figures.sweep import IOPS, P99, Metric
from volbench.present.formatting import printable, records
from volbench.present.style import BLACK, PALE
from volbench.units import format_count

METRICS = (IOPS, P99)
FENCE = 1.5
LEAST = 0.05
"""Nearer than this share to the middle half nobody is named, however alike the others are."""
FEWEST = 5
"""Hosts from which on an outlier can be told."""
MOST_NAMED = 6
"""Outliers of a job that are named; the others are counted."""
ROW_IN = 0.62


def member_column(summary: pd.DataFrame) -> str:
    """Return what a dot is: a host, or a client where one host had several; "" for neither."""
    rows = measured(summary)
    for column in ("host", "client", "volume"):
        if len(rows[column].dropna().unique()) > 1:
            return column
    return ""


def dots(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return a row per job, direction and member: medians of its repeats, and who is an outlier.

    Returns:
        Rows with ``label``, ``job``, ``direction``, ``member``, ``iops``, ``p99``,
        ``outlier_iops`` and ``outlier_p99`` (bool), in the order of the jobs; and the kind of
        latency.
    """
    summary, kind = with_latencies(frames["summary"], ("p99",))
    rows = measured(summary)
    rows = rows[rows["direction"] != "sync"]
    column = member_column(summary)
    before = "" if column == "host" else f"{column} "
    rows = rows.assign(member=before + rows[column].astype(str), label=_job_names(rows))
    extra = [COLOUR] if COLOUR in rows else []
    key = ["label", "job", "direction", *extra, "member"]
    pooled = rows.groupby(key, sort=False, dropna=False)[["iops", "p99"]].median().reset_index()
    for metric in ("iops", "p99"):
        groups = pooled.groupby(["label", "direction"], sort=False)[metric]
        pooled[f"outlier_{metric}"] = groups.transform(_outliers).astype(bool)
    return pooled, KINDS[kind]


def _job_names(rows: pd.DataFrame) -> pd.Series[str]:
    """Return jobs told apart by all but the members."""
    same = rows.assign(host="", volume="", campaign="")
    return labels(same.drop(columns=BY) if BY in same else same)


def _outliers(values: pd.Series[float]) -> pd.Series[bool]:
    told = values.dropna()
    if len(told) < FEWEST:
        return pd.Series(data=False, index=values.index)
    first, third = np.percentile(told, [25, 75])
    reach = max(FENCE * (third - first), LEAST * abs(float(told.median())))
    return values.lt(first - reach) | values.gt(third + reach)


def draw(frames: Frames, title: str) -> Figure:
    """Draw a strip of dots for each job, over the box between the quartiles."""
    rows, kind = dots(frames)
    column = member_column(frames["summary"])
    strips = [strip for _, strip in rows.groupby(["label", "direction"], sort=False)]
    metrics = [metric for metric in METRICS if rows[metric.column].notna().any()]
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            f"A dot is the median of a {column}'s repeats",
            "Grey: the middle half; bar: the median",
            f"Named: beyond {FENCE:g} interquartile ranges of the middle half (Tukey), and "
            f"{100 * LEAST:g} % of the median",
        ),
        height_in=1.7 + ROW_IN * len(strips),
        width_in=12,
    )
    panels = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    heads = [records(strip.head(1))[0] for strip in strips]
    colours = colour_map(records(rows) if COLOUR in rows else heads)
    for axes, metric in zip(panels, metrics, strict=True):
        for place, strip in enumerate(strips):
            _strip(axes, place, strip, metric, colours)
        axes.set_xlim(0, axes.get_xlim()[1] * 1.05)
        axes.set_xlabel(metric.name if metric is IOPS else f"p99 of {kind}")
        metric.format_axis(axes.xaxis)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    names = [
        wrap_name(printable(f"{strip['label'].iloc[0]}, {strip['direction'].iloc[0]}"))
        for strip in strips
    ]
    panels[0].set_ylim(len(strips) - 0.4, -0.6)
    panels[0].set_yticks(range(len(strips)), names)
    legend_above(panels[-1], colours, y_in=0.1, columns=5)
    return figure


def _strip(
    axes: Axes, place: int, strip: pd.DataFrame, metric: Metric, colours: dict[str, str]
) -> None:
    """Draw the dots of one job, spread by a fixed pattern so that equal ones stay visible."""
    values = strip[metric.column].to_numpy(dtype=float)
    told = values[~np.isnan(values)]
    if not len(told):
        return
    first, middle, third = np.percentile(told, [25, 50, 75])
    axes.barh(place, third - first, left=first, height=0.5, color=PALE, zorder=1)
    axes.plot([middle] * 2, [place - 0.3, place + 0.3], color=BLACK, linewidth=1.6, zorder=2)
    lift = 0.22 * np.sin(np.arange(len(values)) * 2.4)  # the golden angle: no two beside each other
    named = 0
    for offset, row in zip(lift, records(strip), strict=True):
        value = row[metric.column]
        if not isinstance(value, float) or math.isnan(value):
            continue
        axes.plot(
            value,
            place + offset,
            marker="o",
            markersize=4.5,
            color=colour_of(row, colours),
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=3,
            linestyle="none",
        )
        if row[f"outlier_{metric.column}"]:
            named += 1
            if named <= MOST_NAMED:
                _name(axes, str(row["member"]), (value, place + offset), named)
    if named > MOST_NAMED:
        _name(axes, f"and {named - MOST_NAMED} more", (float(told.max()), place), 0)


def _name(axes: Axes, name: str, at: tuple[float, float], turn: int) -> None:
    """Name an outlier, above and below by turns."""
    axes.annotate(
        printable(name),
        at,
        xytext=(0, 5 if turn % 2 else -5),
        textcoords="offset points",
        ha="center",
        va="bottom" if turn % 2 else "top",
        fontsize=7.5,
    )


def outliers(rows: pd.DataFrame) -> Sequence[str]:
    """Return the members that are an outlier of anything, most often first."""
    found = rows[rows["outlier_iops"] | rows["outlier_p99"]]["member"]
    return [str(name) for name in found.value_counts().index]


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if not member_column(frames["summary"]):
        return "one host, one client and one volume: run it on several hosts (--inventory)"
    if measured(frames["summary"])["iops"].isna().all():
        return "no IOPS: no Run told them (dd tells bandwidth alone)"
    return ""


def describe(frames: Frames) -> str:
    """Return how many members there are and who is out of line, in one sentence."""
    rows, _ = dots(frames)
    column = member_column(frames["summary"])
    out = outliers(rows)
    told = f"; out of line: {', '.join(out[:MOST_NAMED])}" if out else "; none is out of line"
    span = f"{format_count(float(rows['iops'].min()))} to {format_count(float(rows['iops'].max()))}"
    return f"{rows['member'].nunique()} {column}s with {span} IOPS{told}."


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the dots, and which of them are outliers."""
    rows, kind = dots(frames)
    columns = [COLOUR, "member", "iops", "p99", "outlier_iops", "outlier_p99"]
    return table(rows, columns).rename(columns={"p99": "p99_s"}).assign(latency=kind)


FLEET = Chart(
    name="fleet",
    title="The fleet, one by one",
    frame_names=("summary",),
    draw=draw,
    help="IOPS and p99 latency of every host as a strip of dots per job, outliers named.",
    lack=lack,
    describe=describe,
    needs="several hosts, clients or volumes",
    numbers=numbers,
)
