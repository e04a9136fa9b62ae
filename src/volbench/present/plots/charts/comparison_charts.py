"""Charts of comparisons: ratios with intervals (forest plot), and workloads over campaigns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from textwrap import fill

import numpy as np
import pandas as pd

from volbench.analyse.compare.comparison import Comparison, headlines
from volbench.analyse.compare.comparison_result import Compared, Verdict
from volbench.analyse.compare.workload_trends import (
    State,
    Trend,
    TrendQuestion,
    Trends,
    find_trends,
)
from volbench.analyse.frames.job_frames import BY, COLOUR, COLOUR_PLACE
from volbench.errors import ComparisonError
from volbench.present.formatting import printable, short_target
from volbench.present.plots import marks
from volbench.present.plots.description import MAX_WIDTH_IN, Axis, Panel, Plot, Series, grid
from volbench.present.plots.kinds import Frames, Kind, Options
from volbench.present.plots.labels import rows_height_in, wrap_name
from volbench.present.plots.metrics import rows_axis
from volbench.present.plots.selection import not_shown
from volbench.present.tables.compare_table import (
    false_alarm_words,
    measure_name,
    notes,
    shown_value,
    trend_headline,
    trend_words,
)

_VERDICTS = (
    Series(Verdict.FASTER, "faster", "palette-0"),
    Series(Verdict.SLOWER, "slower", "palette-1"),
    Series(Verdict.SAME, "same within the tolerance", "palette-2", "square"),
    Series(Verdict.NOT_SHOWN, Verdict.NOT_SHOWN.value, "muted", "circle"),
    Series(Verdict.TOO_MANY, Verdict.TOO_MANY.value, "muted", "cross"),
    Series(Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE.value, "muted", "cross"),
    Series(Verdict.TOO_FEW, Verdict.TOO_FEW.value, "muted", "diamond"),
    Series(Verdict.ASKED, "as asked of fio", "muted", "square"),
)
# Markers of faster and slower point towards the estimate, so that greyscale prints show it
_SIDES = (Series("above", "", "ink", "right"), Series("below", "", "ink", "left"))
_OPEN = {
    Verdict.NOT_SHOWN,
    Verdict.TOO_MANY,
    Verdict.INCONCLUSIVE,
    Verdict.ASKED,
}  # The ratio of a row may be chance
_MAX_ABREAST = 3
_MAX_COLUMNS = 4  # Candidates that have a column of panels each
# Rows of a forest that can be read; the table has all. Noticed by: test_compare.py
MAX_FOREST_ROWS = 30
_ROW_IN = 0.46  # Minimum height of a row: its ratio stands above its point
# Minimum span of a panel, so that noise does not look like a difference
_MIN_SPAN = math.log(1.05)
_EVEN_STEPS_SPAN = math.log(3)  # Above it, even steps crowd at one end of a logarithmic axis
_MIN_CAMPAIGNS = 3
_MAX_PANELS = 12
_PANEL_IN = 1.5
_DAY_S = 86400.0
_TICKS = 5
_MARGIN = 0.02  # Beside the first and the last campaign, as a share of the time between them
# Span of a scale at least, as a share of the values: noise of 2 % looks like none
_MIN_ROOM = 0.3
_WIDE = 2.0  # Ratio of a span to the usual one, beyond which a panel has its own
_OWN_SCALES = "Scales begin above zero and span the same share of each panel's values"
_FEW = 40  # Up to how many campaigns each has a marker


def forest_plot(comparison: Comparison, *, title: str = "") -> Plot:
    """Return the ratio of each comparison, of at least one, with its interval; 1 is the base."""
    rows: Sequence[Compared] = comparison.rows
    names = list(dict.fromkeys(_name(row, rows) for row in rows))
    fewer = []
    if len(names) > MAX_FOREST_ROWS:
        fewer = [f"Shown: the {MAX_FOREST_ROWS} surest differences of {len(names)} workloads"]
        rows = _surest(rows)
        names = list(dict.fromkeys(_name(row, rows) for row in rows))
    data = _data(rows, names)
    wrapped = [wrap_name(printable(name)) for name in names]
    firsts = {measure_name(row.measure): row for row in reversed(rows)}
    metrics = [*dict.fromkeys(data["_metric"])]
    columns = _columns_of_candidates(rows)
    panels = []
    for metric, candidates in itertools.product(metrics, columns):
        of_metric = data[data["_metric"] == metric]
        drawn = of_metric[of_metric["candidate"].isin(candidates)]
        ends = _axis_limits(of_metric, firsts[metric].tolerance or 0)
        name = f"{metric}, {short_target(candidates[0])}" if len(columns) > 1 else metric
        panel = _panel(drawn, firsts[metric], ends)
        panels.append(replace(panel, y=rows_axis(wrapped), title=printable(name)))
    abreast = len(panels) if len(panels) <= _MAX_COLUMNS else max(len(columns), _MAX_ABREAST)
    height_in = max(rows_height_in(wrapped), _ROW_IN * len(wrapped))
    remarks = (*fewer, *notes(comparison)[1:3], *comparison.remarks[:3])
    return replace(
        grid(panels, height_in=height_in + 0.2, abreast=abreast),
        series=(*(s for s in _VERDICTS if s.key in set(data["_verdict"])), *_SIDES),
        caption=tuple(text.rstrip(".") for text in remarks),
        width_in=MAX_WIDTH_IN if abreast > _MAX_ABREAST else 9.0,
        shared_y=True,
        name="compare",
        title=title or _title(rows),
        answer=" ".join(headlines(comparison)),
    )


def _columns_of_candidates(rows: Sequence[Compared]) -> list[list[str]]:
    """Return the candidates of each column of panels: a few have one each, many share one."""
    candidates = list(dict.fromkeys(row.candidate for row in rows))
    several = 1 < len(candidates) <= _MAX_COLUMNS
    return [[candidate] for candidate in candidates] if several else [candidates]


def _surest(rows: Sequence[Compared]) -> list[Compared]:
    """Return the comparisons of the workloads whose interval on any metric is farthest from 1."""
    distance: dict[str, tuple[float, float]] = {}
    for row in rows:
        name, ends = _name(row, rows), row.interval
        sure = max(math.log(ends.low), -math.log(ends.high)) if ends else -math.inf
        far = 0.0 if math.isnan(row.ratio) else abs(math.log(row.ratio))
        distance[name] = max((sure, far), distance.get(name, (-math.inf, 0.0)))
    kept = {*sorted(distance, key=lambda name: distance[name])[-MAX_FOREST_ROWS:]}
    return [row for row in rows if _name(row, rows) in kept]


def _data(rows: Sequence[Compared], names: Sequence[str]) -> pd.DataFrame:
    """Return a row per comparison: estimate and ends of the ratio, or why there is none."""
    intervals = [row.interval for row in rows]
    return pd.DataFrame(
        {
            "label": [row.label for row in rows],
            "candidate": [row.candidate for row in rows],
            "ratio": [row.ratio for row in rows],
            "ratio_low": [interval.low if interval else math.nan for interval in intervals],
            "ratio_high": [interval.high if interval else math.nan for interval in intervals],
            "verdict": [row.verdict.value for row in rows],
            "_metric": [measure_name(row.measure) for row in rows],
            "_verdict": ["" if math.isnan(row.ratio) else row.verdict for row in rows],
            "_shape": [_shape(row) for row in rows],
            "_row": [names.index(_name(row, rows)) for row in rows],
            "_x": [1.0 if math.isnan(row.ratio) else row.ratio for row in rows],
            "_text": [_text(row) for row in rows],
        }
    )


def _shape(row: Compared) -> str:
    if row.verdict not in {Verdict.FASTER, Verdict.SLOWER}:
        return str(row.verdict)
    return "above" if row.ratio > 1 else "below"


def _text(row: Compared) -> str:
    """Return the ratio, or why there is none; nothing for a difference that may be chance."""
    if math.isnan(row.ratio):
        return row.words
    return f"{row.ratio:.3g}x" if row.verdict not in _OPEN else ""


def _panel(data: pd.DataFrame, first: Compared, ends: tuple[float, float]) -> Panel:
    """Draw the rows of one metric, of which `first` has direction and tolerance."""
    tolerance = first.tolerance
    known, unknown = data[data["ratio"].notna()], data[data["ratio"].isna()]
    judged = data[data["ratio_low"].notna()]
    better = "better \u2192" if first.measure.more_is_better else "\u2190 better"
    tolerated = (
        () if tolerance is None else (marks.Span(1 - tolerance, 1 + tolerance, series="pale"),)
    )
    return Panel(
        x=Axis(
            f"ratio, {better}",
            scale="log",
            limits=(math.exp(ends[0]), math.exp(ends[1])),
            ticks=tuple(_ticks(*ends)),
        ),
        y=Axis(),
        marks=(
            *tolerated,
            marks.ReferenceLine(1.0, "x", dash="solid", width=0.9),
            marks.Whiskers(
                judged, by="_verdict", low="ratio_low", high="ratio_high", width=2.2, has_caps=False
            ),
            marks.Points(known, by="_verdict", marker_of="_shape", x="ratio", y="_row", size=7),
            marks.Texts(
                known, by="_verdict", y="_row", offset_pt=(0, 6), align="center", valign="bottom"
            ),
            marks.Texts(
                unknown, series="muted", y="_row", align="center", is_italic=True, is_boxed=True
            ),
        ),
    )


def _axis_limits(known: pd.DataFrame, tolerance: float) -> tuple[float, float]:
    """Return the logarithms of the ends of an axis that shows every interval and 1."""
    names = ("ratio", "ratio_low", "ratio_high")
    ends = [math.log(end) for name in names for end in known[name].dropna()]
    low = min([*ends, -_MIN_SPAN, math.log(1 - tolerance)])
    high = max([*ends, _MIN_SPAN, math.log(1 + tolerance)])
    margin = 0.08 * (high - low)
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Return up to seven round ratios between two logarithms, 1 among them."""
    steps = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if high - low < _EVEN_STEPS_SPAN else ()
    for step in steps:
        ticks = [1 + step * place for place in range(-199, 2000)]
        visible = [tick for tick in ticks if tick > 0 and low <= math.log(tick) <= high]
        if len(visible) <= 6:
            return visible
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        powers = [m * 10.0**exponent for exponent in range(-6, 7) for m in digits]
        visible = [tick for tick in powers if low <= math.log(tick) <= high]
        if len(visible) >= 3:
            return visible
    return visible


