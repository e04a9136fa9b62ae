"""Storms: campaigns whose clients ran side by side enter, their IOPS on one clock leave.

A column for each storm, all with the same scale: reads and writes stacked, then apart, then a strip
for each client. It is the chart of "IOPS in a Windows boot storm" (Curtis Collicutt) with reads and
writes told apart, which its author wished for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from volbench.analyse.time.boot_storm import INTERVAL_S, SETTLED, Storm, StormClient, storms
from volbench.analyse.time.resample import Floats
from volbench.present.figures.chart import (
    Chart,
    Frames,
    beside,
    caption,
    lack_of_runs,
    new_figure,
    wrap_name,
)
from volbench.present.figures.stormwords import headline, sentence, short_time
from volbench.present.formatting import printable
from volbench.present.style import BLACK, DIRECTIONS, GREY, count_axis
from volbench.units import format_count

MOST = 4
"""Storms in one chart."""
WIDTHS_IN = {1: 10.0, 2: 13.0, 3: 16.0, 4: 19.0}
STACK_IN, APART_IN = 3.0, 1.9
STRIP_IN, STRIPS_LEAST_IN, STRIPS_MOST_IN = 0.13, 1.0, 6.0
STRIP_COLOURS = "Purples"
QUIET = "#f3f3f3"
"""Of a strip where its client did not run."""
NAMED = 50
"""Strips up to which each has its name."""
MOST_TICKS = 7
_STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
DEVICE_ROOM = 1.3
"""How far above its clients a device is drawn; beyond it is told in words."""
_DEVICE = {"color": BLACK, "linewidth": 0.9}


def draw(frames: Frames, title: str) -> Figure:
    """Draw a column for each storm: stacked on top, apart in the middle, clients below."""
    found = storms(frames)
    shown = found[:MOST]
    strips_in = STRIP_IN * max(len(storm.clients) for storm in shown)
    heights = [STACK_IN, APART_IN, min(max(strips_in, STRIPS_LEAST_IN), STRIPS_MOST_IN)]
    figure = new_figure(
        title=title,
        note=caption(frames["summary"], *_notes(found, len(shown))),
        height_in=2.1 + sum(heights),
        width_in=WIDTHS_IN[len(shown)],
    )
    grid = figure.subplots(3, len(shown), squeeze=False, height_ratios=heights, sharex="col")
    busiest = max(float(client.iops.max()) for storm in shown for client in storm.clients)
    scale = Normalize(0, busiest or 1.0)
    for storm, (stack, apart, strips) in zip(shown, grid.T, strict=True):
        _draw_stack(storm, stack)
        _draw_apart(storm, apart)
        _draw_strips(storm, strips, scale)
        _time_axis(storm, strips)
    _share_scales(shown, grid[0], grid[1])
    for storm, axes in zip(shown, grid[0], strict=True):
        _mark_limit(storm, axes)
    for row, name in zip(
        grid, ("IOPS, all clients", "Reads up, writes down", "Clients"), strict=True
    ):
        row[0].set_ylabel(name)
    figure.align_ylabels(grid[:, 0])
    bar = figure.colorbar(
        ScalarMappable(scale, STRIP_COLOURS), ax=grid[2, :], pad=0.01, aspect=25, fraction=0.03
    )
    bar.ax.set_xlabel("IOPS each", fontsize=8)
    bar.ax.xaxis.set_label_position("top")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    bar.outline.set_visible(False)
    figure.legend(
        handles=_handles(shown), loc="upper right", bbox_to_anchor=(0.995, 1), ncols=6, fontsize=8.5
    )
    return figure


def _notes(found: Sequence[Storm], shown: int) -> list[str]:
    """Return what must be known to read the panels."""
    notes = [
        f"Means of {INTERVAL_S:g} s",
        f"A client has settled when it stays below {100 * SETTLED:g} % of its own busiest interval",
    ]
    if untold := sum(len(storm.untold) for storm in found):
        notes.append(f"{untold} client{'s' * (untold > 1)} left no series and could not be drawn")
    if len(found) > shown:
        notes.append(f"{len(found) - shown} further storms are not shown")
    return notes


def _handles(shown: Sequence[Storm]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Patch(color=DIRECTIONS[way], label=f"{way}s") for way in ("read", "write")
    ]
    if any(storm.device for storm in shown):
        handles.append(Line2D([], [], **_DEVICE, label="the device itself"))  # type: ignore[arg-type]  # colour and width
    handles.append(
        Line2D([], [], color=BLACK, marker="|", linestyle="", markersize=7, label="a client starts")
    )
    if any(_settles_early(client) for storm in shown for client in storm.clients):
        handles.append(
            Line2D([], [], color=BLACK, marker="o", linestyle="", markersize=3, label="settled")
        )
    return handles


def _draw_stack(storm: Storm, axes: Axes) -> None:
    """Draw writes on reads, the device over them, each start, and the peak."""
    reads, total = storm.read_iops, storm.iops
    axes.stairs(reads, storm.edges_s, fill=True, color=DIRECTIONS["read"], alpha=0.85)
    axes.stairs(
        total, storm.edges_s, baseline=reads, fill=True, color=DIRECTIONS["write"], alpha=0.85
    )
    if storm.device:
        axes.stairs(_device(storm), storm.edges_s, baseline=None, **_DEVICE)  # type: ignore[arg-type]  # colour and width
    _head(storm, axes)
    axes.plot(
        [client.start_s for client in storm.clients],
        [-0.025] * len(storm.clients),
        color=BLACK,
        marker="|",
        markersize=6,
        markeredgewidth=0.8,
        linestyle="",
        transform=axes.get_xaxis_transform(),
        clip_on=False,
        label="starts",
    )
    axes.axvline(storm.last_start_s, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))
    late = storm.last_start_s > 0.85 * float(storm.edges_s[-1])
    axes.annotate(
        "last start",
        (storm.last_start_s, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-3 if late else 3, -2),
        textcoords="offset points",
        ha="right" if late else "left",
        va="top",
        fontsize=8,
        color=GREY,
    )
    _mark_peak(storm, axes)


def _mark_peak(storm: Storm, axes: Axes) -> None:
    """Point at the busiest interval; the words stand on the side where there is room."""
    late = storm.peak_s > 0.6 * float(storm.edges_s[-1])
    axes.annotate(
        f"peak {format_count(storm.peak_iops)}",
        (storm.peak_s, storm.peak_iops),
        xytext=(-14 if late else 14, 12),
        textcoords="offset points",
        ha="right" if late else "left",
        fontsize=9,
        fontweight="bold",
        arrowprops={"arrowstyle": "-", "linewidth": 0.9, "shrinkB": 2},
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
    )
    axes.plot([storm.peak_s], [storm.peak_iops], color=BLACK, marker="o", markersize=4)


def _draw_apart(storm: Storm, axes: Axes) -> None:
    """Draw reads above zero and writes below it, each with its own side of the device."""
    sides = (
        ("read", storm.read_iops, storm.device_read_iops, 1),
        ("write", storm.write_iops, storm.device_write_iops, -1),
    )
    for way, iops, device, side in sides:
        colour = DIRECTIONS[way]
        axes.stairs(side * iops, storm.edges_s, fill=True, color=colour, alpha=0.85)
        if storm.device:
            axes.stairs(side * device, storm.edges_s, baseline=None, **_DEVICE)  # type: ignore[arg-type]  # colour and width
    axes.axhline(0, color=GREY, linewidth=0.7)
    axes.axvline(storm.last_start_s, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))


def _draw_strips(storm: Storm, axes: Axes, scale: Normalize) -> None:
    """Draw a strip for each client, the first to start on top; it is grey where it did not run."""
    count = len(storm.clients)
    rates = np.array([_while_running(client, storm) for client in storm.clients])
    axes.set_facecolor(QUIET)
    axes.pcolormesh(
        storm.edges_s, np.arange(count + 1) - 0.5, rates, cmap=STRIP_COLOURS, norm=scale
    )
    axes.hlines(np.arange(1, count) - 0.5, 0, storm.edges_s[-1], color="white", linewidth=0.7)
    rows = np.arange(count)
    starts = [client.start_s for client in storm.clients]
    axes.vlines(starts, rows - 0.5, rows + 0.5, color=BLACK, linewidth=1.1, label="starts")
    early = [
        (client.settled_s, row)
        for row, client in enumerate(storm.clients)
        if _settles_early(client)
    ]
    if early:
        axes.plot(*zip(*early, strict=True), color=BLACK, marker="o", linestyle="", markersize=2.5)
    axes.set_ylim(count - 0.5, -0.5)
    step = 1 if count <= NAMED else -(-count // NAMED)
    names = [printable(client.name) for client in storm.clients[::step]]
    axes.set_yticks(rows[::step], names, fontsize=7 if count > 12 else 8)
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def _while_running(client: StormClient, storm: Storm) -> Floats:
    """Return a client's rates; NaN where it did not run."""
    quiet = (storm.edges_s[1:] <= client.start_s) | (storm.edges_s[:-1] >= client.end_s)
    return np.where(quiet, np.nan, client.iops)


