"""A fleet at a glance: a strip of dots per job, with a dot for each host.

Outliers are those beyond 1.5 interquartile ranges of the quartiles (J. W. Tukey, "Exploratory Data
Analysis", 1977); they are named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import BY, COLOUR, labels, measured, with_latencies
from volbench.present.formatting import printable
from volbench.present.plots.description import (
    AnyMark,
    Bars,
    Panel,
    Plot,
    Points,
    Texts,
    Whiskers,
)
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import colour_column, colour_series, identified, wrap_name
from volbench.present.plots.metrics import IOPS, LATENCY_KINDS, Metric, rows_axis
from volbench.units import format_count

P99 = Metric("p99_s", "p99 latency", "latency")
METRICS = (IOPS, P99)
FENCE = 1.5
_NEAR = 0.05
"""Nearer than this share to the middle half no host is an outlier, however alike the others are."""
_FEWEST = 5
"""Hosts from which on an outlier can be found."""
_MOST_NAMED = 6
"""Outliers of a job that are named; the others are counted."""
_ROW_IN = 0.62


def member_column(summary: pd.DataFrame) -> str:
    """Return what a dot is: a host, or a client where one host has several; empty for neither."""
    rows = measured(summary)
    for column in ("host", "client", "volume"):
        if len(rows[column].dropna().unique()) > 1:
            return column
    return ""


def dots(frames: Frames) -> tuple[pd.DataFrame, str]:
    """Return a row per job, direction and member: medians of its repeats, and the outliers.

    Returns:
        Rows with ``label``, ``job``, ``direction``, ``member``, ``iops``, ``p99_s``,
        ``outlier_iops`` and ``outlier_p99`` (bool), in the order of the jobs; and the kind of
        latency.
    """
    summary, kind = with_latencies(frames["summary"], ("p99",))
    rows = measured(summary).rename(columns={"p99": "p99_s"})
    rows = rows[rows["direction"] != "sync"]
    column = member_column(summary)
    before = "" if column == "host" else f"{column} "
    rows = rows.assign(member=before + rows[column].astype(str), label=_job_names(rows))
    extra = [COLOUR] if COLOUR in rows else []
    key = ["label", "job", "direction", *extra, "member"]
    pooled = rows.groupby(key, sort=False, dropna=False)[["iops", "p99_s"]].median().reset_index()
    for metric, name in (("iops", "outlier_iops"), ("p99_s", "outlier_p99")):
        groups = pooled.groupby(["label", "direction"], sort=False)[metric]
        pooled[name] = groups.transform(_outliers).astype(bool)
    return pooled, LATENCY_KINDS[kind]


def _job_names(rows: pd.DataFrame) -> pd.Series[str]:
    """Return jobs told apart by all but the members."""
    same = rows.assign(host="", volume="", campaign="")
    return labels(same.drop(columns=BY) if BY in same else same)


def _outliers(values: pd.Series[float]) -> pd.Series[bool]:
    known = values.dropna()
    if len(known) < _FEWEST:
        return pd.Series(data=False, index=values.index)
    first, third = np.percentile(known, [25, 75])
    reach = max(FENCE * (third - first), _NEAR * abs(float(known.median())))
    return values.lt(first - reach) | values.gt(third + reach)


def build(frames: Frames, _: Options) -> Plot:
    """Draw a strip of dots for each job, over the box between the quartiles."""
    rows, kind = dots(frames)
    column = member_column(frames["summary"])
    strips = [strip for _, strip in rows.groupby(["label", "direction"], sort=False)]
    placed = pd.concat([_placed(strip, row) for row, strip in enumerate(strips)], ignore_index=True)
    columns = [COLOUR, "member", "iops", "p99_s", "outlier_iops", "outlier_p99"]
    private = [str(name) for name in placed if str(name).startswith("_")]
    data = identified(placed, [*columns, *private]).assign(latency=kind)
    metrics = [metric for metric in METRICS if rows[metric.column].notna().any()]
    names = [
        wrap_name(printable(f"{strip['label'].iloc[0]}, {strip['direction'].iloc[0]}"))
        for strip in strips
    ]
    return Plot(
        panels=tuple(
            _panel(data, metric, kind, names, place) for place, metric in enumerate(metrics)
        ),
        heights=(_ROW_IN * len(strips),),
        widths=(1.0,) * len(metrics),
        width_in=12,
        series=colour_series(rows),
        caption=(
            f"A dot is the median of a {column}'s repeats",
            "Grey: the middle half; bar: the median",
            (
                f"Named: beyond {FENCE:g} interquartile ranges of the middle half (Tukey), and "
                f"{100 * _NEAR:g} % of the median"
            ),
        ),
        shared_y=True,
    )


def _placed(strip: pd.DataFrame, row: int) -> pd.DataFrame:
    """Return a job's dots spread by a fixed pattern, so that equal ones stay visible."""
    lift = 0.22 * np.sin(np.arange(len(strip)) * 2.4)  # the golden angle: no two beside each other
    return strip.assign(_row=float(row), _y=row + lift, _series=strip[colour_column(strip)])


