"""Named number formats of axes and texts, so that every renderer writes values the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from volbench.units import format_count, format_duration, format_latency, format_rate, format_size


@dataclass(frozen=True)
class Format:
    """How values of one quantity are written.

    Attributes:
        unit: base unit of the values; empty for counts and ratios.
        write: value to text.
    """

    unit: str
    write: Callable[[float], str]


def short_time(seconds: float) -> str:
    """Return a time short enough for a tick: ``5m`` for ``5m 00s``."""
    return format_duration(seconds).replace("m 00s", "m").replace("h 00m", "h")


def nines(slower: float) -> str:
    """Return the share that was faster, with as many nines as it takes: ``99.9 %`` for 0.001."""
    return f"{100 * (1 - slower):.6f}".rstrip("0").rstrip(".") + " %"


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "number": Format("", lambda value: f"{value:.4g}"),
        "count": Format("", format_count),
        "magnitude": Format("", lambda value: format_count(abs(value))),
        "rate": Format("B/s", format_rate),
        "latency": Format("s", format_latency),
        "duration": Format("s", short_time),
        "size": Format("B", format_size),
        "bytes": Format("B", lambda value: format_rate(value).removesuffix("/s")),
        "percent": Format("%", lambda value: f"{value:g} %"),
        "share": Format("", lambda value: f"{100 * value:g} %"),
        "nines": Format("", nines),
        "percentile": Format("", lambda value: nines(1 / value)),
    }
)
"""Name to format. ``share`` is 0 to 1; ``nines`` holds the share that was slower, and
``percentile`` its reciprocal; ``magnitude`` is a count without its sign."""

COLUMN_FORMATS = (("bytes_per_s", "rate"), ("_bytes", "size"), ("_s", "latency"))
"""Ending of a frame's column to the format of its values, the first that fits."""
