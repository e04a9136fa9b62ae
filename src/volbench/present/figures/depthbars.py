"""Bars by depth or clones: a sweep enters, IOPS and latency bars with a table beneath leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from volbench.analyse.frames.job_frames import measured, sweep, with_latencies
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.colours import line_legend
from volbench.present.figures.latency import KINDS
from volbench.present.figures.sweep import NAMES, SHORT, line_names, option_text
from volbench.present.formatting import Row, number, records
from volbench.present.style import BLACK, GREY, PALETTE, count_axis, linear_latency_axis
from volbench.units import format_count, format_latency

COLUMNS = ("iops", "iops_stddev", "mean", "stddev")
MOST_LINES = 7
_GROUP = 0.82
"""Width of a group of bars, of the room for it."""
_ROW_IN = 0.2


@dataclass(frozen=True)
class DepthBars:
    """Bars of IOPS and mean latency along one option.

    Attributes:
        name: of the kind.
        option: `iodepth` or `numjobs`.
    """

    name: str
    option: str

    def points(self, frames: Frames) -> tuple[pd.DataFrame, str]:
        """Return a row per value and line with its label, and the kind of latency."""
        summary, kind = with_latencies(frames["summary"], ("mean", "stddev"))
        points = sweep(summary, self.option, list(COLUMNS))
        points = points[points["iops"].notna()]
        names = dict(enumerate(line_names(points, self.option))) if len(points) else {}
        heads = {line: place for place, line in enumerate(sorted(points["line"].unique()))}
        return points.assign(label=points["line"].map(heads).map(names)), KINDS[kind]

    def draw(self, frames: Frames, title: str) -> Figure:
        """Draw a panel of IOPS, one of latency, and the numbers beneath."""
        points, kind = self.points(frames)
        lines = [records(line) for _, line in points.groupby("line", sort=True)]
        shown = lines[:MOST_LINES]
        values = sorted({number(row, self.option) for line in shown for row in line})
        more = len(lines) - len(shown)
        rows_in = _ROW_IN * (2 * len(shown) + 1)
        figure = new_figure(
            title=title,
            note=caption(
                frames["summary"],
                pooled(frames["summary"]),
                "Whiskers: fio's standard deviation, of IOPS over its windows, of latency over "
                "the I/Os",
                f"{more} further lines are not shown: choose with --where" * (more > 0),
            ),
            height_in=6.2 + rows_in,
            width_in=max(9.0, 3.0 + 1.0 * len(values)),
        )
        top, bottom, beneath = figure.subplots(3, height_ratios=[2.3, 2.3, rows_in])
        self._bars(top, shown, values, ("iops", "iops_stddev"))
        top.set_ylabel("IOPS")
        count_axis(top.yaxis)
        self._bars(bottom, shown, values, ("mean", "stddev"))
        bottom.set_ylabel(f"Mean of {kind}")
        linear_latency_axis(bottom.yaxis)
        bottom.set_xlabel(NAMES[self.option])
        handles = [
            Patch(color=_colour(place), label=wrap_name(str(line[0]["label"]), columns=26))
            for place, line in enumerate(shown)
        ]
        line_legend(top, handles)
        self._table(beneath, shown, values)
        return figure

    def _bars(
        self,
        axes: Axes,
        lines: Sequence[list[dict[str, object]]],
        values: list[float],
        columns: tuple[str, str],
    ) -> None:
        """Draw a group of bars at each value, with whiskers that don't go below zero."""
        width = _GROUP / len(lines)
        column, spread = columns
        for place, line in enumerate(lines):
            told = {number(row, self.option): row for row in line}
            at = [n - _GROUP / 2 + (place + 0.5) * width for n, v in enumerate(values) if v in told]
            rows = [told[v] for v in values if v in told]
            heights = [number(row, column) for row in rows]
            axes.bar(at, heights, width=0.92 * width, color=_colour(place), zorder=2)
            deviations = [0.0 if math.isnan(v := number(row, spread)) else v for row in rows]
            low = [min(h, d) for h, d in zip(heights, deviations, strict=True)]
            if any(deviations):
                axes.errorbar(
                    at,
                    heights,
                    yerr=[low, deviations],
                    fmt="none",
                    ecolor=BLACK,
                    elinewidth=0.9,
                    capsize=2,
                    zorder=3,
                )
        axes.set_ylim(0, axes.get_ylim()[1])
        axes.set_xticks(range(len(values)), [option_text(self.option, v) for v in values])
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="x", length=0)

    def _table(
        self, axes: Axes, lines: Sequence[list[dict[str, object]]], values: list[float]
    ) -> None:
        """Write the numbers with their deviations: two rows a line."""
        axes.set_axis_off()
        cells, names, colours = [], [], []
        for place, line in enumerate(lines):
            told = {number(row, self.option): row for row in line}
            for word, columns, form in (
                ("IOPS", ("iops", "iops_stddev"), format_count),
                ("latency", ("mean", "stddev"), format_latency),
            ):
                cells.append([_cell(told.get(v, {}), columns, form) for v in values])
                names.append(f"{line[0]['label']}: {word}" if word == "IOPS" else word)
                colours.append(_colour(place))
        heads = [f"{SHORT[self.option]} {option_text(self.option, v)}" for v in values]
        drawn = axes.table(
            cellText=cells, rowLabels=names, colLabels=heads, cellLoc="center", bbox=Bbox.unit()
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(7.5)
        for (row, column), cell in drawn.get_celld().items():
            cell.set_linewidth(0)
            if column == -1:
                cell.get_text().set_color(colours[row - 1])
            if row == 0:
                cell.get_text().set_color(GREY)

    def lack(self, frames: Frames) -> str:
        """Return why there is nothing to draw."""
        if reason := lack_of_runs(frames):
            return reason
        if self.option not in measured(frames["summary"]) or not len(self.points(frames)[0]):
            return (
                f"no sweep: it takes jobs that differ in {SHORT[self.option]} alone "
                "(a matrix in the profile makes them)"
            )
        return ""

    def describe(self, frames: Frames) -> str:
        """Return the best bar in one sentence."""
        points, kind = self.points(frames)
        best = points.nlargest(1, "iops").iloc[0]
        value = option_text(self.option, float(best[self.option]))
        return (
            f"IOPS and mean of {kind} by {SHORT[self.option]}: the most is "
            f"{format_count(float(best['iops']))} IOPS at {SHORT[self.option]} {value} "
            f"({best['label']}), at {format_latency(float(best['mean']))}."
        )

    def numbers(self, frames: Frames) -> pd.DataFrame:
        """Return the bars with their whiskers; latencies in seconds."""
        points, kind = self.points(frames)
        kept = points[points["line"].isin(sorted(points["line"].unique())[:MOST_LINES])]
        renamed = {"mean": "lat_mean_s", "stddev": "lat_stddev_s"}
        return table(kept, COLUMNS).rename(columns=renamed).assign(latency=kind)

    def chart(self, title: str, help_text: str) -> Chart:
        """Return the kind."""
        return Chart(
            name=self.name,
            title=title,
            frame_names=("summary",),
            draw=self.draw,
            help=help_text,
            lack=self.lack,
            describe=self.describe,
            needs=f"jobs that differ in {SHORT[self.option]} alone",
            numbers=self.numbers,
        )


def _colour(place: int) -> str:
    return PALETTE[place % len(PALETTE)]


def _cell(row: Row, columns: tuple[str, str], form: object) -> str:
    """Return a value with its deviation."""
    if not callable(form) or math.isnan(value := number(row, columns[0])):
        return "-"
    deviation = number(row, columns[1])
    return str(form(value)) if math.isnan(deviation) else f"{form(value)} ± {form(deviation)}"


DEPTH = DepthBars("depth", "iodepth").chart(
    "IOPS and latency by queue depth",
    "Bars of IOPS and mean latency at each queue depth, with standard deviations and a table.",
)
CLONES = DepthBars("clones", "numjobs").chart(
    "IOPS and latency by number of clones",
    "Bars of IOPS and mean latency at each number of clones, with deviations and a table.",
)
