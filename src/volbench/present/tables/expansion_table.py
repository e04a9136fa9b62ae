"""Rates of volumes before, during and after an expansion, compared with those before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from volbench.present.formatting import Row, number, shown, text
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import format_count, format_duration, percent

_PARTS = ("before", "expanding", "after")
_KEY = ("campaign", "host", "client", "direction")  # of the runs of one volume


class _Results(Protocol):
    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of a frame."""


def expansion_tables(results: _Results) -> list[Table[Row]]:
    """Return the table of expansions under load, with a sentence on each; none without any.

    While a volume is expanded, its rates are those of the intervals of the series that overlap the
    time from the request to the end of the expansion.
    """
    marks = {(_run(row), text(row, "kind")): row for row in results.rows("marks")}
    if not any(kind == "expand" for _, kind in marks):
        return []
    summary, series = results.rows("summary"), results.rows("series")
    rows, notes = list[Row](), list[str]()
    for during in summary:
        run = _run(during)
        if requested := marks.get((run, "expand")):
            begun_s, end_s = (number(marks.get((run, kind), {}), "t_s") for kind in _ENDS)
            others = [row for row in summary if all(row[name] == during[name] for name in _KEY)]
            parts = {
                text(row, "arm"): _with_range(row, _points(row, series)[1:-1]) for row in others
            }
            parts["expanding"] = _while_expanding(during, _points(during, series), begun_s, end_s)
            before = number(parts.get("before", {}), "iops") or math.nan
            parts = {part: parts[part] | {"part": part} for part in _PARTS if part in parts}
            for part, row in parts.items():
                row["change"] = number(row, "iops") / before - 1 if part != "before" else None
            rows += parts.values()
            notes.append(_conclusion(parts, text(requested, "text"), end_s - begun_s))
    columns = [
        c for c in _COLUMNS if c.name != "campaign" or len({row[c.name] for row in rows}) > 1
    ]
    said = [*dict.fromkeys(notes)]  # without an end, it is the same for reads and writes
    return [Table("expansion", columns, rows, title="expansion under load", notes=said)]


def _run(row: Row) -> tuple[object, object]:
    return row["campaign"], row["run"]


def _points(row: Row, series: Sequence[Row]) -> list[Row]:
    own = [point for point in series if _run(point) == _run(row)]
    return [point for point in own if point["direction"] == row["direction"]]


def _with_range(row: Row, points: Sequence[Row]) -> dict[str, object]:
    """Return a row with the extremes of the IOPS of its intervals."""
    known = [rate for point in points if not math.isnan(rate := number(point, "iops"))]
    return {**row, "low": min(known, default=math.nan), "high": max(known, default=math.nan)}


def _while_expanding(
    during: Row, points: Sequence[Row], begun_s: float, end_s: float
) -> dict[str, object]:
    """Return the means of the intervals that overlap an expansion; NaN for an end is none yet."""
    starts_s = [0.0, *(number(point, "t_s") for point in points[:-1])]
    inside = [
        point
        for point, start_s in zip(points, starts_s, strict=True)
        if number(point, "t_s") > begun_s and not start_s >= end_s
    ]
    row: dict[str, object] = {name: during[name] for name in (*_KEY, "run")}
    for name in ("iops", "bw_bytes_per_s"):
        row[name] = sum(number(point, name) for point in inside) / (len(inside) or math.nan)
    ios = sum(number(point, "iops") for point in inside) or math.nan
    delays = (number(point, "iops") * number(point, "lat_mean_s") for point in inside)
    row["lat_mean_s"] = sum(delay for delay in delays if not math.isnan(delay)) / ios
    return _with_range(row, inside)


def _change(row: Row) -> str:
    return shown(row, "change", lambda share: f"{'-' if share < 0 else '+'}{percent(abs(share))} %")


def _conclusion(parts: dict[str, dict[str, object]], size: str, took_s: float) -> str:
    """Return how long an expansion took and what it did to the rates, in a sentence."""
    meanwhile, before = parts["expanding"], parts.get("before", {})
    what = f"{text(meanwhile, 'host')}: expansion to {size}"
    if math.isnan(took_s):
        return f"{what} had not ended when the campaign went on; it has no rates after it"
    iops, low, high = number(meanwhile, "iops"), number(before, "low"), number(before, "high")
    place = "below all" if iops < low else "above all" if iops > high else "within the range of"
    rates = f"{format_count(low)} to {format_count(high)}"
    return (
        f"{what} took {format_duration(took_s)}; {text(meanwhile, 'direction')} IOPS meanwhile "
        f"{_change(meanwhile)}, {place} the intervals before ({rates}); "
        f"afterwards {_change(parts.get('after', {}))}"
    )


_ENDS = ("expand", "expanded")  # Kinds of marks
_COLUMNS: tuple[Column[Row], ...] = (
    Column("campaign", priority=IDENTITY),
    Column("host", priority=IDENTITY),
    Column("direction", priority=IDENTITY),
    Column("part", priority=IDENTITY),
    quantity("iops", "IOPS"),
    Column("change", _change, header="vs before", is_right=True),
    quantity("low", "lowest interval", priority=2),
    quantity("bw_bytes_per_s", "bandwidth", priority=3),
    quantity("lat_mean_s", "lat mean", priority=4),
    quantity("lat_p99_s", "lat p99", priority=2),
)
