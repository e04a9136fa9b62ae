"""Table of comparisons: values, change with its interval, and verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, middle, row_of
from volbench.analyse.compare.comparison_summary import headlines, means_over_workloads
from volbench.analyse.compare.repeat_statistics import Group
from volbench.model.frames.column_names import Measure
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import format_count, format_latency, format_rate


def comparison_table(comparison: Comparison) -> Table[Compared]:
    """Return a row for each comparison under the answer, with notes that explain the verdicts."""
    answer = headlines(comparison)
    return Table(
        "comparison",
        _columns(comparison.rows),
        comparison.rows,
        record=row_of,
        title=" ".join(answer),
        notes=[*notes(comparison), *comparison.remarks],
        document={
            "summary": answer,
            "confidence": comparison.confidence,
            "comparisons": [row_of(row) for row in comparison.rows],
            "remarks": [*notes(comparison), *comparison.remarks],
        },
    )


def notes(comparison: Comparison) -> list[str]:
    """Return the notes that explain the verdicts, one sentence each."""
    tested = [row for row in comparison.rows if row.contrast]
    share = f"{100 * comparison.confidence:g} %"
    lines = ["Percent: change of the metric against the base; faster is more IOPS or less latency."]
    if len(tested) > 1:
        lines.append(
            f"{len(tested)} comparisons: family-wise confidence {share} (Holm-Bonferroni);"
            " an interval is as wide as its own verdict needs."
        )
    elif tested:
        lines.append(f"Confidence of the intervals: {share}.")
    lines += means_over_workloads(comparison)
    units = {row.contrast.unit for row in tested if row.contrast}
    if "repeats" in units:
        lines.append("n = 1 volume per side: does not generalise to the volume type.")
    if any(row.warnings for row in comparison.rows):
        lines.append("! data-quality warnings on a run; see volbench check.")
    return lines


def measure_name(measure: Measure) -> str:
    """Return the name of a metric, with the kind of latency if it is not total latency."""
    kind = measure.column.partition("lat_")[0] if measure.is_latency else ""
    already = measure.name.startswith(("c", "s")) or not kind
    return measure.name if already else f"{measure.name} ({kind}lat)"


def shown_value(measure: Measure, value: float) -> str:
    """Return a value of a metric for people."""
    if measure.is_latency:
        return format_latency(value)
    return format_rate(value) if measure.column.startswith("bw_") else format_count(value)


def _columns(rows: Sequence[Compared]) -> list[Column[Compared]]:
    candidates = list(dict.fromkeys(row.candidate for row in rows))
    several = len(candidates) > 1
    columns: list[Column[Compared]] = [
        Column("job", lambda row: row.label, priority=IDENTITY),
        Column("direction", lambda row: row.direction, header="dir", priority=1),
    ]
    columns += [
        Column(name, lambda row, name=name: row.by[name], priority=IDENTITY)  # type: ignore[misc]  # the default binds the loop's value
        for name in (rows[0].by if rows else ())
    ]
    columns.append(Column("metric", lambda row: measure_name(row.measure), priority=IDENTITY))
    if several:
        columns.append(Column("candidate", lambda row: row.candidate, priority=IDENTITY))
    return [
        *columns,
        _value_column("base_value", rows[0].base if rows else "base", lambda row: row.base_group),
        _value_column(
            "value",
            "value" if several or not rows else candidates[0],
            lambda row: row.candidate_group,
        ),
        Column("repeats", _repeats, priority=3, is_right=True),
        Column(
            "verdict",
            lambda row: row.words + (" !" if row.warnings else ""),
            priority=IDENTITY,
            is_folded=True,
        ),
    ]


def _value_column(
    name: str, header: str, group_of: Callable[[Compared], Group]
) -> Column[Compared]:
    return Column(
        name,
        lambda row: shown_value(row.measure, middle(group_of(row))),
        header=header,
        priority=2,
        is_right=True,
    )


def _repeats(row: Compared) -> str:
    """Return the number of repeats on each side, and of volumes."""
    texts = [
        f"{group.repeats} on {group.volumes}" if group.volumes > 1 else str(group.repeats)
        for group in (row.base_group, row.candidate_group)
    ]
    return texts[0] if texts[0] == texts[1] else ", ".join(texts)
