"""Tables of what is compared: a matrix of workloads by values, and a ranking of many values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from volbench.analyse.frames.design import Design, Factor
from volbench.analyse.frames.workload_words import factor_name
from volbench.model.frames.columns import WATCHED
from volbench.present.answer import by_setting, by_value_of, gains_of, ranked_results
from volbench.present.cell_results import CellResult, cell_results
from volbench.present.factor_words import cell_words, value_names
from volbench.present.formatting import MISSING
from volbench.present.tables.design_table import sorted_cells
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_latency, format_percent

MAX_COLUMNS = 6  # More values are ranked: a page of 1280 px has room for seven columns
_IN_ORDER = frozenset({"arm", "campaign"})  # Their first value is the base of all others
_NOTE = (
    "Median IOPS of repeats, with the change against {base}. ~: within the variation of repeats."
)
_NOTE_OF_ONE = "IOPS of one run each, with the change against {base}: in brackets, or ~ below 5 %."


@dataclass(frozen=True)
class _Row:
    """Results of one workload, by the text of what is compared."""

    workload: str
    results: Mapping[object, CellResult]


def compared_page_table(design: Design) -> Table[Any] | None:
    """Return the matrix or ranking of what is compared; None where nothing is comparable."""
    compared = design.by_column.get(design.compared)
    if compared is None:
        return None
    results = cell_results(design)
    free = [result for result in results if not result.asked]
    if ranked_results(design, compared, free)[1]:
        return None
    if len(compared.known) > MAX_COLUMNS:
        return _ranking(design, compared, by_setting(by_value_of(design, compared, free)))
    by_value = by_value_of(design, compared, results)
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
    columns = [Column[_Row]("workload", lambda row: row.workload, "IOPS by workload", IDENTITY)]
    first = compared.known[0] if compared.column in _IN_ORDER else None
    columns += [_column(value, names[value], first, rows) for value in compared.known]
    is_repeated = any(len(each.rates) > 1 for row in rows for each in row.results.values())
    note = _NOTE if is_repeated else _NOTE_OF_ONE
    note = note.format(base="the best of the row" if first is None else names[first])
    notes = [] if design.constants.get("rw") == WATCHED else [note]
    return Table("matrix", columns, [row for row in rows if row.results], notes=notes)


def _column(value: object, name: str, first: object, rows: Sequence[_Row]) -> Column[_Row]:
    """Return the column of a value; its changes against the first or best are judged together."""
    pairs: dict[str, tuple[CellResult, CellResult]] = {}
    for row in rows:
        each = row.results.values()
        free = [r for r in each if r.rate > 0 and not r.asked and r.row.get("rw") != WATCHED]
        best = max(free, key=lambda result: result.rate, default=None)
        base, result = row.results.get(first, best), row.results.get(value)
        if base in free and result in free and base is not result:
            pairs[row.workload] = result, base
    gains = dict(zip(pairs, gains_of([*pairs.values()]), strict=True))

    def show(row: _Row) -> str:
        result, gain = row.results.get(value), gains.get(row.workload)
        if result is None or not result.rates:
            return MISSING
        text = result.rate_words.removesuffix(" IOPS")
        if gain is None:
            return f"{result.rate_words}, asked" if result.asked else text
        change = f"{100 * (gain.ratio - 1):+.0f} %".replace("-", "\u2212")
        change = change if gain.ratio < 2 else f"{gain.ratio:.3g}x"
        change = change if gain.is_repeated else f"({change})"
        return f"{text} {change}" if gain.side else f"{text} ~"

    return Column[_Row](name, show, header=name, is_right=True)


def shared_runs(design: Design) -> set[object]:
    """Return the runs at the setting that is ranked; none where nothing is."""
    compared = design.by_column.get(design.compared)
    if compared is None or len(compared.known) <= MAX_COLUMNS:
        return set()
    free = [result for result in cell_results(design) if not result.asked]
    settings = by_setting(by_value_of(design, compared, free))
    shared = max(settings.values(), key=len, default=[])
    return {row.get("run") for _, result in shared for row in result.rows}


def _ranking(
    design: Design, compared: Factor, settings: Mapping[Hashable, list[tuple[object, CellResult]]]
) -> Table[tuple[str, CellResult]]:
    """Return the values at the setting that most of them share, the fastest first."""
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
