"""Bars in three dimensions: a sweep over two options enters, IOPS and latency towers leave."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import Chart, Frames, caption, new_figure
from volbench.present.figures.heatmap import Grid, describe, grids_of, lack, numbers
from volbench.present.figures.sweep import NAMES, option_text
from volbench.present.formatting import printable
from volbench.present.style import DIRECTIONS, PALETTE
from volbench.units import format_count, format_latency

MOST = 4
PANEL_IN = 3.9


def draw(frames: Frames, title: str) -> Figure:
    """Draw IOPS at the left and mean latency at the right, a row per access pattern."""
    grids, kind = grids_of(frames)
    more = len(grids) - MOST
    shown = grids[:MOST]
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            f"{more} further patterns are not shown: choose with --where" * (more > 0),
        ),
        height_in=1.0 + PANEL_IN * len(shown),
    )
    for row, grid in enumerate(shown):
        for column, (metric, name) in enumerate((("iops", "IOPS"), ("mean", f"Mean of {kind}"))):
            place = 2 * row + column + 1
            axes = figure.add_subplot(len(shown), 2, place, projection="3d")
            towers(axes, grid, metric)
            axes.set_title(printable(f"{name}, {grid.name}"))
    return figure


def towers(axes: Any, grid: Grid, metric: str) -> None:  # noqa: ANN401 - mplot3d has no types
    """Draw a tower for each measured cell, from zero; cells that were not measured stay empty."""
    xs, ys = sorted(grid.points[grid.x].unique()), sorted(grid.points[grid.y].unique())
    told = grid.points.dropna(subset=[metric])
    values = told[metric].to_numpy(dtype=float)
    at_x = np.array([xs.index(v) for v in told[grid.x]], dtype=float)
    at_y = np.array([ys.index(v) for v in told[grid.y]], dtype=float)
    colour = DIRECTIONS["read"] if metric == "iops" else PALETTE[1]
    axes.bar3d(
        at_x - 0.3, at_y - 0.3, np.zeros(len(values)), 0.6, 0.6, values, color=colour, shade=True
    )
    axes.set_xticks(range(len(xs)), [option_text(grid.x, float(v)) for v in xs])
    axes.set_yticks(range(len(ys)), [option_text(grid.y, float(v)) for v in ys])
    axes.set_zlim(0, float(values.max()) * 1.02 if len(values) else 1)
    form = format_count if metric == "iops" else format_latency
    axes.zaxis.set_major_formatter(FuncFormatter(partial(_tick, form)))
    axes.set_xlabel(NAMES[grid.x].split(" (")[0])
    axes.set_ylabel(NAMES[grid.y].split(" (")[0])
    axes.view_init(elev=24, azim=-125)
    axes.tick_params(labelsize=7.5, pad=1)


def _tick(form: object, value: float, _: object) -> str:
    return str(form(value)) if callable(form) else ""


def cells(frames: Frames) -> pd.DataFrame:
    """Return the towers that are drawn."""
    told = numbers(frames)
    shown = [grid.name for grid in grids_of(frames)[0][:MOST]]
    return told[told["label"].isin(shown)].reset_index(drop=True)


BARS3D = Chart(
    name="bars3d",
    title="IOPS and latency over two options",
    frame_names=("summary",),
    draw=draw,
    help="Towers of IOPS and mean latency where jobs sweep two options, such as depth and clones.",
    lack=lack,
    describe=describe,
    needs="a sweep over two of depth, block size and clones",
    numbers=cells,
)