def _name(row: Compared, rows: Sequence[Compared]) -> str:
    parts = [row.label, *row.by.values()]
    if len({other.candidate for other in rows}) > _MAX_COLUMNS:
        parts.append(f"({row.candidate})")
    return " ".join(parts)


def _title(rows: Sequence[Compared]) -> str:
    candidates = list(dict.fromkeys(row.candidate for row in rows))
    names = candidates[0] if len(candidates) == 1 else f"{len(candidates)} candidates"
    return f"{names} against {rows[0].base}"


def read_trends(frames: Frames, options: Options) -> Trends | str:
    """Return the trends of all workloads, or why there are none."""
    summary = frames["summary"].drop(columns=[COLOUR, COLOUR_PLACE], errors="ignore")
    if summary["campaign"].nunique() < _MIN_CAMPAIGNS:
        return "fewer than three campaigns: name several folders, or a folder of campaigns"
    # Campaigns that a chart tells apart by default are what a trend follows
    is_split = BY in summary and not summary[BY].astype(str).eq(summary["campaign"]).all()
    question = TrendQuestion(by=(BY,) if is_split else ())
    summary = summary if is_split else summary.drop(columns=BY, errors="ignore")
    try:
        return find_trends(
            summary, frames["findings"], question, facts=options.facts(), sums=frames["aggregate"]
        )
    except ComparisonError as error:
        return error.message


