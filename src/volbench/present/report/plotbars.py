"""Interactive bars and points per job: the summary enters, charts with a row for each job leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from bokeh.models import FixedTicker, Range1d
from bokeh.plotting import figure

from volbench.analyse.frames.job_frames import per_job
from volbench.present.figures.chart import shape
from volbench.present.figures.latency import POINTS, latency_rows
from volbench.present.formatting import Row, number, records, text
from volbench.present.report.plots import (
    INK,
    LIMIT,
    QUIET,
    Plot,
    Toggle,
    add_hover,
    clipped,
    colour_of,
    item_of,
    name_ticks,
    new_panel,
    numerals,
    palette,
    source,
    span,
)
from volbench.units import format_count, format_latency, format_rate

ROW_PX = 26
BAR = 0.62

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Measure:
    """What bars show: a column of the summary in a unit for people."""

    column: str
    limit: str
    axis_label: str
    noun: str
    per_unit: float
    show: Callable[[float], str]


MEASURES: Mapping[str, Measure] = {
    "iops": Measure("iops", "limit_iops", "I/O operations per second", "IOPS", 1, format_count),
    "bandwidth": Measure(
        "bw_bytes_per_s", "limit_bw_bytes_per_s", "Bandwidth (MB/s)", "Bandwidth", 1e6, format_rate
    ),
}


def rates_plot(kind: str, title: str, description: str, frames: Frames) -> Plot:
    """Return bars of IOPS or bandwidth: a row for each job, a series for each direction."""
    measure = MEASURES[kind]
    summary = frames["summary"]
    told = records(per_job(summary[summary["direction"] != "sync"], [measure.column]))
    rows = [row for row in told if not math.isnan(number(row, measure.column))]
    panel = _rows_panel([text(row, "label") for row in rows], measure.axis_label)
    found = dict.fromkeys(text(row, "direction") for row in rows)
    for direction in found:
        places = [place for place, row in enumerate(rows) if text(row, "direction") == direction]
        _bars(panel, {place: rows[place] for place in places}, measure, key=direction)
    limited = _limits(panel, rows, measure)
    highs = [number(row, f"{measure.column}_high") / measure.per_unit for row in rows]
    limits = [number(row, measure.limit) / measure.per_unit for row in rows]
    panel.x_range = span(0, 1.3 * max(v for v in [*highs, *limits] if not math.isnan(v)) or 1)
    numerals(panel.xaxis[0])
    add_hover(
        panel,
        [
            ("job", "@name"),
            ("did", "@shape"),
            (measure.noun, "@shown"),
            ("repeats", "@repeats"),
        ],
    )
    toggles = (*(Toggle(name, name, colour_of(name)) for name in found), *[LIMIT] * limited)
    return Plot(kind, title, description, toggles, item_of([panel]))


def latency_plot(title: str, description: str, frames: Frames) -> Plot:
    """Return latency percentiles: a row for each job, a series for each percentile."""
    rows, kind = latency_rows(frames)
    panel = _rows_panel(
        [f"{text(row, 'label')}, {text(row, 'direction')}" for row in rows],
        f"{kind.capitalize()} (logarithmic)",
        x_log=True,
    )
    values = [v for row in rows for name in POINTS if (v := number(row, name)) > 0]
    for name, (label, _, colour) in POINTS.items():
        told = [(place, number(row, name)) for place, row in enumerate(rows)]
        points = [(place, value) for place, value in told if value > 0]
        drawn = panel.scatter(
            "x",
            "y",
            size=9,
            color=colour,
            line_color=None,
            name=name,
            marker="x" if name == "max" else "circle",
            source=source(
                {
                    "x": [value for _, value in points],
                    "y": [float(place) for place, _ in points],
                    "name": [text(rows[place], "label") for place, _ in points],
                    "statistic": [f"{label}, {text(rows[p], 'direction')}" for p, _ in points],
                    "shown": [format_latency(value) for _, value in points],
                }
            ),
        )
        drawn.tags = [INK] if name == "max" else []
    panel.x_range = span(min(values) * 0.8, max(values) * 1.3)
    latency_ticks(panel, low_s=min(values), high_s=max(values))
    add_hover(panel, [("job", "@name"), ("@statistic", "@shown")])
    toggles = tuple(
        Toggle(name, label, "" if name == "max" else colour)
        for name, (label, _, colour) in POINTS.items()
    )
    return Plot("latency", title, description, toggles, item_of([panel]))


def latency_ticks(panel: figure, *, low_s: float, high_s: float) -> None:
    """Name decades, and their thirds where there are few, as ``100 us`` on a logarithmic axis."""
    first, last = math.floor(math.log10(low_s)) - 1, math.ceil(math.log10(high_s)) + 1
    within = (1.0, 3.0) if last - first < 9 else (1.0,)
    ticks = [times * 10.0**power for power in range(first, last + 1) for times in within]
    name_ticks(panel.xaxis[0], {tick: format_latency(tick) for tick in ticks})


def grouped_plot(
    column: str, title: str, rows: Mapping[str, Mapping[str, Row]], campaigns: Sequence[str]
) -> Plot | None:
    """Return bars of several campaigns: a row for each job, a series for each campaign.

    Args:
        column: of the rows: ``iops``, ``bw_bytes_per_s`` or ``p99``.
        title: its name.
        rows: job and direction to campaign to pooled row.
        campaigns: in order.

    Returns:
        None when nobody told the column.
    """
    unit, factor, show = GROUPED[column]
    panel = _rows_panel(list(rows), f"{title} ({unit})" if unit else title, bars=len(campaigns))
    height = 0.8 / len(campaigns)
    most = 0.0
    for place, campaign in enumerate(campaigns):
        told = {
            at: (job, number(found[campaign], column))
            for at, (job, found) in enumerate(rows.items())
            if campaign in found and not math.isnan(number(found[campaign], column))
        }
        most = max([most, *(value for _, value in told.values())])
        panel.hbar(
            y="y",
            right="x",
            height=height * 0.92,
            color=palette(place),
            name=f"campaign{place}",
            source=source(
                {
                    "y": [at - 0.4 + height * (place + 0.5) for at in told],
                    "x": [value / factor for _, value in told.values()],
                    "name": [job for job, _ in told.values()],
                    "campaign": [campaign] * len(told),
                    "shown": [show(value) for _, value in told.values()],
                }
            ),
        )
    if not most:
        return None
    panel.x_range = span(0, 1.06 * most / factor)
    numerals(panel.xaxis[0])
    add_hover(panel, [("campaign", "@campaign"), ("job", "@name"), (title, "@shown")])
    toggles = tuple(
        Toggle(f"campaign{place}", name, palette(place)) for place, name in enumerate(campaigns)
    )
    words = f"{title} of {len(rows)} results in {len(campaigns)} campaigns, as in the table above."
    return Plot(f"side-{column}", f"{title} side by side", words, toggles, item_of([panel]))


GROUPED: Mapping[str, tuple[str, float, Callable[[float], str]]] = {
    "iops": ("", 1, format_count),
    "bw_bytes_per_s": ("MB/s", 1e6, format_rate),
    "p99": ("ms", 1e-3, format_latency),
}


def _rows_panel(
    names: Sequence[str], x_label: str, *, x_log: bool = False, bars: int = 1
) -> figure:
    """Return a panel with a named row for each name, the first on top."""
    panel = new_panel(
        height_px=90 + (ROW_PX + 14 * (bars - 1)) * len(names), x_label=x_label, x_log=x_log
    )
    panel.y_range = Range1d(start=len(names) - 0.4, end=-0.6)
    name_ticks(panel.yaxis[0], {float(place): clipped(name) for place, name in enumerate(names)})
    panel.ygrid[0].ticker = FixedTicker(ticks=[])
    return panel


def _bars(panel: figure, rows: Mapping[int, Row], measure: Measure, *, key: str) -> None:
    """Draw the bars of one direction, with a whisker over the repeats of each."""
    column, unit = measure.column, measure.per_unit
    points = source(
        {
            "y": [float(place) for place in rows],
            "x": [number(row, column) / unit for row in rows.values()],
            "low": [number(row, f"{column}_low") / unit for row in rows.values()],
            "high": [number(row, f"{column}_high") / unit for row in rows.values()],
            "name": [text(row, "label") for row in rows.values()],
            "shape": [shape(row) for row in rows.values()],
            "label": [measure.show(number(row, column)) for row in rows.values()],
            "shown": [_shown(row, measure) for row in rows.values()],
            "repeats": [number(row, "repeats") for row in rows.values()],
        }
    )
    bars = panel.hbar(y="y", right="x", height=BAR, color=colour_of(key), name=key, source=points)
    bars.level = "glyph"
    value = panel.text(
        "high", "y", text="label", x_offset=6, anchor="center_left", name=key, source=points
    )
    value.glyph.text_font_size = "12px"
    value.tags = [INK, QUIET]
    if any(number(row, "repeats") > 1 for row in rows.values()):
        whisker = panel.segment("low", "y", "high", "y", name=key, line_width=1.5, source=points)
        whisker.tags = [INK, QUIET]


def _shown(row: Row, measure: Measure) -> str:
    """Return the value in words, with the range of the repeats where there are several."""
    told = measure.show(number(row, measure.column))
    if number(row, "repeats") < 2:
        return told
    low, high = (measure.show(number(row, f"{measure.column}_{end}")) for end in ("low", "high"))
    return f"{told} (median; {low} to {high})"


def _limits(panel: figure, rows: Sequence[Row], measure: Measure) -> bool:
    """Draw a dash at the declared limit of each row that has one, and tell whether one has."""
    told = [(place, number(row, measure.limit)) for place, row in enumerate(rows)]
    limits = [(float(place), value) for place, value in told if not math.isnan(value)]
    if limits:
        dash = panel.segment(
            "x",
            "low",
            "x",
            "high",
            line_dash="dashed",
            line_width=1.5,
            source=source(
                {
                    "x": [value / measure.per_unit for _, value in limits],
                    "low": [place - 0.5 for place, _ in limits],
                    "high": [place + 0.5 for place, _ in limits],
                }
            ),
        )
        dash.tags = [INK, QUIET]
        dash.name = LIMIT.key
    return bool(limits)
