"""Tables of the results of campaigns: each, in groups, by volume, and summed over clients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from volbench.analyse.frames.matched_workloads import order_by_workload
from volbench.model.campaign.planned_run import RunNote
from volbench.present.formatting import (
    Row,
    number,
    text,
)
from volbench.present.tables.aggregate_table import aggregate_table
from volbench.present.tables.findings_table import warning_marks
from volbench.present.tables.groups_table import MAX_RESULTS, groups_table
from volbench.present.tables.summary_table import (
    summary_table,
)
from volbench.present.tables.table import Table
from volbench.present.tables.volumes_table import collection_words, ranking_tables, workload_classes

MAX_RANKED = 3  # Volumes of a workload that are ranked on a screen; the report ranks all


class Results(Protocol):
    """Campaigns whose frames can be read as rows."""

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of a frame."""


def result_tables(
    results: Results,
    states: Mapping[str, RunNote],
    *,
    is_brief: bool = False,
    by: Sequence[str] = (),
) -> list[Table[Row]]:
    """Return the results of campaigns, and the aggregate over clients where there are several.

    Results of one workload follow each other, from campaign to campaign.

    Args:
        by: columns of the summary; results that are equal in them are one row of medians.

    Raises:
        InputError: the summary has no such column.
    """
    marks = warning_marks(results.rows("findings"))
    rows = in_numeric_order(order_by_workload(results.rows("summary")))
    if by:
        return [groups_table(rows, marks, states, by=by)]
    tables = [summary_table(rows, states=states, warnings=marks)]
    if is_brief and len(rows) > MAX_RESULTS:
        tables = [groups_table(rows, marks, states)]
        invalid = [run for run, mark in marks.items() if "!" in mark]
        classes = [] if results.rows("aggregate") else workload_classes(rows, invalid)
        if ranked := ranking_tables(classes, most=MAX_RANKED):
            title = collection_words(rows, classes, invalid)
            tables = [*ranked, replace(tables[0], title=" ".join(title))]
    tables += map(aggregate_table, filter(None, [results.rows("aggregate")]))
    return tables


def in_numeric_order(rows: Sequence[Row]) -> list[Row]:
    """Return results in the order of block size, queue depth and numjobs within each pattern."""
    kinds = [
        tuple(text(row, name) for name in ("host", "profile", "volume", "phase", "rw", "direction"))
        for row in rows
    ]
    first = {kind: at for at, kind in reversed(list(enumerate(kinds)))}

    def key(at: int) -> tuple[float, ...]:
        options = (number(rows[at], name) for name in ("block_bytes", "iodepth", "numjobs"))
        return first[kinds[at]], *(-1.0 if math.isnan(value) else value for value in options)

    return [rows[at] for at in sorted(range(len(rows)), key=key)]
