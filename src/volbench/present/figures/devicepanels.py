"""One panel of the device's view: Runs at their places enter, lines over a shared axis leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullLocator,
)

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.present.figures.devicespans import Place
from volbench.present.formatting import number
from volbench.present.style import BLACK, DIRECTIONS, GREY
from volbench.units import format_count, format_latency, format_rate, format_size

READ, WRITE = DIRECTIONS["read"], DIRECTIONS["write"]
ORANGE, GREEN, PINK = "#E69F00", "#009E73", "#CC79A7"
FIO_STYLE: Mapping[str, Any] = {"color": "#8c8c8c", "linewidth": 2.2, "zorder": 1.9}
BACKING_STYLE: Mapping[str, Any] = {"color": GREY, "linewidth": 0.7, "linestyle": (0, (1, 1))}
_TOWERING = 2.0
"""fio's figure is cut off when it is this much above the device: it is not what is looked at."""
_SPREAD = 8.0
"""From this ratio on a linear axis would hide the small values."""
_ALMOST_ZERO = 1e-12
"""Where areas begin: a logarithmic axis has no zero."""
_FAR = 4.0
"""A limit this much above the data would flatten it."""


@dataclass(frozen=True)
class Panel:
    """One quantity.

    Attributes:
        name: of the axis.
        columns: of the device frame, with the colour of each.
        format_value: of the axis.
        names: of the lines, where they are no reads and writes.
        overlay: column of the series, and of the backing disk, that is drawn over it.
        limit: column of the USE table with the declared limit.
        logarithm: base of the axis when values differ much; 0 for none.
        whole: the axis is a share of 100 %.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    format_value: Callable[[float], str]
    names: tuple[str, ...] = ()
    overlay: str = ""
    limit: str = ""
    logarithm: int = 0
    whole: bool = False


def _apart(column: str) -> tuple[tuple[str, str], ...]:
    return ((f"write_{column}", WRITE), (f"read_{column}", READ))


def _percent(value: float) -> str:
    return f"{value:g} %"


PANELS = (
    Panel(
        "Bandwidth",
        _apart("bw_bytes_per_s"),
        format_rate,
        overlay="bw_bytes_per_s",
        limit="limit_bw_bytes_per_s",
    ),
    Panel("IOPS", _apart("iops"), format_count, overlay="iops", limit="limit_iops"),
    Panel(
        "Active time",
        (("active_percent", GREEN),),
        _percent,
        overlay="active_percent",
        whole=True,
    ),
    Panel(
        "CPU waiting",
        (("iowait_percent", ORANGE), ("steal_percent", PINK)),
        _percent,
        names=("iowait", "steal"),
    ),
    Panel("Latency", _apart("lat_s"), format_latency, logarithm=10),
    Panel("Request size", _apart("request_bytes"), format_size, logarithm=2),
    Panel(
        "Dirty pages",
        (("dirty_bytes", ORANGE), ("writeback_bytes", BLACK)),
        lambda value: format_rate(value).removesuffix("/s"),
        names=("dirty", "in write-back"),
    ),
    Panel("Queue depth", (("queue_depth", GREEN),), format_count, logarithm=1),
)
"""From top to bottom."""


def draw_panel(axes: Axes, panel: Panel, places: Sequence[Place]) -> None:
    """Draw one quantity of Runs at their places."""
    for place in places:
        for column, colour in _told(panel, place):
            _steps(axes, place, place.span.own, column, {"color": colour, "linewidth": 1.1})
        for rates, style in ((place.span.backing, BACKING_STYLE), (place.span.fio, FIO_STYLE)):
            if panel.overlay and rates is not None and panel.overlay in rates:
                _steps(axes, place, rates, panel.overlay, style, is_filled=False)
    seen, by_fio = _seen(panel, places), _by_fio(panel, places)
    if seen or by_fio:
        _scale(axes, panel, seen or by_fio, top=_top(panel, places, seen=seen, by_fio=by_fio))
    else:
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        axes.annotate("not told", (0.5, 0.5), xycoords="axes fraction", ha="center", color=GREY)
    name = panel.name + "\n(log scale)" * (axes.get_yscale() != "linear")
    axes.set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
    _draw_limits(axes, panel, places)
    _tell_towering(axes, panel, places)
    if panel.names:
        _name_lines(axes, panel)


def _told(panel: Panel, place: Place) -> list[tuple[str, str]]:
    """Return the columns with something to draw; reads of a Run that only writes have nothing."""
    own = place.span.own
    told = [(name, colour) for name, colour in panel.columns if own[name].notna().any()]
    moving = [(name, colour) for name, colour in told if own[name].max() > 0]
    return told if panel.names else moving or told[:1]


def _steps(
    axes: Axes,
    place: Place,
    rows: pd.DataFrame,
    column: str,
    style: Mapping[str, Any],
    *,
    is_filled: bool = True,
) -> None:
    """Draw means as steps, each over its own interval; what was not told is a gap."""
    t_s, values = keep_extremes(
        rows["t_s"].to_numpy(dtype=float), rows[column].to_numpy(dtype=float)
    )
    if not len(t_s):
        return
    begin = (
        max(0.0, float(t_s[0]) - float(rows["interval_s"].iloc[0])) if "interval_s" in rows else 0.0
    )
    x = place.at(0) + np.concatenate([[begin], t_s]) * place.per_s
    y = np.concatenate([values[:1], values])
    axes.plot(x, y, drawstyle="steps-pre", label=column, **style)
    if is_filled:
        axes.stairs(
            values,
            x,
            baseline=_ALMOST_ZERO,
            fill=True,
            color=style["color"],
            alpha=0.13,
            linewidth=0,
        )


def _seen(panel: Panel, places: Sequence[Place]) -> list[float]:
    """Return every value that the host told."""
    parts = [place.span.own[name].dropna() for place in places for name, _ in panel.columns]
    return [float(value) for part in parts for value in part]


def _by_fio(panel: Panel, places: Sequence[Place]) -> list[float]:
    """Return every value that the tool told of the same."""
    return [value for place in places for value in _rates(panel, place)]


def _rates(panel: Panel, place: Place) -> list[float]:
    """Return the tool's own rates; of a Run too short for a series, its mean."""
    rates, use = place.span.fio, place.span.use
    if rates is not None and panel.overlay in rates:
        return [float(value) for value in rates[panel.overlay].dropna()]
    told = number(use, "tool_bytes"), number(use, "runtime_s")
    if panel.overlay == "bw_bytes_per_s" and told[0] > 0 and told[1] > 0:
        return [told[0] / told[1]]
    return []