def build_trends(trends: Trends) -> Plot:
    """Draw a panel for each workload and metric, the worse ones first."""
    rows = _worst_first(trends.judged)
    starts = sorted({pair for t in rows for pair in zip(t.started_utc, t.campaigns, strict=True)})
    places = _places_of(starts)
    axis = _dates_axis(starts, places)
    drawn = rows[:_MAX_PANELS]
    scales = _scales(drawn)
    every = pd.concat([_trend_numbers(trend, places) for trend in rows], ignore_index=True)
    panels = [
        replace(_trend_panel(trend, places, axis, ends), x=axis)
        for trend, ends in zip(drawn, scales, strict=True)
    ]
    asked = "; ".join(dict.fromkeys(trend.asked for trend in drawn if trend.asked))
    abreast = min(2, len(panels))
    series = (
        Series("value", "median of a campaign", "muted", "circle"),
        Series("level", "level", "palette-0"),
        Series("limits", "control limits", "palette-1", dash="dashed"),
        Series("change", "change of level", "ink", dash="dotted"),
        Series("outside", "beyond a limit", "palette-1", "diamond"),
    )
    return replace(
        grid(panels, height_in=_PANEL_IN, abreast=abreast, series=series),
        width_in=11.0,
        answer=trend_headline(trends),
        caption=(
            "Grey: reference period",
            *([false_alarm_words(trends)] if any(trend.limits for trend in drawn) else []),
            _OWN_SCALES if len(drawn) > 1 else "",
            f"Hollow: as asked ({asked})" if asked else "",
            not_shown(len(drawn), len(rows), "panels", "those with the worst state"),
        ),
        rows=every,
        shared_x=True,
        name="trend",
    )


