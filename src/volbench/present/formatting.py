"""Display text of single cells of a frame.

This module does not import pandas, so that text output can do without it.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volbench.model.campaign.target_paths import paths_of
from volbench.model.frames.columns import MIXED
from volbench.units import (
    format_count,
    format_duration,
    format_latency,
    format_percent,
    format_rate,
    format_size,
    natural_order,
)

if TYPE_CHECKING:
    import pandas as pd

MISSING = "n/a"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MAX_TARGET = 40  # Characters of the name of a volume
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

# Latency statistics from fast to slow: name in columns to name for people
STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}
BRIEF_STATISTICS = ("mean", "p50", "p99")  # those of exports for people
NARROW_STATISTICS = (*BRIEF_STATISTICS, "max")  # those of a table on a terminal

Row = Mapping[str, object]
# Suffix of a column name to the unit of its values
_UNITS = {"_bytes_per_s": "bytes/s", "_bytes": "bytes", "_percent": "%", "_s": "s"}
UNIT_ENDINGS = tuple(_UNITS)
_UNIT_WORDS: Mapping[str, Callable[[float], str]] = {
    "bytes/s": format_rate,
    "bytes": format_size,
    "1/s": format_count,
    "%": lambda value: format_percent(value / 100),
}


@dataclass(frozen=True)
class Statistic:
    """A latency and its kind."""

    seconds: float  # NaN if not reported by the tool
    column: str  # its source column, such as ``clat_p99_s``; empty for none

    @property
    def is_completion(self) -> bool:
        """Return whether completion latency replaces total latency."""
        return self.column.startswith("clat_")


def records(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a frame as plain Python values, None for missing values."""
    from volbench.analyse.frames.job_frames import plain_rows  # noqa: PLC0415 - brings pandas, as frames do

    return plain_rows(frame)


def number(row: Row, column: str) -> float:
    """Return a number of a row; NaN if it is missing or not a number."""
    value = row.get(column)
    return float(value) if isinstance(value, numbers.Real) else math.nan


def text(row: Row, column: str, *, missing: str = "") -> str:
    """Return a text of a row, safe to print; `missing` if there is none."""
    value = row.get(column)
    return missing if value is None or value == "" else printable(str(value))


def shown(row: Row, column: str, format_value: Callable[[float], str]) -> str:
    """Return a formatted number of a row; ``n/a`` if it is missing."""
    value = number(row, column)
    return MISSING if math.isnan(value) else format_value(value)


def unit_words(column: str, unit: str = "") -> Callable[[float], str]:
    """Return the format of a column's numbers.

    Args:
        unit: unit of the values; empty for the unit in the column name, else a rate of events.
    """
    own = (of_name for ending, of_name in _UNITS.items() if column.endswith(ending))
    unit = unit or next(own, "1/s")
    if unit == "s":
        is_latency = re.match(r"([cs]?lat|value|bin|start_skew)_", column) is not None
        return format_latency if is_latency else format_duration
    return _UNIT_WORDS[unit]


def skew(row: Row) -> str:
    """Return the start skew of an aggregate with its bound, such as ``12 ms ± 4 ms``."""
    bound_s = number(row, "start_skew_bound_s")
    bound = f" ± {format_latency(bound_s)}" if bound_s > 0 else ""
    return shown(row, "start_skew_s", lambda seconds: format_latency(seconds) + bound)


def whole(row: Row, column: str) -> str:
    """Return an integer of a row; ``n/a`` if it is missing."""
    return shown(row, column, lambda value: f"{value:.0f}")


def size(row: Row, column: str) -> str:
    """Return a size of a row such as ``4k``; ``n/a`` if it is missing or varies."""
    return shown(row, column, format_size)


def block_size(row: Row) -> str:
    """Return the block size of a row, or its range such as ``4k-64k``; ``n/a`` if not known."""
    bounds = size(row, "block_min_bytes"), size(row, "block_max_bytes")
    varies = number(row, "block_min_bytes") < number(row, "block_max_bytes")
    return "-".join(bounds) if varies else size(row, "block_bytes")


def flag(row: Row, column: str) -> str:
    """Return ``yes``, ``no`` or ``n/a``."""
    value = row.get(column)
    return MISSING if value is None else ("yes" if value else "no")


def latency(row: Row, statistic: str) -> Statistic:
    """Return total latency, or completion latency if the tool reported no other.

    Without `lat_percentiles`, fio reports percentiles of completion latency only.
    """
    for column in (f"lat_{statistic}_s", f"clat_{statistic}_s"):
        value = number(row, column)
        if not math.isnan(value):
            return Statistic(value, column)
    return Statistic(math.nan, "")


