"""IOPS and bandwidth of each job as bars, with the range of the repeats and declared limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.frames.job_frames import measured, per_job
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots.captions import pooled
from volbench.present.plots.description import AnyMark, Axis, Bars, Panel, Plot, Texts, Whiskers
from volbench.present.plots.kind import Frames, Kind, Options, missing_runs
from volbench.present.plots.labels import (
    colour_column,
    colour_series,
    identified,
    job_names,
    rows_height_in,
    side_by_side,
)
from volbench.present.plots.limits import declared, limits_across
from volbench.present.plots.metrics import BANDWIDTH, IOPS, Metric, rows_axis

_ROOM = 1.14
"""The axis ends this far beyond the longest bar, for its text."""


@dataclass(frozen=True)
class _JobBars:
    """Bars of one metric."""

    metric: Metric
    axis_label: str

    def rows(self, frames: Frames) -> pd.DataFrame:
        """Return a row per job and direction; sync has latencies but no rate."""
        summary = frames["summary"]
        rated = summary[summary["direction"] != "sync"]
        return side_by_side(per_job(rated, [self.metric.column]))

    def build(self, frames: Frames, _: Options) -> Plot:
        """Draw horizontal bars from zero."""
        rows = self.rows(frames)
        plain, data = records(rows), self._data(rows)
        names = job_names(plain)
        limits = declared(plain, self.metric.limit, self.metric.format)
        longest = max([*data["_end"], *(limit.value for limit in limits)])
        marks: tuple[AnyMark, ...] = (
            Bars(data=data, by="_series", at="_row", value=self.metric.column),
            *limits_across(limits),
            Whiskers(data=data, at="_row", low=f"{self.metric.column}_low", high="_high"),
            Texts(data=data, x="_end", y="_row", text="_text", offset_pt=(6, 0), is_boxed=True),
        )
        x = Axis(self.axis_label, self.metric.format, limits=(0, _ROOM * longest or 1))
        repeated = bool((rows["repeats"] > 1).any())
        return Plot(
            panels=(Panel(x=x, y=rows_axis(names), marks=marks),),
            heights=(rows_height_in(names),),
            series=colour_series(rows),
            caption=(
                pooled(frames["summary"]),
                "Bars: median of the repeats; whiskers: min to max" * repeated,
            ),
        )

    def _data(self, rows: pd.DataFrame) -> pd.DataFrame:
        column = self.metric.column
        ends = [column, f"{column}_low", f"{column}_high", self.metric.limit]
        return identified(rows, ends).assign(
            _series=rows[colour_column(rows)],
            _row=range(len(rows)),
            _end=rows[f"{column}_high"].fillna(0),
            _high=rows[f"{column}_high"].where(rows["repeats"] > 1),
            _text=[self._value(row) for row in records(rows)],
        )

    def _value(self, row: Row) -> str:
        value = number(row, self.metric.column)
        if math.isnan(value):
            return f"not reported by {text(row, 'tool', missing='the tool')}"
        return self.metric.text(value)

    def missing(self, frames: Frames) -> str:
        """Return why there is nothing to draw."""
        if reason := missing_runs(frames):
            return reason
        if measured(frames["summary"])[self.metric.column].isna().all():
            return f"no {self.metric.label}: no run reported it (dd reports bandwidth alone)"
        return ""

    def describe(self, frames: Frames) -> str:
        """Return the extremes and the limits in one sentence."""
        column = self.metric.column
        rows = records(self.rows(frames))
        known = sorted(
            (row for row in rows if not math.isnan(number(row, column))),
            key=lambda row: number(row, column),
        )
        low, high = known[0], known[-1]
        sentence = f"{self.metric.label} of {len(known)} results: max {self._named(high)}"
        if low is not high:
            sentence += f", min {self._named(low)}"
        limits = declared(rows, self.metric.limit, self.metric.format)
        return "; ".join([sentence, *(f"declared {limit.name}" for limit in limits)]) + "."

    def _named(self, row: Row) -> str:
        return f"{self._value(row)} ({text(row, 'label')}, {text(row, 'direction')})"


def _kind(name: str, bars: _JobBars, *, needs: str) -> Kind:
    label = bars.metric.label
    return Kind(
        name=name,
        title=f"{label} per job",
        frame_names=("summary",),
        help=f"{label} of each job and direction, with the declared limits.",
        needs=needs,
        missing=bars.missing,
        build=bars.build,
        describe=bars.describe,
        in_report=True,
    )


IOPS_BARS = _kind(
    "iops",
    _JobBars(IOPS, "I/O operations per second"),
    needs="a finished run of fio",
)
BANDWIDTH_BARS = _kind(
    "bandwidth",
    _JobBars(BANDWIDTH, "Bandwidth (1 MB/s = 1,000,000 bytes per second)"),
    needs="a finished run",
)
