"""Quantities that several kinds of chart show, each with its column, axis and declared limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from volbench.present.plots.description import Axis, Panel
from volbench.present.plots.formats import FORMATS

LATENCY_KINDS = {"lat": "total latency", "clat": "completion latency"}
SINCE_START = "Time since the run's I/O began"


@dataclass(frozen=True)
class Metric:
    """A column of results and the axis it is drawn on.

    Attributes:
        column: of the frame.
        label: of the axis.
        format: name in `FORMATS`.
        limit: column of its declared limit; empty for none.
    """

    column: str
    label: str
    format: str
    limit: str = ""

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
P99_LATENCY = Metric("lat_p99_s", "p99 latency", "latency")


def log_limits(values: Sequence[float], *, room: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis around positive values, at least a factor of 3 wide.

    Args:
        values: at least one above zero; others and NaN are passed over.
        room: factors below the lowest and above the highest value.
    """
    known = [value for value in values if value > 0]
    low, high = min(known), max(known)
    return low * room[0], max(high, 3 * low) * room[1]


def time_axis(end_s: float, *, label: str = SINCE_START) -> Axis:
    """Return an axis of seconds from zero to the end of what is shown."""
    return Axis(label, "duration", "time", (0.0, end_s or 1.0))


def only_last_named(panels: Sequence[Panel], *, abreast: int = 1) -> list[Panel]:
    """Return panels of which those of the last row alone name their x axis."""
    first = len(panels) - abreast
    return [
        panel if place >= first else replace(panel, x=replace(panel.x, label=""))
        for place, panel in enumerate(panels)
    ]


def rows_axis(names: Sequence[str]) -> Axis:
    """Return an upright axis with a name for each row, the first at the top."""
    return Axis("", scale="category", categories=tuple(names), inverted=True)