def pattern(row: Row) -> str:
    """Return the access pattern, with the direction if the pattern does not imply it."""
    parts = [text(row, "rw"), text(row, "direction")]
    if parts[0].endswith(parts[1]):
        del parts[1]
    return ", ".join(filter(None, parts)) or MISSING


def is_merged(row: Row) -> bool:
    """Return whether fio merged unlike jobs into a row, which have no setting in common."""
    return text(row, "rw") == MIXED


def job_label(row: Row) -> str:
    """Return the job's name, with fio's section if it has several."""
    job, group = text(row, "job", missing=MISSING), text(row, "group")
    return job if group in ("", job) else f"{job}/{group}"


def printable(value: str) -> str:
    """Return a text without control characters that a terminal would interpret.

    Newlines and tabs are kept; other control characters, such as the start of an escape sequence,
    are spelled out.
    """
    if value.isprintable():
        return value
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in value.replace("\r\n", "\n")
    )


def short_target(target: str) -> str:
    """Return the target of a volume: an NBD URI as folder and file, many disks by their count."""
    if target.startswith("nbd"):
        return f"NBD {'/'.join(re.split('[/=]+', target.rstrip('/'))[-2:])}"
    names = [name.rpartition("/")[2] for name in paths_of(target)]
    ordered = sorted(names, key=natural_order)
    if len(names) > 2:
        kind = "devices" if target.startswith("/dev/") else "files"
        return f"{len(names)} {kind}, {ordered[0]} to {ordered[-1]}"
    if len(names) > 1 or len(target) <= _MAX_TARGET:
        return " and ".join(ordered) if names[1:] else target
    return f"...{target[3 - _MAX_TARGET :]}"


def in_numeric_order(names: Sequence[str]) -> list[int]:
    """Return the places of names, those that differ in numbers alone together and by these.

    Others stay in their order: ``qd1, qd16, other, qd4`` becomes ``qd1, qd4, qd16, other``.
    """
    kinds: dict[str, int] = {}
    keys = []
    for name in names:
        kind = kinds.setdefault(_NUMBER.sub("#", name), len(kinds))
        keys.append((kind, [float(digits) for digits in _NUMBER.findall(name)]))
    return sorted(range(len(names)), key=keys.__getitem__)


def first_sentence(paragraph: str) -> str:
    """Return a text up to the end of its first sentence."""
    return paragraph.partition(". ")[0].removesuffix(".") + "."


def first_line(reason: str) -> str:
    """Return the first line of a reason that is not blank."""
    return next(
        (line.strip() for line in reason.splitlines() if line.strip()), "no reason was recorded"
    )


def instant(utc: str) -> str:
    """Return an ISO 8601 instant for people: ``2026-01-31 13:05:09 UTC``."""
    return utc.replace("T", " ").partition(".")[0].removesuffix("Z") + " UTC" if utc else "unknown"


def spreadsheet_text(value: object) -> object:
    """Return a CSV cell that no spreadsheet runs as a formula: an apostrophe goes in front.

    Spreadsheets evaluate text that starts with = + - @, a tab or a carriage return (OWASP, "CSV
    injection"). Numbers stay numbers, also as text.
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    return value if _PLAIN_NUMBER.fullmatch(value) else f"'{value}"


def ratio_text(ratio: float, whole: Callable[[float], int] = round) -> str:
    """Return a ratio in two digits, near 1 in three, e.g. ``8.2`` or ``1.25``."""
    digits = 2 if 0.5 <= ratio < 1.995 else 1 - math.floor(math.log10(ratio))
    shown = whole(round(ratio * 10.0**digits, 6)) / 10.0**digits
    return f"{shown:.2f}" if digits == 2 else f"{shown:,.15g}"


def times_text(ratios: Sequence[float]) -> str:
    """Return ratios as ``8.2 to 10 times``; the range contains all."""
    low, high = min(ratios), max(ratios)
    ends = (ratio_text(low, math.floor), ratio_text(high, math.ceil))
    is_one = ratio_text(low) == ratio_text(high)
    return f"{ratio_text(low) if is_one else ' to '.join(ends)} times"


def span_text(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """Return the range of values, e.g. ``877 to 911 MB/s``."""
    low, high = (shown(value) for value in (min(values), max(values)))
    if low == high:
        return low
    unit = high.partition(" ")[2]
    return f"{low.removesuffix(f' {unit}') if unit else low} to {high}"
