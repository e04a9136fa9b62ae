"""IOPS and bandwidth bars: the summary enters, a bar per job and direction leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from volbench.analyse.frames.job_frames import measured, per_job
from volbench.present.figures.arrange import side_by_side
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    job_names,
    lack_of_runs,
    new_figure,
    rows_height_in,
    table,
)
from volbench.present.figures.colours import colour_map, colour_of, patches
from volbench.present.figures.limits import declared, draw_across
from volbench.present.formatting import Row, number, records, text
from volbench.present.style import BLACK, GREY, count_axis, rate_axis
from volbench.units import format_count, format_rate

BAR = 0.62
"""Height of a bar, in rows."""


@dataclass(frozen=True)
class Bars:
    """What one kind of bar chart shows.

    Attributes:
        column: of the summary; limit: column of its limit.
        axis_label: with the unit; noun: as a sentence names it.
    """

    column: str
    limit: str
    axis_label: str
    noun: str
    format_value: Callable[[float], str]
    format_axis: Callable[[Axis], None]

    def rows(self, frames: Frames) -> list[Row]:
        """Return a row per job and direction; sync has latencies but no rate."""
        summary = frames["summary"]
        rated = summary[summary["direction"] != "sync"]
        return list(records(side_by_side(per_job(rated, [self.column]))))

    def numbers(self, frames: Frames) -> pd.DataFrame:
        """Return the rows that are drawn."""
        columns = [self.column, f"{self.column}_low", f"{self.column}_high", self.limit]
        return table(self.rows(frames), columns)

    def draw(self, frames: Frames, title: str) -> Figure:
        """Draw horizontal bars from zero, with the range of the repeats and declared limits."""
        rows = self.rows(frames)
        names = job_names(rows)
        repeated = any(number(row, "repeats") > 1 for row in rows)
        figure = new_figure(
            title=title,
            note=caption(
                frames["summary"],
                pooled(frames["summary"]),
                "Bars: median of the repeats; whiskers: least to greatest" * repeated,
            ),
            height_in=1.7 + rows_height_in(names),
        )
        axes = figure.add_subplot()
        colours = colour_map(rows)
        ends = [
            self._bar(axes, place, row, colour_of(row, colours)) for place, row in enumerate(rows)
        ]
        limits = declared(rows, self.limit, self.format_value)
        axes.set_xlim(0, 1.14 * max([*ends, *(limit.value for limit in limits)]) or 1)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(self.axis_label)
        self.format_axis(axes.xaxis)
        draw_across(axes, limits, half_row=0.45)
        _legend(axes, colours, above_in=0.1 + 0.2 * bool(limits) + 0.16 * (len(limits) > 1))
        return figure

    def lack(self, frames: Frames) -> str:
        """Return why there is nothing to draw."""
        if reason := lack_of_runs(frames):
            return reason
        if measured(frames["summary"])[self.column].isna().all():
            return f"no {self.noun}: no Run told it (dd tells bandwidth alone)"
        return ""

    def describe(self, frames: Frames) -> str:
        """Return the extremes and the limits in one sentence."""
        rows = self.rows(frames)
        told = sorted(
            (row for row in rows if not math.isnan(number(row, self.column))),
            key=lambda row: number(row, self.column),
        )
        low, high = told[0], told[-1]
        sentence = f"{self.noun} of {len(told)} results: {self._named(high)}"
        if low is not high:
            sentence += f" is the most, {self._named(low)} the least"
        limits = declared(rows, self.limit, self.format_value)
        return "; ".join([sentence, *(f"declared {limit.name}" for limit in limits)]) + "."

    def _named(self, row: Row) -> str:
        value = self.format_value(number(row, self.column))
        return f"{text(row, 'label')} ({text(row, 'direction')}) with {value}"

    def _bar(self, axes: Axes, place: int, row: Row, colour: str) -> float:
        """Draw one bar and return where it ends; a rate that was not told is said, not drawn."""
        value = number(row, self.column)
        if math.isnan(value):
            tool = text(row, "tool", missing="the tool")
            axes.annotate(
                f"not told by {tool}",
                (0, place),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontstyle="italic",
                color=GREY,
            )
            return 0.0
        low, high = number(row, f"{self.column}_low"), number(row, f"{self.column}_high")
        axes.barh(place, value, height=BAR, color=colour, label=text(row, "label"), zorder=2)
        if number(row, "repeats") > 1:
            axes.errorbar(
                value,
                place,
                xerr=[[value - low], [high - value]],
                color=BLACK,
                capsize=3,
                linewidth=1,
                zorder=4,
            )
        axes.annotate(
            self.format_value(value),
            (high, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
        return high


def _legend(axes: Axes, colours: dict[str, str], *, above_in: float) -> None:
    """Name the colours above the axes."""
    axes.legend(
        handles=patches(colours),
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=beside(axes, y_in=above_in),
        ncols=min(len(colours), 5),
        borderaxespad=0,
    )


def _chart(name: str, title: str, help_text: str, bars: Bars) -> Chart:
    return Chart(
        name=name,
        title=title,
        frame_names=("summary",),
        draw=bars.draw,
        help=help_text,
        lack=bars.lack,
        describe=bars.describe,
        needs="a finished Run" if name == "bandwidth" else "a finished Run of fio",
        numbers=bars.numbers,
    )


IOPS = _chart(
    "iops",
    "IOPS per job",
    "I/O operations per second of each job and direction, with the declared limits.",
    Bars("iops", "limit_iops", "I/O operations per second", "IOPS", format_count, count_axis),
)
BANDWIDTH = _chart(
    "bandwidth",
    "Bandwidth per job",
    "Bandwidth of each job and direction, with the declared limits.",
    Bars(
        "bw_bytes_per_s",
        "limit_bw_bytes_per_s",
        "Bandwidth (1 MB/s = 1,000,000 bytes per second)",
        "Bandwidth",
        format_rate,
        rate_axis,
    ),
)
