"""Grids of IOPS and latency over two swept options, as heat maps and as towers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import (
    OPTIONS,
    SETTING,
    key_of,
    swept_options,
    with_latencies,
)
from volbench.analyse.frames.job_frames import (
    grid as grid_points,
)
from volbench.present.formatting import number, pattern, printable, records
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS
from volbench.units import format_count, format_latency

_ROW_IN, _TOWERS_IN = 0.36, 3.3
_MOST_TOWERS = 4
"""Access patterns in one chart of towers."""


@dataclass(frozen=True)
class Grid:
    """The points of one access pattern.

    Attributes:
        name: of the pattern.
        points: a row per point with both options, ``iops``, ``mean_s`` and ``latency``, and its
            place ``_x`` and ``_y`` among the values of the options.
        x: option along the x axis; `y` likewise.
    """

    name: str
    points: pd.DataFrame
    x: str
    y: str

    def axis(self, option: str) -> Axis:
        """Return the axis of one of the options."""
        values = sorted(self.points[option].unique())
        names = tuple(labels.option_text(option, float(value)) for value in values)
        ends = (-0.5, len(names) - 0.5)
        return Axis(labels.OPTION_NAMES[option], scale="category", limits=ends, categories=names)

    def panels(self, row: int) -> tuple[Panel, Panel]:
        """Return the panel of IOPS and that of latency, without marks."""
        x, y, name = self.axis(self.x), self.axis(self.y), printable(self.name)
        latency = self.points["latency"].iloc[0]
        return (
            Panel(x=x, y=y, marks=(), title=f"IOPS, {name}", row=row),
            Panel(x=x, y=y, marks=(), title=f"Mean {latency}, {name}", row=row, column=1),
        )


def read(frames: Frames, _: Options) -> Sequence[Grid] | str:
    """Return a grid for each pattern in which two options vary."""
    options = swept_options(frames["summary"])
    if len(options) < 2:
        return "no grid: it takes jobs that sweep two of queue depth, block size and numjobs"
    x, y = sorted(options[:2], key=("iodepth", "numjobs", "block_bytes").index)
    summary, kind = with_latencies(frames["summary"], ("mean",))
    points = grid_points(summary, (x, y), ("iops", "mean")).assign(latency=LATENCY_KINDS[kind])
    if points.empty:
        return "no grid: no pattern was measured with several values of both options"
    groups = [group for _, group in points.groupby("line", sort=True)]
    names = _names(groups, key_of(points, (*SETTING, *(n for n in OPTIONS if n not in (x, y)))))
    return [
        Grid(name, _placed(group, name, x, y), x, y)
        for name, group in zip(names, groups, strict=True)
    ]


def _names(groups: list[pd.DataFrame], setting: list[str]) -> list[str]:
    """Return a name for each grid: its pattern, and what else differs from grid to grid."""
    heads = [records(group.head(1))[0] for group in groups]
    telling = [
        name
        for name in setting
        if name not in ("rw", "direction") and len({str(head[name]) for head in heads}) > 1
    ]
    short = labels.SHORT_NAMES
    return [
        ", ".join([pattern(head), *(f"{short.get(n, n)} {head[n]}" for n in telling)])
        for head in heads
    ]


def _placed(points: pd.DataFrame, name: str, x: str, y: str) -> pd.DataFrame:
    numbers = labels.identified(points.assign(label=name), ["iops", "mean", "latency"])
    return numbers.rename(columns={"mean": "mean_s"}).assign(
        _x=points[x].rank(method="dense").astype(int) - 1,
        _y=points[y].rank(method="dense").astype(int) - 1,
        _iops=points["iops"].map(format_count),
        _mean=points["mean"].map(format_latency),
    )


def build(grids: Sequence[Grid]) -> Plot:
    """Draw IOPS at the left and mean latency at the right, a row of grids per pattern."""
    columns = max(grid.points[grid.x].nunique() for grid in grids)
    panels = []
    for row, grid in enumerate(grids):
        iops = marks.Cells(grid.points, value="iops", text="_iops")
        mean = marks.Cells(
            grid.points, value="mean_s", text="_mean", ramp="orange", format="latency"
        )
        for panel, cells in zip(grid.panels(row), (iops, mean), strict=True):
            panels.append(replace(panel, marks=(cells,), background="hatched"))
    return Plot(
        panels=tuple(panels),
        heights=tuple(_ROW_IN * grid.points[grid.y].nunique() for grid in grids),
        widths=(1.0, 1.0),
        width_in=max(9.0, 2.2 + 1.2 * columns),
        legend="",
        caption=("Darker: higher", "Hatched: not measured"),
    )


def build_towers(grids: Sequence[Grid]) -> Plot:
    """Draw a tower for each measured cell, from zero; cells without a result stay empty."""
    more = len(grids) - _MOST_TOWERS
    panels = []
    for row, grid in enumerate(grids[:_MOST_TOWERS]):
        for panel, value in zip(grid.panels(row), ("iops", "mean_s"), strict=True):
            colour, written = (
                ("palette-0", "count") if value == "iops" else ("palette-1", "latency")
            )
            top = float(grid.points[value].max(skipna=True) or 1.0)
            towers = marks.Bars3D(grid.points, value=value, series=colour)
            z = Axis(format=written, limits=(0, 1.02 * top))
            panels.append(replace(panel, marks=(towers,), z=z))
    return Plot(
        panels=tuple(panels),
        heights=(_TOWERS_IN,) * min(len(grids), _MOST_TOWERS),
        widths=(1.0, 1.0),
        legend="",
        caption=(f"{more} further patterns are not shown: choose with --where" * (more > 0),),
    )


def describe(grids: Sequence[Grid]) -> str:
    """Return the best cell of the IOPS grids in one sentence."""
    points = pd.concat([grid.points for grid in grids], ignore_index=True)
    x, y = grids[0].x, grids[0].y
    best = records(points.nlargest(1, "iops"))[0]
    at = [
        f"{labels.SHORT_NAMES[option]} {labels.option_text(option, number(best, option))}"
        for option in (x, y)
    ]
    return (
        f"Grids of IOPS and mean latency over {labels.SHORT_NAMES[x]} and {labels.SHORT_NAMES[y]} "
        f"for {len(grids)} access pattern{'s' * (len(grids) > 1)}: max "
        f"{format_count(number(best, 'iops'))} IOPS at {' and '.join(at)}."
    )


HEATMAP = Kind(
    name="heatmap",
    title="IOPS and latency over two options",
    frame_names=("summary",),
    help="Grids of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "block size.",
    needs="a sweep over two of queue depth, block size and numjobs",
    read=read,
    build=build,
    describe=describe,
    is_pooled=True,
    in_report=True,
)
BARS3D = replace(
    HEATMAP,
    name="bars3d",
    help="Towers of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "numjobs.",
    build=build_towers,
    in_report=False,
)