def _settles_early(client: StormClient) -> bool:
    return client.settled_s < client.end_s - INTERVAL_S


def _time_axis(storm: Storm, axes: Axes) -> None:
    end_s = float(storm.edges_s[-1])
    axes.set_xlim(0, end_s)
    step_s = next((step for step in _STEPS_S if end_s / step <= MOST_TICKS), 86400)
    axes.xaxis.set_major_locator(MultipleLocator(step_s))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_time(value)))
    axes.set_xlabel("Time since the first client's first I/O")


def _share_scales(shown: Sequence[Storm], stacks: Sequence[Axes], aparts: Sequence[Axes]) -> None:
    """Give all columns one scale, so that storms can be compared by eye."""
    top = max(_most(storm.iops, _device(storm)) for storm in shown)
    reads = max(_most(storm.read_iops, storm.device_read_iops) for storm in shown)
    writes = max(_most(storm.write_iops, storm.device_write_iops) for storm in shown)
    for storm, axes in zip(shown, stacks, strict=True):
        _tell_beyond(storm, axes, top)
    for axes in stacks:
        axes.set_ylim(0, 1.18 * top or 1)
        count_axis(axes.yaxis)
    for axes in aparts:
        axes.set_ylim(-1.08 * writes or -1, 1.08 * reads or 1)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(abs(value))))


