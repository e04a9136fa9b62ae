"""Every job on a plane of IOPS and bandwidth, with lines of equal block size and declared limits.

Both axes are logarithmic, so that every block size is a straight line; a volume can't leave the
corner below its IOPS limit and its bandwidth limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from volbench.analyse.frames.job_frames import per_job
from volbench.present.formatting import number, records, text
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import (
    AnyMark,
    Axis,
    Lines,
    Panel,
    Plot,
    Points,
    ReferenceLine,
    Series,
    Texts,
    Whiskers,
)
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import (
    MARKERS,
    colour_column,
    colour_series,
    identified,
    side_by_side,
    wrap_name,
)
from volbench.present.plots.limits import declared
from volbench.present.plots.metrics import BANDWIDTH, IOPS, Metric
from volbench.units import format_count, format_rate, format_size

_BLOCKS = tuple(512 * 2**n for n in range(15))
_FAR = 30.0
"""Limits this many times above the data are out of sight."""
_HEIGHT_IN = 5.0


def plane_rows(frames: Frames) -> pd.DataFrame:
    """Return a row per job and direction that has both rates."""
    summary = frames["summary"]
    rated = summary[summary["direction"] != "sync"]
    rows = side_by_side(per_job(rated, [IOPS.column, BANDWIDTH.column]))
    known = (rows["iops"] > 0) & (rows["bw_bytes_per_s"] > 0)
    return rows[known].reset_index(drop=True)


def build(frames: Frames, _: Options) -> Plot:
    """Draw the points with their ranges, lines of equal block size, and the limits."""
    rows = plane_rows(frames)
    x, y = _axis(rows, IOPS), _axis(rows, BANDWIDTH)
    jobs = list(dict.fromkeys(str(job) for job in rows["job"]))
    shapes = tuple(
        Series(f"job {name}", wrap_name(name, columns=26), "muted", MARKERS[n % len(MARKERS)])
        for n, name in enumerate(jobs)
    )
    marks = (*_block_lines(x, y), *_limit_lines(rows, IOPS, x), *_limit_lines(rows, BANDWIDTH, y))
    return Plot(
        panels=(Panel(x=x, y=y, marks=(*marks, *_points(rows)), has_grid=False),),
        heights=(_HEIGHT_IN,),
        width_in=10,
        series=(*colour_series(rows), *shapes),
        legend="right",
        caption=(
            pooled(frames["summary"]),
            "Points: medians; whiskers: min to max",
            "Sloping lines: equal block size",
            "Dashed: declared limits",
        ),
    )


def _axis(rows: pd.DataFrame, metric: Metric) -> Axis:
    """Return an axis that shows every point, and limits that are not far above."""
    values = rows[metric.column]
    near = rows.loc[rows[metric.limit] <= _FAR * values.max(), metric.limit]
    ends = (float(values.min()) / 2, 2 * max([float(values.max()), *near]))
    return Axis(f"{metric.label} (logarithmic)", metric.format, "log", ends)


def _points(rows: pd.DataFrame) -> Sequence[AnyMark]:
    ends = [f"{m.column}{end}" for m in (IOPS, BANDWIDTH) for end in ("", "_low", "_high")]
    data = identified(rows, [*ends, IOPS.limit, BANDWIDTH.limit]).assign(
        _series=rows[colour_column(rows)], _job="job " + rows["job"].astype(str)
    )
    x, y = IOPS.column, BANDWIDTH.column
    return (
        Whiskers(data=data, by="_series", at=y, low=f"{x}_low", high=f"{x}_high", has_caps=False),
        Whiskers(
            data=data,
            by="_series",
            at=x,
            low=f"{y}_low",
            high=f"{y}_high",
            along="y",
            has_caps=False,
        ),
        Points(data=data, by="_series", marker_of="_job", x=x, y=y, size=7),
    )


def _block_lines(x: Axis, y: Axis) -> Sequence[AnyMark]:
    """Return a line for each block size that crosses the plane, named where it leaves it."""
    (left, right), (low, high) = x.limits or (1, 1), y.limits or (1, 1)
    rows = []
    for block in _BLOCKS:
        first, last = max(left, low / block), min(right, high / block)
        if first < last:
            name = format_size(block)
            rows += [(first, first * block, name), (last, last * block, name)]
    data = pd.DataFrame(rows, columns=["_x", "_y", "_text"])
    ends = data[1::2]
    return (
        Lines(data=data, x="_x", y="_y", group="_text", series="pale", width=1.0),
        Texts(data=ends, offset_pt=(-3, -3), align="right", valign="top", size=7, series="muted"),
    )


def _limit_lines(rows: pd.DataFrame, metric: Metric, axis: Axis) -> Sequence[AnyMark]:
    """Return the limits within the plane, each with its name along it."""
    end = (axis.limits or (0, 0))[1]
    limits = [
        limit for limit in declared(records(rows), metric.limit, metric.format) if limit.value < end
    ]
    if metric is IOPS:
        return [
            part
            for limit in limits
            for part in (
                ReferenceLine(limit.value, "x"),
                Texts(
                    data=pd.DataFrame({"_x": [limit.value], "_y": [0.01], "_text": [limit.name]}),
                    y_in="panel",
                    offset_pt=(3, 2),
                    valign="bottom",
                    rotation=90,
                ),
            )
        ]
    return [ReferenceLine(limit.value, "y", name=limit.name) for limit in limits]


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if plane_rows(frames).empty:
        return "no run reported both IOPS and bandwidth (fio does, dd does not)"
    return ""


def describe(frames: Frames) -> str:
    """Return the two extremes in one sentence."""
    rows = records(plane_rows(frames))
    fast = max(rows, key=lambda row: number(row, "iops"))
    wide = max(rows, key=lambda row: number(row, "bw_bytes_per_s"))
    return (
        f"{len(rows)} results over IOPS and bandwidth: max "
        f"{format_count(number(fast, 'iops'))} IOPS ({text(fast, 'label')}) and "
        f"{format_rate(number(wide, 'bw_bytes_per_s'))} ({text(wide, 'label')})."
    )


CEILING = Kind(
    name="ceiling",
    title="IOPS and bandwidth, with the limits",
    frame_names=("summary",),
    help="Every job on a plane of IOPS and bandwidth with lines of equal block size and the "
    "declared limits.",
    needs="a finished run of fio",
    missing=missing,
    build=build,
    describe=describe,
)
