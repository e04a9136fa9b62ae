"""IOPS and bandwidth of each job as bars, with the range of the repeats and declared limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from volbench.analyse.frames.job_frames import per_job
from volbench.present.formatting import Row, number, records, text
from volbench.present.plots import labels, marks
from volbench.present.plots.description import Axis, Panel, Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.limits import declared, limits_across
from volbench.present.plots.metrics import BANDWIDTH, IOPS, Metric, rows_axis

_ROOM = 1.14
"""The axis ends this far beyond the longest bar, for its text."""


@dataclass(frozen=True)
class _JobBars:
    """Bars of one metric."""

    metric: Metric
    axis_label: str

    def read(self, frames: Frames, _: Options) -> pd.DataFrame | str:
        """Return a row per job and direction; sync has latencies but no rate."""
        summary = frames["summary"]
        rated = summary[summary["direction"] != "sync"]
        rows = labels.side_by_side(per_job(rated, [self.metric.column]))
        if rows[self.metric.column].isna().all():
            return f"no {self.metric.label}: no run reported it (dd reports bandwidth alone)"
        return rows

    def build(self, rows: pd.DataFrame) -> Plot:
        """Draw horizontal bars from zero."""
        column = self.metric.column
        names = labels.job_names(records(rows))
        data = self._data(rows)
        limits = declared(records(rows), self.metric.limit, self.metric.format)
        longest = max([*data["_end"], *(limit.value for limit in limits)])
        parts: tuple[marks.AnyMark, ...] = (
            marks.Bars(data, by="_series", value=column),
            *limits_across(limits),
            marks.Whiskers(data, low=f"{column}_low"),
            marks.Texts(data, x="_end", y="_row", offset_pt=(6, 0), is_boxed=True),
        )
        x = Axis(self.axis_label, self.metric.format, limits=(0, _ROOM * longest or 1))
        repeated = bool((rows["repeats"] > 1).any())
        return Plot(
            panels=(Panel(x=x, y=rows_axis(names), marks=parts),),
            heights=(labels.rows_height_in(names),),
            series=labels.colour_series(rows),
            caption=("Bars: median of the repeats; whiskers: min to max" * repeated,),
        )

    def _data(self, rows: pd.DataFrame) -> pd.DataFrame:
        column = self.metric.column
        ends = [column, f"{column}_low", f"{column}_high", self.metric.limit]
        return labels.identified(rows, ends).assign(
            _series=rows[labels.colour_column(rows)],
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

    def describe(self, rows: pd.DataFrame) -> str:
        """Return the extremes and the limits in one sentence."""
        known = records(rows.dropna(subset=[self.metric.column]).sort_values(self.metric.column))
        sentence = f"{self.metric.label} of {len(known)} results: max {self._named(known[-1])}"
        if len(known) > 1:
            sentence += f", min {self._named(known[0])}"
        limits = declared(records(rows), self.metric.limit, self.metric.format)
        return "; ".join([sentence, *(f"declared {limit.name}" for limit in limits)]) + "."

    def _named(self, row: Row) -> str:
        return f"{self._value(row)} ({text(row, 'label')}, {text(row, 'direction')})"


def _kind(name: str, bars: _JobBars, *, needs: str) -> Kind[pd.DataFrame]:
    label = bars.metric.label
    return Kind(
        name=name,
        title=f"{label} per job",
        frame_names=("summary",),
        help=f"{label} of each job and direction, with the declared limits.",
        needs=needs,
        read=bars.read,
        build=bars.build,
        describe=bars.describe,
        is_pooled=True,
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
