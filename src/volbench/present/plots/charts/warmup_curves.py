"""Warm-up: IOPS and latency from the first touch of a volume, and passes over its extents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from volbench.analyse.time.warmup_curve import Curve, Fill, curves, fills
from volbench.present.formatting import printable, short_target
from volbench.present.plots import marks
from volbench.present.plots.description import Axis, Panel, Plot, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.labels import DIRECTIONS, wrap_name
from volbench.present.plots.metrics import BANDWIDTH, MEAN_LATENCY, Limit, limits_along, time_axis
from volbench.present.plots.selection import not_shown
from volbench.units import format_count, format_duration, format_rate, format_size

_PANEL_IN = 1.7
_LATENCY_IN = 1.1
# Penalty of fresh blocks below which there is none to speak of: rates vary by as much between
# minutes. A trade-off. Noticed by: tests/present/report/test_lead_charts.py
MIN_PENALTY = 0.1
_NEAR = 0.12  # Share of a pass up to which two times share a name, and from which it has no room
_HIGH, _BELOW_CURVE = 0.86, 0.45  # Heights of the names of passes in a panel
_MAX_CURVES = 4  # Volumes, and passes over a volume, in one chart


@dataclass(frozen=True)
class _WarmUps:
    """Data of the chart."""

    curves: Sequence[Curve]  # first runs over fresh volumes
    passes: Sequence[Fill]  # that went over a volume in several extents
    summary: pd.DataFrame  # of the runs
    paces: tuple[str, ...]  # estimated time of warming a volume as passes did, a sentence each
    fewer: tuple[str, ...] = ()  # sentences about curves and passes that are not shown


def read(frames: Frames, _: Options) -> _WarmUps | str:
    """Return the curves and passes of the campaign."""
    summary = frames["summary"]
    climbs = curves(summary, frames["series"], frames.get("verdicts"))
    drawn = climbs[:_MAX_CURVES]
    measures = bool((summary["phase"] == "measured").any())
    several = [fill for fill in fills(summary) if len(fill.runs) > 1 or not measures]
    passes = several[:_MAX_CURVES]
    if not climbs and not passes:
        return "no first run on a fresh volume that climbed or was repeated, no warm-up in extents"
    # Small random I/O, as of most curves, is far slower than a warm-up.
    texts = [_pace_text(fill.bytes_per_s, fill.direction) for fill in passes]
    notes = (
        not_shown(len(drawn), len(climbs), "volumes"),
        not_shown(len(passes), len(several), "passes"),
    )
    return _WarmUps(drawn, passes, summary, tuple(dict.fromkeys(filter(None, texts))), notes)


def build(warm_ups: _WarmUps) -> Plot:
    """Draw two panels for each curve, and one for each pass over a volume in extents."""
    parts = [_curve(curve) for curve in warm_ups.curves]
    panels = [*chain(*parts), *(_pass(fill, warm_ups.summary) for fill in warm_ups.passes)]
    tall_and_low = [(_PANEL_IN, _LATENCY_IN)[: len(part)] for part in parts]
    heights = (*chain(*tall_and_low), *(_PANEL_IN for _ in warm_ups.passes))
    return replace(
        grid(panels, height_in=_PANEL_IN),
        heights=heights,
        width_in=10,
        caption=warm_ups.fewer,
        has_legend=False,
    )


def _curve(curve: Curve) -> list[Panel]:
    """Draw IOPS above and latency below, if it was logged, the second pass behind the first."""
    data = _points(curve)
    shift = float(curve.first.t_s[-1])
    end = float(data["t_s"].max())
    colour = curve.direction if curve.direction in DIRECTIONS else "muted"
    between: list[marks.AnyMark] = []
    if curve.second is not None:
        between = [marks.ReferenceLine(shift, "x", series="muted", dash="solid", width=0.8)]
    label = "Time since the first touch" if curve.is_fresh else "Time in both runs"
    has_latency = bool(data["lat_mean_s"].notna().any())
    height = _HIGH if has_latency else _BELOW_CURVE
    names = _pass_names(shift, curve, height) if curve.second is not None else []
    limits, top = _limit(curve, 1.1 * float(data["iops"].max()))
    place = "" if curve.host == "local" else f" on {curve.host}"
    name = wrap_name(printable(short_target(curve.volume)) + place, columns=100)
    above = Panel(
        x=time_axis(end, label="" if has_latency else label),
        y=Axis(f"{curve.direction.capitalize()} IOPS", "count", limits=(0.0, top or 1.0)),
        marks=(
            *between,
            *_levels(curve),
            marks.Lines(data, y="iops", group="pass", width=1.3, series=colour),
            *limits,
            *([] if has_latency else names),
        ),
        title=f"{name}\n{_numbers(curve)}",
    )
    if not has_latency:
        return [above]
    below = Panel(
        x=time_axis(end, label=label),
        y=MEAN_LATENCY.axis(1.1 * float(np.nanmax(np.append(data["lat_mean_s"], 0.0)))),
        marks=(
            *between,
            marks.Lines(data, y="lat_mean_s", group="pass", width=1.3, series=colour),
            *names,
        ),
    )
    return [above, below]


def _points(curve: Curve) -> pd.DataFrame:
    parts, shift = [], 0.0
    for name, points in (("first", curve.first), ("second", curve.second)):
        if points is not None:
            parts.append(
                pd.DataFrame(
                    {
                        "host": curve.host,
                        "volume": curve.volume,
                        "direction": curve.direction,
                        "pass": name,
                        "t_s": points.t_s + shift,
                        "iops": points.iops,
                        "lat_mean_s": points.lat_s,
                        # The middle of an interval, where `time_to_level` has its rate
                        "_x": points.t_s + shift - np.median(np.diff(points.t_s)) / 2,
                    }
                )
            )
            shift = float(points.t_s[-1])
    return pd.concat(parts, ignore_index=True)


def _pass_names(shift_s: float, curve: Curve, height: float) -> list[marks.AnyMark]:
    names = ("fresh blocks", "again, warm") if curve.is_fresh else ("first run", "later run")
    before, behind = (
        marks.Texts(
            marks.text_at(shift_s, height, name),
            y_in="panel",
            offset_pt=(way, 0),
            series="muted",
            is_boxed=True,
        )
        for name, way in zip(names, (-5, 5), strict=True)
    )
    return [replace(before, align="right"), behind]


def _levels(curve: Curve) -> list[marks.AnyMark]:
    levels = {curve.cold_iops: "cold"}
    levels[curve.warm_iops] = "cold, warm" if curve.warm_iops in levels else "warm"
    parts: list[marks.AnyMark] = [
        marks.ReferenceLine(level, "y", name, series="muted", dash="dotted", width=1.0)
        for level, name in levels.items()
    ]
    end_s = float(curve.first.t_s[-1])
    times = [(curve.to_90_s, "90 %"), (curve.to_steady_s, "steady")]
    known = [(time_s, name) for time_s, name in times if time_s]
    parts += [marks.ReferenceLine(time_s, "x", dash="dotted", width=0.8) for time_s, _ in known]
    if len(known) > 1 and abs(known[0][0] - known[1][0]) < _NEAR * end_s:
        known = [(max(known)[0], ", ".join(name for _, name in known))]
    for number, (time_s, name) in enumerate(known):
        is_late = time_s > (1 - _NEAR) * end_s
        parts.append(
            marks.Texts(
                marks.text_at(time_s, 0.12 + 0.14 * number + 0.5 * is_late, name),
                y_in="panel",
                offset_pt=(-4 if is_late else 4, 0),
                align="right" if is_late else "left",
                is_boxed=True,
            )
        )
    return parts


def _limit(curve: Curve, top: float) -> tuple[list[marks.ReferenceLine], float]:
    if math.isnan(curve.limit_iops):
        return [], top
    name = f"limit: {format_count(curve.limit_iops)}"
    return limits_along([Limit(curve.limit_iops, name, (0,))], top=top)


def _numbers(curve: Curve) -> str:
    is_slow = curve.penalty >= MIN_PENALTY
    parts = [
        f"cold {format_count(curve.cold_iops)}",
        f"warm {format_count(curve.warm_iops)} IOPS",
        f"penalty {100 * curve.penalty:.3g} %" if is_slow else "no penalty for fresh blocks",
    ]
    near = "" if curve.to_90_s is None else format_duration(curve.to_90_s)
    steady = "" if curve.to_steady_s is None else format_duration(curve.to_steady_s)
    if near == steady and curve.to_steady_s:
        parts.append(f"90 % and steady after {steady}")
    else:
        if not near:
            parts.append("90 % not reached")
        elif curve.penalty > MIN_PENALTY:
            parts.append(f"90 % after {near}")
        if not steady:
            parts.append("not steady by the end of the first pass")
        elif curve.to_steady_s:
            parts.append(f"steady after {steady}")
    if curve.at_limit:
        parts.append("at the declared limit")
    if not curve.is_fresh:
        parts.append("fresh: not known")
    if left_out := sum(part.left_out for part in (curve.first, curve.second) if part):
        intervals = "1 interval" if left_out == 1 else f"{left_out} intervals"
        parts.append(f"{intervals} omitted: not all jobs were running")
    return ", ".join(parts)


def _pass(fill: Fill, summary: pd.DataFrame) -> Panel:
    rows = summary[summary["run"].isin(fill.runs) & (summary["direction"] == fill.direction)]
    edges = np.concatenate([[0.0], np.cumsum(rows["io_bytes"].to_numpy(dtype=float))])
    rates = rows["bw_bytes_per_s"].to_numpy(dtype=float)
    data = pd.DataFrame(
        {
            "host": fill.host,
            "volume": fill.volume,
            "job": fill.job,
            "direction": fill.direction,
            "offset_bytes": edges,
            "bw_bytes_per_s": np.append(rates, rates[-1:]),
        }
    )
    line = marks.Lines(
        data,
        x="offset_bytes",
        y="bw_bytes_per_s",
        step="post",
        series=fill.direction if fill.direction in DIRECTIONS else "muted",
    )
    label = f"{fill.direction.capitalize()} bandwidth"
    return Panel(
        x=Axis(
            f"Bytes moved so far, {printable(short_target(fill.volume))}",
            "size",
            limits=(0.0, float(edges[-1])),
            ticks=(*range(0, int(edges[-1]) + 1, 1 << int(edges[-1] / 5).bit_length()),),
        ),
        y=BANDWIDTH.axis(1.1 * float(rates.max()), label=label),
        marks=(line,),
        title=f"{printable(fill.job)}\n{_pass_numbers(fill)}",
    )


def _pass_numbers(fill: Fill) -> str:
    whole = (
        f"{format_size(fill.moved_bytes)} in {format_duration(fill.seconds)}, "
        f"{format_rate(fill.bytes_per_s)}"
    )
    if len(fill.runs) == 1:
        return f"{whole} in one extent: how the rate changed on the way is unknown"
    return (
        f"{whole}; slowest extent {format_rate(fill.slowest_bytes_per_s)}, "
        f"fastest {format_rate(fill.fastest_bytes_per_s)}"
    )


def _pace_text(bytes_per_s: float, direction: str) -> str:
    if not bytes_per_s > 0:
        return ""
    duration = format_duration((1 << 40) / bytes_per_s)
    return f"Warming 1t by {direction}s takes about {duration} at the measured pace"


def describe(warm_ups: _WarmUps) -> str:
    """Return the numbers of every curve and pass."""
    sentences = [f"{short_target(curve.volume)}: {_numbers(curve)}" for curve in warm_ups.curves]
    sentences += [
        f"{short_target(fill.volume)}, {fill.job}: {_pass_numbers(fill)}"
        for fill in warm_ups.passes
    ]
    return ". ".join([*sentences, *warm_ups.paces]) + "."


WARMUP = Kind(
    name="warmup",
    title="Warm-up",
    frame_names=("summary", "series", "verdicts"),
    help="IOPS and latency from the first touch of a volume until it is warm.",
    needs="a first run that climbed or was repeated, or a warm-up in extents",
    read=read,
    build=build,
    describe=describe,
    concludes=True,
    needs_results=False,
)
