"""Grids of IOPS and latency over two swept options, as a heat map and as towers."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from volbench.analyse.frames.job_frames import (
    OPTIONS,
    SETTING,
    key_of,
    swept_options,
    with_latencies,
)
from volbench.analyse.frames.job_frames import grid as grid_points
from volbench.present.formatting import pattern, printable, records
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Cells, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import OPTION_NAMES, SHORT_NAMES, identified, option_text
from volbench.present.plots.metrics import LATENCY_KINDS
from volbench.units import format_count, format_latency

_COLUMNS = ("iops", "mean")
_ROW_IN = 0.36


@dataclass(frozen=True)
class Grid:
    """The points of one access pattern.

    Attributes:
        name: of the pattern.
        points: a row per point with both options, ``iops`` and ``mean_s``, and its place ``_x``
            and ``_y`` among the values of the options.
        x: option along the x axis; `y` likewise.
    """

    name: str
    points: pd.DataFrame
    x: str
    y: str

    def axis(self, option: str) -> Axis:
        """Return the axis of one of the options."""
        values = sorted(self.points[option].unique())
        names = tuple(option_text(option, float(value)) for value in values)
        ends = (-0.5, len(names) - 0.5)
        return Axis(OPTION_NAMES[option], scale="category", limits=ends, categories=names)


def grids_of(frames: Frames) -> tuple[list[Grid], str]:
    """Return a grid for each pattern in which two options vary, and the kind of latency."""
    options = swept_options(frames["summary"])
    if len(options) < 2:
        return [], ""
    x, y = sorted(options[:2], key=("iodepth", "numjobs", "block_bytes").index)
    summary, kind = with_latencies(frames["summary"], ("mean",))
    points = grid_points(summary, (x, y), _COLUMNS)
    groups = [group for _, group in points.groupby("line", sort=True)]
    names = _names(groups, key_of(points, (*SETTING, *(n for n in OPTIONS if n not in (x, y)))))
    latency = LATENCY_KINDS[kind]
    return [
        Grid(name, _placed(group, name, x, y).assign(latency=latency), x, y)
        for name, group in zip(names, groups, strict=True)
    ], latency


def _names(groups: list[pd.DataFrame], setting: list[str]) -> list[str]:
    """Return a name for each grid: its pattern, and what else differs from grid to grid."""
    heads = [records(group.head(1))[0] for group in groups]
    telling = [
        name
        for name in setting
        if name not in ("rw", "direction") and len({str(head[name]) for head in heads}) > 1
    ]
    return [
        ", ".join([pattern(head), *(f"{SHORT_NAMES.get(n, n)} {head[n]}" for n in telling)])
        for head in heads
    ]


def _placed(points: pd.DataFrame, name: str, x: str, y: str) -> pd.DataFrame:
    cells = identified(points.assign(label=name), _COLUMNS).rename(columns={"mean": "mean_s"})
    return cells.assign(
        _x=points[x].rank(method="dense").astype(int) - 1,
        _y=points[y].rank(method="dense").astype(int) - 1,
        _iops=points["iops"].map(format_count),
        _mean=points["mean"].map(format_latency),
    )


def build(frames: Frames, _: Options) -> Plot:
    """Draw IOPS at the left and mean latency at the right, a row of grids per pattern."""
    grids, kind = grids_of(frames)
    columns = max(grid.points[grid.x].nunique() for grid in grids)
    return Plot(
        panels=tuple(panel for row, grid in enumerate(grids) for panel in _pair(grid, row, kind)),
        heights=tuple(_ROW_IN * grid.points[grid.y].nunique() for grid in grids),
        widths=(1.0, 1.0),
        width_in=max(9.0, 2.2 + 1.2 * columns),
        legend="",
        caption=(pooled(frames["summary"]), "Darker: higher", "Hatched: not measured"),
    )


def _pair(grid: Grid, row: int, kind: str) -> list[Panel]:
    name = printable(grid.name)
    return [
        Panel(
            x=grid.axis(grid.x),
            y=grid.axis(grid.y),
            marks=(
                Cells(
                    data=grid.points,
                    x="_x",
                    y="_y",
                    value=value,
                    text=text,
                    ramp="blue" if value == "iops" else "orange",
                    format="count" if value == "iops" else "latency",
                ),
            ),
            title=f"{title}, {name}",
            row=row,
            column=column,
            background="hatched",
        )
        for column, (value, text, title) in enumerate(
            (("iops", "_iops", "IOPS"), ("mean_s", "_mean", f"Mean {kind}"))
        )
    ]


def missing(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := missing_runs(frames):
        return reason
    if not grids_of(frames)[0]:
        return "no grid: it takes jobs that sweep two of queue depth, block size and numjobs"
    return ""


def describe(frames: Frames) -> str:
    """Return the best cell of the IOPS grids in one sentence."""
    grids, _ = grids_of(frames)
    points = pd.concat([grid.points for grid in grids], ignore_index=True)
    x, y = grids[0].x, grids[0].y
    best = points.nlargest(1, "iops").iloc[0]
    return (
        f"Grids of IOPS and mean latency over {SHORT_NAMES[x]} and {SHORT_NAMES[y]} for "
        f"{len(grids)} access pattern{'s' * (len(grids) > 1)}: max "
        f"{format_count(float(best['iops']))} IOPS at {SHORT_NAMES[x]} "
        f"{option_text(x, float(best[x]))} and {SHORT_NAMES[y]} {option_text(y, float(best[y]))}."
    )


HEATMAP = Kind(
    name="heatmap",
    title="IOPS and latency over two options",
    frame_names=("summary",),
    help="Grids of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "block size.",
    needs="a sweep over two of queue depth, block size and numjobs",
    missing=missing,
    build=build,
    describe=describe,
    in_report=True,
)
