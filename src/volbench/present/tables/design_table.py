"""Tables of a design: its cells, groups of cells, and the design itself.

A row is named by the factors that vary; what is equal in all rows is said once above them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from volbench.analyse.frames.design import NAME, WORKLOAD, Cell, Design
from volbench.analyse.frames.run_options import members_of
from volbench.errors import InputError, did_you_mean, quoted
from volbench.model.frames.column_names import meaning_of
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.frames.metadata import NOT_SET
from volbench.present.answer import total_name
from volbench.present.cell_results import CellResult, cell_result, cell_results, mixed_totals
from volbench.present.factor_words import (
    constants_words,
    listed,
    numeral,
    short_values,
    shown_value,
    value_words,
)
from volbench.present.formatting import Row, block_size, latency, number, pattern, shown, text
from volbench.present.tables.summary_table import labels_of, lower_bound
from volbench.present.tables.table import IDENTITY, Column, Table, quantity
from volbench.units import counted_noun, format_count, format_latency

MAX_CELLS = 200  # More cells are grouped: nobody reads them on a screen
MAX_GROUPS = 40
_MAX_TOTALS = 4  # Mixed workloads whose sum has a note
_SHOWN_ALONE = ("rw", "block_bytes", "iodepth")  # Columns where nothing varies
_HEADINGS = {"block_bytes": "bs", "direct": "cache", "rwmixread": "reads %", "arm": "variant"}
_RECORDED = ("campaign", "host", "volume", *WORKLOAD)  # Columns of each record
_LATENCIES = {"mean": 4, "p99": 1, "max": 5}  # Statistic to priority
_PLACES = frozenset({"campaign", "arm", "host", "volume", "client", "fio_version"})
_REPEATS_NOTE = "Of repeats: the median; of lat max the largest."
_MAX_NAMED = 6  # Cells that a note names
_MAX_JOB = 12  # Characters of names of jobs that have a column


@dataclass(frozen=True)
class Judgements:
    """What is known of runs beside their results, by id."""

    warnings: Mapping[str, str] = field(default_factory=dict)  # number, with ! if it is invalid
    unsteady: Mapping[str, str] = field(default_factory=dict)  # verdicts other than steady
    syncs: Mapping[Hashable, Row] = field(default_factory=dict)  # by run and section


def cells_table(
    design: Design, judgements: Judgements, *, title: str = "", notes: Sequence[str] = ()
) -> Table[Row]:
    """Return a row for each cell: medians of its repeats, and their range."""
    columns = _identity(design)
    rows = [row for cell in sorted_cells(design) for row in _cell_rows(cell, design, judgements)]
    names = {str(row["job"]) for row in rows}  # longer ones restate the options
    has_names = 1 < len(names) == len(rows) and max(map(len, names)) <= _MAX_JOB
    is_named = NAME not in columns and has_names
    if is_named and not design.rows[0].get("import_folder"):  # in the order of the plan
        ordered = sorted(design.cells, key=lambda cell: cell.places)
        rows = [row for cell in ordered for row in _cell_rows(cell, design, judgements)]
    is_several = any(int(str(row["repeats"])) > 1 for row in rows)
    if any(row["direction"] == "sync" for row in rows) and "rw" not in columns:
        columns.insert(0, "rw")
    identities = [_identity_column(column, design) for column in columns]
    kinds = {row["latency"] for row in rows} - {None}
    remarks_priority = IDENTITY if any(row["invalid"] or row["asked"] for row in rows) else 1
    table_columns: list[Column[Row]] = [
        *([Column("job", priority=6)] if is_named else []),
        *identities,
        *([Column("repeats", is_right=True, priority=2)] if len(design.repeats) > 1 else []),
        quantity("iops", "IOPS", priority=IDENTITY),
        *([Column("range", _range, is_right=True)] if is_several else []),
        quantity("bw_bytes_per_s", "bandwidth", priority=2),
        *(_latency_column(name, priority, kinds) for name, priority in _LATENCIES.items()),
        Column("remarks", _remarks, is_optional=True, priority=remarks_priority, is_folded=True),
    ]
    above = constants_words(design)
    above = f"All: {above}" if above and len(rows) > 1 else above
    star = "* completion latency, where that of the whole I/O was not reported"
    more = [star] if kinds == {"lat", "clat"} else []
    more += [_REPEATS_NOTE] if is_several else []
    totals = mixed_totals(cell_results(design))
    sums = [f"{total_name(design, each)}: {each.full_words}" for each in totals[:_MAX_TOTALS]]
    more += [each for each in sums if each not in title]
    if (name := design.by_column.get(NAME)) and design.rows[0].get("import_folder"):
        others = ",".join(column for column in design.by_column if column != NAME)
        named = listed([str(value) for value in name.known[:3]])
        more.append(f"Only names differ: {named}.")
        more += [f"As repeats: volbench show --by {quoted(others)}"] if others else []
    return Table("results", table_columns, rows, title=titled(title, above), notes=[*more, *notes])


def groups_table(
    design: Design,
    judgements: Judgements,
    *,
    by: Sequence[str] = (),
    title: str = "",
    notes: Sequence[str] = (),
) -> Table[Row]:
    """Return a row for each group of cells: their range, and the median where they are alike.

    Args:
        by: columns that separate groups; without them the first factors that give few groups.

    Raises:
        InputError: no result has such a column.
    """
    columns = _named(design, by) if by else _few_groups(design)
    groups: dict[tuple[Hashable, ...], list[Cell]] = {}
    for cell in sorted_cells(design):
        row = design.rows[cell.places[0]]
        key = tuple(_text_of(row, cell, column) for column in columns)
        groups.setdefault(key, []).append(cell)
    others = [
        factor.column
        for factor in design.factors
        if factor.column not in columns and factor.is_ordered
    ]
    rows = [
        _group_row(dict(zip(columns, key, strict=True)), cells, others, design, judgements)
        for key, cells in groups.items()
    ]
    table_columns: list[Column[Row]] = [
        *(
            Column(column, header=_heading(column), priority=IDENTITY, is_right=_is_number(column))
            for column in columns
        ),
        Column("results", is_right=True),
        *(Column(column, header=_heading(column), priority=5, is_right=True) for column in others),
        quantity("iops", "median IOPS", is_optional=True),
        Column("range", _range, header="IOPS", is_right=True),
        quantity("bw_bytes_per_s", "bandwidth", priority=3, is_optional=True),
        _latency_column("p99", 2, {row["latency"] for row in rows} - {None}),
        Column("remarks", _remarks, is_optional=True, priority=3),
    ]
    unlike = sorted({name for row in rows for name in str(row["differ_in"]).split(",") if name})
    more = [f"{counted_noun(len(design.rows), 'result')} in {counted_noun(len(rows), 'group')}"]
    if not by:
        more.append("every cell: volbench show --format csv; some of them: --where 'bs==4k'")
    if unlike:
        more.append(
            f"rows without a median hold different workloads ({', '.join(map(_heading, unlike))}):"
            f" --by {','.join(map(_heading, [*columns, *unlike]))} separates them"
        )
    above = constants_words(design)
    return Table(
        "groups", table_columns, rows, title=titled(title, f"All: {above}"), notes=[*more, *notes]
    )


def titled(answer: str, constants: str) -> str:
    """Return the answer and the constants, with a blank line below them."""
    lines = [*filter(None, [answer, constants and f"{constants}."])]
    return "\n".join([*lines, ""]) if lines else ""


def design_table(design: Design) -> Table[Row]:
    """Return factors with their values, aliases and constants, and how often each was measured."""
    rows: list[Row] = [
        {"name": factor.column, "kind": "factor", "values": [*factor.values], "varies_with": ""}
        for factor in design.factors
    ]
    for alias, owner in design.aliases.items():
        values = dict.fromkeys(_key(row.get(alias)) for row in design.rows)
        rows.append(
            {"name": alias, "kind": "alias", "values": [*values], "varies_with": owner or "all"}
        )
    rows += [
        {"name": name, "kind": "constant", "values": [value], "varies_with": ""}
        for name, value in design.constants.items()
        if value is not None
    ]
    columns: list[Column[Row]] = [
        Column("name", lambda row: _heading(str(row["name"])), priority=IDENTITY),
        Column("kind"),
        Column("values", _values_text, is_folded=True),
        Column("varies_with", lambda row: _heading(str(row["varies_with"])), is_optional=True),
    ]
    document = {
        "factors": {factor.column: [*factor.values] for factor in design.factors},
        "constants": {name: value for name, value in design.constants.items() if value is not None},
        "aliases": dict(design.aliases),
        "compared": design.compared,
        "repeats": {str(count): cells for count, cells in sorted(design.repeats.items())},
        "missing": [dict(cell) for cell in design.missing()],
    }
    return Table("design", columns, rows, notes=repeat_notes(design), document=document)


def repeat_notes(design: Design) -> list[str]:
    """Return how often cells were measured, with those that were measured less or not at all."""
    if not design.cells:
        return ["no finished measured result"]
    usual, count = design.repeats.most_common(1)[0]
    share = "" if count == len(design.cells) else f"{count} of "
    others = [
        f"{_cell_text(cell.values)}: {_times_text(len(cell.places))}"
        for cell in design.cells
        if len(cell.places) != usual
    ]
    measured = f"{counted_noun(len(design.cells), 'cell')} measured {_times_text(usual)}"
    missing = [_cell_text(cell) for cell in design.missing()]
    notes = ["; ".join([share + measured, *_first_few(others)])]
    return [*notes, *([f"not measured: {'; '.join(_first_few(missing))}"] if missing else [])]


def _first_few(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _MAX_NAMED
    return [*texts[:_MAX_NAMED], *([f"and {more} more"] if more > 0 else [])]


def _times_text(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{numeral(count)} times")


def _cell_text(values: Mapping[str, object]) -> str:
    """Return the values of a cell, such as ``standard, randread, 4k, queue depth 64``."""
    return ", ".join(value_words(column, value) for column, value in values.items())


def sorted_cells(design: Design) -> list[Cell]:
    """Return cells by workload, with what is compared next to each other."""
    factors = sorted(design.factors, key=lambda factor: _rank(factor.column, design))
    places = [{_key(v): n for n, v in enumerate(factor.values)} for factor in factors]

    def order(cell: Cell) -> list[int]:
        return [
            place[_key(cell.values[factor.column])]
            for factor, place in zip(factors, places, strict=True)
        ]

    return sorted(design.cells, key=order)


def _rank(column: str, design: Design) -> tuple[int, int]:
    if column == design.compared:
        return (2, 0)
    return (0, WORKLOAD.index(column)) if column in WORKLOAD else (1, 0)


def _key(value: object) -> Hashable:
    return value if isinstance(value, Hashable) else str(value)


def _identity(design: Design) -> list[str]:
    """Return the columns that name a row: workload, other factors, and what is compared."""
    varying = [name for name in WORKLOAD if name in design.by_column or name in design.aliases]
    if not design.factors:
        varying = [*_SHOWN_ALONE]
    if "direction" in varying:
        varying = ["rw", *(name for name in varying if name not in {"rw", "direction"})]
    others = [name for name in design.by_column if name not in {*varying, "direction"}]
    return [*varying, *sorted(others, key=lambda name: _rank(name, design))]


def _identity_column(column: str, design: Design) -> Column[Row]:
    factor = design.by_column.get(column)
    short = short_values(column, factor.values) if factor else {}

    def show(row: Row) -> str:
        if column == "rw":
            return pattern(row)
        if column == "block_bytes":
            return block_size(row)
        value = row.get(column)
        if value == NOT_SET or (value is None and column in {NAME, "rwmixread"}):
            return ""
        return short.get(_key(value)) or shown_value(column, value)

    priority = IDENTITY if factor or column == "rw" else 3 if column == "rwmixread" else 1
    return Column(
        column, show, header=_heading(column), priority=priority, is_right=_is_number(column)
    )


def _heading(column: str) -> str:
    return _HEADINGS.get(column, column.removeprefix(LABEL_PREFIX).removesuffix("_bytes"))


def _is_number(column: str) -> bool:
    return column in {"iodepth", "numjobs", "rwmixread", "block_bytes"}


def _cell_rows(cell: Cell, design: Design, judgements: Judgements) -> list[Row]:
    rows = [design.rows[place] for place in cell.places]
    record = {name: rows[0].get(name) for name in _RECORDED}
    record |= {name: rows[0].get(name) for name in ("block_min_bytes", "block_max_bytes")}
    record |= {name: rows[0].get(name) for name in labels_of(rows)}
    record["job"] = ", ".join(dict.fromkeys(text(row, "job") for row in rows))
    record |= cell.values
    made: list[Row] = [{**record, **_numbers(cell, rows, judgements)}]
    keys = [(row.get("run"), row.get("group")) for row in rows]
    syncs = [judgements.syncs[key] for key in keys if key in judgements.syncs]
    if syncs and rows[0].get("direction") == "write":
        numbers = _numbers(cell, syncs, judgements)
        if numbers["latency"]:
            made.append({**record, "direction": "sync", "block_bytes": None, **numbers})
    return made


def _numbers(cell: Cell, rows: Sequence[Row], judgements: Judgements) -> dict[str, object]:
    """Return the medians of valid repeats; of invalid ones where there are no others."""
    runs = [[str(run) for run in members_of(row)] for row in rows]
    marks = ["".join(judgements.warnings.get(run, "") for run in of_row) for of_row in runs]
    valid = [row for row, mark in zip(rows, marks, strict=True) if "!" not in mark]
    result = cell_result(cell, tuple(valid or rows))
    kinds = {latency(row, "p99").column[:4] for row in result.rows} - {""}
    is_completion, p99_s = "clat" in kinds, _latency_s(result, "p99")
    every = [run for of_row in runs for run in of_row]
    states = {judgements.unsteady.get(run, "") for run in every} - {""}
    return {
        "repeats": len(rows),
        "iops": _or_none(result.iops),
        "iops_low": min(result.rates) if result.rates and _or_none(result.iops) else None,
        "iops_high": max(result.rates) if result.rates and _or_none(result.iops) else None,
        "bw_bytes_per_s": _or_none(result.bw_bytes_per_s),
        **{f"lat_{name}_s": _latency_s(result, name) for name in _LATENCIES},
        **({"lat_p99_s": None, "clat_p99_s": p99_s} if is_completion else {}),
        "latency": "clat" if is_completion else "lat" if kinds else None,
        "beyond": lower_bound(result.row, "p99"),
        "asked": result.asked,
        "kept": result.kept,
        "unsteady": ", ".join(sorted(states)),
        "warnings": sum(int(judgements.warnings.get(run, "").rstrip("!") or 0) for run in every),
        "invalid": len(rows) - len(valid),
        "runs": every,
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _latency_s(result: CellResult, statistic: str) -> float | None:
    values = [latency(row, statistic).seconds for row in result.rows]
    of_repeats = max if statistic == "max" else median
    return None if any(map(math.isnan, values)) else of_repeats(values)


def _range(row: Row) -> str:
    """Return the lowest to the highest repeat; empty for a single result."""
    if row.get("iops_low") is None or row.get("repeats") == 1:
        return ""
    ends = (format_count(number(row, name)) for name in ("iops_low", "iops_high"))
    return " to ".join(dict.fromkeys(ends))


def _latency_column(statistic: str, priority: int, kinds: Collection[object]) -> Column[Row]:
    """Return a latency; where some rows have completion latency alone, a star marks it."""
    column = f"lat_{statistic}_s"
    is_percentile = statistic == "p99"
    is_mixed = is_percentile and len(kinds) > 1

    def show(row: Row) -> str:
        is_completion = is_percentile and row.get("latency") == "clat"
        own = f"c{column}" if is_completion else column
        if row.get(own) is None and is_percentile and row.get("beyond"):
            return str(row["beyond"])
        value = shown(row, own, format_latency)
        return f"{value}*" if is_mixed and is_completion else value

    kind = "clat" if is_percentile and {*kinds} == {"clat"} else "lat"
    header = f"{kind} {statistic}"
    return Column(column, show, header=header, priority=priority, is_right=True, is_optional=True)


def _remarks(row: Row) -> str:
    """Return what a reader must know of a row: asked, invalid, not steady, warnings."""
    invalid, repeats = int(str(row["invalid"])), int(str(row["repeats"]))
    warnings = int(str(row["warnings"]))
    words = [str(row["kept"])] if row["kept"] else []
    words += [f"{invalid} invalid" if repeats > invalid else "invalid"] if invalid else []
    words += [str(row["unsteady"])] if row["unsteady"] else []
    words += [counted_noun(warnings, "warning")] if warnings and not invalid else []
    return ", ".join(words)


# Groups of cells


def _named(design: Design, by: Sequence[str]) -> list[str]:
    """Return the columns that a user named: factors, columns of results, and labels."""
    columns = dict.fromkeys([*design.by_column, *(name for row in design.rows for name in row)])
    found = []
    for name in by:
        if not (meant := meaning_of(name, columns)):
            raise InputError(
                f"--by names {name}, which is neither a factor nor a column of the results",
                hint=did_you_mean(name, [*columns]) or "see volbench show --design",
            )
        found.append(meant)
    return found


def _few_groups(design: Design) -> list[str]:
    """Return the first factors that give few groups, what is compared before all others."""
    first = [design.compared] if design.compared else []
    factors = [*first, *(name for name in WORKLOAD if name in design.by_column), *design.by_column]
    chosen: list[str] = []
    for column in dict.fromkeys(factors):
        longer = [*chosen, column]
        groups = {tuple(_key(cell.values[name]) for name in longer) for cell in design.cells}
        if len(groups) <= MAX_GROUPS:
            chosen = longer
    return sorted(chosen, key=lambda name: _rank(name, design))


def _text_of(row: Row, cell: Cell, column: str) -> str:
    if column == "rw":
        return pattern(row)
    return shown_value(column, cell.values.get(column, row.get(column)))


def _group_row(
    values: Mapping[str, object],
    cells: Sequence[Cell],
    others: Sequence[str],
    design: Design,
    judgements: Judgements,
) -> Row:
    """Return the numbers of a group: no median over different workloads."""
    rows = [design.rows[place] for cell in cells for place in cell.places]
    whole = Cell(cells[0].values, tuple(place for cell in cells for place in cell.places))
    numbers = _numbers(whole, rows, judgements)
    unlike = [
        factor.column
        for factor in design.factors
        if factor.column not in _PLACES
        and not factor.column.startswith(LABEL_PREFIX)
        and len({_key(cell.values[factor.column]) for cell in cells}) > 1
    ]
    if unlike:
        numbers |= dict.fromkeys(
            ("iops", "bw_bytes_per_s", "lat_mean_s", "lat_p99_s", "clat_p99_s")
        )
    spans = {column: _span([cell.values[column] for cell in cells], column) for column in others}
    return {**values, **spans, **numbers, "results": len(rows), "differ_in": ",".join(unlike)}


def _span(values: Iterable[object], column: str) -> str:
    known = sorted(float(str(value)) for value in values if value is not None)
    ends = [shown_value(column, value) for value in known[:1] + known[-1:]]
    return " to ".join(dict.fromkeys(ends))


def _values_text(row: Row) -> str:
    values = row["values"]
    listed = values if isinstance(values, list) else [values]
    return ", ".join(shown_value(str(row["name"]), value) for value in listed)
