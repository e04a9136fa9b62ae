"""Towers of IOPS and latency over two swept options, in three dimensions."""

from __future__ import annotations

import pandas as pd

from volbench.present.formatting import printable
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import Axis, Bars3D, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.results.heatmap import Grid, describe, grids_of, missing

_MOST = 4
"""Access patterns in one chart."""
_PANEL_IN = 3.3


def build(frames: Frames, _: Options) -> Plot:
    """Draw IOPS at the left and mean latency at the right, a row per access pattern."""
    grids, kind = grids_of(frames)
    more = len(grids) - _MOST
    panels = [
        _panel(grid, row, value, title)
        for row, grid in enumerate(grids[:_MOST])
        for value, title in (("iops", "IOPS"), ("mean_s", f"Mean {kind}"))
    ]
    return Plot(
        panels=tuple(panels),
        heights=(_PANEL_IN,) * min(len(grids), _MOST),
        widths=(1.0, 1.0),
        legend="",
        caption=(
            pooled(frames["summary"]),
            f"{more} further patterns are not shown: choose with --where" * (more > 0),
        ),
    )


def _panel(grid: Grid, row: int, value: str, title: str) -> Panel:
    """Draw a tower for each measured cell, from zero; cells without a result stay empty."""
    is_rate = value == "iops"
    top = 1.02 * float(grid.points[value].max())
    z = Axis(
        format="count" if is_rate else "latency",
        limits=(0, 1.0 if pd.isna(top) else top),
    )
    towers = Bars3D(
        data=grid.points,
        x="_x",
        y="_y",
        value=value,
        z=z,
        series="palette-0" if is_rate else "palette-1",
    )
    return Panel(
        x=grid.axis(grid.x),
        y=grid.axis(grid.y),
        marks=(towers,),
        title=printable(f"{title}, {grid.name}"),
        row=row,
        column=0 if is_rate else 1,
    )


BARS3D = Kind(
    name="bars3d",
    title="IOPS and latency over two options",
    frame_names=("summary",),
    help="Towers of IOPS and mean latency where jobs sweep two options, such as queue depth and "
    "numjobs.",
    needs="a sweep over two of queue depth, block size and numjobs",
    missing=missing,
    build=build,
    describe=describe,
)
