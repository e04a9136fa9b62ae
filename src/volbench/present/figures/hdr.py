"""Latency by percentile and ECDF: fio's bins enter, a line per job and direction leaves.

The percentile plot is the one that HdrHistogram made known (Gil Tene): percentiles stand on an axis
of nines, so that the slowest thousandth has as much room as the slowest tenth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from volbench.analyse.frames.job_frames import distribution
from volbench.present.figures.captions import pooled
from volbench.present.figures.chart import Chart, Frames, caption, new_figure, wrap_name
from volbench.present.figures.colours import MOST_ENTRIES, line_legend
from volbench.present.figures.distribution import describe, lack, lines_of, numbers, percent_text
from volbench.present.figures.latency import KINDS
from volbench.present.formatting import printable
from volbench.present.style import MARKERS, PALETTE, log_latency_axis

DASHES = ("-", "--", ":", "-.")
MOST_NINES = 8


@dataclass(frozen=True)
class _Look:
    """How one of the two plots stands its axes.

    Attributes:
        draw_line: one job's bins into axes.
        finish: scales and names of the axes, given all bins and the kind of latency.
        words: for the note.
    """

    draw_line: Callable[[Axes, pd.DataFrame, int], None]
    finish: Callable[[Axes, pd.DataFrame, str], None]
    words: str

    def draw(self, frames: Frames, title: str) -> Figure:
        """Draw a line for each job and direction."""
        told, kind = distribution(frames["histogram"], frames["summary"])
        lines = lines_of(told)
        figure = new_figure(
            title=title,
            note=caption(
                frames["summary"],
                pooled(frames["summary"]),
                "From fio's bins, exact to 0.8 %; repeats are added up",
                self.words,
            ),
            height_in=max(4.8, 1.4 + 0.2 * min(len(lines), MOST_ENTRIES + 1)),
            width_in=10,
        )
        axes = figure.add_subplot()
        handles = []
        for place, line in enumerate(lines):
            self.draw_line(axes, line, place)
            head = line.iloc[0]
            name = printable(f"{head['label']}, {head['direction']}")
            handles.append(Line2D([], [], **_look(place), label=wrap_name(name, columns=30)))  # type: ignore[arg-type]  # colour, dash and marker
        self.finish(axes, told, KINDS[kind])
        line_legend(axes, handles)
        return figure


def _look(place: int) -> dict[str, object]:
    return {
        "color": PALETTE[place % len(PALETTE)],
        "linestyle": DASHES[place // len(PALETTE) % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4,
    }


def _draw_ecdf(axes: Axes, line: pd.DataFrame, place: int) -> None:
    """Draw the share that was faster, from 0 to 1."""
    edges = line["bin_high_s"].to_numpy(dtype=float)
    axes.step(
        [edges[0], *edges],
        [0.0, *line["share"]],
        where="post",
        markevery=max(1, len(line) // 6),
        **_look(place),  # type: ignore[arg-type]  # colour, dash and marker
    )


def _finish_ecdf(axes: Axes, told: pd.DataFrame, kind: str) -> None:
    axes.set_xscale("log")
    low, high = float(told["bin_high_s"].min()), float(told["bin_high_s"].max())
    high = max(high, 3 * low)
    axes.set_xlim(low * 0.9, high * 1.1)
    log_latency_axis(axes.xaxis, low_s=low, high_s=high)
    axes.set_xlabel(f"{kind.capitalize()} (logarithmic)")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.set_ylabel("I/Os that were faster")


def _draw_hdr(axes: Axes, line: pd.DataFrame, place: int) -> None:
    """Draw latency over 1 / (share that was slower); the slowest bin ends at one I/O."""
    slower = 1 - line["share"].to_numpy(dtype=float)
    slower[-1] = 1 / float(line["count"].sum())
    before = [1.0, *slower[:-1]]
    axes.plot(
        [
            value
            for pair in zip(before, slower, strict=True)
            for value in (1 / pair[0], 1 / pair[1])
        ],
        [edge for edge in line["bin_high_s"] for _ in range(2)],
        markevery=max(1, len(line) // 3),
        **_look(place),  # type: ignore[arg-type]  # colour, dash and marker
    )


def _finish_hdr(axes: Axes, told: pd.DataFrame, kind: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    most = max(float(line["count"].sum()) for line in lines_of(told))
    nines = [
        1.0,
        2.0,
        *(10.0**n for n in range(1, min(MOST_NINES, math.ceil(math.log10(most))) + 1)),
    ]
    axes.set_xlim(1, max(nines[-1], most) * 1.05)
    axes.xaxis.set_major_locator(FixedLocator(nines))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent_text(1 / value)))
    axes.set_xlabel("Percentile (each step is one nine more)")
    low, high = float(told["bin_high_s"].min()), float(told["bin_high_s"].max())
    high = max(high, 3 * low)
    axes.set_ylim(low * 0.8, high * 1.25)
    log_latency_axis(axes.yaxis, low_s=low, high_s=high)
    axes.set_ylabel(f"{kind.capitalize()} (logarithmic)")


_NEEDS = "latency bins (fio's json+)"

HDR = Chart(
    name="hdr",
    title="Latency by percentile",
    frame_names=("summary", "histogram"),
    draw=_Look(_draw_hdr, _finish_hdr, "The last step of a line is its slowest I/O").draw,
    help="Latency at each percentile, on an axis of nines: 50 %, 90 %, 99 %, 99.9 % and on.",
    lack=lack,
    describe=describe,
    needs=_NEEDS,
    numbers=numbers,
)
ECDF = Chart(
    name="ecdf",
    title="Cumulated latency",
    frame_names=("summary", "histogram"),
    draw=_Look(_draw_ecdf, _finish_ecdf, "").draw,
    help="Which share of the I/Os was faster than each latency, on an even axis of shares.",
    lack=lack,
    describe=describe,
    needs=_NEEDS,
    numbers=numbers,
)
