"""Warm-up: Runs over fresh and over warm blocks enter, the curve with its numbers leaves.

IOPS and latency stand over the time; passes of a warm-up by extents stand over the volume.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from volbench.analyse.frames.job_frames import keep_extremes
from volbench.analyse.time.warmup_curve import Cost, Curve, Fill, Floats, cost_of, curves, fills
from volbench.present.figures.chart import Chart, Frames, caption, new_figure, wrap_name
from volbench.present.figures.limits import Limit, draw_along
from volbench.present.formatting import printable
from volbench.present.style import (
    BLACK,
    DIRECTIONS,
    GREY,
    count_axis,
    linear_latency_axis,
    rate_axis,
)
from volbench.units import format_count, format_duration, format_rate, format_size

PANEL_IN = 2.3
LATENCY_IN = 1.5
TIB = 1 << 40


def warmup_chart(
    *, size_bytes: float = TIB, price_per_hour: float = math.nan, currency: str = ""
) -> Chart:
    """Return the chart of warm-ups that tells what warming `size_bytes` takes and costs.

    Args:
        size_bytes: of the volume whose warming is told.
        price_per_hour: of volume and machine while it warms; NaN to tell hours alone.
        currency: such as ``USD``.
    """
    terms = partial(
        _cost_text, size_bytes=size_bytes, price_per_hour=price_per_hour, currency=currency
    )
    return Chart(
        name="warmup",
        title="Warming up",
        frame_names=("summary", "series"),
        draw=partial(_draw, tell_cost=terms),
        help="IOPS and latency from the first touch of a volume until it is warm.",
        lack=lack,
        describe=partial(_describe, tell_cost=terms),
        needs="a first Run that climbed or was repeated, or a warm-up in extents",
    )


def lack(frames: Frames) -> str:
    """Return why there is nothing to draw."""
    if curves(frames["summary"], frames["series"]) or _filled(frames):
        return ""
    return "no first Run on a fresh volume that climbed or was repeated, and no warm-up in extents"


def _filled(frames: Frames) -> tuple[Fill, ...]:
    """Return the passes that went over a volume in several extents."""
    return tuple(fill for fill in fills(frames["summary"]) if len(fill.runs) > 1)


def _draw(frames: Frames, title: str, *, tell_cost: partial[str]) -> Figure:
    """Draw two panels for each curve, and one for each pass over a volume in extents."""
    shown = curves(frames["summary"], frames["series"])
    filled = _filled(frames)
    heights = [PANEL_IN, LATENCY_IN] * len(shown) + [PANEL_IN] * len(filled)
    figure = new_figure(
        title=title,
        note=caption(frames["summary"], *_costs(shown, filled, tell_cost)),
        height_in=1.2 + sum(heights),
        width_in=10,
    )
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for curve, above, below in zip(shown, panels[::2], panels[1::2], strict=False):
        _draw_curve(curve, above, below)
    for fill, axes in zip(filled, panels[2 * len(shown) :], strict=True):
        _draw_fill(fill, axes, frames["summary"])
    return figure


def _draw_curve(curve: Curve, above: Axes, below: Axes) -> None:
    """Draw IOPS above and latency below, the second pass behind the first."""
    colour = DIRECTIONS.get(curve.direction, GREY)
    shift = float(curve.first.t_s[-1])
    for one, offset in ((curve.first, 0.0), (curve.second, shift)):
        if one is not None:
            _line(above, one.t_s + offset, one.iops, colour)
            _line(below, one.t_s + offset, one.lat_s, colour)
    end = shift + (0.0 if curve.second is None else float(curve.second.t_s[-1]))
    for axes in (above, below):
        axes.set_xlim(0, end)
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 3, 6, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _time(value)))
        if curve.second is not None:
            axes.axvline(shift, color=GREY, linewidth=0.8)
    _levels(curve, above, end=end)
    count_axis(above.yaxis)
    linear_latency_axis(below.yaxis)
    above.set_ylabel(f"{curve.direction}s per second")
    below.set_ylabel("Mean latency")
    below.set_xlabel("Time since the first touch")
    above.set_title(_heading(curve), fontsize=9)
    if curve.second is not None:
        _name_passes(below, first_share=shift / end)


def _line(axes: Axes, t_s: Floats, values: Floats, colour: str) -> None:
    x, y = keep_extremes(t_s, values)
    axes.plot(x, y, color=colour, linewidth=1.3)


def _name_passes(axes: Axes, *, first_share: float) -> None:
    for place, name in ((first_share / 2, "fresh blocks"), ((1 + first_share) / 2, "again, warm")):
        axes.annotate(
            name, (place, 0.86), xycoords="axes fraction", ha="center", color=GREY, fontsize=8
        )


def _levels(curve: Curve, axes: Axes, *, end: float) -> None:
    """Mark cold level, plateau, declared limit, and the times to 90 % and to steady."""
    axes.plot([0, end], [curve.cold_iops] * 2, color=GREY, linestyle=":", linewidth=1)
    axes.plot([0, end], [curve.warm_iops] * 2, color=GREY, linestyle=":", linewidth=1)
    for time_s, name in ((curve.to_90_s, "90 %"), (curve.to_steady_s, "steady")):
        if time_s:
            axes.axvline(time_s, color=BLACK, linewidth=0.8, linestyle=(0, (1, 2)))
            axes.annotate(
                name,
                (time_s, 0.12 if name == "90 %" else 0.24),
                xycoords=axes.get_xaxis_transform(),
                xytext=(3, 0),
                textcoords="offset points",
                fontsize=8,
            )
    if not math.isnan(curve.limit_iops):
        draw_along(
            axes, [Limit(curve.limit_iops, f"limit: {format_count(curve.limit_iops)}", (0,))]
        )


def _heading(curve: Curve) -> str:
    """Return the numbers of a curve in two lines."""
    name = f"{printable(curve.volume)}" + (f" on {curve.host}" if curve.host != "local" else "")
    return f"{wrap_name(name, columns=100)}\n{_numbers(curve)}"


def _numbers(curve: Curve) -> str:
    parts = [
        f"cold {format_count(curve.cold_iops)}",
        f"warm {format_count(curve.warm_iops)} IOPS",
        _penalty(curve),
    ]
    if curve.to_90_s is None:
        parts.append("90 % not reached")
    elif curve.penalty > 0.1:
        parts.append(f"90 % after {format_duration(curve.to_90_s)}")
    if curve.to_steady_s is None:
        parts.append("not steady by the end of the first pass")
    elif curve.to_steady_s > 0:
        parts.append(f"steady after {format_duration(curve.to_steady_s)}")
    if curve.at_limit:
        parts.append("at the declared limit")
    return ", ".join(parts)


def _penalty(curve: Curve) -> str:
    if curve.penalty < 0.1:
        return "no penalty for fresh blocks"
    return f"penalty {100 * curve.penalty:.3g} %"


def _draw_fill(fill: Fill, axes: Axes, summary: pd.DataFrame) -> None:
    """Draw the rate of each extent over the volume."""
    rows = summary[summary["run"].isin(fill.runs) & (summary["direction"] == fill.direction)]
    edges = np.concatenate([[0.0], np.cumsum(rows["io_bytes"].to_numpy(dtype=float))])
    rates = rows["bw_bytes_per_s"].to_numpy(dtype=float)
    axes.stairs(rates, edges, color=DIRECTIONS.get(fill.direction, GREY), linewidth=1.4)
    axes.set_xlim(0, float(edges[-1]))
    axes.set_ylim(0, float(rates.max()) * 1.1)
    rate_axis(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_size(value)))
    axes.set_xlabel(f"Place on {printable(fill.volume)}")
    axes.set_ylabel(f"{fill.direction.capitalize()} bandwidth")
    axes.set_title(f"{printable(fill.job)}\n{_fill_numbers(fill)}", fontsize=9)


def _fill_numbers(fill: Fill) -> str:
    return (
        f"{format_size(fill.moved_bytes)} in {format_duration(fill.seconds)}, "
        f"{format_rate(fill.bytes_per_s)}; slowest extent {format_rate(fill.slowest_bytes_per_s)}, "
        f"fastest {format_rate(fill.fastest_bytes_per_s)}"
    )


def _costs(
    shown: Sequence[Curve], filled: Sequence[Fill], tell_cost: partial[str]
) -> tuple[str, ...]:
    """Return what warming costs, at the rate of the passes if there are any, else of the curves."""
    measured: Sequence[Curve | Fill] = filled or shown
    told = (tell_cost(one.bytes_per_s, one.direction) for one in measured)
    return tuple(dict.fromkeys(text for text in told if text))


def _cost_text(
    bytes_per_s: float,
    direction: str,
    *,
    size_bytes: float,
    price_per_hour: float,
    currency: str,
) -> str:
    """Return hours and money of warming a volume, empty when the rate is unknown."""
    if not bytes_per_s > 0:
        return ""
    cost: Cost = cost_of(bytes_per_s, size_bytes=size_bytes, price_per_hour=price_per_hour)
    text = f"Warming {format_size(size_bytes)} by {direction}s takes about "
    text += f"{format_duration(cost.hours * 3600)} at the pace seen here"
    if not math.isnan(cost.money):
        text += f" and costs {cost.money:.2f} {currency}".rstrip()
    return text


def _describe(frames: Frames, *, tell_cost: partial[str]) -> str:
    """Return the numbers of every curve and pass."""
    shown, filled = curves(frames["summary"], frames["series"]), _filled(frames)
    sentences = [f"{curve.volume}: {_numbers(curve)}" for curve in shown]
    sentences += [f"{fill.volume}, {fill.job}: {_fill_numbers(fill)}" for fill in filled]
    return ". ".join([*sentences, *_costs(shown, filled, tell_cost)]) + "."


def _time(seconds: float) -> str:
    """Return a time short enough for a tick."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")


WARMUP = warmup_chart()
