"""Quantities of the device view: which columns each shows, on which scale, with which limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.present.formatting import number
from volbench.present.plots.description import Axis, Scale
from volbench.present.plots.time.device_layout import Place

# Ratio to the device's rate above which fio's rate is cut off: the device is the subject
_TOWERING = 2.0
_SPREAD = 8.0  # Ratio from which a linear axis would hide small values
_FAR = 4.0  # Ratio of limit to data above which the limit is outside the axis


@dataclass(frozen=True)
class Quantity:
    """One panel of the device view."""

    name: str  # of the axis
    columns: tuple[tuple[str, str], ...]  # of the device frame, with the key of each one's series
    format: str  # name in `FORMATS`
    is_by_direction: bool = True  # columns are reads and writes, so that one of zeros is left out
    overlay: str = ""  # column of fio's series, and of the backing disk, that is drawn over it
    limit: str = ""  # column of the USE table with the declared limit
    logarithm: int = 0  # base of the axis when values differ much; 0 for none
    is_share: bool = False  # the axis is a share of 100 %

    def shown(self, place: Place) -> list[tuple[str, str]]:
        """Return the columns with something to draw for a run."""
        own = place.span.own
        known = [(name, key) for name, key in self.columns if own[name].notna().any()]
        if not self.is_by_direction:
            return known
        return [(name, key) for name, key in known if own[name].max() > 0] or known[:1]

    def sampled(self, places: Sequence[Place]) -> list[float]:
        """Return every value that the host reported."""
        parts = [place.span.own[name].dropna() for place in places for name, _ in self.columns]
        return [float(value) for part in parts for value in part]

    def by_fio(self, place: Place) -> list[float]:
        """Return the tool's own rates; of a run too short for a series, its mean."""
        rates, use = place.span.fio, place.span.use
        if rates is not None and self.overlay in rates:
            return [float(value) for value in rates[self.overlay].dropna()]
        moved, runtime_s = number(use, "tool_bytes"), number(use, "runtime_s")
        if self.overlay == "bw_bytes_per_s" and moved > 0 and runtime_s > 0:
            return [moved / runtime_s]
        return []

    def limits(self, places: Sequence[Place]) -> list[float]:
        """Return the declared limit of each run that has one."""
        if not self.limit:
            return []
        values = [number(place.span.use, self.limit) for place in places]
        return [value for value in values if not math.isnan(value)]

    def axis(self, places: Sequence[Place]) -> Axis | None:
        """Return the axis, logarithmic where values differ much; None without data."""
        by_fio = [value for place in places for value in self.by_fio(place)]
        values = self.sampled(places) or by_fio
        if not values:
            return None
        if self.is_share:
            return Axis(self.name, self.format, limits=(0.0, 108.0), ticks=(0.0, 50.0, 100.0))
        positive = [value for value in values if value > 0]
        low, high = min(positive, default=1.0), max(positive, default=1.0)
        if self.logarithm == 1 and high > _SPREAD:
            ticks = (0.0, *_powers(4, 1, high))
            return Axis(f"{self.name} (log)", self.format, "symlog", (0.0, 1.5 * high), ticks)
        if self.logarithm > 1 and high / low > _SPREAD:
            ticks = _powers(4, 1024, high) if self.logarithm == 2 else ()
            scale: Scale = "log2" if self.logarithm == 2 else "log"
            return Axis(f"{self.name} (log)", self.format, scale, (low / 1.6, high * 1.6), ticks)
        top = self._top(places, by_fio)
        step = 2.0 ** math.floor(math.log2(top / 2))
        ticks = tuple(step * n for n in range(int(top / step) + 1)) if self.logarithm == 2 else ()
        return Axis(self.name, self.format, limits=(0.0, top), ticks=ticks)

    def _top(self, places: Sequence[Place], by_fio: Sequence[float]) -> float:
        """Return the end of a linear axis: the data, limits that are near, fio's values if near."""
        top = max(self.sampled(places), default=0.0) or max(by_fio, default=0.0)
        top = max([top, *(limit for limit in self.limits(places) if limit <= _FAR * top)])
        fitting = [value for value in by_fio if value <= _TOWERING * top]
        room = 1.12 if len(fitting) == len(by_fio) else 1.4  # for the text with the others
        return room * max([top, *fitting]) or 1.0


def _powers(base: int, first: int, end: float) -> tuple[float, ...]:
    """Return powers up to an end, at most five of them."""
    count = max(1, math.ceil(math.log(end / first, base)) + 1)
    powers = tuple(float(first) * base**exponent for exponent in range(count))
    return powers[:: 1 + count // 6]


def _by_direction(column: str) -> tuple[tuple[str, str], ...]:
    return ((f"write_{column}", "write"), (f"read_{column}", "read"))


# From top to bottom
QUANTITIES = (
    Quantity(
        "Bandwidth",
        _by_direction("bw_bytes_per_s"),
        "rate",
        overlay="bw_bytes_per_s",
        limit="limit_bw_bytes_per_s",
    ),
    Quantity("IOPS", _by_direction("iops"), "count", overlay="iops", limit="limit_iops"),
    Quantity(
        "Active time",
        (("active_percent", "active"),),
        "percent",
        is_by_direction=False,
        overlay="active_percent",
        is_share=True,
    ),
    Quantity(
        "CPU waiting",
        (("iowait_percent", "iowait"), ("steal_percent", "steal")),
        "percent",
        is_by_direction=False,
    ),
    Quantity("Latency", _by_direction("lat_s"), "latency", logarithm=10),
    Quantity("Request size", _by_direction("request_bytes"), "size", logarithm=2),
    Quantity(
        "Dirty pages",
        (("dirty_bytes", "dirty"), ("writeback_bytes", "writeback")),
        "bytes",
        is_by_direction=False,
    ),
    Quantity(
        "Queue depth",
        (("queue_depth", "queue"),),
        "count",
        is_by_direction=False,
        logarithm=1,
    ),
)
