"""Grids over two swept options, as heat maps and as towers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import (
    FOLDER,
    OPTIONS,
    SETTING,
    inseparable,
    key_of,
    swept_options,
    with_latencies,
)
from volbench.analyse.frames.job_frames import grid as grid_points
from volbench.present.formatting import number, pattern, printable, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.metrics import LATENCY_KINDS, category_axis
from volbench.present.plots.selection import worst
from volbench.units import format_count, format_latency

_ROW_IN, _TOWERS_IN = 0.36, 3.3
_TITLE = 48  # Characters of a line over a grid
_MAX_GRIDS, _MAX_TOWERS = 6, 4  # Access patterns in one chart of cells, and of towers


@dataclass(frozen=True)
class Grid:
    """The points of one access pattern."""

    name: str  # of the pattern
    # a row per point with both options, ``iops``, ``mean_s`` and ``latency``, and its place ``_x``
    # and ``_y`` among the values of the options
    points: pd.DataFrame
    x: str  # option along the x axis; `y` likewise
    y: str
    note: str = ""  # on jobs that are left out; empty for none
    most: int = _MAX_GRIDS  # patterns in one chart

    def axis(self, option: str) -> Axis:
        """Return the axis of one of the options."""
        values = sorted(self.points[option].unique())
        names = [labels.option_text(option, float(value)) for value in values]
        return category_axis(labels.OPTION_NAMES[option], names)

    def panels(self, row: int) -> tuple[Panel, Panel]:
        """Return the panel of IOPS and that of latency, without marks."""
        name = printable(self.name)
        iops = Panel(
            x=self.axis(self.x), y=self.axis(self.y), marks=(), title=_title("IOPS", name), row=row
        )
        latency = self.points["latency"].iloc[0]
        return iops, replace(iops, title=_title(f"Mean {latency}", name), column=1)


def _title(quantity: str, name: str) -> str:
    return labels.wrap_name(f"{quantity}, {name}", columns=_TITLE)


def read_grids(frames: Frames, chosen: Options) -> Sequence[Grid] | str:
    """Return a grid for each pattern in which two options vary."""
    options = swept_options(frames["summary"], (*OPTIONS, "rwmixread"))
    if len(options) < 2:
        return "no grid: it needs jobs that sweep two of queue depth, block size, numjobs and mix"
    x, y = sorted(options[:2], key=("rwmixread", "iodepth", "numjobs", "block_bytes").index)
    summary, kind = with_latencies(frames["summary"], ("mean",))
    points = grid_points(summary, (x, y), ("iops", "mean")).assign(latency=LATENCY_KINDS[kind])
    note = inseparable(frames["summary"], (x, y))
    if points.empty:
        return note or "no grid: no pattern was measured with several values of both options"
    groups = [group for _, group in points.groupby("line", sort=True)]
    setting = (*SETTING, FOLDER, "size_bytes", *(n for n in OPTIONS if n not in (x, y)))
    names = _names(groups, [name for name in key_of(points, setting) if name not in (x, y)])
    return [
        Grid(name, _placed(group, name, x, y), x, y, note, chosen.parts)
        for name, group in zip(names, groups, strict=True)
    ]


def _names(groups: list[pd.DataFrame], setting: list[str]) -> list[str]:
    """Return a name for each grid: its pattern, and other attributes that differ."""
    heads = [records(group.head(1))[0] for group in groups]
    telling = [
        name
        for name in setting
        if name not in ("rw", "direction") and len({str(head[name]) for head in heads}) > 1
    ]
    columns = [[pattern(head) for head in heads]]
    for name in telling:
        values = labels.brief(labels.shortened([text(head, name) for head in heads]))
        option = labels.SHORT_NAMES.get(name, name)
        columns.append([value and f"{option} {value}" for value in values])
    return [", ".join(filter(None, parts)) for parts in zip(*columns, strict=True)]


def _placed(points: pd.DataFrame, name: str, x: str, y: str) -> pd.DataFrame:
    numbers = labels.identified(points.assign(label=name), [x, y, "iops", "mean", "latency"])
    return numbers.rename(columns={"mean": "mean_s"}).assign(
        _x=points[x].rank(method="dense").astype(int) - 1,
        _y=points[y].rank(method="dense").astype(int) - 1,
        _iops=points["iops"].map(format_count),
        _mean=points["mean"].map(format_latency),
    )


def build_heatmap(grids: Sequence[Grid]) -> Plot:
    """Draw IOPS at the left and mean latency at the right, a row of grids per pattern."""
    every = pd.concat([grid.points for grid in grids], ignore_index=True)
    grids, fewer = _slowest(grids, _MAX_GRIDS)
    columns = max(grid.points[grid.x].nunique() for grid in grids)
    ends = {
        name: (float(values.min()), float(values.max()))
        for name in ("iops", "mean_s")
        if len(values := every[name][every[name] > 0])
    }
    panels = []
    for row, grid in enumerate(grids):
        iops = marks.Cells(
            grid.points,
            value="iops",
            text="_iops",
            ramp="orange" if grid.points["direction"].iloc[0] == "write" else "blue",
            limits=ends.get("iops"),
        )
        mean = replace(
            iops,
            value="mean_s",
            text="_mean",
            ramp="purple",
            format="latency",
            limits=ends.get("mean_s"),
        )
        for panel, cells in zip(grid.panels(row), (iops, mean), strict=True):
            panels.append(replace(panel, marks=(cells,), background="hatched"))
    return Plot(
        panels=tuple(panels),
        heights=tuple(_ROW_IN * grid.points[grid.y].nunique() for grid in grids),
        widths=(1.0, 1.0),
        width_in=max(9.0, 2.2 + 1.2 * columns),
        legend="",
        caption=(
            "Darker: higher, on one scale for all grids",
            "Hatched: not measured",
            fewer,
            grids[0].note,
        ),
        rows=every if fewer else None,
    )


def _slowest(grids: Sequence[Grid], most: int) -> tuple[Sequence[Grid], str]:
    most = min(most, grids[0].most)
    slowest = (float(grid.points["mean_s"].max()) for grid in grids)
    criterion = "those with the slowest cell"
    return worst(grids, slowest, most=most, what="patterns", criterion=criterion)


def build_towers(grids: Sequence[Grid]) -> Plot:
    """Draw a tower for each measured cell, from zero; cells without a result stay empty."""
    grids, fewer = _slowest(grids, _MAX_TOWERS)
    panels = []
    for row, grid in enumerate(grids):
        direction = grid.points["direction"].iloc[0]
        rate = "write" if direction == "write" else "read"
        looks = (("iops", rate, "count"), ("mean_s", "palette-3", "latency"))
        for panel, (value, colour, written) in zip(grid.panels(row), looks, strict=True):
            top = float(grid.points[value].max(skipna=True) or 1.0)
            towers = marks.Bars3D(grid.points, value=value, series=colour)
            z = Axis(format=written, limits=(0, 1.02 * top))
            panels.append(replace(panel, marks=(towers,), z=z))
    return Plot(
        panels=tuple(panels),
        heights=(_TOWERS_IN,) * len(grids),
        widths=(1.0, 1.0),
        legend="",
        caption=(fewer, grids[0].note),
    )


def describe_grids(grids: Sequence[Grid]) -> str:
    """Return the best cell of the IOPS grids in one sentence."""
    points = pd.concat([grid.points for grid in grids], ignore_index=True)
    options = (grids[0].x, grids[0].y)
    best = records(points.nlargest(1, "iops"))[0]
    at = " and ".join(labels.option_named(option, number(best, option)) for option in options)
    return (
        "Grids of IOPS and mean latency over "
        f"{' and '.join(labels.SHORT_NAMES[option] for option in options)} "
        f"for {len(grids)} access pattern{'s' if len(grids) > 1 else ''}: max "
        f"{format_count(number(best, 'iops'))} IOPS at {at}."
    )


HEATMAP = Kind(
    name="heatmap",
    title="IOPS and latency",
    by_options="over two options",
    help="Grids of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "block size, or the mix of reads and writes and block size.",
    needs="a sweep over two of queue depth, block size, numjobs and rwmixread",
    read=read_grids,
    build=build_heatmap,
    describe=describe_grids,
    is_pooled=True,
)
BARS3D = replace(
    HEATMAP,
    name="bars3d",
    help="Towers of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "numjobs.",
    build=build_towers,
)
