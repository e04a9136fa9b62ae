"""Workloads over campaigns: a panel each, with control limits and changes of the level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import numpy as np
import pandas as pd

from volbench.analyse.compare.trend_result import State, Trend, Trends
from volbench.analyse.compare.workload_trends import FALSE_ALARMS, TrendQuestion, find_trends
from volbench.analyse.frames.job_frames import COLOUR
from volbench.analyse.frames.repeats import BY
from volbench.errors import ComparisonError
from volbench.present.formatting import printable
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot, Series, grid
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.metrics import only_last_named
from volbench.present.plots.selection import not_shown
from volbench.present.tables.compare_table import measure_name, trend_headline, trend_words

_LEAST_CAMPAIGNS = 3
_MOST_PANELS = 16
_PANEL_IN = 1.5
_DAY_S = 86400.0
_TICKS = 5
_FEW = 40  # Up to how many campaigns each has a marker


def read(frames: Frames, _: Options) -> Trends | str:
    """Return the trends of all workloads, or why there are none."""
    summary = frames["summary"].drop(columns=COLOUR, errors="ignore")
    if summary["campaign"].nunique() < _LEAST_CAMPAIGNS:
        return "fewer than three campaigns: name several folders, or a folder of campaigns"
    question = TrendQuestion(by=(BY,) if BY in summary else ())
    try:
        return find_trends(summary, frames["findings"], question)
    except ComparisonError as error:
        return error.message


def build(trends: Trends) -> Plot:
    """Draw a panel for each workload and metric, the worse ones first."""
    rows = _worst_first(trends.rows)
    starts = sorted({pair for t in rows for pair in zip(t.started_utc, t.campaigns, strict=True)})
    places = _places(starts)
    axis = _axis(starts, places)
    shown = rows[:_MOST_PANELS]
    every = pd.concat([_numbers(trend, places) for trend in rows], ignore_index=True)
    alarms = f"{100 * FALSE_ALARMS:g} %, over all panels together"
    panels = [replace(_panel(trend, places), x=axis) for trend in shown]
    abreast = min(2, len(panels))
    return replace(
        grid(only_last_named(panels, abreast=abreast), height_in=_PANEL_IN, abreast=abreast),
        width_in=11.0,
        series=(
            Series("value", "median of a campaign", "muted", "circle"),
            Series("level", "level", "palette-0"),
            Series("limits", "control limits", "palette-5"),
            Series("outside", "beyond a limit", "palette-1", "diamond"),
        ),
        caption=(
            trend_headline(trends).rstrip("."),
            "Grey: reference period",
            f"An unchanged campaign is beyond a limit on the worse side with at most {alarms}",
            not_shown(len(shown), len(rows), "panels", "those with the worst state"),
        ),
        rows=every,
        shared_x=True,
        name="trend",
    )


def trend_plot(trends: Trends, *, title: str = "") -> Plot:
    """Return the chart of trends under a title of its own."""
    return replace(build(trends), title=title or TREND.title, description=describe(trends))


def _worst_first(trends: Sequence[Trend]) -> list[Trend]:
    """Return trends by the worst state of their workload, its metrics beside each other."""
    order = list(State)
    worst: dict[tuple[str, ...], int] = {}
    for trend in trends:
        key = (trend.label, trend.direction, *trend.by.values())
        worst[key] = min(worst.get(key, len(order)), order.index(trend.state))
    return sorted(trends, key=lambda t: worst[t.label, t.direction, *t.by.values()])


def _places(starts: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return campaign to its place: days since the first, or its number where dates lack."""
    if not all(start for start, _ in starts):
        return {name: float(place) for place, (_, name) in enumerate(starts)}
    times = [datetime.fromisoformat(start).timestamp() / _DAY_S for start, _ in starts]
    return {name: time - times[0] for time, (_, name) in zip(times, starts, strict=True)}