def _panel(
    data: pd.DataFrame, metric: Metric, kind: str, names: Sequence[str], place: int
) -> Panel:
    boxes = _boxes(data, metric)
    marks: tuple[AnyMark, ...] = (
        Bars(
            data=boxes,
            at="_row",
            value="_width",
            base="_first",
            thickness=0.5,
            series="pale",
        ),
        Whiskers(
            data=boxes,
            at="_middle",
            low="_low",
            high="_high",
            along="y",
            width=1.6,
            has_caps=False,
        ),
        Points(data=data, x=metric.column, y="_y", by="_series", size=4.5),
        *_names(data, metric),
    )
    label = metric.label if metric is IOPS else f"p99 of {kind}"
    x = metric.axis(1.05 * float(data[metric.column].max()), label=label)
    return Panel(x=x, y=rows_axis(names), marks=marks, column=place)


def _boxes(data: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return quartiles of each job."""
    rates = data[data[metric.column].notna()].groupby("_row")[metric.column]
    known = pd.DataFrame({share: rates.quantile(share) for share in (0.25, 0.5, 0.75)})
    rows = known.index.to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "_row": rows,
            "_first": known[0.25].to_numpy(),
            "_width": (known[0.75] - known[0.25]).to_numpy(),
            "_middle": known[0.5].to_numpy(),
            "_low": rows - 0.3,
            "_high": rows + 0.3,
        }
    )


def _names(data: pd.DataFrame, metric: Metric) -> list[AnyMark]:
    """Name outliers, above and below by turns; count those beyond the first few."""
    column = "outlier_iops" if metric is IOPS else "outlier_p99"
    out = data[data[column] & data[metric.column].notna()]
    turn = out.groupby("_row").cumcount()
    marks: list[AnyMark] = []
    for is_above in (True, False):
        chosen = out[(turn < _MOST_NAMED) & ((turn % 2 == 0) == is_above)]
        if len(chosen):
            named = chosen[[metric.column, "_y", "member"]].set_axis(["_x", "_y", "_text"], axis=1)
            marks.append(
                Texts(
                    data=named,
                    offset_pt=(0, 5 if is_above else -5),
                    align="center",
                    valign="bottom" if is_above else "top",
                    size=7.5,
                )
            )
    more = out[turn >= _MOST_NAMED].groupby("_row").size()
    if len(more):
        right = data.groupby("_row")[metric.column].max()
        rest = pd.DataFrame(
            {
                "_x": right[more.index].to_numpy(),
                "_y": more.index.to_numpy(dtype=float),
                "_text": [f"and {count} more" for count in more],
            }
        )
        marks.append(Texts(data=rest, offset_pt=(0, -5), align="center", valign="top", size=7.5))
    return marks


def outliers(rows: pd.DataFrame) -> list[str]:
    """Return the members that are an outlier of anything, most often first."""
    found = rows[rows["outlier_iops"] | rows["outlier_p99"]]["member"]
    return [str(name) for name in found.value_counts().index]


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if not member_column(frames["summary"]):
        return "one host, one client and one volume: run it on several hosts (--inventory)"
    if measured(frames["summary"])["iops"].isna().all():
        return "no IOPS: not reported by any run (dd reports bandwidth alone)"
    return ""


def describe(frames: Frames) -> str:
    """Return how many members there are and which are outliers, in one sentence."""
    rows, _ = dots(frames)
    column = member_column(frames["summary"])
    out = outliers(rows)
    named = f"; outliers: {', '.join(out[:_MOST_NAMED])}" if out else "; no outliers"
    span = f"{format_count(float(rows['iops'].min()))} to {format_count(float(rows['iops'].max()))}"
    return f"{rows['member'].nunique()} {column}s with {span} IOPS{named}."


FLEET = Kind(
    name="fleet",
    title="The fleet, host by host",
    frame_names=("summary",),
    help="IOPS and p99 latency of every host as a strip of dots per job, outliers named.",
    needs="several hosts, clients or volumes",
    missing=missing,
    build=build,
    describe=describe,
)
