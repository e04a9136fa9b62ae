"""Tables of what is compared: a matrix of workloads by values, and a ranking of many values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from volbench.analyse.frames.design import Design, Factor
from volbench.analyse.frames.workload_words import factor_name
from volbench.present.answer import by_value_of, gain_of
from volbench.present.cell_results import CellResult, cell_results
from volbench.present.factor_words import cell_words, value_names
from volbench.present.formatting import MISSING
from volbench.present.tables.design_table import sorted_cells
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_latency, format_percent

MAX_COLUMNS = 6  # More values are ranked: a page of 1280 px has room for seven columns
_CERTAIN = "certain"  # Style of a difference that is no chance
_NOTE = (
    "{what}; behind them the change against {first}. Bold: every repeat is beyond every repeat of"
    " the other, or single runs differ by more than 5 %."
)


@dataclass(frozen=True)
class _Row:
    """Results of one workload, by the text of what is compared."""

    workload: str
    results: Mapping[object, CellResult]


def compared_page_table(design: Design) -> Table[Any] | None:
    """Return the matrix or ranking of what is compared; None where nothing is."""
    compared = design.by_column.get(design.compared)
    if compared is None:
        return None
    by_value = by_value_of(design, compared, cell_results(design))
    if len(compared.known) > MAX_COLUMNS:
        return _ranking(design, compared, by_value)
    without = (compared.column, *design.nested_places(compared.column))
    keys = design.key_without(compared.column)
    words = {
        keys[cell.places[0]]: cell_words(design, cell, without=without)
        for cell in sorted_cells(design)
    }
    rows = [
        _Row(text, {value: found[key] for value, found in by_value.items() if key in found})
        for key, text in words.items()
    ]
    names = value_names(compared.column, compared.known)
    columns = [Column[_Row]("workload", lambda row: row.workload, priority=IDENTITY)]
    columns += [_column(value, names[value], compared.known[0], rows) for value in compared.known]
    note = _NOTE.format(what=_what(rows), first=names[compared.known[0]])
    return Table("matrix", columns, [row for row in rows if row.results], notes=[note])


def _what(rows: Sequence[_Row]) -> str:
    """Return what the numbers are: medians where there are repeats."""
    results = [result for row in rows for result in row.results.values()]
    return "Median IOPS" if any(len(result.rates) > 1 for result in results) else "IOPS"


def _column(value: object, name: str, first: object, rows: Sequence[_Row]) -> Column[_Row]:
    """Return the column of a value: its rate, and its change against the first value."""
    texts = {row.workload: _cell(row, value, first) for row in rows}
    return Column[_Row](
        name,
        lambda row: texts[row.workload][0],
        header=name,
        is_right=True,
        styles={text: _CERTAIN for text, is_certain in texts.values() if is_certain},
    )


def _cell(row: _Row, value: object, first: object) -> tuple[str, bool]:
    """Return a rate with its change, in brackets where it may be chance, and whether it is not."""
    result, base = row.results.get(value), row.results.get(first)
    if result is None or not result.rates:
        return MISSING, False
    if result.asked:
        return f"{result.rate_words}, asked", False
    text = result.rate_words.removesuffix(" IOPS")
    if value == first or base is None or not base.rate > 0 or not result.rate > 0 or base.asked:
        return text, False
    gain = gain_of(result, base)
    change = f"{100 * (gain.ratio - 1):+.0f} %".replace("-", "\u2212")
    return (f"{text} {change}", True) if gain.is_clear else (f"{text} ({change})", False)


def _by_setting(
    by_value: Mapping[object, Mapping[Hashable, CellResult]],
) -> dict[Hashable, list[tuple[object, CellResult]]]:
    """Return the values at each setting, without results at an asked rate."""
    settings: dict[Hashable, list[tuple[object, CellResult]]] = {}
    for value, found in by_value.items():
        for key, result in found.items():
            if not result.asked:
                settings.setdefault(key, []).append((value, result))
    return settings


def shared_runs(design: Design) -> set[object]:
    """Return the runs at the setting that is ranked; none where nothing is."""
    compared = design.by_column.get(design.compared)
    if compared is None or len(compared.known) <= MAX_COLUMNS:
        return set()
    settings = _by_setting(by_value_of(design, compared, cell_results(design)))
    shared = max(settings.values(), key=len, default=[])
    return {row.get("run") for _, result in shared for row in result.rows}


def _ranking(
    design: Design, compared: Factor, by_value: Mapping[object, Mapping[Hashable, CellResult]]
) -> Table[tuple[str, CellResult]]:
    """Return the values at the setting that most of them share, the fastest first."""
    settings = _by_setting(by_value)
    shared = max(settings.values(), key=len, default=[])
    names = value_names(compared.column, compared.known)
    ranked = [
        (names[value], result)
        for value, result in sorted(shared, key=lambda pair: pair[1].rate, reverse=True)
    ]
    middle = median(result.rate for _, result in ranked) if ranked else 0.0
    columns: list[Column[tuple[str, CellResult]]] = [
        Column("rank", lambda row: f"{ranked.index(row) + 1}", priority=IDENTITY, is_right=True),
        Column(factor_name(compared.column), lambda row: row[0]),
        Column("IOPS", lambda row: row[1].rate_words.removesuffix(" IOPS"), is_right=True),
        Column("range", lambda row: row[1].range_words, is_right=True, is_optional=True),
        Column("of the median", lambda row: format_percent(row[1].rate / middle), is_right=True),
        Column("p99", lambda row: format_latency(row[1].p99_s), is_right=True, is_optional=True),
    ]
    without = (compared.column, *design.nested_places(compared.column))
    where = cell_words(design, shared[0][1].cell, without=without) if shared else ""
    everyone = "all" if len(shared) == len(compared.known) else "most"
    title = f"{where}: the setting that {everyone} {len(shared)} share."
    more = len(settings) - 1
    notes = [f"{more} other settings: volbench plot iops DIR, volbench show DIR"] if more else []
    return Table("ranking", columns, ranked, title=title, notes=notes)