def trend_plot(trends: Trends) -> Plot:
    """Return the chart of trends with its title and description."""
    return replace(build_trends(trends), title=TREND.title, description=describe_trends(trends))


def _worst_first(trends: Sequence[Trend]) -> list[Trend]:
    """Return trends by state and loss of their workload, its metrics beside each other."""
    order = list(State)
    worst: dict[str, tuple[int, float]] = {}
    for trend in trends:
        rank = (order.index(trend.state), -abs(trend.loss(trend.level)))
        worst[trend.name] = min(worst.get(trend.name, rank), rank)
    return sorted(trends, key=lambda trend: worst[trend.name])


def _places_of(starts: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return campaign to its place: days since the first, or its number where dates lack."""
    if not all(start for start, _ in starts):
        return {name: float(position) for position, (_, name) in enumerate(starts)}
    times = [datetime.fromisoformat(start).timestamp() / _DAY_S for start, _ in starts]
    return {name: time - times[0] for time, (_, name) in zip(times, starts, strict=True)}


def _dates_axis(starts: Sequence[tuple[str, str]], places: dict[str, float]) -> Axis:
    """Return an axis with a few dates, or names of campaigns where these are not known.

    Of campaigns of one day it has the times.
    """
    last = max(places.values())
    days = {start[:10] for start, _ in starts}
    part = slice(11, 16) if len(days) == 1 else slice(10)
    names = {name: start[part] or name[-12:] for start, name in starts}
    wanted = np.linspace(0, last, min(_TICKS, len(starts)))
    near = [min(starts, key=lambda campaign: abs(places[campaign[1]] - at)) for at in wanted]
    room = 0.8 * last / _TICKS
    chosen: list[str] = []
    for _, name in dict.fromkeys(near):
        if not chosen or places[name] - places[chosen[-1]] >= room:
            chosen.append(name)
    margin = _MARGIN * (last or 1.0)
    return Axis(
        "Start of the campaign" if starts[0][0] else "Campaign",
        scale="category",
        limits=(-margin, last + margin),
        ticks=tuple(places[name] for name in chosen),
        categories=tuple(printable(names[name]) for name in chosen),
    )


def _trend_numbers(trend: Trend, places: dict[str, float]) -> pd.DataFrame:
    """Return a row for each campaign: value, level and limits."""
    first = [0, *(change.place for change in trend.changes), len(trend.results)]
    levels = np.concatenate(
        [
            np.full(end - start, np.median(trend.results[start:end]))
            for start, end in itertools.pairwise(first)
        ]
    )
    behind = np.arange(len(trend.results)) >= trend.reference
    low, high = (trend.limits.low, trend.limits.high) if trend.limits else (np.nan, np.nan)
    outside = np.isin(np.arange(len(trend.results)), trend.outside)
    return pd.DataFrame(
        {
            "label": trend.label,
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


def _scales(trends: Sequence[Trend]) -> list[tuple[float, float]]:
    """Return the ends of the scale of each trend: relative to its reference, the same for most."""
    middles = [float(np.median(trend.results[: trend.reference])) or 1.0 for trend in trends]
    own = [
        (low / middle, high / middle)
        for (low, high), middle in zip(map(_ends_of_values, trends), middles, strict=True)
    ]
    usual = median(high - low for low, high in own)
    alike = [(low, high) for low, high in own if high - low <= _WIDE * usual]
    lows, highs = zip(*alike, strict=True)
    shared = (min(lows), max(highs))
    return [
        (middle * low, middle * high)
        for ends, middle in zip(own, middles, strict=True)
        for low, high in [shared if ends in alike else ends]
    ]


def _trend_panel(
    trend: Trend, places: dict[str, float], axis: Axis, ends: tuple[float, float]
) -> Panel:
    data = _trend_numbers(trend, places)
    outside = data[data["is_outside"]]
    x = data["_x"]
    last = trend.reference - 1
    size = 5.0 if len(data) <= _FEW else 2.5
    name = f"{trend.name}, {measure_name(trend.measure)}"
    end = axis.limits[1] if axis.limits else float(x.iloc[-1])
    behind = x.iloc[last : last + 2].mean(), end
    reference = marks.Span(float(x.iloc[0]), behind[0], series="shade")
    return Panel(
        x=Axis(),
        y=Axis(format=_format_of(trend), limits=ends),
        marks=(
            reference,
            *(
                marks.ReferenceLine(
                    float(x.iloc[change.place]), "x", series="change", dash="dotted"
                )
                for change in trend.changes
            ),
            *_limit_marks(trend, behind, ends),
            marks.Lines(data, y="value", series="muted", width=0.5),
            marks.Points(data, y="value", series="value", size=size, is_hollow=bool(trend.asked)),
            marks.Lines(data, y="level", group="_level", series="level", width=1.6),
            marks.Points(outside, y="value", series="outside", size=6),
        ),
        title="\n".join(
            fill(printable(line), 60, break_on_hyphens=False) for line in (name, trend_words(trend))
        ),
    )


def _ends_of_values(trend: Trend) -> tuple[float, float]:
    low, high = float(trend.results.min()), float(trend.results.max())
    room = max(high - low, _MIN_ROOM * high) or 1.0
    limits = (trend.limits.low, trend.limits.high) if trend.limits else ()
    near = [end for end in limits if low - room < end < high + room]
    low, high = min([low, *near]), max([high, *near])
    margin = max(0.08 * (high - low), (room - (high - low)) / 2)
    far = [end for end in limits if end not in near]  # Their arrows need room beside the values
    below = 2.5 * margin if any(end < low for end in far) else margin
    above = 2.5 * margin if any(end > high for end in far) else margin
    return max(0.0, low - below), high + above


def _limit_marks(
    trend: Trend, extent: tuple[float, float], ends: tuple[float, float]
) -> Sequence[marks.AnyMark]:
    """Return the limits behind the reference period; those beyond the scale are arrows."""
    if trend.limits is None:
        return ()
    limits = (trend.limits.low, trend.limits.high)
    lines = [(x, y) for y in limits if ends[0] <= y <= ends[1] for x in extent]
    arrows = [
        (0.99, place, f"{arrow} limit {shown_value(trend.measure, limit)}")
        for limit, place, arrow in zip(limits, (0.06, 0.94), "\u2193\u2191", strict=True)
        if not ends[0] <= limit <= ends[1]
    ]
    return (
        marks.Lines(
            pd.DataFrame(lines, columns=["_x", "_y"]).assign(_limit=lambda rows: rows["_y"]),
            series="limits",
            group="_limit",
            width=1.2,
        ),
        marks.Texts(
            pd.DataFrame(arrows, columns=["_x", "_y", "_text"]),
            series="limits",
            x_in="panel",
            y_in="panel",
            align="right",
            is_boxed=True,
        ),
    )


def _format_of(trend: Trend) -> str:
    if trend.measure.is_latency:
        return "latency"
    return "rate" if trend.measure.column.endswith("bytes_per_s") else "count"


def describe_trends(trends: Trends) -> str:
    """Return how many workloads have which state, and the first of the worse ones."""
    bad = [trend for trend in trends.rows if trend.state.is_bad]
    worst = f" {bad[0].name}: {trend_words(bad[0])}." if bad else ""
    return trend_headline(trends) + worst


TREND = Kind(
    name="trend",
    title="Workloads over campaigns",
    help="Each workload over the dates of campaigns, with control limits and changes of its level.",
    needs="several campaigns, at best nine or more",
    read=read_trends,
    build=build_trends,
    describe=describe_trends,
    concludes=True,
    frame_names=("summary", "findings", "aggregate"),
)
