"""Device activity: samples taken during each run, a panel per quantity on a shared axis.

The panels are those of "Disk performance on Azure Kubernetes Service" (Øvrevåge, 2019). Runs stand
one after another; each has a scale of its own where they differ much in length, as its ticks show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from textwrap import fill

import numpy as np
import pandas as pd

from volbench.present.formatting import Row, number, printable, text
from volbench.present.plots import marks
from volbench.present.plots.charts.device_layout import (
    QUANTITIES,
    Place,
    Quantity,
    Span,
    lay_out,
    samples_of,
    spans_of,
    uses_of,
)
from volbench.present.plots.description import FORMATS, Axis, Panel, Plot, Series, grid
from volbench.present.plots.event_lines import event_lines, events_of
from volbench.present.plots.kinds import Frames, Kind, Options, Room
from volbench.present.plots.labels import wrap_name
from volbench.units import format_count, format_duration, format_rate

_WIDTH_IN, _NARROW_IN = 13.0, 10.0
_PANEL_IN = 0.85
_ABREAST = 9  # Runs beside each other: a second block below would be off the screen
_COLUMNS = 100  # Letters that fit beside each other over a block
_ALMOST_ZERO = 1e-12  # Lower edge of areas: a logarithmic axis has no zero
_STACKED = "iowait_percent"  # Drawn on busy CPU: beside it, it would not be seen
_SERIES = (
    Series("read", "device: reads", "read"),
    Series("write", "device: writes", "write"),
    Series("fio", "fio: reads and writes", "muted"),
    Series("backing", "backing disk", "ink", dash="dotted"),
    Series("after", "after fio ended", "shade"),
    Series("busy", "CPU busy", "palette-7"),
    Series("iowait", "iowait, on busy", "palette-4"),
    Series("steal", "steal", "palette-3"),
    Series("dirty", "dirty", "palette-5"),
    Series("writeback", "in write-back", "ink"),
    Series("active", "active time, queue depth", "palette-2"),
    Series("queue", "active time, queue depth", "palette-2"),
)


@dataclass(frozen=True)
class _Runs:
    """Data of the chart."""

    uses: Sequence[Row]  # rows of the USE table, one for each run with samples
    spans: Sequence[Span]
    events: pd.DataFrame  # marks of watched runs


def read(frames: Frames, _: Options) -> _Runs | str:
    """Return the runs beside which the host's counters were sampled."""
    samples = samples_of(frames)
    uses = uses_of(frames, samples)
    if not uses:
        return "no run has samples of the host's counters"
    return _Runs(uses, spans_of(frames, samples, uses), events_of(frames))


def build(runs: _Runs) -> Plot:
    """Draw a panel per quantity over the runs."""
    spans = runs.spans
    panels = _panels(lay_out(spans), runs.events)
    return replace(
        grid(panels, height_in=_PANEL_IN, series=_SERIES),
        width_in=_WIDTH_IN if len(spans) > 2 else _NARROW_IN,
        caption=_notes(runs.uses),
        shared_x=True,
    )


def _notes(uses: Sequence[Row]) -> tuple[str, ...]:
    devices = dict.fromkeys(text(use, "device") for use in uses)
    named = ", ".join(name for name in devices if name)
    return (
        f"Device {named}" if named else "No block device: only the host's own numbers",
        "CPU and dirty pages are those of the host",
    )


def _panels(places: Sequence[Place], events: pd.DataFrame) -> list[Panel]:
    end = places[-1].right
    ticks = [tick for each in places for tick in each.ticks(share=(each.right - each.left) / end)]
    x = Axis(
        "Time since each run's I/O began",
        scale="category",
        limits=(0.0, end),
        ticks=tuple(at for at, _ in ticks),
        categories=tuple(name for _, name in ticks),
    )
    panels: list[Panel] = []
    for quantity in QUANTITIES:
        if y := quantity.axis(places):
            lines = (
                line
                for place in places
                for line in event_lines(
                    events[events["run"] == text(place.span.use, "run")],
                    end_s=place.span.length_s,
                    at=place.at,
                    is_named=not panels,
                )
            )
            parts = (*_stretches(places), *_quantity_marks(quantity, places, y), *lines)
            panels.append(Panel(x=x, y=y, marks=parts))
    first = panels[0]
    panels[0] = replace(first, marks=(*first.marks, *_run_names(places)))
    unnamed = replace(x, label="", ticks=(), categories=())
    return [*(replace(panel, x=unnamed) for panel in panels[:-1]), panels[-1]]


def _stretches(places: Sequence[Place]) -> list[marks.AnyMark]:
    shades: list[marks.AnyMark] = [
        marks.Span(place.fio_end, place.right, series="after")
        for place in places
        if place.fio_end < place.right
    ]
    lines = [
        marks.ReferenceLine(
            (before.right + after.left) / 2, "x", series="muted", dash="solid", width=0.6
        )
        for before, after in pairwise(places)
    ]
    return [*shades, *lines]


