"""Every job on a plane of IOPS and bandwidth, with lines of equal block size and declared limits.

Both axes are logarithmic, so that every block size is a straight line; a volume stays within the
corner below its IOPS limit and its bandwidth limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from volbench.analyse.frames.job_frames import per_job
from volbench.present.formatting import number, printable, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import BANDWIDTH, IOPS, Limit, Metric, declared
from volbench.units import counted_noun, format_size

_BLOCKS = tuple(512 * 2**n for n in range(15))
_FAR = 30.0  # Limits this many times above the data are out of sight
_HEIGHT_IN = 5.0
_MAX_SHAPES = len(labels.MARKERS)
# Column that gives each point its marker to the beginning of its legend entries
_SHAPE_NAMES = {"job": "", "rw": "pattern "}


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job and direction that has both rates."""
    summary = frames["summary"]
    rated = summary[summary["direction"] != "sync"]
    rows = labels.side_by_side(per_job(rated, [IOPS.column, BANDWIDTH.column]))
    rows = rows[(rows["iops"] > 0) & (rows["bw_bytes_per_s"] > 0)].reset_index(drop=True)
    rows["rw"] = rows["rw"].fillna("unknown")  # an old fio does not report its options
    return rows if len(rows) else "no run reported both IOPS and bandwidth"


def build(rows: pd.DataFrame) -> Plot:
    """Draw the points with their ranges, lines of equal block size, and the limits."""
    x, y = _axis(rows, IOPS), _axis(rows, BANDWIDTH)
    shape = next((own for own in _SHAPE_NAMES if rows[own].nunique() <= _MAX_SHAPES), "")
    names = dict.fromkeys(rows[shape].astype(str)) if shape else ()
    shapes = tuple(
        Series(
            f"{shape} {name}",
            _SHAPE_NAMES[shape] + labels.wrap_name(name, columns=26),
            "muted",
            labels.marker(n),
        )
        for n, name in enumerate(names)
    )
    limits_near = (_near(rows, IOPS, x), _near(rows, BANDWIDTH, y))
    limits = (*_limits(limits_near[0], IOPS), *_limits(limits_near[1], BANDWIDTH))
    parts = (*_block_lines(x, y), *limits, *_points(rows, shape))
    if shape != "job":
        parts = (*parts, *_extremes(rows))
    return Plot(
        panels=(Panel(x=x, y=y, marks=parts, has_grid=False),),
        heights=(_HEIGHT_IN,),
        width_in=10,
        series=(*labels.colour_series(rows), *shapes),
        legend="right",
        caption=(
            "Points: medians; whiskers: min to max" * bool((rows["repeats"] > 1).any()),
            "Sloping lines: equal block size",
            "Dashed: declared limits" * any(limits_near),
            "Labelled: the highest and the lowest result on each axis" * (shape != "job"),
        ),
    )


def _axis(rows: pd.DataFrame, metric: Metric) -> Axis:
    """Return an axis that shows every point, and limits that are not far above."""
    values = rows[metric.column]
    near = rows.loc[rows[metric.limit] <= _FAR * values.max(), metric.limit]
    ends = (float(values.min()) / 2, 2 * max([float(values.max()), *near]))
    return Axis(f"{metric.label} (logarithmic)", metric.format, "log", ends)


def _points(rows: pd.DataFrame, shape: str) -> Sequence[marks.AnyMark]:
    """Return the points with their ranges; `shape` is the column that gives each its marker."""
    x, y = IOPS.column, BANDWIDTH.column
    ends = [f"{name}{end}" for name in (x, y) for end in ("", "_low", "_high")]
    data = labels.identified(rows, [*ends, IOPS.limit, BANDWIDTH.limit]).assign(
        _series=rows[labels.colour_column(rows)],
        _shape=f"{shape} " + rows[shape or "job"].astype(str),
    )
    across, upright = (
        marks.Whiskers(
            data,
            by="_series",
            at=at,
            low=f"{name}_low",
            high=f"{name}_high",
            along="x" if name == x else "y",
            has_caps=False,
        )
        for name, at in ((x, y), (y, x))
    )
    marker_of = "_shape" if shape else ""
    return across, upright, marks.Points(data, by="_series", marker_of=marker_of, x=x, y=y, size=7)


