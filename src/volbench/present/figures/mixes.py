"""Mixes by block size: rounds enter, a table in colours and towers leave, as in SNIA's reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from volbench.model.profile.profile_settings import Rounds
from volbench.present.figures.chart import Chart, Frames, caption, new_figure
from volbench.present.figures.rounds import Told, describe, read_rounds
from volbench.present.figures.rounds import lack as lack_of_rounds
from volbench.present.style import BLACK, GREY, PALETTE
from volbench.units import format_count, format_size

Tracked = Mapping[str, Rounds]

_TITLE = "IOPS by mix and block size"


def matrix(frames: Frames, tracked: Tracked) -> tuple[pd.DataFrame, Told]:
    """Return the cells that have one mix and one block size, and what the rounds told."""
    told = read_rounds(frames, tracked)
    cells = told.matrix[(told.matrix["mix"] != "") & told.matrix["block_bytes"].notna()]
    return cells, told


def _note(frames: Frames, told: Told, cells: pd.DataFrame) -> str:
    rounds = int(cells["rounds"].max())
    return caption(
        frames["summary"],
        f"Means of {rounds} rounds, with the least and the greatest",
        told.found.words[:1].upper() + told.found.words[1:],
        "Mixes are reads/writes",
    )


def _table(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return mixes as columns, most reads first, and blocks as rows, large ones first."""
    wide = cells.pivot_table(
        index="block_bytes", columns="read_percent", values=column, aggfunc="first", dropna=False
    )
    return wide.sort_index(ascending=False).sort_index(axis=1, ascending=False)


def draw(frames: Frames, title: str, *, tracked: Tracked) -> Figure:
    """Draw the table of means, each cell with its range beneath."""
    cells, told = matrix(frames, tracked)
    means, least, most = (_table(cells, name) for name in ("mean", "least", "greatest"))
    figure = new_figure(
        title=title,
        note=_note(frames, told, cells),
        height_in=1.6 + 0.5 * len(means.index),
        width_in=max(9.0, 2.0 + 1.3 * len(means.columns)),
    )
    axes = figure.add_subplot()
    values = means.to_numpy(dtype=float)
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    norm = LogNorm(min(low, high / 2), high)  # near equal cells have near equal colours
    axes.set_facecolor("#f4f4f4")
    axes.imshow(values, aspect="auto", norm=norm, cmap="Blues")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            ends = [float(part.to_numpy(dtype=float)[row, column]) for part in (least, most)]
            _cell(axes, (column, row), value, ends, dark=float(norm(value)) > 0.6)
    _names(axes, means)
    return figure


def _cell(
    axes: Axes, place: tuple[int, int], value: float, ends: list[float], *, dark: bool
) -> None:
    text = format_count(value)
    if ends[1] > ends[0]:
        text += f"\n{format_count(ends[0])} to {format_count(ends[1])}"
    axes.annotate(
        text, place, ha="center", va="center", fontsize=7.5, color="white" if dark else BLACK
    )


def _names(axes: Axes, means: pd.DataFrame) -> None:
    axes.set_xticks(range(len(means.columns)), [f"{int(r)}/{100 - int(r)}" for r in means.columns])
    axes.set_yticks(range(len(means.index)), [format_size(float(b)) for b in means.index])
    axes.set_xlabel("Mix (reads/writes)")
    axes.set_ylabel("Block size (1k = 1024 bytes)")
    axes.grid(visible=False)
    axes.tick_params(length=0, color=GREY)


def draw_towers(frames: Frames, title: str, *, tracked: Tracked) -> Figure:
    """Draw a tower for each mix and block size, from zero."""
    cells, told = matrix(frames, tracked)
    means = _table(cells, "mean")
    figure = new_figure(title=title, note=_note(frames, told, cells), height_in=6.2)
    axes: Any = figure.add_subplot(projection="3d")  # mplot3d has no types
    values = means.to_numpy(dtype=float)
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            axes.bar3d(
                column - 0.3,
                row - 0.3,
                0,
                0.6,
                0.6,
                value,
                color=PALETTE[row % len(PALETTE)],
                shade=True,
            )
    axes.set_xticks(range(len(means.columns)), [f"{int(r)}/{100 - int(r)}" for r in means.columns])
    axes.set_yticks(range(len(means.index)), [format_size(float(b)) for b in means.index])
    axes.set_zlim(0, float(np.nanmax(values)) * 1.02)
    axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    axes.set_xlabel("Mix (reads/writes)")
    axes.set_ylabel("Block size")
    axes.set_zlabel("IOPS")
    axes.view_init(elev=26, azim=-125)
    return figure


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_rounds(frames):
        return reason
    cells, _ = matrix(frames, {})
    if cells["block_bytes"].nunique() * cells["read_percent"].nunique() < 2:
        return "no table: it takes jobs of several mixes (rwmixread) or block sizes"
    return ""


def numbers(frames: Frames, *, tracked: Tracked) -> pd.DataFrame:
    """Return the cells: means over the window with their ends."""
    cells, _ = matrix(frames, tracked)
    renamed = {name: f"iops_{name}" for name in ("mean", "least", "greatest")}
    return cells.rename(columns=renamed).reset_index(drop=True)


_NEEDS = "repeats of jobs with several mixes or block sizes"


def mixes_charts(tracked: Tracked) -> tuple[Chart, Chart]:
    """Return table and towers over the window of profiles' tracking variables.

    Args:
        tracked: profile to its rounds, as for `rounds_charts`.
    """
    table, towers = (
        Chart(
            name=name,
            title=_TITLE,
            frame_names=("summary",),
            draw=partial(draw_one, tracked=tracked),
            help=help_text,
            lack=lack,
            describe=partial(describe, tracked=tracked),
            needs=_NEEDS,
            numbers=partial(numbers, tracked=tracked),
        )
        for name, draw_one, help_text in (
            (
                "mixes",
                draw,
                "A table in colours of mean IOPS over mixes of reads and writes and block sizes.",
            ),
            ("mixes3d", draw_towers, "Mean IOPS over mixes and block sizes as towers."),
        )
    )
    return table, towers


MIXES, MIXES3D = mixes_charts({})