def _quantity_marks(quantity: Quantity, places: Sequence[Place], y: Axis) -> list[marks.AnyMark]:
    main = [
        _steps(place, place.span.own, column, key)
        for place in places
        for column, key in quantity.shown(place)
    ]
    over = [
        _steps(place, rates, quantity.overlay, key)
        for place in places
        for key, rates in (("fio", place.span.fio), ("backing", place.span.backing))
        if quantity.overlay and rates is not None and quantity.overlay in rates
    ]
    parts: list[marks.AnyMark] = []
    for frames, width in ((over, 1.6), (main, 1.1)):
        if frames:
            data = pd.concat(frames, ignore_index=True)
            lines = marks.Lines(data, by="_series", group="_group", step="pre", width=width)
            parts.append(lines)
    if main:
        area = marks.Areas(
            data, by="_series", group="_group", low="_zero", high="_y", step="pre", alpha=0.13
        )
        parts.insert(-1, area)
    top = y.limits[1] if y.limits else math.inf
    return [*parts, *_limit_lines(quantity, places, top), *_towering(quantity, places, top)]


def _steps(place: Place, rows: pd.DataFrame, column: str, key: str) -> pd.DataFrame:
    t_s = rows["t_s"].to_numpy(dtype=float)
    values = rows[column].to_numpy(dtype=float)
    base = np.full(len(values), _ALMOST_ZERO)
    if column == _STACKED:
        base = rows["cpu_busy_percent"].fillna(0.0).to_numpy(dtype=float)
    interval_s = float(rows["interval_s"].iloc[0]) if "interval_s" in rows else float(t_s[0])
    begin = max(0.0, float(t_s[0]) - interval_s)
    times = np.concatenate([[begin], t_s])
    run = text(place.span.use, "run")
    return pd.DataFrame(
        {
            "label": place.span.label,
            "run": run,
            "quantity": column,
            "source": key if key in {"fio", "backing"} else "device",
            "t_s": times,
            "value": np.concatenate([values[:1], values]),
            "_x": place.at(0) + times * place.per_s,
            "_zero": np.concatenate([base[:1], base]),
            "_y": np.concatenate([(base + values)[:1], base + values]),
            "_series": key,
            "_group": f"{run}/{column}",
        }
    )


def _limit_lines(quantity: Quantity, places: Sequence[Place], top: float) -> list[marks.AnyMark]:
    write = FORMATS[quantity.format].write
    limits = [(place, limit) for place in places for limit in quantity.limits([place])]
    first = {limit: place for place, limit in reversed(limits)}
    return [
        marks.ReferenceLine(
            limit,
            "y",
            name=(f"limit: {write(limit)}" if first[limit] is place else ""),
            extent=(place.left, place.right),
            width=1.0,
            is_beyond=limit > top,
        )
        for place, limit in limits
    ]


def _towering(quantity: Quantity, places: Sequence[Place], top: float) -> list[marks.AnyMark]:
    high = [(place, max(quantity.by_fio(place), default=0.0)) for place in places]
    beyond = [(place.left, value) for place, value in high if value > top]
    if not beyond:
        return []
    data = pd.DataFrame(
        {
            "_x": [left for left, _ in beyond],
            "_y": top,
            "_text": [f"fio {FORMATS[quantity.format].write(value)}" for _, value in beyond],
        }
    )
    return [marks.Texts(data, offset_pt=(3, -2), valign="top", size=7, is_boxed=True)]


def _run_names(places: Sequence[Place]) -> list[marks.AnyMark]:
    total = places[-1].right
    columns = [max(9, int((place.right - place.left) / total * _COLUMNS)) for place in places]
    pairs = list(zip(places, columns, strict=True))
    shapes = [fill(printable(place.span.shape), width + 2) for place, width in pairs]
    names = [wrap_name(printable(place.span.label), columns=width) for place, width in pairs]
    lines = max(shape.count("\n") + 1 for shape in shapes)
    at = pd.DataFrame({"_x": [place.left for place in places], "_y": 1.0})
    bold, small = at.assign(_text=names), at.assign(_text=shapes)
    return [
        marks.Texts(
            bold, y_in="panel", offset_pt=(0, 8 + 10 * lines), valign="bottom", size=9, is_bold=True
        ),
        marks.Texts(
            small,
            y_in="panel",
            offset_pt=(0, 5 + 10 * lines),
            valign="top",
            size=7.5,
            series="muted",
        ),
    ]


def describe(runs: _Runs) -> str:
    """Return the extremes of the device's rates in one sentence."""
    uses = runs.uses
    sentence = f"Device activity during {len(uses)} run{'s' if len(uses) != 1 else ''}"
    parts = []
    for names, write, unit in (
        (("read_iops", "write_iops"), format_count, " IOPS"),
        (("read_bw_bytes_per_s", "write_bw_bytes_per_s"), format_rate, ""),
    ):
        rates = [sum(number(use, name) for name in names) for use in uses]
        known = [rate for rate in rates if not math.isnan(rate)]
        if known:
            low, high = write(min(known)), write(max(known))
            parts.append(f"{low} to {high}{unit}" if low != high else f"{low}{unit}")
    if parts:
        sentence += ": on average " + " and ".join(parts)
    tails = [use for use in uses if number(use, "tail_s") > 0]
    if tails:
        longest = max(tails, key=lambda use: number(use, "tail_s"))
        lasted = format_duration(number(longest, "tail_s"))
        sentence += (
            f"; after fio ended, writing continued for up to {lasted} ({text(longest, 'label')})"
        )
    return sentence + "."


DEVICE = Kind(
    name="device",
    title="Device activity",
    frame_names=("summary", "series", "device", "marks"),
    help="Bandwidth, IOPS, active time, CPU, latency, request size, dirty pages and queue of"
    " the volume's device over time, with fio's own view and declared limits.",
    needs="a block device, or a host that reports its counters",
    read=read,
    build=build,
    describe=describe,
    draws_invalid=True,
    room=Room(_ABREAST, "runs"),
)
