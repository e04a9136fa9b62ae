"""Comparisons for people and programs: verdicts enter, a table, Markdown, CSV or JSON leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.table import Table

from volbench.analyse.compare.comparison import Comparison
from volbench.analyse.compare.comparison_result import Compared, middle, row_of
from volbench.analyse.compare.repeat_statistics import Group
from volbench.model.frames.measure import Measure
from volbench.present.export.csv_text import csv_text
from volbench.present.formatting import printable
from volbench.present.tables.result_tables import text_table
from volbench.units import format_count, format_latency, format_rate

FORMATS = ("table", "json", "csv", "markdown")


def comparison_table(comparison: Comparison) -> Table:
    """Return a row for each comparison, with what a reader must know below."""
    headings = _headings(comparison.rows)
    rows = [_cells(one, comparison.rows) for one in comparison.rows]
    words = {"job", "dir", "metric", "verdict", "candidate", "repeats", *_by(comparison.rows)}
    caption = "\n".join([*notes(comparison), *comparison.remarks])
    return text_table(headings, rows, words=words, caption=caption)


def comparison_markdown(comparison: Comparison) -> str:
    """Return the same as a Markdown table with a list below."""
    lines = [_markdown_row(_headings(comparison.rows))]
    lines.append("|" + " --- |" * len(_headings(comparison.rows)))
    lines += [_markdown_row(_cells(one, comparison.rows)) for one in comparison.rows]
    lines.append("")
    lines += [f"- {_escaped(line)}" for line in (*notes(comparison), *comparison.remarks)]
    return "\n".join(lines) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """Return every number in full precision, a line a comparison; unknown is empty."""
    return csv_text([row_of(one) for one in comparison.rows])


def comparison_json(comparison: Comparison) -> str:
    """Return an object with ``comparisons``, ``remarks`` and the ``confidence`` of all together."""
    told = {
        "confidence": comparison.confidence,
        "comparisons": [row_of(one) for one in comparison.rows],
        "remarks": [*notes(comparison), *comparison.remarks],
    }
    return json.dumps(told, indent=1) + "\n"


def notes(comparison: Comparison) -> list[str]:
    """Return how the verdicts are to be read, one sentence each."""
    tested = [one for one in comparison.rows if one.contrast]
    share = f"{100 * comparison.confidence:g} %"
    told = ["Percent: change of the metric against the base; faster is more IOPS or less latency."]
    if len(tested) > 1:
        told.append(
            f"{len(tested)} comparisons: all verdicts hold together with {share} (Holm);"
            " an interval is as wide as its own verdict needs."
        )
    elif tested:
        told.append(f"Intervals hold the true change with {share}.")
    units = {one.contrast.unit for one in tested if one.contrast}
    if "repeats" in units:
        told.append("One volume on each side: this holds for these volumes, not for their kinds.")
    if any(one.doubts for one in comparison.rows):
        told.append("! Findings doubt a Run; see volbench check.")
    return told


def measure_name(measure: Measure) -> str:
    """Return a metric as it was typed, with the kind of latency where it is not the total."""
    kind = measure.column.partition("lat_")[0] if measure.is_latency else ""
    already = measure.name.startswith(("c", "s")) or not kind
    return measure.name if already else f"{measure.name} ({kind}lat)"


def shown_value(measure: Measure, value: float) -> str:
    """Return a value of a metric for people."""
    if measure.is_latency:
        return format_latency(value)
    return format_rate(value) if measure.column.startswith("bw_") else format_count(value)


def _by(rows: Sequence[Compared]) -> list[str]:
    return list(rows[0].by) if rows else []


def _headings(rows: Sequence[Compared]) -> list[str]:
    candidates = list(dict.fromkeys(one.candidate for one in rows))
    base = rows[0].base
    if len(candidates) == 1:
        return ["job", "dir", *_by(rows), "metric", base, candidates[0], "repeats", "verdict"]
    return ["job", "dir", *_by(rows), "metric", "candidate", base, "value", "repeats", "verdict"]


def _cells(one: Compared, rows: Sequence[Compared]) -> list[str]:
    several = len({other.candidate for other in rows}) > 1
    values = [
        shown_value(one.measure, middle(group)) for group in (one.base_group, one.candidate_group)
    ]
    return [
        one.label,
        one.direction,
        *one.by.values(),
        measure_name(one.measure),
        *([one.candidate] if several else []),
        *values,
        _repeats(one.base_group, one.candidate_group),
        one.words + (" !" if one.doubts else ""),
    ]


def _repeats(base: Group, candidate: Group) -> str:
    """Return how many repeats there are on each side, and on how many volumes."""
    texts = [
        f"{group.repeats} on {group.volumes}" if group.volumes > 1 else str(group.repeats)
        for group in (base, candidate)
    ]
    return texts[0] if texts[0] == texts[1] else ", ".join(texts)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Return a text that stays in its cell: what comes from a file is no Markdown or HTML."""
    line = " ".join(printable(text).split())
    for char in "\\|<>*_`[]":
        line = line.replace(char, f"\\{char}")
    return line
