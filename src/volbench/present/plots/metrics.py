"""Quantities that several kinds of chart show, each with its column, axis and declared limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volbench.present.formatting import number, records, text
from volbench.present.plots.description import FORMATS, Axis
from volbench.present.plots.marks import ReferenceLine

if TYPE_CHECKING:
    import pandas as pd

# Ratio of values above which an axis is logarithmic: on a linear one the least would be a thirtieth
# of its height. Noticed by: tests/present/plots/test_chosen_parts.py
LOG_AXIS_SPAN = 30.0
LATENCY_KINDS = {"lat": "total latency", "clat": "completion latency", "slat": "submission latency"}
LATENCY_LOGS = (
    "logs hold means only; import logs of single I/Os (log_avg_msec=0) or of histograms"
    " (write_hist_log and log_hist_msec)"
)
MAX_RATIO = 10.0  # Of the highest values of two panels, beyond which they share no linear scale
SINCE_START = "Time since the run's I/O began"
# Ratio of limit to data above which only the limit's name is shown: the data would take less than a
# quarter of the axis. Noticed by: tests/present/plots/test_time.py
_FAR = 4.0


@dataclass(frozen=True)
class Metric:
    """A column of results and the axis it is drawn on."""

    column: str  # of the frame
    label: str  # of the axis
    format: str  # name in `FORMATS`
    limit: str = ""  # column of its declared limit; empty for none

    @property
    def is_latency(self) -> bool:
        """Whether lower is better."""
        return self.format == "latency"

    def axis(self, top: float, *, label: str = "") -> Axis:
        """Return an axis from zero to `top`."""
        return Axis(label or self.label, self.format, limits=(0.0, top or 1.0))

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        return FORMATS[self.format].write(value)


IOPS = Metric("iops", "IOPS", "count", "limit_iops")
BANDWIDTH = Metric("bw_bytes_per_s", "Bandwidth", "rate", "limit_bw_bytes_per_s")
MEAN_LATENCY = Metric("lat_mean_s", "Mean latency", "latency")


def log_limits(values: Sequence[float], *, room: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis around positive values, at least a factor of 3 wide."""
    known = [value for value in values if value > 0]
    low, high = min(known), max(known)
    return low * room[0], max(high, 3 * low) * room[1]


def time_axis(end_s: float, *, label: str = SINCE_START) -> Axis:
    """Return an axis of seconds from zero to the end of the data."""
    return Axis(label, "duration", "time", (0.0, end_s or 1.0))


def shared_tops(kinds: Sequence[object], tops: Sequence[float]) -> list[float]:
    """Return the end of the scale of each panel: one for each kind, unless they differ tenfold."""
    ends = []
    for kind, top in zip(kinds, tops, strict=True):
        known = [other for other_kind, other in zip(kinds, tops, strict=True) if other_kind == kind]
        positive = [other for other in known if other > 0]
        is_near = bool(positive) and max(positive) <= MAX_RATIO * min(positive)
        ends.append(max(positive) if is_near else top if top > 0 else 0.0)
    return ends


def category_axis(label: str, names: Sequence[str]) -> Axis:
    """Return an axis of cells with these names."""
    ends = (-0.5, len(names) - 0.5)
    return Axis(label, scale="category", limits=ends, categories=tuple(names))


def rows_axis(names: Sequence[str]) -> Axis:
    """Return an upright axis with a name for each row, the first at the top."""
    return Axis("", scale="category", categories=tuple(names), inverted=True)


@dataclass(frozen=True)
class Limit:
    """A declared limit."""

    value: float  # in the unit of the axis
    name: str  # such as ``limit of data: 1.1k``
    rows: tuple[int, ...]  # indices of the rows it applies to, ascending


def declared(results: pd.DataFrame, metric: Metric) -> list[Limit]:
    """Return the distinct limits of results, ascending; roles are named when limits differ."""
    if not metric.limit:
        return []
    rows = records(results.filter([metric.limit, "role"]))
    places_of: dict[float, list[int]] = {}
    for index, row in enumerate(rows):
        value = number(row, metric.limit)
        if not math.isnan(value):
            places_of.setdefault(value, []).append(index)
    limits = []
    everywhere = len(places_of) == 1 and sum(map(len, places_of.values())) == len(rows)
    for value, places in sorted(places_of.items()):
        roles = dict.fromkeys(text(rows[index], "role") for index in places)
        owner = "" if everywhere or not any(roles) else f" of {', '.join(roles)}"
        name = f"limit{owner}: {FORMATS[metric.format].write(value)}"
        limits.append(Limit(value, name, tuple(places)))
    return limits


def limits_along(limits: Sequence[Limit], *, top: float) -> tuple[list[ReferenceLine], float]:
    """Return lines for a panel that starts at zero, and the end of an axis that includes them."""
    near = [limit for limit in limits if limit.value <= _FAR * top]
    lines = [
        ReferenceLine(value=limit.value, axis="y", name=limit.name, is_beyond=limit not in near)
        for limit in limits
    ]
    return lines, max([top, *(limit.value * 1.08 for limit in near)])
