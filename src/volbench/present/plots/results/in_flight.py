"""I/Os in flight: the queue depths that each job reached, as shares of its I/Os."""

from __future__ import annotations

import math

import pandas as pd

from volbench.analyse.frames.pooled_bins import in_classes
from volbench.analyse.frames.repeats import key_of
from volbench.present.formatting import Row, counted_noun, number, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series
from volbench.present.plots.kind import PER_JOB, Frames, Kind, Options
from volbench.present.plots.metrics import rows_axis
from volbench.present.plots.selection import largest

_CLASSES = (1, 2, 4, 8, 16, 32, 64)  # Least I/Os in flight of each class of fio
_NAMES = ("1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 and more")
_SERIES = tuple(
    Series(f"in_flight_{least}", name, f"palette-{place}")
    for place, (least, name) in enumerate(zip(_CLASSES, _NAMES, strict=True))
)
_MOST = 60  # Maximum number of jobs in one chart
_ROOM = 1.22
_COLUMNS = [series.key for series in _SERIES]


def read(frames: Frames, _: Options) -> pd.DataFrame | str:
    """Return a row per job with the share of its I/Os in each class.

    ``below`` is the share in the classes under that of the job's queue depth; 0 if that is unknown.
    """
    classes = in_classes(frames["shares"], frames["summary"], "iodepth")
    if classes.empty:
        return "no I/Os in flight: no run of fio reported them (iodepth_level)"
    order = classes.groupby(key_of(classes), sort=False, dropna=False).ngroup()
    jobs = classes.assign(_order=order).drop_duplicates("_order").reset_index(drop=True)
    for least, column in zip(_CLASSES, _COLUMNS, strict=True):
        counts = classes["count"].where(classes["low"] == least, 0.0).groupby(order).sum()
        jobs[column] = jobs["_order"].map(counts)
    jobs[_COLUMNS] = jobs[_COLUMNS].div(jobs[_COLUMNS].sum(axis=1), axis=0)
    return labels.side_by_side(jobs.assign(below=[_below(row) for row in records(jobs)]))


def _below(row: Row) -> float:
    depth = number(row, "iodepth")
    least = max((own for own in _CLASSES if own <= depth), default=0)
    return math.fsum(number(row, f"in_flight_{own}") for own in _CLASSES if own < least)


def build(rows: pd.DataFrame) -> Plot:
    """Draw a bar for each job, a part for each class, and its queue depth behind it."""
    every = rows
    rows, fewer = largest(
        rows, "below", most=_MOST, what="jobs", criterion="those that reached their depth least"
    )
    data = _numbers(rows).assign(
        _row=range(len(rows)), _end=1.0, _text=[_depth(r) for r in records(rows)]
    )
    running = rows[_COLUMNS].cumsum(axis=1)
    parts: list[marks.AnyMark] = []
    for before, series in zip(["", *_COLUMNS], _SERIES, strict=False):
        base = {"_base": running[before] if before else 0.0}
        own = data.assign(**base)[data[series.key] > 0]
        if len(own):
            parts.append(marks.Bars(own, series=series.key, value=series.key, base="_base"))
    depths = marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0), series="muted")
    names = labels.job_names(records(rows))
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    x = Axis("I/Os of the job", "share", ticks=ticks, limits=(0.0, _ROOM))
    return Plot(
        panels=(Panel(x=x, y=rows_axis(names), marks=(*parts, depths)),),
        heights=(labels.rows_height_in(names),),
        series=tuple(own for own in _SERIES if (rows[own.key] > 0).any()),
        caption=(
            "I/Os in flight when one was submitted, as each of the job's processes counted them",
            "libaio with direct=0 does the I/O while submitting it, and counts the full depth",
            fewer,
        ),
        rows=_numbers(every),
    )


def _depth(row: Row) -> str:
    depth = text(row, "iodepth")
    return f"iodepth {depth}" if depth else ""


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return labels.identified(rows, ["iodepth", *_COLUMNS])


def describe(rows: pd.DataFrame) -> str:
    """Return the job that reached its queue depth least in one sentence."""
    row = records(rows.nlargest(1, "below"))[0]
    return (
        f"I/Os in flight of {counted_noun(len(rows), 'job')}: most below the queue depth are"
        f" {100 * number(row, 'below'):.3g} % ({row['label']}, {_depth(row) or 'iodepth unknown'})."
    )


IN_FLIGHT = Kind(
    name="inflight",
    title="I/Os in flight",
    by_options=PER_JOB,
    help="How many I/Os of each job were in flight, beside the queue depth that was set.",
    needs="a finished run of fio",
    read=read,
    build=build,
    describe=describe,
    frame_names=("summary", "shares"),
    is_pooled=True,
)