def _top(
    panel: Panel, places: Sequence[Place], *, seen: Sequence[float], by_fio: Sequence[float]
) -> float:
    """Return the end of the axis: the device's data, limits that are near, and fio's if it fits."""
    top = max(seen, default=0.0) or max(by_fio, default=0.0)
    limits = [one for one in _limits(panel, places) if one <= _FAR * top]
    top = max([top, *limits])
    fitting = [one for one in by_fio if one <= _TOWERING * top]
    room = 1.12 if len(fitting) == len(by_fio) else 1.4  # for the words that tell the others
    return room * max([top, *fitting]) or 1.0


def _scale(axes: Axes, panel: Panel, values: Sequence[float], *, top: float) -> None:
    """Set the scale and its ticks: from zero, or logarithmic where values differ much."""
    lows = [value for value in values if value > 0]
    low, high = min(lows, default=1.0), max(lows, default=1.0)
    if panel.whole:
        axes.set_ylim(0, 108)
        axes.set_yticks([0, 50, 100])
    elif panel.logarithm == 1 and high > _SPREAD:
        axes.set_yscale("symlog", linthresh=1, base=4, linscale=0.5)
        axes.set_ylim(0, 1.5 * high)
        axes.yaxis.set_major_locator(FixedLocator([0, *_powers(4, 1, high)]))
    elif panel.logarithm > 1 and high / low > _SPREAD:
        axes.set_yscale("log", base=panel.logarithm)
        axes.set_ylim(low / 1.6, high * 1.6)
        if panel.logarithm == 2:
            axes.yaxis.set_major_locator(FixedLocator(_powers(4, 1024, high)))
        else:
            axes.yaxis.set_major_locator(LogLocator(base=10, numticks=6))
    else:
        axes.set_ylim(0, top)
        step = 2.0 ** math.floor(math.log2(top / 2))
        axes.yaxis.set_major_locator(
            MultipleLocator(step)
            if panel.logarithm == 2
            else MaxNLocator(nbins=3, steps=[1, 2, 2.5, 5, 10])
        )
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: panel.format_value(value)))


def _powers(base: int, first: int, end: float) -> list[float]:
    """Return powers up to an end, at most five of them."""
    count = max(1, math.ceil(math.log(end / first, base)) + 1)
    powers = [float(first) * base**exponent for exponent in range(count)]
    return powers[:: 1 + count // 6]


def _limits(panel: Panel, places: Sequence[Place]) -> list[float]:
    """Return the declared limits of Runs, NaN left out."""
    if not panel.limit:
        return []
    values = [number(place.span.use, panel.limit) for place in places]
    return [value for value in values if not math.isnan(value)]


def _draw_limits(axes: Axes, panel: Panel, places: Sequence[Place]) -> None:
    """Draw each Run's own limit along it, and name each limit once."""
    top = axes.get_ylim()[1]
    limits = _limits(panel, places)
    for place in places:
        limit = number(place.span.use, panel.limit) if panel.limit else math.nan
        if limit <= top:
            axes.plot(
                [place.left, place.right],
                [limit] * 2,
                color=BLACK,
                linestyle=(0, (5, 3)),
                linewidth=1.0,
                label="limit",
            )
    above = sorted({limit for limit in limits if limit > top})
    told = {limit: panel.format_value(limit) for limit in limits if limit <= top}
    if above:
        told[top] = f"{', '.join(map(panel.format_value, above))}\n(above)"
    for value, name in told.items():
        axes.annotate(
            f"limit\n{name}",
            (1, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            va="top" if value == top else "center",
            fontsize=7.5,
            annotation_clip=False,
        )


def _tell_towering(axes: Axes, panel: Panel, places: Sequence[Place]) -> None:
    """Tell fio's figure where it is too far above the device to be drawn."""
    top = axes.get_ylim()[1]
    for place in places:
        highest = max(_rates(panel, place), default=0.0)
        if highest > top:
            axes.annotate(
                f"fio {panel.format_value(highest)}",
                (place.left, top),
                xytext=(3, -2),
                textcoords="offset points",
                va="top",
                fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )


def _name_lines(axes: Axes, panel: Panel) -> None:
    """Name lines that are no reads and writes, outside at the right."""
    pairs = zip(panel.names, panel.columns, strict=True)
    handles = [Line2D([], [], color=colour, label=name) for name, (_, colour) in pairs]
    axes.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
        borderaxespad=0.2,
        handlelength=1.2,
        fontsize=7.5,
    )
