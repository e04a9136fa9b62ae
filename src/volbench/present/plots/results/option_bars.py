"""Bars of IOPS and mean latency by queue depth or numjobs, with standard deviations and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.present.formatting import number, records
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import (
    Axis,
    Bars,
    Panel,
    Plot,
    Series,
    Table,
    Whiskers,
)
from volbench.present.plots.formats import FORMATS
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import (
    OPTION_NAMES,
    SHORT_NAMES,
    identified,
    option_text,
    palette,
    wrap_name,
)
from volbench.present.plots.results.sweep_lines import sweep_points
from volbench.units import format_count, format_latency

_MOST_LINES = 7
_GROUP = 0.82
"""Width of a group of bars, as a share of the room for it."""
_PANEL_IN, _ROW_IN = 2.0, 0.2


@dataclass(frozen=True)
class _Quantity:
    """One panel of bars.

    Attributes:
        value: column of the bars.
        spread: column of their standard deviation.
        format: name of the format.
        name: in the table.
    """

    value: str
    spread: str
    format: str
    name: str

    def cell(self, rows: pd.DataFrame) -> str:
        """Return value and deviation of at most one row."""
        write = FORMATS[self.format].write
        if rows.empty or math.isnan(value := float(rows[self.value].iloc[0])):
            return "-"
        spread = float(rows[self.spread].iloc[0])
        return write(value) if math.isnan(spread) else f"{write(value)} ± {write(spread)}"


_QUANTITIES = (
    _Quantity("iops", "iops_stddev", "count", "IOPS"),
    _Quantity("lat_mean_s", "lat_stddev_s", "latency", "latency"),
)


@dataclass(frozen=True)
class _OptionBars:
    """Bars along one option, ``iodepth`` or ``numjobs``."""

    option: str

    def points(self, frames: Frames) -> tuple[pd.DataFrame, str]:
        """Return a row per value and line with its label, and the kind of latency."""
        points, kind = sweep_points(
            frames, self.option, ["mean", "stddev"], ["iops", "iops_stddev"]
        )
        renamed = {"mean": "lat_mean_s", "stddev": "lat_stddev_s"}
        points = points.rename(columns=renamed)
        return points[points["iops"].notna()], kind

    def build(self, frames: Frames, _: Options) -> Plot:
        """Draw a panel of IOPS, one of latency, and the numbers below."""
        points, kind = self.points(frames)
        lines = list(dict.fromkeys(points["label"]))
        shown = lines[:_MOST_LINES]
        points = points[points["label"].isin(shown)]
        values = sorted({float(value) for value in points[self.option]})
        data = self._data(points, shown, values)
        names = tuple(option_text(self.option, value) for value in values)
        x = Axis(OPTION_NAMES[self.option], scale="category", categories=names)
        table = self._table(points, shown, values)
        more = len(lines) - len(shown)
        return Plot(
            panels=(
                _panel(data, _QUANTITIES[0], replace(x, label=""), "IOPS"),
                _panel(data, _QUANTITIES[1], x, f"Mean {kind}", row=1),
                Panel(x=Axis(), y=Axis(), marks=(table,), row=2),
            ),
            heights=(_PANEL_IN, _PANEL_IN, _ROW_IN * (len(table.rows) + 1)),
            width_in=max(9.0, 3.0 + 1.0 * len(values)),
            series=tuple(
                Series(name, wrap_name(name, columns=26), palette(place))
                for place, name in enumerate(shown)
            ),
            legend="right",
            caption=(
                pooled(frames["summary"]),
                "Whiskers: fio's standard deviation, of IOPS over windows, of latency over I/Os",
                f"{more} further lines are not shown: choose with --where" * (more > 0),
            ),
        )

    def _data(
        self, points: pd.DataFrame, lines: Sequence[str], values: Sequence[float]
    ) -> pd.DataFrame:
        """Return the numbers with the place of each bar; whiskers end at zero."""
        width = _GROUP / len(lines)
        line = points["label"].map({name: n for n, name in enumerate(lines)})
        group = points[self.option].map({value: n for n, value in enumerate(values)})
        left = group - _GROUP / 2 + (line + 0.04) * width
        data = identified(points, ["iops", "iops_stddev", "lat_mean_s", "lat_stddev_s", "latency"])
        data = data.assign(_left=left, _right=left + 0.92 * width, _middle=left + 0.46 * width)
        for quantity in _QUANTITIES:
            value, spread = points[quantity.value], points[quantity.spread].fillna(0)
            data[f"_{quantity.value}_low"] = (value - spread).clip(lower=0)
            data[f"_{quantity.value}_high"] = value + spread
        return data

    def _table(self, points: pd.DataFrame, lines: Sequence[str], values: Sequence[float]) -> Table:
        """Return the numbers with their deviations: two rows a line."""
        rows, names, series = [], [], []
        for line in lines:
            own = points[points["label"] == line]
            for quantity in _QUANTITIES:
                cells = [quantity.cell(own[own[self.option] == value]) for value in values]
                rows.append(tuple(cells))
                names.append(quantity.name if quantity is not _QUANTITIES[0] else f"{line}: IOPS")
                series.append(line)
        heads = [
            f"{SHORT_NAMES[self.option]} {option_text(self.option, value)}" for value in values
        ]
        return Table(tuple(heads), tuple(rows), tuple(names), tuple(series))

    def missing(self, frames: Frames) -> str:
        """Return why there is nothing to draw."""
        if reason := missing_runs(frames):
            return reason
        if self.option not in measured(frames["summary"]) or not len(self.points(frames)[0]):
            return (
                f"no sweep: it takes jobs that differ in {SHORT_NAMES[self.option]} alone "
                "(a matrix in the profile makes them)"
            )
        return ""

    def describe(self, frames: Frames) -> str:
        """Return the best bar in one sentence."""
        points, kind = self.points(frames)
        best = records(points.nlargest(1, "iops"))[0]
        return (
            f"IOPS and mean {kind} by {SHORT_NAMES[self.option]}: max "
            f"{format_count(number(best, 'iops'))} IOPS at {SHORT_NAMES[self.option]} "
            f"{option_text(self.option, number(best, self.option))} ({best['label']}), with "
            f"{format_latency(number(best, 'lat_mean_s'))}."
        )


def _panel(data: pd.DataFrame, quantity: _Quantity, x: Axis, label: str, *, row: int = 0) -> Panel:
    """Draw a group of bars at each value, with whiskers."""
    low, high = f"_{quantity.value}_low", f"_{quantity.value}_high"
    return Panel(
        x=x,
        y=Axis(label, quantity.format, limits=(0, 1.05 * float(data[high].max()) or 1.0)),
        marks=(
            Bars(
                data=data,
                by="label",
                at="_left",
                at_end="_right",
                value=quantity.value,
                is_horizontal=False,
            ),
            Whiskers(data=data, at="_middle", low=low, high=high, along="y"),
        ),
        row=row,
    )


def _kind(name: str, bars: _OptionBars, title: str) -> Kind:
    option = SHORT_NAMES[bars.option]
    return Kind(
        name=name,
        title=title,
        frame_names=("summary",),
        help=f"Bars of IOPS and mean latency at each {option}, with standard deviations and a "
        "table.",
        needs=f"jobs that differ in {option} alone",
        missing=bars.missing,
        build=bars.build,
        describe=bars.describe,
    )


DEPTH = _kind("depth", _OptionBars("iodepth"), "IOPS and latency by queue depth")
NUMJOBS = _kind("numjobs", _OptionBars("numjobs"), "IOPS and latency by jobs in parallel")