def _axis(starts: Sequence[tuple[str, str]], places: dict[str, float]) -> Axis:
    """Return an axis with a few dates, or names of campaigns where these are not known."""
    last = max(places.values())
    wanted = np.linspace(0, last, min(_TICKS, len(starts)))
    near = [min(starts, key=lambda own: abs(places[own[1]] - at)) for at in wanted]
    chosen = list(dict.fromkeys(near))
    margin = 0.02 * (last or 1.0)
    return Axis(
        "Start of the campaign" if starts[0][0] else "Campaign",
        scale="category",
        limits=(-margin, last + margin),
        ticks=tuple(places[name] for _, name in chosen),
        categories=tuple(printable(start[:10] or name[-12:]) for start, name in chosen),
    )


def _numbers(trend: Trend, places: dict[str, float]) -> pd.DataFrame:
    """Return a row for each campaign: value, level and limits."""
    first = [0, *(change.place for change in trend.changes), len(trend.results)]
    levels = np.concatenate(
        [
            np.full(end - start, np.median(trend.results[start:end]))
            for start, end in pairwise(first)
        ]
    )
    behind = np.arange(len(trend.results)) >= trend.reference
    low, high = (trend.limits.low, trend.limits.high) if trend.limits else (np.nan, np.nan)
    outside = np.isin(np.arange(len(trend.results)), trend.outside)
    return pd.DataFrame(
        {
            "label": trend.label,
            "direction": trend.direction,
            **trend.by,
            "metric": trend.measure.column,
            "campaign": trend.campaigns,
            "started_utc": trend.started_utc,
            "value": trend.results,
            "level": levels,
            "limit_low": np.where(behind, low, np.nan),
            "limit_high": np.where(behind, high, np.nan),
            "is_outside": outside,
            "_x": [places[name] for name in trend.campaigns],
            "_level": np.searchsorted(first[1:-1], np.arange(len(trend.results)), side="right"),
        }
    )


def _panel(trend: Trend, places: dict[str, float]) -> Panel:
    data = _numbers(trend, places)
    band, outside = data[data["limit_low"].notna()], data[data["is_outside"]]
    known = np.concatenate([trend.results, band["limit_low"], band["limit_high"]])
    low, high = float(known.min()), float(known.max())
    margin = 0.08 * (high - low or high or 1.0)
    x = data["_x"]
    reference = marks.Span(float(x.iloc[0]), float(x.iloc[trend.reference - 1]), series="shade")
    size = 5.0 if len(data) <= _FEW else 2.5
    where = ", ".join(filter(None, [trend.direction, *trend.by.values()]))
    name = f"{trend.label} {where}, {measure_name(trend.measure)}"
    return Panel(
        x=Axis(),
        y=Axis(
            format=_format(trend),
            limits=(max(0.0, low - margin), high + margin),
        ),
        marks=(
            reference,
            marks.Areas(band, low="limit_low", high="limit_high", series="limits", alpha=0.25),
            *(
                marks.ReferenceLine(float(x.iloc[change.place]), "x", series="palette-1", width=0.9)
                for change in trend.changes
            ),
            marks.Lines(data, y="value", series="muted", width=0.5),
            marks.Points(data, y="value", series="value", size=size),
            marks.Lines(data, y="level", group="_level", series="level", width=1.6),
            marks.Points(outside, y="value", series="outside", size=6),
        ),
        title=labels.wrap_name(printable(f"{name}: {trend_words(trend)}"), columns=76),
    )


def _format(trend: Trend) -> str:
    if trend.measure.is_latency:
        return "latency"
    return "rate" if trend.measure.column.endswith("bytes_per_s") else "count"


def describe(trends: Trends) -> str:
    """Return how many workloads have which state, and the first of the worse ones."""
    bad = [trend for trend in trends.rows if trend.state.is_bad]
    worst = f" {bad[0].label} {bad[0].direction}: {trend_words(bad[0])}." if bad else ""
    return trend_headline(trends) + worst


TREND = Kind(
    name="trend",
    title="Workloads over campaigns",
    help="Each workload over the dates of campaigns, with control limits and changes of its level.",
    needs="several campaigns, at best nine or more",
    read=read,
    build=build,
    describe=describe,
    frame_names=("summary", "findings"),
)