def _device(storm: Storm) -> Floats:
    return storm.device_read_iops + storm.device_write_iops


def _most(clients: Floats, device: Floats) -> float:
    """Return the top of a scale: the clients decide it, the device a little."""
    most = float(clients.max())
    return min(max(most, float(np.nanmax(np.append(device, 0.0)))), DEVICE_ROOM * most)


def _tell_beyond(storm: Storm, axes: Axes, top: float) -> None:
    """Tell in words what a device did far above its clients, whose lines it would flatten."""
    most = float(np.nanmax(np.append(_device(storm), 0.0)))
    if most > 1.18 * top:
        axes.annotate(
            f"device up to {format_count(most)}",
            (0, 1),
            xycoords="axes fraction",
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            fontsize=8,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        )


def _head(storm: Storm, axes: Axes) -> None:
    """Name a column in bold over its numbers, for which the title leaves a line."""
    numbers = headline(storm)
    axes.set_title(f" \n{numbers}", fontsize=9)
    lines_pt = 10.8 * (numbers.count("\n") + 1) + 6.5
    axes.annotate(
        wrap_name(printable(storm.campaign), columns=60).partition("\n")[0],
        (0, 1),
        xycoords=beside(axes, y_in=lines_pt / 72),
        fontsize=10,
        fontweight="bold",
        annotation_clip=False,
    )


def _mark_limit(storm: Storm, axes: Axes) -> None:
    """Draw the declared limit of the one volume that all clients share, where it fits."""
    top = axes.get_ylim()[1]
    if not 0 < storm.limit_iops <= top:
        return
    axes.axhline(storm.limit_iops, color=BLACK, linestyle=(0, (5, 3)), linewidth=1.2)
    axes.annotate(
        f"limit: {format_count(storm.limit_iops)}",
        (0, storm.limit_iops),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=8,
    )


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if reason := lack_of_runs(frames):
        return reason
    if storms(frames):
        return ""
    return "no job that several clients did side by side, with a series (--set clients=5)"


def describe(frames: Frames) -> str:
    """Return peak, its time, and how long clients were busy, one sentence for each storm."""
    return " ".join(sentence(storm) for storm in storms(frames))


STORM = Chart(
    name="storm",
    title="Storm: all clients on one clock",
    frame_names=("summary", "series", "device"),
    draw=draw,
    help="IOPS of all clients over time, stacked and apart, with each start and the peak.",
    lack=lack,
    describe=describe,
    needs="a job that several clients did side by side",
)
