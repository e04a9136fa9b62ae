"""The ceiling plane: results enter, points over IOPS and bandwidth with the declared caps leave.

Both axes are logarithmic, so that every block size is a straight line; a volume can't leave the
corner below its IOPS limit and its bandwidth limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from volbench.analyse.frames.job_frames import per_job
from volbench.present.figures.arrange import side_by_side
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
from volbench.present.figures.colours import colour_map, colour_of, line_legend, patches
from volbench.present.figures.limits import declared
from volbench.present.formatting import Row, number, records, text
from volbench.present.style import BLACK, GREY, MARKERS, PALE
from volbench.units import format_count, format_rate, format_size

COLUMNS = ("iops", "bw_bytes_per_s")
LIMITS = ("limit_iops", "limit_bw_bytes_per_s")
BLOCKS = tuple(512 * 2**n for n in range(15))


def plane_rows(frames: Frames) -> list[Row]:
    """Return a row per job and direction that told both rates."""
    summary = frames["summary"]
    rated = summary[summary["direction"] != "sync"]
    rows = side_by_side(per_job(rated, list(COLUMNS)))
    told = rows[(rows["iops"] > 0) & (rows["bw_bytes_per_s"] > 0)]
    return list(records(told.reset_index(drop=True)))


def draw(frames: Frames, title: str) -> Figure:
    """Draw the points with their ranges, lines of equal block size, and the caps."""
    rows = plane_rows(frames)
    figure = new_figure(
        title=title,
        note=caption(
            frames["summary"],
            pooled(frames["summary"]),
            "Points: medians; whiskers: least to greatest. Sloping lines: equal block size. "
            "Dashed: declared limits",
        ),
        height_in=6.4,
        width_in=10,
    )
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    _frame(axes, rows)
    _blocks(axes)
    _caps(axes, rows)
    colours = colour_map(rows)
    names = list(dict.fromkeys(text(row, "job") for row in rows))
    for row in rows:
        _point(axes, row, colour_of(row, colours), MARKERS[names.index(text(row, "job")) % 7])
    handles: list[Artist] = [*patches(colours)]
    handles += [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=MARKERS[n % len(MARKERS)],
            color=GREY,
            label=wrap_name(name, columns=26),
        )
        for n, name in enumerate(names)
    ]
    line_legend(axes, handles)
    return figure


def _frame(axes: Axes, rows: Sequence[Row]) -> None:
    """Set the ends: every point, and caps that are not far above."""
    for column, limit, setter in (
        ("iops", LIMITS[0], axes.set_xlim),
        ("bw_bytes_per_s", LIMITS[1], axes.set_ylim),
    ):
        values = [number(row, column) for row in rows]
        caps = [cap for row in rows if (cap := number(row, limit)) <= 30 * max(values)]
        setter(min(values) / 2, max([*values, *caps]) * 2)
    for axis, form in ((axes.xaxis, format_count), (axes.yaxis, format_rate)):
        low, high = axis.get_view_interval()
        subs = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
        axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=15))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _, form=form: form(value)))
    axes.set_xlabel("IOPS (logarithmic)")
    axes.set_ylabel("Bandwidth (logarithmic)")
    axes.grid(visible=False)


def _blocks(axes: Axes) -> None:
    """Draw a line for each block size that crosses the plane, named where it leaves it."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for block in BLOCKS:
        first, end = max(left, low / block), min(right, high / block)
        if first >= end:
            continue
        axes.plot([first, end], [first * block, end * block], color=PALE, linewidth=1, zorder=1)
        axes.annotate(
            format_size(block),
            (end, end * block),
            xytext=(-3, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
            color=GREY,
        )
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)


def _caps(axes: Axes, rows: Sequence[Row]) -> None:
    dashed = {"color": BLACK, "linestyle": (0, (5, 3)), "linewidth": 1.2, "zorder": 2}
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    for limit in declared(rows, LIMITS[0], format_count):
        if limit.value < right:
            axes.axvline(limit.value, label=limit.name, **dashed)  # type: ignore[arg-type]  # a line's look
            axes.annotate(
                limit.name,
                (limit.value, 0.01),
                xycoords=axes.get_xaxis_transform(),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize=8,
                rotation=90,
            )
    for limit in declared(rows, LIMITS[1], format_rate):
        if limit.value < top:
            axes.axhline(limit.value, label=limit.name, **dashed)  # type: ignore[arg-type]  # a line's look
            axes.annotate(
                limit.name,
                (0.01, limit.value),
                xycoords=axes.get_yaxis_transform(),
                xytext=(2, 3),
                textcoords="offset points",
                fontsize=8,
            )


def _point(axes: Axes, row: Row, colour: str, marker: str) -> None:
    x, y = (number(row, name) for name in COLUMNS)
    for column, place in (("iops", 0), ("bw_bytes_per_s", 1)):
        low, high = number(row, f"{column}_low"), number(row, f"{column}_high")
        if high > low:
            ends = ([low, high], [y, y]) if place == 0 else ([x, x], [low, high])
            axes.plot(*ends, color=colour, linewidth=1, alpha=0.6, zorder=3, label="_range")
    axes.plot(
        x,
        y,
        color=colour,
        marker=marker,
        markersize=7,
        markeredgecolor="white",
        linestyle="none",
        label=f"{text(row, 'label')}, {text(row, 'direction')}",
        zorder=4,
    )


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    return "" if plane_rows(frames) else "no Run told both IOPS and bandwidth (fio does, dd not)"


def describe(frames: Frames) -> str:
    """Return the two extremes in one sentence."""
    rows = plane_rows(frames)
    fast = max(rows, key=lambda row: number(row, "iops"))
    wide = max(rows, key=lambda row: number(row, "bw_bytes_per_s"))
    return (
        f"{len(rows)} results over IOPS and bandwidth: the most are "
        f"{format_count(number(fast, 'iops'))} IOPS ({text(fast, 'label')}) and "
        f"{format_rate(number(wide, 'bw_bytes_per_s'))} ({text(wide, 'label')})."
    )


def numbers(frames: Frames) -> pd.DataFrame:
    """Return the points with their ranges and limits."""
    ends = [f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high")]
    return table(plane_rows(frames), [*ends, *LIMITS])


CEILING = Chart(
    name="ceiling",
    title="IOPS and bandwidth, with the ceilings",
    frame_names=("summary",),
    draw=draw,
    help="Every job on a plane of IOPS and bandwidth with lines of equal block size and the caps.",
    lack=lack,
    describe=describe,
    needs="a finished Run of fio",
    numbers=numbers,
)