def _extremes(rows: pd.DataFrame) -> Sequence[marks.AnyMark]:
    """Name the results with the highest and the lowest value of each axis, where there is room."""
    x, y = rows[IOPS.column], rows[BANDWIDTH.column]
    top, right = y.idxmax(), x.idxmax()
    shown = rows.loc[list(dict.fromkeys([top, right, x.idxmin(), y.idxmin()]))]
    names = labels.brief([f"{row['label']}, {row['direction']}" for row in records(shown)])
    places = pd.DataFrame(
        {"_x": x[shown.index], "_y": y[shown.index], "_text": [*map(printable, names)]}
    )
    low = places.drop(index=list({top, right}))
    above = marks.Texts(places.loc[[top]], offset_pt=(-8, 0), align="right")
    if (x**2 < x.min() * x.max()).loc[top]:
        above = replace(above, offset_pt=(8, 0), align="left")
    return [
        above,
        marks.Texts(places.loc[[right] if right != top else []], offset_pt=(6, -5), valign="top"),
        marks.Texts(low, offset_pt=(8, -3)),
    ]


def _block_lines(x: Axis, y: Axis) -> Sequence[marks.AnyMark]:
    """Return a line for each block size that crosses the plane, named where it leaves it."""
    (left, right), (low, high) = x.limits or (1, 1), y.limits or (1, 1)
    rows = []
    for block in _BLOCKS:
        first, last = max(left, low / block), min(right, high / block)
        if first < last:
            name = format_size(block)
            rows += [(first, first * block, name), (last, last * block, name)]
    data = pd.DataFrame(rows, columns=["_x", "_y", "_text"])
    names = marks.Texts(
        data[1::2], offset_pt=(-3, -3), align="right", valign="top", size=7, series="muted"
    )
    return marks.Lines(data, group="_text", series="pale", width=1.0), names


def _near(rows: pd.DataFrame, metric: Metric, axis: Axis) -> list[Limit]:
    """Return the declared limits within the plane."""
    end = (axis.limits or (0, 0))[1]
    return [limit for limit in declared(rows, metric) if limit.value < end]


def _limits(near: Sequence[Limit], metric: Metric) -> list[marks.AnyMark]:
    """Return limits as lines, each with its name along it."""
    if metric is BANDWIDTH:
        return [marks.ReferenceLine(limit.value, "y", name=limit.name) for limit in near]
    names = pd.DataFrame(
        {"_x": [limit.value for limit in near], "_y": 0.01, "_text": [limit.name for limit in near]}
    )
    lines = [marks.ReferenceLine(limit.value, "x") for limit in near]
    upright = marks.Texts(names, y_in="panel", offset_pt=(3, 2), valign="bottom", rotation=90)
    return [*lines, upright]


def describe(rows: pd.DataFrame) -> str:
    """Return the two extremes in one sentence."""
    results = records(rows)
    fast = max(results, key=lambda row: number(row, "iops"))
    wide = max(results, key=lambda row: number(row, "bw_bytes_per_s"))
    return (
        f"{counted_noun(len(rows), 'result')} over IOPS and bandwidth: max "
        f"{IOPS.text(number(fast, 'iops'))} IOPS ({text(fast, 'label')}) and "
        f"{BANDWIDTH.text(number(wide, 'bw_bytes_per_s'))} ({text(wide, 'label')})."
    )


CEILING = Kind(
    name="ceiling",
    title="IOPS and bandwidth",
    help="Every job on a plane of IOPS and bandwidth with lines of equal block size and the "
    "declared limits.",
    needs="a finished run of fio",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
)
