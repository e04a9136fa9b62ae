"""Heat maps: a sweep over two options enters, a grid of IOPS and one of latency leave."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

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
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
)
from volbench.present.figures.latency import KINDS
from volbench.present.figures.sweep import NAMES, SHORT, option_text
from volbench.present.formatting import pattern, printable, records
from volbench.present.style import BLACK, GREY
from volbench.units import format_count, format_latency

COLUMNS = ("iops", "mean")


@dataclass(frozen=True)
class Grid:
    """The points of one access pattern.

    Attributes:
        name: of the pattern.
        points: a row per point with `x`, `y` and `COLUMNS`.
    """

    name: str
    points: pd.DataFrame
    x: str
    y: str


def grids_of(frames: Frames) -> tuple[list[Grid], str]:
    """Return a grid for each pattern in which two options vary, and the kind of latency."""
    options = swept_options(frames["summary"])
    if len(options) < 2:
        return [], ""
    x, y = sorted(options[:2], key=("iodepth", "numjobs", "block_bytes").index)
    summary, kind = with_latencies(frames["summary"], ("mean",))
    points = grid_points(summary, (x, y), COLUMNS)
    groups = [group for _, group in points.groupby("line", sort=True)]
    heads = [records(group.head(1))[0] for group in groups]
    apart = key_of(points, (*SETTING, *(name for name in OPTIONS if name not in (x, y))))
    telling = [
        name
        for name in apart
        if name not in ("rw", "direction") and len({str(head[name]) for head in heads}) > 1
    ]
    names = [
        ", ".join([pattern(head), *(f"{SHORT.get(n, n)} {head[n]}" for n in telling)])
        for head in heads
    ]
    return [Grid(n, g, x, y) for n, g in zip(names, groups, strict=True)], KINDS[kind]


def draw(frames: Frames, title: str) -> Figure:
    """Draw IOPS at the left and mean latency at the right, a row of grids per pattern."""
    grids, kind = grids_of(frames)
    cells = max(grid.points[grid.x].nunique() for grid in grids)
    heights = [1.15 + 0.36 * grid.points[grid.y].nunique() for grid in grids]
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Darker is more",
            "Hatched: not measured",
        ),
        height_in=1.0 + sum(heights),
        width_in=max(9.0, 2.2 + 1.2 * cells),
    )
    panels = figure.subplots(len(grids), 2, squeeze=False, height_ratios=heights)
    for (left, right), grid in zip(panels, grids, strict=True):
        _panel(left, grid, "iops")
        left.set_title(printable(f"IOPS, {grid.name}"))
        _panel(right, grid, "mean")
        right.set_title(printable(f"Mean of {kind}, {grid.name}"))
        right.set_ylabel("")
    return figure


def _panel(axes: Axes, grid: Grid, column: str) -> None:
    """Draw one grid with its values in the cells."""
    table = grid.points.pivot_table(index=grid.y, columns=grid.x, values=column, dropna=False)
    told = [float(v) for v in table.to_numpy(dtype=float).ravel() if v > 0]
    low, high = (min(told), max(told)) if told else (1.0, 1.0)
    norm = LogNorm(min(low, high / 2), high)  # near equal cells have near equal colours
    values = table.to_numpy(dtype=float)
    axes.set_facecolor("#f4f4f4")
    axes.patch.set(hatch="////", edgecolor="#cccccc")
    axes.imshow(
        values,
        aspect="auto",
        origin="lower",
        norm=norm,
        cmap="Blues" if column == "iops" else "Oranges",
    )
    format_value = format_count if column == "iops" else format_latency
    for row, line in enumerate(values):
        for place, value in enumerate(line):
            if not math.isnan(value):
                dark = value > 0 and float(norm(value)) > 0.6
                axes.text(
                    place,
                    row,
                    format_value(value),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else BLACK,
                )
    axes.set_xticks(
        range(len(table.columns)), [option_text(grid.x, float(v)) for v in table.columns]
    )
    axes.set_yticks(range(len(table.index)), [option_text(grid.y, float(v)) for v in table.index])
    axes.set_xlabel(NAMES[grid.x])
    axes.set_ylabel(NAMES[grid.y])
    axes.grid(visible=False)
    axes.tick_params(length=0, color=GREY)


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if not grids_of(frames)[0]:
        return "no grid: it takes jobs that sweep two of I/O depth, block size and clones"
    return ""


def describe(frames: Frames) -> str:
    """Return the best cell of the IOPS grids in one sentence."""
    grids, _ = grids_of(frames)
    points = pd.concat([grid.points for grid in grids], ignore_index=True)
    x, y = grids[0].x, grids[0].y
    best = points.nlargest(1, "iops").iloc[0]
    return (
        f"Grids of IOPS and mean latency over {SHORT[x]} and {SHORT[y]} for {len(grids)} "
        f"access pattern{'s' * (len(grids) > 1)}: the most is {format_count(float(best['iops']))} "
        f"IOPS at {SHORT[x]} {option_text(x, float(best[x]))} and {SHORT[y]} "
        f"{option_text(y, float(best[y]))}."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the cells that are drawn."""
    grids, kind = grids_of(frames)
    cells = pd.concat([grid.points.assign(label=grid.name) for grid in grids], ignore_index=True)
    return table(cells, COLUMNS).rename(columns={"mean": "mean_s"}).assign(latency=kind)


HEATMAP = Chart(
    name="heatmap",
    title="IOPS and latency over two options",
    frame_names=("summary",),
    draw=draw,
    help="Grids of IOPS and mean latency where jobs sweep two options, such as depth and block.",
    lack=lack,
    describe=describe,
    needs="a sweep over two of depth, block size and clones",
    numbers=numbers,
)
