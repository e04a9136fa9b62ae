"""Tables of the results of campaigns: cells or groups of them, runs, and sums over clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from volbench.analyse.frames.design import design_of
from volbench.model.campaign.planned_run import RunNote
from volbench.model.results.steadiness import State
from volbench.present.answer import Results, answer_of, valid_results
from volbench.present.factor_words import constants_words
from volbench.present.formatting import Row
from volbench.present.tables.aggregate_table import aggregate_table
from volbench.present.tables.design_table import (
    MAX_CELLS,
    Judgements,
    cells_table,
    groups_table,
    titled,
)
from volbench.present.tables.findings_table import warning_marks
from volbench.present.tables.matrix_table import compared_page_table
from volbench.present.tables.summary_table import state_notes, summary_table
from volbench.present.tables.table import Table
from volbench.units import counted_noun


def result_tables(
    results: Results,
    states: Mapping[str, RunNote],
    *,
    is_brief: bool = False,
    is_compared: bool = False,
    by: Sequence[str] = (),
    has_answer: bool = True,
) -> list[Table[Any]]:
    """Return the results of campaigns, and the aggregate over clients where there are several.

    Args:
        is_brief: whether very many cells are shown in groups.
        is_compared: whether a matrix stands for the cells where several workloads are compared.
        by: columns; results that are equal in them are one row.
        has_answer: whether the answer stands above the table.

    Raises:
        InputError: the results have no such column.
    """
    rows = results.results()
    if not rows:
        return [runs_table(results, states)]
    summary = results.rows("summary")
    judgements = Judgements(
        warning_marks(results.rows("findings")),
        {
            str(row["run"]): str(row["verdict"])
            for row in results.rows("verdicts")
            if row["verdict"] not in {State.STEADY.value, State.TOO_SHORT.value, None}
        },
        {(row["run"], row["group"]): row for row in summary if row["direction"] == "sync"},
    )
    design = design_of(rows)
    notes = [*state_notes(summary, states), *_at_once(results.rows("findings"))]
    if by:
        return [groups_table(design, judgements, by=by, notes=notes)]
    title = "\n".join(answer_of(results, rows)) if has_answer else ""
    matrix = None
    if is_compared:
        matrix = compared_page_table(design_of(valid_results(results, rows)[0]))
    if matrix is not None and matrix.name == "matrix" and len(matrix.rows) > 1:
        more = "latencies and each result: volbench show"
        above = titled(title, f"All: {constants_words(design)}")
        return [replace(matrix, title=above, notes=[*matrix.notes, more, *notes])]
    is_grouped = is_brief and len(design.cells) > MAX_CELLS
    table = (groups_table if is_grouped else cells_table)(
        design, judgements, title=title, notes=notes
    )
    aggregate = results.rows("aggregate")
    return [table, *([aggregate_table(aggregate)] if aggregate else [])]


def _at_once(findings: Sequence[Row]) -> Iterator[str]:
    """Yield which sections ran at the same time, with the number of other runs that had some."""
    found = [str(row["message"]) for row in findings if '"at_once"' in str(row["evidence"])]
    more = f" The same holds for {counted_noun(len(found) - 1, 'other run')}." if found[1:] else ""
    yield from (f"{message}{more}" for message in found[:1])


def runs_table(results: Results, states: Mapping[str, RunNote]) -> Table[Row]:
    """Return every run with its state, and its own numbers where it has a result."""
    marks = warning_marks(results.rows("findings"))
    return summary_table(results.rows("summary"), states=states, warnings=marks)
