"""Latency distributions: fio's bins enter, a line per job and direction leaves."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from volbench.analyse.frames.job_frames import distribution, key_of
from volbench.present.figures.captions import pooled as pooled_words
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    lack_of_runs,
    new_figure,
    table,
    wrap_name,
)
from volbench.present.figures.latency import KINDS
from volbench.present.formatting import printable
from volbench.present.style import MARKERS, PALETTE, log_latency_axis
from volbench.units import format_count, format_latency

LINES = 6
"""How many lines one panel holds before the next begins."""
PANEL_IN = 3.6


def draw(frames: Frames, title: str) -> Figure:
    """Draw which share of the I/Os was faster than each latency, with nines on the upright axis."""
    pooled, kind = distribution(frames["histogram"], frames["summary"])
    lines = lines_of(pooled)
    panels = [lines[first : first + LINES] for first in range(0, len(lines), LINES)]
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled_words(frames["summary"]),
            "From fio's bins, exact to 0.8 %; repeats are added up",
        ),
        height_in=1.1 + PANEL_IN * len(panels),
    )
    grid = figure.subplots(len(panels), squeeze=False, sharex=True)
    least, greatest = float(pooled["bin_high_s"].min()), float(pooled["bin_high_s"].max())
    greatest = max(greatest, 3 * least)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        axes.set_xscale("log")
        for place, line in enumerate(panel):
            _draw_line(axes, line, place)
        _scale(axes, slowest_share=min(1 / float(line["count"].sum()) for line in panel))
        axes.set_xlim(least * 0.9, greatest * 1.1)
        log_latency_axis(axes.xaxis, low_s=least, high_s=greatest)
        axes.set_ylabel("I/Os that were faster")
        axes.tick_params(labelbottom=True)
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1, 1),
            bbox_transform=beside(axes, x_in=0.1),
            borderaxespad=0,
        )
    grid[-1, 0].set_xlabel(f"{KINDS[kind].capitalize()} (logarithmic)")
    return figure


def lines_of(pooled: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the bins of each job and direction, in the order of appearance."""
    return [line for _, line in pooled.groupby(key_of(pooled), sort=False, dropna=False)]


def _name(line: pd.DataFrame) -> str:
    first = line.iloc[0]
    return printable(f"{first['label']}, {first['direction']}")


def _draw_line(axes: Axes, line: pd.DataFrame, place: int) -> None:
    """Draw the share that was slower; the axis is turned over, so that fast is low."""
    slower = 1 - line["share"].to_numpy(dtype=float)
    slower[-1] = 0.5 / float(line["count"].sum())  # none was slower: the line goes on to the edge
    axes.step(
        [line["bin_high_s"].iloc[0], *line["bin_high_s"]],
        [1.0, *slower],
        where="post",
        color=PALETTE[place % len(PALETTE)],
        marker=MARKERS[place % len(MARKERS)],
        markevery=max(1, len(line) // 6),
        markersize=4,
        label=wrap_name(_name(line), columns=26),
    )


def _scale(axes: Axes, *, slowest_share: float) -> None:
    """Put 0 %, 50 %, 90 %, 99 % ... on an axis whose steps are nines."""
    axes.set_yscale("log")
    nines = [1.0, 0.5]
    while nines[-1] > slowest_share and len(nines) < 9:
        nines.append(0.1 ** (len(nines) - 1))
    axes.set_ylim(1.0, min(nines[-1], slowest_share) * 0.5)
    axes.yaxis.set_major_locator(FixedLocator(nines))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(percent_text))


def percent_text(slower: float, _: object = None) -> str:
    """Return the share that was faster, with as many nines as it takes."""
    return f"{100 * (1 - slower):.6f}".rstrip("0").rstrip(".") + " %"


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    pooled, _ = distribution(frames["histogram"], frames["summary"])
    return "" if len(pooled) else "no histogram: no Run told its latency bins (fio's json+ does)"


def describe(frames: Frames) -> str:
    """Return the number of I/Os and the range of the medians in one sentence."""
    pooled, kind = distribution(frames["histogram"], frames["summary"])
    lines = lines_of(pooled)
    medians = sorted(
        (float(line.loc[line["share"] >= 0.5, "bin_high_s"].iloc[0]), _name(line)) for line in lines
    )
    (fast, fast_name), (slow, slow_name) = medians[0], medians[-1]
    total = format_count(float(pooled["count"].sum()))
    sentence = f"Distribution of {KINDS[kind]} over {total} I/Os: half were faster than"
    if len(lines) == 1:
        return f"{sentence} {format_latency(fast)} ({fast_name})."
    return (
        f"{sentence} {format_latency(fast)} in the fastest job ({fast_name}) and "
        f"{format_latency(slow)} in the slowest ({slow_name})."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the steps that are drawn: ``share`` of the I/Os was faster than ``bin_high_s``."""
    told, kind = distribution(frames["histogram"], frames["summary"])
    return table(told, ["bin_high_s", "count", "share"]).assign(latency=KINDS[kind])


DISTRIBUTION = Chart(
    name="distribution",
    title="Latency distribution",
    frame_names=("summary", "histogram"),
    draw=draw,
    help="Which share of the I/Os was faster than each latency, from fio's bins.",
    lack=lack,
    describe=describe,
    needs="latency bins (fio's json+)",
    numbers=numbers,
)
